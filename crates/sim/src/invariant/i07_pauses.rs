//! 7: nothing is begun or called while it is paused or in dry-run.

use bigfleet_shard::{Effect, Fate, Request};

use super::{Invariant, Moment};

pub(super) struct Pauses;

impl Invariant for Pauses {
    fn see(&mut self, now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Cycle { shard, record, .. } => {
                let now = record.now_unix_nanos;
                let pauses =
                    || shard.pauses().values().filter(|p| p.until_unix_nanos.is_none_or(|u| now < u));
                let begun = record.actions.iter().filter(|ordered| ordered.fate == Fate::Begun);
                begun.map(|ordered| &ordered.action).find_map(|action| {
                    let gets = action.need.as_ref().map(|demand| &*demand.need.cluster);
                    let clusters = [action.cluster.as_deref(), gets];
                    let held = shard.config().rails.dry_run
                        || pauses()
                            .any(|p| clusters.iter().any(|cluster| p.scope.covers(action.kind, *cluster)));
                    held.then(|| format!("{} of machine {} was begun", action.kind, action.machine))
                })
            }
            Moment::Step { shard, step, .. } => step.effects.iter().find_map(|effect| {
                let Effect::Call { request, .. } = effect else { return None };
                if matches!(request, Request::Get { .. }) {
                    return None;
                }
                let flight = shard.machine(request.machine()).and_then(|view| view.flight)?;
                let in_force = shard.pauses().values().filter(|p| p.until_unix_nanos.is_none_or(|u| now < u));
                let held = shard.config().rails.dry_run
                    || in_force.into_iter().any(|p| p.scope.covers(flight.kind, flight.cluster.as_deref()));
                held.then(|| format!("{} of machine {} was called", request.name(), request.machine()))
            }),
            _ => None,
        }
    }
}
