//! Forgetting clusters that are gone: nobody reports for them and they hold nothing.
//!
//! Anybody who may connect may name a cluster, and every name costs a few kilobytes in a dozen places. A name that has no
//! session, no demand, no machine and no pause of its own, and was not heard for a while, is taken out of all of them. If
//! it comes back it is new.

use std::fmt::Write as _;

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::config::MINUTE;
use crate::effect::{Step, Urgency};
use crate::memory::Fact;
use crate::shard::Shard;
use crate::timers::Timer;

/// How often clusters are looked through.
const EVERY: i64 = 5 * MINUTE;
/// How many names a message tells.
const NAMED: usize = 5;

impl Cluster {
    /// Whether nothing is left of it but its name.
    fn is_empty(&self) -> bool {
        self.session.is_none() && self.demand.is_empty() && self.bound.is_empty() && self.held.is_none()
    }

    /// When something was last heard of it.
    fn last_heard(&self) -> i64 {
        let reclaimed = self.reclaims.last().map_or(0, |(at, _)| *at);
        let heard = [self.reported_unix_nanos, self.changed_unix_nanos, self.closed_unix_nanos, reclaimed];
        heard.into_iter().max().unwrap_or(0)
    }
}

impl Shard {
    /// Sets the first look.
    pub(crate) fn set_forgetting(&mut self, now: i64) {
        self.timers.set(now + EVERY, Timer::Forget);
    }

    /// Forgets clusters that are gone, and sets the next look.
    pub(crate) fn forget_clusters(&mut self, now: i64, step: &mut Step) {
        self.set_forgetting(now);
        let paused =
            |name: &Arc<str>| self.pauses.values().any(|pause| pause.scope.cluster.as_ref() == Some(name));
        let before = now - self.config.patience.gone_cluster;
        // One that was never heard in this life counts from its beginning.
        let is_gone = |name: &Arc<str>, cluster: &Cluster| {
            cluster.is_empty() && cluster.last_heard().max(self.started) < before && !paused(name)
        };
        let gone: Vec<Arc<str>> = self
            .clusters
            .iter()
            .filter(|(name, cluster)| is_gone(name, cluster))
            .map(|(name, _)| name.clone())
            .collect();
        let Some(first) = gone.first() else { return };
        let mut text = format!("cluster {first}");
        for name in gone.iter().take(NAMED).skip(1) {
            text.push_str(", ");
            text.push_str(name);
        }
        let others = gone.len().saturating_sub(NAMED);
        if others > 0 {
            let _ = write!(text, " and {others} more");
        }
        let text = format!(
            "{text}: nobody has reported for {} minutes and no machine is held; forgotten until somebody does",
            self.config.patience.gone_cluster / MINUTE
        );
        Self::say(step, Urgency::Info, "clusters_forgotten", text);
        let ready = Arc::make_mut(&mut self.ready);
        for name in &gone {
            let cluster = self.clusters.remove(name);
            debug_assert!(
                cluster.is_some_and(|cluster| cluster.is_empty()),
                "only an empty name is forgotten"
            );
            ready.remove(name);
            self.hints.forget(name, 0);
            step.facts.push(Fact::Reclaims(name.clone(), None));
        }
        self.tally.clusters_forgotten += gone.len() as u64;
        // The record names clusters by their place among those it has told of, and starts anew with a whole input.
        self.journal.want_whole();
    }
}
