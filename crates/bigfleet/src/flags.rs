//! Values of flags that are enumerations of the wire, in the words people type. Case does not matter.

use bigfleet_proto::v1alpha1::{CapacityType, MachineState};
use bigfleet_view::v1::{ActionKind, Fate, Reason};
use clap::ValueEnum;

macro_rules! flag {
    ($(#[$doc:meta])* $name:ident is $wire:ident: $($variant:ident),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub(crate) enum $name {
            $(
                #[doc(hidden)]
                $variant,
            )+
        }

        impl From<$name> for i32 {
            fn from(flag: $name) -> Self {
                match flag {
                    $($name::$variant => $wire::$variant.into(),)+
                }
            }
        }
    };
}

flag!(
    /// A machine's state.
    State is MachineState: Speculative, Creating, Idle, Configuring, Configured, Draining, Deleting, Failed
);
flag!(
    /// How a machine is paid for.
    Capacity is CapacityType: BareMetal, Reserved, OnDemand, Spot
);
flag!(
    /// What an action does.
    Kind is ActionKind: Bootstrap, Provision, Preempt, Reclaim, Delete
);
flag!(
    /// What became of an action.
    Became is Fate: Begun, Paused, DryRun, Capped, OverBound, NoPlace, StaleInventory, OperatorBackoff, Busy, Regretted, TakenBack, LossUnconfirmed, OnlyLooks, Observed, AwaitsApproval
);
flag!(
    /// Why a need is short.
    Why is Reason: Parked, InFlight, NoMatchingSupply, TopologyUnsatisfiable, PreemptionExhausted, PriorityStarved
);

/// The wire's numbers of several flags.
pub(crate) fn numbers<T: Copy + Into<i32>>(flags: &[T]) -> Vec<i32> {
    flags.iter().map(|flag| (*flag).into()).collect()
}
