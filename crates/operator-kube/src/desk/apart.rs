//! Requests too large for the machines that would hold the others of their row are asked for apart.

use bigfleet_model::resource::ResourceVec;
use bigfleet_operator::demand::RowId;
use bigfleet_proto::convert::resources;

use super::Desk;

impl Desk {
    /// Looks at what the shard said of short rows.
    pub(super) fn set_apart(&mut self, now: i64) {
        let short = self.verdicts.values().filter(|verdict| !verdict.too_small.is_empty());
        let of_last_rollup = short.filter_map(|verdict| {
            let key = verdict.key.as_ref()?;
            let row = self.demand.find_row(&key.fingerprint, &key.group)?;
            let sizes: Vec<ResourceVec> =
                verdict.too_small.iter().filter_map(|size| resources::from_map(&size.amounts).ok()).collect();
            self.is_of_last_rollup(row, verdict).then_some((row, sizes))
        });
        for (row, sizes) in of_last_rollup.collect::<Vec<(RowId, Vec<ResourceVec>)>>() {
            if !self.demand.set_apart(row, &sizes) {
                continue;
            }
            self.metrics.revision("set_apart");
            tracing::info!(
                fingerprint = self.demand.key_of(row).map(|(fingerprint, _)| fingerprint),
                "requests too large for the machines that hold the others are asked for apart"
            );
            self.rollups.soon(now);
            self.statuses.renew_soon(now);
        }
    }
}
