//! 23: a rented machine is not given back before it has idled as long as it is to be held.

use std::collections::BTreeMap;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;
use bigfleet_model::release::ReleasePolicy;
use bigfleet_shard::{Effect, Request};

use super::{Invariant, Moment};

pub(super) struct HeldLongEnough {
    release: ReleasePolicy,
    /// How far clocks may have jumped.
    slack: i64,
    idle: BTreeMap<String, (CapacityType, i64)>,
    /// Machines that a listing which is not true called Idle, and when it first did since anybody said the truth: a shard that
    /// believes it holds them from there.
    told_idle: BTreeMap<String, i64>,
}

impl HeldLongEnough {
    pub(super) fn new(release: ReleasePolicy, slack: i64) -> Self {
        Self { release, slack, idle: BTreeMap::new(), told_idle: BTreeMap::new() }
    }
}

impl Invariant for HeldLongEnough {
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
            Moment::Heard { machines, clean, .. } => {
                for machine in *machines {
                    let is_idle = machine.state == MachineState::Idle.to_wire();
                    match clean {
                        true if !is_idle => drop(self.told_idle.remove(&machine.id)),
                        false if is_idle => drop(self.told_idle.entry(machine.id.clone()).or_insert(now)),
                        _ => {}
                    }
                }
                None
            }
            Moment::Answered { machine, .. } => {
                if machine.state != MachineState::Idle.to_wire() {
                    self.told_idle.remove(&machine.id);
                }
                None
            }
            Moment::Step { step, .. } => step.effects.iter().find_map(|effect| {
                let Effect::Call { request: Request::Delete { machine }, .. } = effect else { return None };
                let (kind, since) = self.idle.get(&**machine)?;
                let since = self.told_idle.get(&**machine).map_or(*since, |told| *told.min(since));
                let due = self.release.due_unix_nanos(*kind, since)?;
                let early = due - now - self.slack;
                (early > 0).then(|| {
                    format!(
                        "machine {machine} is given back {} s before its hold is over",
                        early / 1_000_000_000
                    )
                })
            }),
            _ => None,
        }
    }
}
