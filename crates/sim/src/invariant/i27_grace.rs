//! 27: no drain begins before the cluster has let go of the machine or its grace is over.

use std::collections::BTreeMap;

use bigfleet_shard::{Effect, Fact, Request};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct Grace {
    /// Drains that were announced, by host: the instruction and when the grace is over, by the shard's clock.
    announced: BTreeMap<(usize, Box<str>), (u64, i64)>,
    /// Instructions the cluster has acknowledged: how often, and whether it had nothing to do.
    acked: BTreeMap<u64, (u32, bool)>,
}

impl Invariant for Grace {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Acked { instruction, nodes } => {
                let (times, nothing) = self.acked.entry(*instruction).or_default();
                *times += 1;
                *nothing |= *nodes <= 0;
                None
            }
            Moment::Step { host, step, clock, .. } => {
                for fact in &step.facts {
                    if let Fact::Machine(id, Some(memo)) = fact
                        && let Some(goes) = &memo.letting_go
                    {
                        self.announced.insert((*host, id.clone()), (goes.instruction, goes.until_unix_nanos));
                    }
                }
                step.effects.iter().find_map(|effect| {
                    let Effect::Call { request: Request::Drain { machine, .. }, .. } = effect else { return None };
                    let (instruction, until) = self.announced.get(&(*host, machine.clone()))?;
                    let (times, nothing) = self.acked.get(instruction).copied().unwrap_or_default();
                    let early = until - clock;
                    (early > 0 && times < 2 && !nothing).then(|| {
                        let secs = early / 1_000_000_000;
                        format!("machine {machine} is drained {secs} s before its grace is over, and nobody let go of it")
                    })
                })
            }
            _ => None,
        }
    }
}
