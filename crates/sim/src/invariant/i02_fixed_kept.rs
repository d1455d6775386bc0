//! 2: a fixed machine is never deleted, nor is its deletion ever asked for.

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;
use bigfleet_shard::{Effect, Request};

use super::{Invariant, Moment};

pub(super) struct FixedKept;

fn is_rented(kind: CapacityType) -> bool {
    matches!(kind, CapacityType::OnDemand | CapacityType::Spot)
}

impl Invariant for FixedKept {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Changed { machine, .. } if machine.state == MachineState::Deleting.to_wire() => {
                let kind = CapacityType::from_wire(machine.capacity_type).unwrap_or_default();
                (!is_rented(kind)).then(|| format!("machine {} is {kind:?} and Deleting", machine.id))
            }
            Moment::Step { shard, step, .. } => step.effects.iter().find_map(|effect| {
                let Effect::Call { request: Request::Delete { machine }, .. } = effect else { return None };
                let kind = shard.machine(machine).map(|view| view.machine.capacity_type)?;
                (!is_rented(kind)).then(|| format!("Delete of machine {machine}, which is {kind:?}"))
            }),
            _ => None,
        }
    }
}
