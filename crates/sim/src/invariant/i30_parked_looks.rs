//! 30: a gang that is parked may look, and does not act in the cycle in which it looks.

use std::collections::BTreeSet;

use bigfleet_model::need::NeedKey;
use bigfleet_shard::{Fate, Input};

use super::{Invariant, Moment};

pub(super) struct ParkedLooks;

impl Invariant for ParkedLooks {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Cycle { shard, record, .. } = moment else { return None };
        let looks: BTreeSet<&NeedKey> = record
            .inputs
            .iter()
            .filter_map(|input| match input {
                Input::Park { key, parked: false } => Some(key),
                _ => None,
            })
            .collect();
        let begun = record.actions.iter().filter(|ordered| ordered.fate == Fate::Begun);
        let acts = begun.map(|ordered| &ordered.action).find(|action| {
            let need = action.need.as_ref().map(|demand| demand.need.key());
            // One that could be assembled is parked no more.
            need.is_some_and(|key| looks.contains(&key) && shard.stuck(&key).is_some())
        })?;
        Some(format!("{} of machine {} for a gang that only looks", acts.kind, acts.machine))
    }
}
