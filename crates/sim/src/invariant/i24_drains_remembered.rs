//! 24: a cluster that was told to let go of a machine is not told by the shard's next life that it stays.

use std::collections::BTreeMap;

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState;
use bigfleet_shard::{Effect, Fact, Frame, Tally};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct DrainsRemembered {
    /// Machines whose clusters were told, by which shard, and whether a new life of it has begun since.
    told: BTreeMap<Box<str>, (usize, bool)>,
    /// How many drains each host's life has taken back or called off: such machines stay because that was decided.
    taken_back: BTreeMap<usize, u64>,
}

/// How many drains a life let go of because demand returned, or because their mode no longer allows them.
fn taken_back(tally: &Tally) -> u64 {
    let called_off = [ActionKind::Reclaim, ActionKind::Preempt].map(|kind| (kind, "mode"));
    let called_off: u64 = called_off.iter().filter_map(|key| tally.flights.get(key)).sum();
    tally.taken_back + called_off
}

impl Invariant for DrainsRemembered {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Forgotten { .. } | Moment::Heard { clean: false, .. } => {
                self.told.clear();
                None
            }
            Moment::Started { host, index } => {
                self.taken_back.remove(host);
                for (of, anew) in self.told.values_mut() {
                    *anew |= of == index;
                }
                None
            }
            // What becomes of it otherwise is no longer a matter of memory.
            Moment::Changed { machine, before: Some(_) } => {
                self.told.remove(machine.id.as_str());
                None
            }
            Moment::Step { host, index, shard, step, .. } => {
                let taken_back = taken_back(shard.tally());
                let stays = self.taken_back.insert(*host, taken_back).unwrap_or(0) < taken_back;
                if stays {
                    // What is written down in such a step says which: a machine that nobody lets go of any more. If the life
                    // ends before its cluster hears that, the next one says so, from memory.
                    for fact in &step.facts {
                        if let Fact::Machine(id, memo) = fact
                            && memo.as_ref().is_none_or(|memo| memo.letting_go.is_none())
                        {
                            self.told.remove(id);
                        }
                    }
                }
                step.effects.iter().find_map(|effect| {
                    let Effect::Send { frame, .. } = effect else { return None };
                    match frame {
                        Frame::Reclaim { machine, .. } => {
                            self.told.insert(machine.clone(), (*index, false));
                            None
                        }
                        Frame::Node(machine) => {
                            let (_, anew) = self.told.get(&machine.id).copied()?;
                            if machine.state == MachineState::Draining {
                                self.told.insert(machine.id.clone(), (*index, false));
                                return None;
                            }
                            self.told.remove(&machine.id);
                            (anew && machine.state == MachineState::Configured).then(|| {
                                format!(
                                    "machine {} was to be let go of, and after a restart it stays",
                                    machine.id
                                )
                            })
                        }
                        _ => None,
                    }
                })
            }
            _ => None,
        }
    }
}
