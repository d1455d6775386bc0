//! Parking: a gang that cannot be assembled stops trying for a while.
//!
//! A gang unsatisfied for eight cycles in a row, with nothing acquired and no domain that covers it, is parked: it keeps
//! what it has and acquires nothing. Every 32nd cycle it may look: nothing is begun for it, and if it sees that it can be
//! assembled it is parked no more and acts in the next cycle. A try that acts on less would buy a part, give it back, and
//! begin anew every 32 cycles.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::Fleet;
use bigfleet_model::need::NeedKey;

use crate::tape::Input;

/// Cycles in a row after which a gang is parked.
pub const PARK_AFTER_CYCLES: u64 = 8;
/// A parked gang may try in one cycle of so many.
pub(crate) const TRY_EVERY_CYCLES: u64 = 32;

/// A gang that makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The first cycle it made none in.
    pub since_cycle: u64,
    /// The cycle it was parked in, if it is.
    pub parked_cycle: Option<u64>,
}

impl Stuck {
    /// Whether it is parked in a cycle: every so many it may try.
    fn is_parked_in(&self, cycle: u64) -> bool {
        self.parked_cycle.is_some_and(|at| cycle == at || !(cycle - at).is_multiple_of(TRY_EVERY_CYCLES))
    }

    /// The first cycle after this one in which it may try again; `None` if it is not parked.
    pub fn next_try(&self, cycle: u64) -> Option<u64> {
        let at = self.parked_cycle?;
        Some(at + (cycle.saturating_sub(at) / TRY_EVERY_CYCLES + 1) * TRY_EVERY_CYCLES)
    }
}

fn is_due(stuck: &Stuck, cycle: u64) -> bool {
    stuck.parked_cycle.is_none() && cycle - stuck.since_cycle >= PARK_AFTER_CYCLES
}

/// All gangs that make no progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parking {
    stuck: BTreeMap<NeedKey, Stuck>,
    /// Those the engine has as parked right now.
    stamped: BTreeSet<NeedKey>,
}

impl Parking {
    /// Whether some gang would be parked in this cycle.
    pub(crate) fn is_about_to_park(&self, cycle: u64) -> bool {
        self.stuck.values().any(|stuck| is_due(stuck, cycle))
    }

    /// What happens before the phases of a cycle: those that wait for machines are given time, others are parked or let
    /// try. The changes, for the tape. This is the one place where the rule lives; who plans a cycle calls it on copies.
    pub(crate) fn before(
        &mut self,
        coming: &BTreeSet<NeedKey>,
        engine: &mut Fleet,
        cycle: u64,
    ) -> Vec<Input> {
        if self.is_about_to_park(cycle) {
            self.wait_for(coming, cycle);
        }
        self.stamp(engine, cycle)
    }

    /// Gangs that wait for machines on their way are given the time: parked, they could not take what was made for them.
    fn wait_for(&mut self, coming: &BTreeSet<NeedKey>, cycle: u64) {
        for (key, stuck) in &mut self.stuck {
            if is_due(stuck, cycle) && coming.contains(key) {
                stuck.since_cycle = cycle;
            }
        }
    }

    /// Stamps before the phases of a cycle. The changes, for the tape.
    fn stamp(&mut self, engine: &mut Fleet, cycle: u64) -> Vec<Input> {
        let mut changes = Vec::new();
        for (key, stuck) in &mut self.stuck {
            if is_due(stuck, cycle) {
                stuck.parked_cycle = Some(cycle);
            }
            let parked = stuck.is_parked_in(cycle);
            if parked != self.stamped.contains(key) {
                engine.set_parked(key, parked);
                changes.push(Input::Park { key: key.clone(), parked });
                if parked {
                    self.stamped.insert(key.clone());
                } else {
                    self.stamped.remove(key);
                }
            }
        }
        changes
    }

    /// Looks at what came of a cycle that changed something.
    pub(crate) fn look(&mut self, engine: &mut Fleet, cycle: u64) -> Vec<Input> {
        let mut before = std::mem::take(&mut self.stuck);
        for short in engine.short_needs() {
            let need = &short.demand.need;
            // What was taken or is on its way out of another cluster for it is progress: a gang that is parked when its
            // victim comes free would leave the machine to the one it was taken from, and take it again, for ever.
            let key = need.key();
            let is_parked = before.get(&key).is_some_and(|stuck| stuck.parked_cycle.is_some());
            // One that is parked only looked: what it would take is progress if that is all it needs.
            let moves = short.in_flight > 0 || !is_parked && short.acquired + short.victims > 0;
            if need.profile.same().is_none() || moves || short.domain_covers == Some(true) {
                continue;
            }
            let stuck = before.remove(&key).unwrap_or(Stuck { since_cycle: cycle, parked_cycle: None });
            self.stuck.insert(key, stuck);
        }
        // Progress, or the need is gone.
        let mut changes = Vec::new();
        for key in before.into_keys() {
            if self.stamped.remove(&key) {
                engine.set_parked(&key, false);
                changes.push(Input::Park { key, parked: false });
            }
        }
        changes
    }

    /// Whether a gang only looks in this cycle: it is parked, and not shown to the engine as such.
    pub(crate) fn only_looks(&self, key: &NeedKey) -> bool {
        self.stuck.get(key).is_some_and(|stuck| stuck.parked_cycle.is_some()) && !self.stamped.contains(key)
    }

    pub(crate) fn parked(&self) -> impl Iterator<Item = &NeedKey> {
        self.stamped.iter()
    }

    pub(crate) fn get(&self, key: &NeedKey) -> Option<&Stuck> {
        self.stuck.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_gang_tries_every_so_many_cycles_and_says_when() {
        let stuck = Stuck { since_cycle: 10, parked_cycle: Some(18) };
        assert!(stuck.is_parked_in(18) && stuck.is_parked_in(19) && stuck.is_parked_in(49));
        assert!(!stuck.is_parked_in(50), "every 32nd cycle it may try");
        assert_eq!(
            (stuck.next_try(18), stuck.next_try(49), stuck.next_try(50)),
            (Some(50), Some(50), Some(82))
        );
        assert_eq!(Stuck { parked_cycle: None, ..stuck }.next_try(18), None);
        assert!(!is_due(&Stuck { parked_cycle: None, ..stuck }, 17));
        assert!(is_due(&Stuck { parked_cycle: None, ..stuck }, 18));
    }
}
