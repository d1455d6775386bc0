//! 17: every executed action is on the record, and the record replays to the same decision.

use bigfleet_shard::digest;

use super::{Invariant, Moment};

pub(super) struct Replay;

impl Invariant for Replay {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Decided { record, mirror, .. } = moment else { return None };
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
