//! 7: nothing is begun or called while it is paused or in dry-run.
//!
//! Who paused what is noted when it is ordered: a shard that forgets a pause would otherwise be asked about what it forgot.

use std::collections::BTreeMap;

use bigfleet_engine::ActionKind;
use bigfleet_shard::{Effect, Fate, PauseScope, Request};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct Pauses {
    /// How many pauses are in force, by cluster; the empty name is everything.
    ordered: BTreeMap<String, usize>,
}

impl Pauses {
    fn holds(&self, kind: ActionKind, clusters: [Option<&str>; 2]) -> bool {
        self.ordered.keys().any(|name| {
            let cluster = (!name.is_empty()).then(|| name.as_str().into());
            let scope = PauseScope { cluster, kind: None };
            clusters.iter().any(|cluster| scope.covers(kind, *cluster))
        })
    }
}

impl Invariant for Pauses {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Forgotten { .. } => {
                self.ordered.clear();
                None
            }
            Moment::Paused { cluster, on: true } => {
                *self.ordered.entry((*cluster).into()).or_default() += 1;
                None
            }
            // Resuming ends every pause of its scope.
            Moment::Paused { cluster, on: false } => {
                self.ordered.remove(*cluster);
                None
            }
            Moment::Cycle { shard, record, .. } => {
                let begun = record.actions.iter().filter(|ordered| ordered.fate == Fate::Begun);
                begun.map(|ordered| &ordered.action).find_map(|action| {
                    let gets = action.need.as_ref().map(|demand| &*demand.need.cluster);
                    let clusters = [action.cluster.as_deref(), gets];
                    let held = shard.config().rails.dry_run || self.holds(action.kind, clusters);
                    held.then(|| format!("{} of machine {} was begun", action.kind, action.machine))
                })
            }
            Moment::Step { shard, step, .. } => step.effects.iter().find_map(|effect| {
                let Effect::Call { request, .. } = effect else { return None };
                if matches!(request, Request::Get { .. }) {
                    return None;
                }
                let flight = shard.machine(request.machine()).and_then(|view| view.flight)?;
                let gets = flight.need.as_ref().map(|demand| &*demand.need.cluster);
                let held = shard.config().rails.dry_run
                    || self.holds(flight.kind, [flight.cluster.as_deref(), gets]);
                held.then(|| format!("{} of machine {} was called", request.name(), request.machine()))
            }),
            _ => None,
        }
    }
}
