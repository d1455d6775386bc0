//! Moments gone by: clusters, sessions, providers, shortfalls and rails as the decision record has them.
//!
//! What was bound and wanted follows from the recorded fleet. Who was connected, how providers were doing and what was
//! paused lies beside it, in records of builds that kept it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::NeedKey;
use bigfleet_record::replay::PastAround;
use bigfleet_shard::{ClusterSeen, Fate, HeldRollup, Pause, ProviderSeen, ProviderSettings, is_paid_for};
use tonic::Status;

use crate::clusters::{ShortCounts, mark_short, short_counts};
use crate::convert::pause;
use crate::names::find_cluster;
use crate::pages::Pages;
use crate::rails::{losses, totals};
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Past, Snapshot, blocking};
use crate::v1;

/// Clusters or sessions on one page.
const PAGE: usize = 500;
/// Withheld actions told one by one.
const TOLD: usize = 1000;

/// Machines by capacity type and state, and what they cost, in billionths of a dollar so that no dust gathers.
type Cells = BTreeMap<(CapacityType, MachineState), (u32, i128)>;

fn add(cells: &mut Cells, machine: &Machine) {
    let cell = cells.entry((machine.capacity_type, machine.state)).or_default();
    cell.0 += 1;
    cell.1 += (machine.price_usd_per_hour * 1e9).round() as i128;
}

fn supply(cells: &Cells) -> Vec<v1::SupplyCell> {
    let cell =
        |((capacity_type, state), (machines, nanos)): (&(CapacityType, MachineState), &(u32, i128))| {
            v1::SupplyCell {
                capacity_type: capacity_type.to_wire(),
                state: state.to_wire(),
                machines: *machines,
                usd_per_hour: if is_paid_for(*state) { *nanos as f64 / 1e9 } else { 0.0 },
            }
        };
    cells.iter().map(cell).collect()
}

fn held(name: &str, held: &HeldRollup, of: u32) -> v1::HeldRollup {
    v1::HeldRollup {
        cluster: name.to_owned(),
        first_unix_nanos: held.first_unix_nanos,
        last_unix_nanos: held.last_unix_nanos,
        seen: held.seen,
        of,
    }
}

fn session(name: &str, seen: &ClusterSeen) -> Option<v1::Session> {
    seen.session.as_ref().map(|link| v1::Session {
        number: link.number,
        cluster: name.to_owned(),
        protocol: link.protocol.to_string(),
        opened_unix_nanos: link.since_unix_nanos,
        reported_unix_nanos: seen.reported_unix_nanos,
    })
}

fn provider(around: &PastAround, settings: &ProviderSettings, seen: &ProviderSeen) -> v1::Provider {
    let ProviderSeen { listed, health } = seen;
    v1::Provider {
        brief: Some(v1::ProviderBrief {
            name: settings.name.to_string(),
            machines: listed.machines,
            heard_unix_nanos: listed.unix_nanos.unwrap_or_default(),
            stale: health.is_stale,
        }),
        incremental: health.has_revisions,
        last_full_list_unix_nanos: listed.full_unix_nanos.unwrap_or_default(),
        list_error: health.error.to_string(),
        held: health.held.is_some(),
        held_seen: health.held.map_or(0, |held| held.confirmation.seen),
        held_of: around.surroundings.settings.confirmations,
        held_missing: health.held.map_or(0, |held| held.missing as u32),
        failures: health.failures,
        supports_delete: health.supports_delete,
        machines: Vec::new(),
        list_every_nanos: settings.list_every_nanos,
        stale_after_nanos: settings.stale_after_nanos,
    }
}

fn providers(around: &PastAround) -> impl Iterator<Item = v1::Provider> + '_ {
    let all = around.surroundings.settings.providers.iter().zip(&around.surroundings.providers);
    all.map(|(settings, seen)| provider(around, settings, seen))
}

/// The pauses in force that cover a cluster.
fn pauses_of<'a>(
    around: &'a PastAround,
    name: &'a str,
    now: i64,
) -> impl Iterator<Item = v1::PauseView> + 'a {
    let in_force = move |one: &Pause| one.until_unix_nanos.is_none_or(|until| now < until);
    let covers = move |one: &Pause| one.scope.cluster.as_deref().is_none_or(|only| only == name);
    let all = around.surroundings.pauses.iter();
    all.filter(move |(_, one)| in_force(one) && covers(one)).map(|(number, one)| pause(*number, one))
}

/// How many machines a cluster could lose.
fn reclaim_cap(around: &PastAround, name: &str, configured: u32, now: i64) -> v1::ReclaimCap {
    let settings = &around.surroundings.settings;
    let window = settings.reclaim_window_nanos;
    let all = around.surroundings.clusters.get(name).map_or(&[][..], |seen| &seen.reclaims);
    let lately = all.iter().filter(|(at, _)| *at > now - window);
    v1::ReclaimCap {
        cluster: name.to_owned(),
        configured,
        cap: ((settings.reclaim_fraction * f64::from(configured)).floor() as u32).max(1),
        used: lately.clone().map(|(_, count)| count).sum(),
        frees_unix_nanos: lately.map(|(at, _)| at + window).min().unwrap_or_default(),
    }
}

impl Past {
    /// What was around the engine, or why that cannot be told.
    fn around(&self, what: &str) -> Result<&PastAround, Status> {
        self.around.as_ref().ok_or_else(|| {
            Status::failed_precondition(format!(
                "the record of cycle {} was written by an older version, which did not keep {what}; machines, needs, \
                 clusters, offers, shortfalls and decisions of that moment can be seen",
                self.record.cycle
            ))
        })
    }

    /// Since when needs were short, if the record keeps that.
    pub(crate) fn add_since(&self, shortfalls: &mut [v1::Shortfall]) {
        let Some(around) = &self.around else { return };
        for shortfall in shortfalls {
            let Some(need) = &shortfall.need else { continue };
            let key = NeedKey {
                cluster: need.cluster.as_str().into(),
                fingerprint: need.fingerprint.as_str().into(),
                group: need.group.as_str().into(),
            };
            if let Some(since) = around.short_since.get(&key) {
                shortfall.since_unix_nanos = since.unix_nanos;
                shortfall.since_cycle = since.cycle;
            }
        }
    }

    /// The machines of each cluster.
    fn holdings(&self) -> BTreeMap<&str, Cells> {
        let mut holdings: BTreeMap<&str, Cells> = BTreeMap::new();
        let bound = self.machines.values().filter(|m| m.state.is_bound() && !m.cluster.is_empty());
        for machine in bound {
            add(holdings.entry(&machine.cluster).or_default(), machine);
        }
        holdings
    }

    /// All clusters whose names begin so.
    fn clusters(&self, prefix: &str, counts: &ShortCounts) -> Vec<v1::Cluster> {
        let holdings = self.holdings();
        let seen = self.around.iter().flat_map(|around| around.surroundings.clusters.keys());
        let wanted = self.needs.keys().chain(seen).map(|name| &**name);
        let names: BTreeSet<&str> = holdings.keys().copied().chain(wanted).collect();
        let nothing = Cells::new();
        let names = names.into_iter().filter(|name| name.starts_with(prefix));
        names.map(|name| self.cluster(name, holdings.get(name).unwrap_or(&nothing), counts)).collect()
    }

    fn cluster(&self, name: &str, cells: &Cells, counts: &ShortCounts) -> v1::Cluster {
        let now = self.record.now_unix_nanos;
        let mut lane = v1::Lane {
            cluster: name.to_owned(),
            machines: cells.values().map(|(machines, _)| machines).sum(),
            usd_per_hour: cells.values().map(|(_, nanos)| nanos).sum::<i128>() as f64 / 1e9,
            needs: self.needs.get(name).map_or(0, |rows| rows.len() as u32),
            ..v1::Lane::default()
        };
        mark_short(&mut lane, counts);
        let mut cluster = v1::Cluster { machines: supply(cells), ..v1::Cluster::default() };
        if let Some(around) = &self.around {
            cluster.pauses = pauses_of(around, name, now).collect();
            lane.paused = cluster.pauses.iter().any(|pause| pause.kind == 0);
            cluster.reclaim_cap = Some(reclaim_cap(around, name, configured(cells), now));
            let unknown = ClusterSeen::default();
            let seen = around.surroundings.clusters.get(name).unwrap_or(&unknown);
            let of = around.surroundings.settings.confirmations;
            cluster.session = session(name, seen);
            cluster.held = seen.held.as_ref().map(|one| held(name, one, of));
            (lane.connected, lane.held) = (seen.session.is_some(), seen.held.is_some());
            lane.reported = seen.reported_unix_nanos != 0;
            cluster.reported_unix_nanos = seen.reported_unix_nanos;
            cluster.changed_unix_nanos = seen.changed_unix_nanos;
            let until = seen.operator.backoff_until_unix_nanos;
            cluster.backoff_until_unix_nanos = if until > now { until } else { 0 };
            cluster.operator_error = seen.operator.error.to_string();
            cluster.operator_failures = seen.operator.failures;
        } else {
            cluster.fleet_only = true;
        }
        cluster.lane = Some(lane);
        cluster
    }

    fn sessions(&self, cluster: &str) -> Result<Vec<v1::Session>, Status> {
        let clusters = &self.around("sessions")?.surroundings.clusters;
        if !cluster.is_empty() {
            find_cluster(cluster, clusters.keys().map(|name| &**name))?;
        }
        let wanted = clusters.iter().filter(|(name, _)| cluster.is_empty() || ***name == *cluster);
        Ok(wanted.filter_map(|(name, seen)| session(name, seen)).collect())
    }

    fn providers(&self, prefix: &str) -> Result<Vec<v1::Provider>, Status> {
        let around = self.around("how providers were doing")?;
        let mut supplies: BTreeMap<&Arc<str>, Cells> = BTreeMap::new();
        for machine in self.machines.values() {
            if let Some(name) = around.provider_of(&machine.id) {
                add(supplies.entry(name).or_default(), machine);
            }
        }
        let named = |provider: &v1::Provider| provider.brief.as_ref().map(|brief| brief.name.clone());
        let mut all: Vec<v1::Provider> =
            providers(around).filter(|one| named(one).is_some_and(|name| name.starts_with(prefix))).collect();
        for provider in &mut all {
            let name: Arc<str> = named(provider).unwrap_or_default().into();
            provider.machines = supplies.get(&name).map(supply).unwrap_or_default();
        }
        Ok(all)
    }

    fn rails(&self, as_of: v1::AsOf) -> Result<v1::Rails, Status> {
        let around = self.around("the state of its rails")?;
        let surroundings = &around.surroundings;
        let (settings, now) = (&surroundings.settings, self.record.now_unix_nanos);
        let withheld = || self.record.decided.iter().filter(|decided| decided.fate != Fate::Begun);
        let capped: BTreeSet<&str> =
            withheld().filter(|d| d.fate == Fate::Capped).filter_map(|d| d.cluster.as_deref()).collect();
        let holdings = self.holdings();
        let lately = |seen: &ClusterSeen| {
            seen.reclaims.iter().any(|(at, _)| *at > now - settings.reclaim_window_nanos)
        };
        let clusters = surroundings.clusters.iter();
        let caps = clusters.clone().filter(|(name, seen)| lately(seen) || capped.contains(&***name));
        let caps =
            caps.map(|(name, _)| reclaim_cap(around, name, holdings.get(&**name).map_or(0, configured), now));
        let told: Vec<v1::Decision> = withheld().take(TOLD).map(|decided| self.message(decided)).collect();
        let of = settings.confirmations;
        Ok(v1::Rails {
            as_of: Some(as_of),
            reclaim_fraction: settings.reclaim_fraction,
            reclaim_window_nanos: settings.reclaim_window_nanos,
            max_actions_per_cycle: settings.max_actions_per_cycle,
            dry_run: settings.dry_run,
            max_moves: settings.max_moves,
            moves: surroundings.moves.into(),
            caps: caps.collect(),
            pauses: surroundings.pauses.iter().map(|(number, one)| pause(*number, one)).collect(),
            held_rollups: clusters
                .clone()
                .filter_map(|(name, seen)| seen.held.as_ref().map(|one| held(name, one, of)))
                .collect(),
            providers: providers(around)
                .filter(|one| one.held || one.brief.as_ref().is_some_and(|brief| brief.stale))
                .collect(),
            silent_clusters: clusters
                .filter(|(_, seen)| seen.reported_unix_nanos == 0)
                .map(|(name, _)| name.to_string())
                .collect(),
            withheld: totals(withheld().map(|decided| (decided.kind, decided.fate))),
            withheld_actions: told,
            demand_drop: settings.demand_drop,
            supply_drop: settings.supply_drop,
            confirmations: settings.confirmations,
            purchase_fraction: settings.purchase_fraction,
            purchase_window_nanos: settings.purchase_window_nanos,
            purchase_usd_per_hour: settings.purchase_usd_per_hour,
            replacements_usd_per_hour: surroundings.purchases.usd_per_hour,
            losses: losses(&surroundings.purchases, settings),
            // Records do not keep modes.
            ..v1::Rails::default()
        })
    }
}

fn configured(cells: &Cells) -> u32 {
    let all = cells.iter().filter(|((_, state), _)| *state == MachineState::Configured);
    all.map(|(_, (machines, _))| machines).sum()
}

/// In parts, at least one, the first of which says how many there are.
fn parts<T>(mut all: Vec<T>, limit: u32) -> impl Iterator<Item = (Vec<T>, Option<u64>)> {
    let mut total = Some(all.len() as u64);
    if limit > 0 {
        all.truncate(limit as usize);
    }
    let mut all = all.into_iter().peekable();
    std::iter::from_fn(move || {
        (total.is_some() || all.peek().is_some()).then(|| (all.by_ref().take(PAGE).collect(), total.take()))
    })
}

impl<S: Shards> View<S> {
    /// The moment somebody asks about, if it is gone by.
    async fn past(&self, at: Option<v1::Moment>) -> Result<Option<(Snapshot, Arc<Past>)>, Status> {
        if at.is_none_or(|at| at.moment.is_none()) && !self.about.record_only {
            return Ok(None);
        }
        let snapshot = self.snapshot(at).await?;
        let past = snapshot.past.clone();
        Ok(past.map(|past| (snapshot, past)))
    }

    pub(crate) async fn list_clusters_at(
        &self,
        request: v1::ListClustersRequest,
        pages: Pages<v1::ClusterPage>,
    ) -> Result<(), Status> {
        let Some((snapshot, past)) = self.past(request.at).await? else {
            return self.list_clusters(request, pages).await;
        };
        let (as_of, fleet) = (snapshot.as_of, snapshot.fleet);
        let clusters = blocking(move || Ok(past.clusters(&request.prefix, &short_counts(&fleet)))).await?;
        for (clusters, total) in parts(clusters, request.limit) {
            pages.send(v1::ClusterPage { as_of: Some(as_of.clone()), clusters, total }).await?;
        }
        Ok(())
    }

    pub(crate) async fn list_sessions_at(
        &self,
        request: v1::ListSessionsRequest,
        pages: Pages<v1::SessionPage>,
    ) -> Result<(), Status> {
        let Some((snapshot, past)) = self.past(request.at).await? else {
            return self.list_sessions(request, pages).await;
        };
        for (sessions, total) in parts(past.sessions(&request.cluster)?, request.limit) {
            pages.send(v1::SessionPage { as_of: Some(snapshot.as_of.clone()), sessions, total }).await?;
        }
        Ok(())
    }

    pub(crate) async fn list_providers_at(
        &self,
        request: v1::ListProvidersRequest,
        pages: Pages<v1::ProviderPage>,
    ) -> Result<(), Status> {
        let Some((snapshot, past)) = self.past(request.at).await? else {
            return self.list_providers(request, pages).await;
        };
        let providers = blocking(move || past.providers(&request.prefix)).await?;
        pages.send(v1::ProviderPage { as_of: Some(snapshot.as_of), providers }).await
    }

    pub(crate) async fn rails_at(&self, request: v1::GetRailsRequest) -> Result<v1::Rails, Status> {
        match self.past(request.at).await? {
            Some((snapshot, past)) => blocking(move || past.rails(snapshot.as_of)).await,
            None => self.rails().await,
        }
    }
}
