//! A flight: one action on its way, from the decision to the provider's answer.
//!
//! There is at most one per machine. A flight ends with the provider's answer; what follows, the end of a move that the
//! provider carries out in its own time, comes with the next listing.

use std::sync::Arc;

use bigfleet_engine::{ActionKind, Demand};
use bigfleet_model::machine::MachineState;

use crate::event::{Blob, CallId, WireId};

/// One action on its way.
#[derive(Clone, Debug)]
pub struct Flight {
    /// What is being done.
    pub kind: ActionKind,
    /// The cluster that gets the machine or loses it.
    pub cluster: Option<Arc<str>>,
    /// The need it is for.
    pub need: Option<Arc<Demand>>,
    /// When it was begun.
    pub begun_unix_nanos: i64,
    /// The cycle it was decided in. For the second half of a Provision: the last cycle, which still claimed the machine.
    pub cycle: u64,
    /// The state the machine was in.
    pub from: MachineState,
    /// Since when it had idled, if it did.
    pub(crate) idle_since: Option<i64>,
    /// How often the call was tried.
    pub tries: u32,
    /// Where it is.
    pub stage: Stage,
    /// For Preempt and Reclaim: when the grace is over.
    pub grace_until_unix_nanos: i64,
    /// For Preempt: the priority the machine yields to.
    pub preemptor_priority: i32,
    /// For Preempt and Reclaim: the instruction the cluster got.
    pub(crate) instruction: WireId,
    /// How often the cluster acknowledged the instruction.
    pub(crate) acks: u32,
    /// Its provider says that it knows no such machine. It may have carried out the order all the same.
    pub(crate) denied: bool,
    /// The blob, once it is there, and when it must have been used.
    pub(crate) blob: Option<(Blob, i64)>,
    /// Told apart from other flights of the same machine.
    pub(crate) number: u64,
}

/// Where a flight is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waits for the operator's blob.
    Blob(WireId),
    /// Waits for the cluster to let go of the machine, or for the grace to end.
    LettingGo(WireId),
    /// Waits for a place among the calls under way.
    Queued,
    /// The provider was called.
    Calling(CallId),
    /// Waits to try again.
    Backoff,
    /// The provider refused; it was asked what the machine is.
    Asking(CallId),
}

impl Stage {
    /// The stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Blob(_) => "waits_for_blob",
            Self::LettingGo(_) => "waits_for_cluster",
            Self::Queued => "queued",
            Self::Calling(_) => "calling",
            Self::Backoff => "backoff",
            Self::Asking(_) => "asking",
        }
    }

    /// Whether the provider may know of the order.
    pub(crate) fn provider_may_know(self) -> bool {
        matches!(self, Self::Calling(_) | Self::Backoff | Self::Asking(_))
    }
}

impl Flight {
    /// The order in which flights get places: preemptions first, reclaims last.
    pub(crate) fn rank(&self) -> u8 {
        crate::rails::rank(self.kind)
    }
}
