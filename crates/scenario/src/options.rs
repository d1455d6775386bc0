//! The options of a cycle, as a scenario states them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::cost::VictimWeights;
use bigfleet_model::release::ReleasePolicy;

/// What a cycle is told besides the fleet and the demand.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleOptions {
    /// How long idle rented machines are held.
    pub release: ReleasePolicy,
    /// How the parts of the victim score are weighed.
    pub weights: VictimWeights,
    /// How long a drain is expected to take, for the victim score.
    pub estimated_drain_nanos: u64,
    /// The clusters that have reported since they were bound to this shard; `None` means all have.
    pub ready_clusters: Option<BTreeSet<Arc<str>>>,
}

impl Default for CycleOptions {
    fn default() -> Self {
        Self {
            release: ReleasePolicy::default(),
            weights: VictimWeights::default(),
            estimated_drain_nanos: 30_000_000_000,
            ready_clusters: None,
        }
    }
}

impl CycleOptions {
    /// Whether a cluster may be reclaimed from.
    pub fn is_ready(&self, cluster: &str) -> bool {
        self.ready_clusters.as_ref().is_none_or(|ready| ready.contains(cluster))
    }

    /// The expected drain in seconds.
    pub fn estimated_drain_secs(&self) -> f64 {
        self.estimated_drain_nanos as f64 / 1e9
    }
}
