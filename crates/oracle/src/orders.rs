//! What an action does to the machine it is about, at the moment it is begun.

use std::sync::Arc;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_scenario::answer::{Action, ActionKind};

use crate::random::{put_in_state, stamp};

/// Begins an action on a machine, for the need it is for. False if the machine is not in the state the action
/// was ordered in, or the need is not known: then nothing comes of it.
pub(crate) fn begin(machine: &mut Machine, action: &Action, need: Option<&Need>) -> bool {
    let cluster: Arc<str> = action.cluster.as_deref().unwrap_or_default().into();
    match (action.kind, machine.state) {
        (ActionKind::Bootstrap, MachineState::Idle) => {
            let Some(need) = need else { return false };
            machine.assigned = stamp(&need.cluster, &need.profile, &need.group);
            put_in_state(machine, MachineState::Configuring, &cluster);
        }
        (ActionKind::Provision, MachineState::Speculative) => {
            let Some(need) = need else { return false };
            machine.assigned = stamp(&need.cluster, &need.profile, &need.group);
            put_in_state(machine, MachineState::Creating, &cluster);
        }
        (ActionKind::Preempt, MachineState::Configured) => {
            let Some(need) = need else { return false };
            machine.draining_for = Some(need.key());
            put_in_state(machine, MachineState::Draining, &cluster);
        }
        (ActionKind::Reclaim, MachineState::Configured) => {
            put_in_state(machine, MachineState::Draining, &cluster);
        }
        (ActionKind::Delete, MachineState::Idle) => {
            put_in_state(machine, MachineState::Deleting, &cluster);
        }
        _ => return false,
    }
    true
}
