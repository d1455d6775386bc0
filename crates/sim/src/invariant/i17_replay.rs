//! 17: every executed action is on the record, and the record replays to the same decision.
//!
//! A machine that is configured for a cluster was bound by a cycle, or bought by one for a need of that cluster: binding
//! it on arrival is the second half of the Provision.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::ActionKind;
use bigfleet_model::need::NeedKey;
use bigfleet_shard::{Effect, Fate, Request, Shard, Step, digest};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct Replay {
    /// The last Bootstrap on record by host and machine: for which need, in which cycle.
    bound: BTreeMap<(usize, Box<str>), (Option<NeedKey>, u64)>,
    /// Machines and the needs they were bought for. Whoever goes on with a host's memory may bind them.
    bought: BTreeSet<(Box<str>, Option<NeedKey>)>,
}

impl Replay {
    /// Notes what a record says was begun.
    fn note(&mut self, host: usize, effect: &Effect) {
        let Effect::Record(record) = effect else { return };
        for ordered in record.actions.iter().filter(|ordered| ordered.fate == Fate::Begun) {
            let action = &ordered.action;
            let need = action.need.as_ref().map(|demand| demand.need.key());
            match action.kind {
                ActionKind::Bootstrap => {
                    self.bound.insert((host, action.machine.clone()), (need, record.cycle));
                }
                ActionKind::Provision => {
                    self.bought.insert((action.machine.clone(), need));
                }
                _ => {}
            }
        }
    }

    /// What is configured without a record that says so.
    fn unrecorded(&self, host: usize, shard: &Shard, step: &Step) -> Option<String> {
        step.effects.iter().find_map(|effect| {
            let Effect::Call { request: Request::Configure { machine, .. }, .. } = effect else {
                return None;
            };
            let flight = shard.machine(machine).and_then(|view| view.flight)?;
            let need = flight.need.as_ref().map(|demand| demand.need.key());
            let bound = self.bound.get(&(host, machine.clone()));
            let is_bound = bound.is_some_and(|(recorded, cycle)| *recorded == need && *cycle == flight.cycle);
            let on_record = is_bound || self.bought.contains(&(machine.clone(), need.clone()));
            (!on_record)
                .then(|| format!("machine {machine} is configured for {need:?}, and no record says so"))
        })
    }
}

impl Invariant for Replay {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let (record, mirror) = match moment {
            Moment::Step { host, shard, step, .. } => {
                step.effects.iter().for_each(|effect| self.note(*host, effect));
                return self.unrecorded(*host, shard, step);
            }
            Moment::Decided { record, mirror, .. } => (record, mirror),
            _ => return None,
        };
        let cycle = record.cycle;
        if let Some(trouble) = &mirror.trouble {
            return Some(format!("the record of cycle {cycle} cannot be read: {trouble}"));
        }
        let again = &mirror.decision.actions;
        let unlisted = again.iter().map(|action| (action.kind, &action.machine));
        let listed = record.actions.iter().map(|ordered| (ordered.action.kind, &ordered.action.machine));
        let mut rest = unlisted;
        // What is listed comes in the order of the decision, with gaps where there was no room.
        if let Some((kind, machine)) = listed.into_iter().find(|wanted| !rest.any(|action| action == *wanted))
        {
            return Some(format!("cycle {cycle}: {kind} of machine {machine} is recorded and not replayed"));
        }
        (digest(again) != record.digest).then(|| {
            let afresh = mirror.decide_afresh(record).actions.len();
            let (decided, again) = (record.decided, again.len());
            format!("cycle {cycle} decided {decided} actions, its replay {again}, an engine without a past {afresh}")
        })
    }
}
