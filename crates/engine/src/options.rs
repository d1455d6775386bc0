//! What a cycle is told besides the fleet and the demand.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::cost::VictimWeights;
use bigfleet_model::release::ReleasePolicy;

/// Which clusters may be reclaimed from: those that have reported since they were bound to this shard.
///
/// Silence is not the same as wanting nothing. A cluster that has not spoken keeps what it has.
#[derive(Clone, Debug, Default)]
pub enum Ready {
    /// All of them have reported.
    #[default]
    All,
    /// These have.
    Only(Arc<BTreeSet<Arc<str>>>),
}

impl Ready {
    /// Whether a cluster may be reclaimed from.
    pub fn contains(&self, cluster: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(clusters) => clusters.contains(cluster),
        }
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, Self::All) => true,
            // The same set is usually handed in again; then there is nothing to compare.
            (Self::Only(a), Self::Only(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

/// The options of a cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How long idle rented machines are held.
    pub release: ReleasePolicy,
    /// How the parts of the victim score are weighed.
    pub weights: VictimWeights,
    /// How long a drain is expected to take, for the victim score.
    pub estimated_drain_nanos: u64,
    /// Which clusters may be reclaimed from.
    pub ready: Ready,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            release: ReleasePolicy::default(),
            weights: VictimWeights::default(),
            estimated_drain_nanos: 30_000_000_000,
            ready: Ready::All,
        }
    }
}
