//! 6: the reclaim cap holds per cycle and per window, also over restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::ActionKind;
use bigfleet_shard::{Fate, RailConfig};

use super::{Invariant, Moment};

pub(super) struct ReclaimCap {
    rails: RailConfig,
    lately: BTreeMap<Arc<str>, Vec<(i64, usize)>>,
}

impl ReclaimCap {
    pub(super) fn new(rails: RailConfig) -> Self {
        Self { rails, lately: BTreeMap::new() }
    }
}

impl Invariant for ReclaimCap {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        if let Moment::Forgotten { .. } = moment {
            self.lately.clear();
        }
        let Moment::Cycle { superseded: false, shard, record, .. } = moment else { return None };
        let mut begun: BTreeMap<Arc<str>, (usize, usize)> = BTreeMap::new();
        for ordered in record.actions.iter().filter(|ordered| ordered.fate == Fate::Begun) {
            let Some(cluster) = &ordered.action.cluster else { continue };
            let counts = begun.entry(cluster.clone()).or_default();
            match ordered.action.kind {
                ActionKind::Reclaim => counts.0 += 1,
                ActionKind::Preempt => counts.1 += 1,
                _ => {}
            }
        }
        let now = record.now_unix_nanos;
        begun.into_iter().filter(|(_, (reclaims, _))| *reclaims > 0).find_map(
            |(cluster, (reclaims, preempts))| {
                let left = shard.clusters().get(&cluster).map_or(0, |cluster| cluster.configured);
                let had = left + reclaims + preempts;
                let most = ((self.rails.reclaim_fraction * had as f64).floor() as usize).max(1);
                let times = self.lately.entry(cluster.clone()).or_default();
                times.retain(|(at, _)| *at > now - self.rails.reclaim_window);
                times.push((now, reclaims));
                let taken: usize = times.iter().map(|(_, count)| count).sum();
                (taken > most)
                    .then(|| format!("{taken} machines of {had} reclaimed from {cluster}, the cap is {most}"))
            },
        )
    }
}
