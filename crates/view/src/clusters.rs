//! Clusters, their sessions, and providers: who is at either end of the shard.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::Fleet;
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;
use bigfleet_shard::{Bill, Cluster, ProviderId, Shard, is_paid_for};
use tonic::Status;

use crate::convert::{is_unmet, pause};
use crate::modes;
use crate::names::find_cluster;
use crate::pages::Pages;
use crate::rails::reclaim_cap;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Snapshot, Walk, as_of};
use crate::v1;

/// Clusters on one page, and in one look.
const PAGE: usize = 100;

/// Needs that are short, by cluster: (unmet, short at all).
pub(crate) type ShortCounts = BTreeMap<Arc<str>, (u32, u32)>;

/// Counts short needs.
pub(crate) fn short_counts(fleet: &Fleet) -> ShortCounts {
    let mut counts = ShortCounts::new();
    for short in fleet.short_needs() {
        let count = counts.entry(short.demand.need.cluster.clone()).or_default();
        count.0 += u32::from(is_unmet(&short));
        count.1 += 1;
    }
    counts
}

/// One cluster in a line; how many of its needs are short is added by [`mark_short`].
pub(crate) fn lane(shard: &Shard, name: &Arc<str>, cluster: &Cluster, now: i64) -> v1::Lane {
    let bill = shard.money().of_cluster(name);
    let (mode, mode_mixed) = modes::strictest(shard, Some(name));
    v1::Lane {
        mode: mode.into(),
        mode_mixed,
        cluster: name.to_string(),
        machines: cluster.machines() as u32,
        usd_per_hour: bill.usd_per_hour(),
        needs: cluster.demand.len() as u32,
        unmet: 0,
        short: 0,
        connected: cluster.session.is_some(),
        paused: pauses_of(shard, name, now).any(|pause| pause.kind == 0),
        held: cluster.held.is_some(),
        reported: cluster.has_reported(),
        r#use: Vec::new(),
    }
}

pub(crate) fn mark_short(lane: &mut v1::Lane, counts: &ShortCounts) {
    (lane.unmet, lane.short) = counts.get(lane.cluster.as_str()).copied().unwrap_or_default();
}

/// The pauses in force that cover a cluster.
fn pauses_of<'a>(shard: &'a Shard, name: &'a str, now: i64) -> impl Iterator<Item = v1::PauseView> + 'a {
    let in_force =
        shard.pauses().iter().filter(move |(_, p)| p.until_unix_nanos.is_none_or(|until| now < until));
    let covering = in_force.filter(move |(_, p)| p.scope.cluster.as_deref().is_none_or(|only| only == name));
    covering.map(|(number, p)| pause(*number, p))
}

pub(crate) fn supply_cell(state: MachineState, capacity_type: CapacityType, bill: Bill) -> v1::SupplyCell {
    v1::SupplyCell {
        capacity_type: capacity_type.to_wire(),
        state: state.to_wire(),
        machines: bill.machines as u32,
        usd_per_hour: if is_paid_for(state) { bill.usd_per_hour() } else { 0.0 },
    }
}

pub(crate) fn held_rollup(shard: &Shard, name: &str, cluster: &Cluster) -> Option<v1::HeldRollup> {
    cluster.held.as_ref().map(|held| v1::HeldRollup {
        cluster: name.to_owned(),
        first_unix_nanos: held.first_unix_nanos,
        last_unix_nanos: held.last_unix_nanos,
        seen: held.seen,
        of: shard.config().guard.confirmations,
    })
}

fn session(name: &str, cluster: &Cluster) -> Option<v1::Session> {
    cluster.session.map(|number| v1::Session {
        number: number.0,
        cluster: name.to_owned(),
        protocol: cluster.protocol.to_string(),
        opened_unix_nanos: cluster.session_since_unix_nanos,
        reported_unix_nanos: cluster.reported_unix_nanos,
    })
}

/// Everything about a cluster.
pub(crate) fn describe(shard: &Shard, name: &Arc<str>, cluster: &Cluster, now: i64) -> v1::Cluster {
    let holding = shard.money().holding_of(name);
    let machines = holding.map(|(capacity_type, state, bill)| supply_cell(state, capacity_type, bill));
    v1::Cluster {
        lane: Some(lane(shard, name, cluster, now)),
        machines: machines.collect(),
        session: session(name, cluster),
        held: held_rollup(shard, name, cluster),
        reclaim_cap: Some(reclaim_cap(shard, name, cluster, now)),
        pauses: pauses_of(shard, name, now).collect(),
        reported_unix_nanos: cluster.reported_unix_nanos,
        backoff_until_unix_nanos: if cluster.operator_backoff_until_unix_nanos > now {
            cluster.operator_backoff_until_unix_nanos
        } else {
            0
        },
        operator_error: cluster.operator_error.to_string(),
        changed_unix_nanos: cluster.changed_unix_nanos,
        operator_failures: cluster.operator_failures,
        fleet_only: false,
    }
}

pub(crate) fn provider_brief(shard: &Shard, index: usize, now: i64) -> v1::ProviderBrief {
    let provider = &shard.providers()[index];
    v1::ProviderBrief {
        name: provider.name.to_string(),
        machines: provider.machines as u32,
        heard_unix_nanos: provider.listed_unix_nanos.unwrap_or_default(),
        stale: !shard.is_provider_fresh(ProviderId(index as u16), now),
    }
}

pub(crate) fn provider(shard: &Shard, index: usize, now: i64) -> v1::Provider {
    let (provider, config) = (&shard.providers()[index], &shard.config().providers[index]);
    v1::Provider {
        brief: Some(provider_brief(shard, index, now)),
        incremental: provider.has_revisions,
        last_full_list_unix_nanos: provider.full_listed_unix_nanos.unwrap_or_default(),
        list_error: if provider.failures > 0 { provider.last_error.to_string() } else { String::new() },
        held: provider.held.is_some(),
        held_seen: provider.held.map_or(0, |held| held.confirmation.seen),
        held_of: shard.config().guard.confirmations,
        held_missing: provider.held.map_or(0, |held| held.missing as u32),
        failures: provider.failures,
        supports_delete: provider.supports_delete,
        machines: Vec::new(),
        list_every_nanos: config.list_every,
        stale_after_nanos: config.stale_after,
    }
}

impl<S: Shards> View<S> {
    /// Refuses a cluster nobody knows, with suggestions.
    pub(crate) async fn check_cluster(&self, snapshot: &Snapshot, name: &str) -> Result<(), Status> {
        if snapshot.past.is_some() || self.about.record_only {
            return find_cluster(name, snapshot.fleet.clusters());
        }
        let name = name.to_owned();
        self.shards
            .inspect(move |shard, _| find_cluster(&name, shard.clusters().keys().map(|name| &**name)))
            .await?
    }

    pub(crate) async fn list_clusters(
        &self,
        request: v1::ListClustersRequest,
        pages: Pages<v1::ClusterPage>,
    ) -> Result<(), Status> {
        let snapshot = self.snapshot(None).await?;
        let fleet = snapshot.fleet;
        let counts = crate::snapshot::blocking(move || Ok(short_counts(&fleet))).await?;
        let prefix = request.prefix;
        let look = move |shard: &Shard, _| -> Vec<Arc<str>> {
            shard.clusters().keys().filter(|name| name.starts_with(&prefix)).cloned().collect()
        };
        let mut names = self.shards.inspect(look).await?;
        let mut total = Some(names.len() as u64);
        if request.limit > 0 {
            names.truncate(request.limit as usize);
        }
        let mut parts: Vec<Vec<Arc<str>>> = names.chunks(PAGE).map(<[_]>::to_vec).collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        for part in parts {
            let look = move |shard: &Shard, now: i64| -> Vec<v1::Cluster> {
                let known = part.iter().filter_map(|name| shard.clusters().get_key_value(name));
                known.map(|(name, cluster)| describe(shard, name, cluster, now)).collect()
            };
            let mut clusters = self.shards.inspect(look).await?;
            clusters
                .iter_mut()
                .filter_map(|cluster| cluster.lane.as_mut())
                .for_each(|lane| mark_short(lane, &counts));
            pages
                .send(v1::ClusterPage { as_of: Some(snapshot.as_of.clone()), clusters, total: total.take() })
                .await?;
        }
        Ok(())
    }

    pub(crate) async fn list_sessions(
        &self,
        request: v1::ListSessionsRequest,
        pages: Pages<v1::SessionPage>,
    ) -> Result<(), Status> {
        let as_of = self.as_of().await?;
        if !request.cluster.is_empty() {
            let name = request.cluster.clone();
            let look =
                move |shard: &Shard, _| find_cluster(&name, shard.clusters().keys().map(|name| &**name));
            self.shards.inspect(look).await??;
        }
        let look = move |shard: &Shard, _| -> Vec<v1::Session> {
            let wanted = |name: &str| request.cluster.is_empty() || *name == *request.cluster;
            let clusters = shard.clusters().iter().filter(|(name, _)| wanted(name));
            clusters.filter_map(|(name, cluster)| session(name, cluster)).collect()
        };
        let mut sessions = self.shards.inspect(look).await?;
        let mut total = Some(sessions.len() as u64);
        if request.limit > 0 {
            sessions.truncate(request.limit as usize);
        }
        let mut parts: Vec<Vec<v1::Session>> = sessions.chunks(1000).map(<[_]>::to_vec).collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        for sessions in parts {
            pages.send(v1::SessionPage { as_of: Some(as_of.clone()), sessions, total: total.take() }).await?;
        }
        Ok(())
    }

    pub(crate) async fn list_providers(
        &self,
        request: v1::ListProvidersRequest,
        pages: Pages<v1::ProviderPage>,
    ) -> Result<(), Status> {
        let simulated = self.about.simulated;
        let look = move |shard: &Shard, now: i64| {
            let all = (0..shard.providers().len()).map(|index| provider(shard, index, now));
            (as_of(shard, now, simulated), all.collect::<Vec<_>>())
        };
        let (as_of, mut providers) = self.shards.inspect(look).await?;
        let name_of =
            |provider: &v1::Provider| provider.brief.as_ref().map_or_else(String::new, |b| b.name.clone());
        providers.retain(|provider| name_of(provider).starts_with(&request.prefix));
        let mut cells: BTreeMap<(String, CapacityType, MachineState), (u32, f64)> = BTreeMap::new();
        let mut walk = Walk::begin(None);
        while let Some(slice) = self.next_slice(&mut walk).await? {
            for one in slice {
                let machine = &one.machine;
                let place = (one.provider.to_string(), machine.capacity_type, machine.state);
                let cell = cells.entry(place).or_default();
                cell.0 += 1;
                cell.1 += if is_paid_for(machine.state) { machine.price_usd_per_hour } else { 0.0 };
            }
        }
        for ((name, capacity_type, state), (machines, usd_per_hour)) in cells {
            if let Some(provider) = providers.iter_mut().find(|provider| name_of(provider) == name) {
                let (capacity_type, state) = (capacity_type.to_wire(), state.to_wire());
                provider.machines.push(v1::SupplyCell { capacity_type, state, machines, usd_per_hour });
            }
        }
        pages.send(v1::ProviderPage { as_of: Some(as_of), providers }).await
    }
}
