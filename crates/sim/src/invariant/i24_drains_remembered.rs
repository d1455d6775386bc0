//! 24: a cluster that was told to let go of a machine is not told by the shard's next life that it stays.

use std::collections::BTreeMap;

use bigfleet_model::machine::MachineState;
use bigfleet_shard::{Effect, Frame};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct DrainsRemembered {
    /// Machines whose clusters were told, by which shard, and whether a new life of it has begun since.
    told: BTreeMap<Box<str>, (usize, bool)>,
    /// How many reclaims each host's life has taken back: such a machine stays because somebody decided so.
    taken_back: BTreeMap<usize, u64>,
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
                let taken_back = shard.tally().taken_back;
                let stays = self.taken_back.insert(*host, taken_back).unwrap_or(0) < taken_back;
                if stays {
                    // Which one is not said here. A life that is killed before it says so leaves that to the next one, which
                    // has it from memory: nothing of this shard's counts as announced any more.
                    self.told.retain(|_, (of, _)| of != index);
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
                            (anew && !stays && machine.state == MachineState::Configured).then(|| {
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
