//! The four moves: where each may start, what it looks like under way, and where it ends.
//!
//! This is the only place that writes a state into a record, apart from what a provider reports of its own
//! accord. Everything that comes and goes with a state (host, cluster, metadata, error) moves here with it.

use std::collections::BTreeMap;
use std::fmt;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::{HostRef, Machine};

/// A move a shard may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// Speculative to Idle.
    Create = 0,
    /// Idle to Configured.
    Configure = 1,
    /// Configured to Idle.
    Drain = 2,
    /// Idle to Speculative.
    Delete = 3,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Create, Self::Configure, Self::Drain, Self::Delete];

    /// The only state it may start in.
    pub fn from(self) -> MachineState {
        match self {
            Self::Create => MachineState::Speculative,
            Self::Configure | Self::Delete => MachineState::Idle,
            Self::Drain => MachineState::Configured,
        }
    }

    /// The state while it is under way.
    pub fn during(self) -> MachineState {
        match self {
            Self::Create => MachineState::Creating,
            Self::Configure => MachineState::Configuring,
            Self::Drain => MachineState::Draining,
            Self::Delete => MachineState::Deleting,
        }
    }

    /// The state it ends in.
    pub fn to(self) -> MachineState {
        match self {
            Self::Create | Self::Drain => MachineState::Idle,
            Self::Configure => MachineState::Configured,
            Self::Delete => MachineState::Speculative,
        }
    }

    /// The move that is under way in this state.
    pub fn under_way_in(state: MachineState) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.during() == state)
    }

    /// Its name on the wire, and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Configure => "Configure",
            Self::Drain => "Drain",
            Self::Delete => "Delete",
        }
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of a record. Records the kit holds were checked when they came in.
pub(crate) fn state_of(machine: &Machine) -> MachineState {
    MachineState::from_wire(machine.state).expect("records are checked when they enter")
}

/// The record once the move has begun.
pub(crate) fn begun(machine: &Machine, kind: OperationKind) -> Machine {
    with_state(machine, kind.during())
}

/// The record once a Configure has begun: bound from here on.
pub(crate) fn bound(machine: &Machine, cluster: &str, metadata: &BTreeMap<String, String>) -> Machine {
    let mut machine = with_state(machine, MachineState::Configuring);
    machine.cluster = cluster.into();
    machine.shard_metadata = metadata.clone();
    machine
}

/// The record of a machine that was made.
pub(crate) fn created(machine: &Machine, provider: &str, reference: String) -> Machine {
    let mut machine = with_state(machine, MachineState::Idle);
    machine.host = Some(HostRef { provider: provider.into(), r#ref: reference });
    machine
}

/// The record once a move other than Create has ended well.
pub(crate) fn ended(machine: &Machine, kind: OperationKind) -> Machine {
    with_state(machine, kind.to())
}

/// The record as if the move had never begun.
pub(crate) fn undone(machine: &Machine, kind: OperationKind) -> Machine {
    with_state(machine, kind.from())
}

/// The record of a machine that broke.
pub(crate) fn failed(machine: &Machine, reason: &str) -> Machine {
    let mut machine = with_state(machine, MachineState::Failed);
    machine.last_error = if reason.is_empty() { "failed without a reason".into() } else { reason.into() };
    machine
}

fn with_state(machine: &Machine, state: MachineState) -> Machine {
    let mut machine = machine.clone();
    machine.state = state.to_wire();
    settle(&mut machine);
    machine
}

/// Clears what a record may not carry in its state: a host before there is hardware, a binding while
/// unbound, an error while nothing is wrong.
pub(crate) fn settle(machine: &mut Machine) {
    let Some(state) = MachineState::from_wire(machine.state) else { return };
    if matches!(state, MachineState::Speculative | MachineState::Creating) {
        machine.host = None;
    }
    if !state.is_bound() {
        machine.cluster.clear();
        machine.shard_metadata.clear();
    }
    if state != MachineState::Failed {
        machine.last_error.clear();
    }
}
