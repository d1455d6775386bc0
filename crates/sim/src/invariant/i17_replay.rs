//! 17: every executed action is on the record, and the record replays to the same decision.

use bigfleet_engine::Action;

use super::{Invariant, Moment};

pub(super) struct Replay;

fn same(a: &Action, b: &Action) -> bool {
    let need = |action: &Action| action.need.as_ref().map(|demand| demand.need.clone());
    (a.kind, &a.machine, &a.cluster, a.grace_secs) == (b.kind, &b.machine, &b.cluster, b.grace_secs)
        && need(a) == need(b)
}

impl Invariant for Replay {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Decided { record, mirror, .. } = moment else { return None };
        if let Some(trouble) = &mirror.trouble {
            return Some(format!("the record of cycle {} cannot be read: {trouble}", record.cycle));
        }
        let again = &mirror.decision.actions;
        let count = record.actions.len();
        if again.len() != count {
            return Some(format!("cycle {} has {count} actions, its replay {}", record.cycle, again.len()));
        }
        let pairs = record.actions.iter().map(|ordered| &ordered.action).zip(again);
        let differs = pairs.into_iter().find(|(a, b)| !same(a, b));
        differs.map(|(a, b)| {
            format!(
                "cycle {}: {} {} is recorded, {} {} replayed",
                record.cycle, a.kind, a.machine, b.kind, b.machine
            )
        })
    }
}
