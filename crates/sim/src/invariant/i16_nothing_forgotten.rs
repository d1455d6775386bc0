//! 16: bought machines are used or released, never forgotten.

use std::collections::BTreeMap;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;
use bigfleet_model::release::ReleasePolicy;

use super::{Invariant, Moment};

/// How long after its hold an idle machine may still be there: a listing, a cycle, a call and some tries.
const SLACK: i64 = 300_000_000_000;

pub(super) struct NothingForgotten {
    release: ReleasePolicy,
    idle: BTreeMap<String, (CapacityType, i64)>,
}

impl NothingForgotten {
    pub(super) fn new(release: ReleasePolicy) -> Self {
        Self { release, idle: BTreeMap::new() }
    }
}

impl Invariant for NothingForgotten {
    fn see(&mut self, now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Changed { machine, .. } => {
                if machine.state == MachineState::Idle.to_wire() {
                    let kind = CapacityType::from_wire(machine.capacity_type).unwrap_or_default();
                    self.idle.entry(machine.id.clone()).or_insert((kind, now));
                } else {
                    self.idle.remove(&machine.id);
                }
                None
            }
            Moment::Settled { .. } => self.idle.iter().find_map(|(id, (kind, since))| {
                let due = self.release.due_unix_nanos(*kind, *since)?;
                let minutes = (now - since) / 60_000_000_000;
                (now > due + SLACK).then(|| format!("machine {id} is rented and idle for {minutes} minutes"))
            }),
            _ => None,
        }
    }
}
