//! 3: no machine that a need claims in a cycle is reclaimed or given back in that cycle.

use std::collections::BTreeSet;

use bigfleet_engine::ActionKind;

use super::{Invariant, Moment};

pub(super) struct ClaimedStays;

impl Invariant for ClaimedStays {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Decided { record, mirror, .. } = moment else { return None };
        let goes = |kind| matches!(kind, ActionKind::Reclaim | ActionKind::Delete);
        if !record.actions.iter().any(|ordered| goes(ordered.action.kind)) {
            return None;
        }
        let outcomes = mirror.fleet.outcomes();
        let claimed: BTreeSet<&str> = outcomes
            .iter()
            .flat_map(|outcome| outcome.credited.iter().chain(&outcome.acquired))
            .copied()
            .collect();
        let gone = record.actions.iter().map(|ordered| &ordered.action);
        let wrong = gone.filter(|action| goes(action.kind)).find(|action| claimed.contains(&*action.machine));
        wrong.map(|action| format!("{} of machine {}, which a need claims", action.kind, action.machine))
    }
}
