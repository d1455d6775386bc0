//! How a cluster is doing.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_shard::{Bill, Shard};
use tonic::Status;

use crate::clusters::{describe, mark_short, short_counts};
use crate::decisions::Wanted;
use crate::names::find_cluster;
use crate::needs::{self, NeedRow};
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Snapshot, blocking};
use crate::v1;

/// Short needs told.
const SHORT: usize = 100;
/// Decisions told.
const TOLD: usize = 50;

impl<S: Shards> View<S> {
    pub(crate) async fn explain_cluster(
        &self,
        request: v1::ExplainClusterRequest,
    ) -> Result<v1::ClusterExplanation, Status> {
        self.needs_life("explaining a cluster")?;
        let simulated = self.about.simulated;
        let name: Arc<str> = request.cluster.as_str().into();
        let asked = name.clone();
        let look =
            move |shard: &Shard, now: i64| -> Result<(v1::Cluster, Vec<v1::CostCell>, Snapshot), Status> {
                find_cluster(&asked, shard.clusters().keys().map(|name| &**name))?;
                let (name, cluster) = shard.clusters().get_key_value(&asked).expect("it was just found");
                let cell = |(capacity_type, bill): (CapacityType, Bill)| v1::CostCell {
                    cluster: name.to_string(),
                    capacity_type: capacity_type.to_wire(),
                    machines: bill.machines as u32,
                    usd_per_hour: bill.usd_per_hour(),
                };
                let bills = shard.money().by_cluster().filter(|(of, ..)| *of == name);
                let cells = bills.map(|(_, capacity_type, bill)| cell((capacity_type, bill))).collect();
                Ok((describe(shard, name, cluster, now), cells, Snapshot::live(shard, now, simulated)))
            };
        let (mut cluster, costs, snapshot) = self.shards.inspect(look).await??;
        let (snapshot, counts, rows) = blocking(move || {
            let counts = short_counts(&snapshot.fleet);
            let mut keys: Vec<_> =
                snapshot.fleet.rows_of(&name).iter().map(|demand| demand.need.key()).collect();
            keys.dedup();
            let rows = keys.iter().filter_map(|key| needs::one(&snapshot.fleet, key));
            let rows: Vec<NeedRow> = rows.filter(|row| !row.message.satisfied).take(SHORT).collect();
            Ok((snapshot, counts, rows))
        })
        .await?;
        cluster.lane.iter_mut().for_each(|lane| mark_short(lane, &counts));
        let mut short: Vec<v1::Need> = rows.into_iter().map(|row| snapshot.fill(row)).collect();
        self.own_clusters.add_to(&mut short);
        let recent = &snapshot.beside.recent;
        let wanted = Wanted { cluster: request.cluster, ..Wanted::default() };
        let decisions = wanted.of_recent_folded(recent, TOLD);
        let last = recent.last().map_or(0, |record| record.cycle);
        let withheld = decisions.iter().filter(|d| d.cycle == last && d.fate() != v1::Fate::Begun);
        Ok(v1::ClusterExplanation {
            as_of: Some(snapshot.as_of),
            cluster: Some(cluster),
            short,
            withheld: withheld.cloned().collect(),
            decisions,
            costs,
        })
    }
}
