//! Hints: each cluster is told what there is to have for its profiles.
//!
//! A few needs are looked at in every cycle, in turn, so that the cost does not follow the size of the demand; only what
//! changed is sent.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bigfleet_model::need::{Need, NeedKey};

use crate::effect::{Available, Confidence, Effect, Frame, Step};
use crate::ingest::identity;
use crate::shard::Shard;

/// Count, confidence and price, as bits.
type Saying = (u32, Confidence, u64);

/// Where the round stands, and what was said last.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// The need that was looked at last.
    last: Option<NeedKey>,
    /// How many needs are still to be looked at since something last changed.
    left: usize,
    /// By cluster and fingerprint: what was said last.
    said: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Saying>>,
}

impl Hints {
    /// A cluster has a new operator, which knows nothing.
    pub(crate) fn forget(&mut self, cluster: &str, needs: usize) {
        self.said.remove(cluster);
        self.left += needs;
        self.last = None;
    }
}

impl Shard {
    /// Looks at the next few needs, until all were looked at since something changed.
    pub(crate) fn hint(&mut self, changed: bool, now: i64, step: &mut Step) {
        if changed {
            let connected = self.clusters.values().filter(|cluster| cluster.session.is_some());
            self.hints.left = connected.map(|cluster| cluster.demand.len()).sum();
        }
        if self.hints.left == 0 {
            return;
        }
        let next = self.next_hints();
        self.hints.left = if next.is_empty() { 0 } else { self.hints.left.saturating_sub(next.len()) };
        for key in next {
            self.hint_about(&key, now, step);
            self.hints.last = Some(key);
        }
    }

    /// The needs whose turn it is: those of connected clusters after the one looked at last, round and round.
    fn next_hints(&self) -> Vec<NeedKey> {
        let keys = |after: Option<&NeedKey>| {
            let start = after.map_or(Bound::Unbounded, |after| Bound::Included(&*after.cluster));
            let in_turn = self.clusters.range::<str, _>((start, Bound::Unbounded));
            let connected = in_turn.filter(|(_, cluster)| cluster.session.is_some());
            let needs = connected.flat_map(|(name, cluster)| {
                // Rows are in key order, so those before the one looked at last are stepped over, not read.
                let after = after.filter(|after| after.cluster == *name);
                let from = after.map_or(0, |after| {
                    cluster
                        .demand
                        .partition_point(|need| identity(need) <= (&after.fingerprint, &after.group))
                });
                cluster.demand[from..].iter().map(Need::key)
            });
            needs.take(self.config.limits.hints_per_cycle).collect::<Vec<_>>()
        };
        let next = keys(self.hints.last.as_ref());
        if next.is_empty() { keys(None) } else { next }
    }

    fn hint_about(&mut self, key: &NeedKey, now: i64, step: &mut Step) {
        let Some(cluster) = self.clusters.get(&key.cluster) else { return };
        let Some(session) = cluster.session else { return };
        let wanted = (&*key.fingerprint, &*key.group);
        let at = cluster.demand.binary_search_by(|need| identity(need).cmp(&wanted));
        let need = at.ok().map(|at| &cluster.demand[at]);
        let (Some(need), Some(free)) = (need, self.engine.available(key)) else { return };
        let count = u32::try_from(free.idle + free.speculative).unwrap_or(u32::MAX);
        let cheapest = free.cheapest.as_ref().and_then(|(price, id)| {
            let row = self.table.row(self.table.find(id)?);
            Some((*price, row.machine.provides().clone(), self.is_fresh(row.provider, now)))
        });
        let confidence = match &cheapest {
            None => Confidence::None,
            Some((_, _, false)) => Confidence::Low,
            Some(_) if free.idle > 0 => Confidence::High,
            // Quota that would not even hold one unit twice over is soon gone.
            Some(_) if count < 2 => Confidence::Low,
            Some(_) => Confidence::Medium,
        };
        let (price, resources) = cheapest.map(|(price, resources, _)| (price, resources)).unwrap_or_default();
        let saying = (count, confidence, price.to_bits());
        let said = self.hints.said.entry(key.cluster.clone()).or_default();
        if said.insert(key.fingerprint.clone(), saying) == Some(saying) {
            return;
        }
        let hint = Available {
            fingerprint: key.fingerprint.clone(),
            requirements: need.profile.requirements().into(),
            resources,
            count,
            confidence,
            usd_per_hour: price,
        };
        step.effects.push(Effect::Send { session, frame: Frame::Available(hint) });
    }
}
