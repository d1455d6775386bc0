//! The demand table as the clusters reported it, before folding.

use std::sync::Arc;

use bigfleet_model::need::NeedKey;

use crate::fleet::Fleet;
use crate::needs::Demand;

impl Fleet {
    /// The clusters that want something, by name.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> =
            self.needs.clusters_with_rows().map(|c| self.vocab.cluster_name(c)).collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// A cluster's needs as it reported them, in demand order; empty if it wants nothing.
    pub fn rows_of(&self, cluster: &str) -> &[Arc<Demand>] {
        let known = self.vocab.find_cluster(cluster).and_then(|number| self.needs.cluster(number));
        known.map_or(&[], |demand| &demand.rows)
    }

    /// All needs as reported, cluster by cluster in the order of their names, each cluster's in demand order.
    pub fn needs(&self) -> impl Iterator<Item = &Arc<Demand>> {
        self.clusters().flat_map(|cluster| self.rows_of(cluster))
    }

    /// One need as it was reported.
    pub fn need(&self, key: &NeedKey) -> Option<&Arc<Demand>> {
        let cluster = self.vocab.find_cluster(&key.cluster)?;
        self.needs.cluster(cluster)?.row(&key.fingerprint, &key.group)
    }
}
