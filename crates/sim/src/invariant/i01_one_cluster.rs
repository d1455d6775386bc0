//! 1: a machine is never bound to two clusters. It goes from one to another only over Idle.

use std::collections::{BTreeMap, BTreeSet};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct OneCluster {
    bound: BTreeMap<String, String>,
}

impl Invariant for OneCluster {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Changed { machine, .. } => {
                let before =
                    self.bound.insert(machine.id.clone(), machine.cluster.clone()).unwrap_or_default();
                let moved = !before.is_empty() && !machine.cluster.is_empty() && before != machine.cluster;
                moved.then(|| {
                    format!("machine {} went from {before} straight to {}", machine.id, machine.cluster)
                })
            }
            Moment::Decided { record, .. } => {
                let mut seen = BTreeSet::new();
                let twice = record.actions.iter().find(|ordered| !seen.insert(&ordered.action.machine));
                twice
                    .map(|ordered| format!("two actions for machine {} in one cycle", ordered.action.machine))
            }
            _ => None,
        }
    }
}
