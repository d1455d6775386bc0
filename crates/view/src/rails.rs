//! The rails and what they hold back now; what the next cycle's actions would meet; and what everything costs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind, Decision};
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;
use bigfleet_shard::{Bill, Care, Cluster, Fate, Ordered, Shard};
use tonic::Status;

use crate::clusters::{held_rollup, provider};
use crate::convert::{fate, kind, pause};
use crate::decisions::{self, message};
use crate::names::find_cluster;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::as_of;
use crate::v1;

/// Withheld actions told one by one.
const TOLD: usize = 1000;

/// How many machines a cluster may lose, and has lost lately.
pub(crate) fn reclaim_cap(shard: &Shard, name: &str, cluster: &Cluster, now: i64) -> v1::ReclaimCap {
    let rails = &shard.config().rails;
    let since = now - rails.reclaim_window;
    let lately = cluster.reclaims.iter().filter(|(at, _)| *at > since);
    v1::ReclaimCap {
        cluster: name.to_owned(),
        configured: cluster.configured as u32,
        cap: most_reclaims(rails.reclaim_fraction, cluster.configured),
        used: lately.clone().map(|(_, count)| count).sum(),
        frees_unix_nanos: lately.map(|(at, _)| at + rails.reclaim_window).min().unwrap_or_default(),
    }
}

fn most_reclaims(fraction: f64, configured: usize) -> u32 {
    ((fraction * configured as f64).floor() as u32).max(1)
}

/// Adds up actions by kind and fate.
pub(crate) fn totals(actions: impl Iterator<Item = (ActionKind, Fate)>) -> Vec<v1::FateCount> {
    let mut counts: BTreeMap<(ActionKind, Fate), u32> = BTreeMap::new();
    for one in actions {
        *counts.entry(one).or_default() += 1;
    }
    let count = |((k, f), actions)| v1::FateCount { kind: kind(k).into(), fate: fate(f).into(), actions };
    counts.into_iter().map(count).collect()
}

/// What the rails would make of a decision if it were executed now: a fate for each of its actions.
///
/// The same rules in the same order as the shard's own, which a test holds this against; nothing is begun.
pub(crate) fn rehearse(shard: &Shard, decision: &Decision, now: i64) -> Vec<Fate> {
    let mut order: Vec<usize> = (0..decision.actions.len()).collect();
    order.sort_by_key(|index| match decision.actions[*index].kind {
        ActionKind::Preempt => 0,
        ActionKind::Bootstrap | ActionKind::Provision => 1,
        ActionKind::Delete => 2,
        ActionKind::Reclaim => 3,
    });
    let mut rehearsal = Rehearsal { shard, now, begun: 0, reclaimed: BTreeMap::new() };
    let mut fates = vec![Fate::Busy; decision.actions.len()];
    for index in order {
        fates[index] = rehearsal.fate(&decision.actions[index]);
    }
    fates
}

struct Rehearsal<'a> {
    shard: &'a Shard,
    now: i64,
    begun: usize,
    reclaimed: BTreeMap<Arc<str>, u32>,
}

impl Rehearsal<'_> {
    fn fate(&mut self, action: &Action) -> Fate {
        let fate = self.rail(action).unwrap_or_else(|| self.begin(action));
        if fate == Fate::Begun {
            self.begun += usize::from(action.kind != ActionKind::Preempt);
            if let (ActionKind::Reclaim, Some(cluster)) = (action.kind, &action.cluster) {
                *self.reclaimed.entry(cluster.clone()).or_default() += 1;
            }
        }
        fate
    }

    fn rail(&self, action: &Action) -> Option<Fate> {
        let (shard, now) = (self.shard, self.now);
        let rails = &shard.config().rails;
        if rails.dry_run {
            return Some(Fate::DryRun);
        }
        let gets = action.need.as_ref().map(|demand| &*demand.need.cluster);
        let in_force = shard.pauses().values().filter(|p| p.until_unix_nanos.is_none_or(|until| now < until));
        let covering = in_force.filter(|p| {
            [action.cluster.as_deref(), gets].into_iter().any(|cluster| p.scope.covers(action.kind, cluster))
        });
        let paused = covering.map(|p| if p.dry_run { Fate::DryRun } else { Fate::Paused }).min();
        if paused.is_some() {
            return paused;
        }
        if matches!(action.kind, ActionKind::Reclaim | ActionKind::Delete) {
            let view = shard.machine(&action.machine);
            if view.is_none_or(|view| !shard.is_provider_fresh(view.provider, now)) {
                return Some(Fate::StaleInventory);
            }
        }
        if let Some(cluster) = gets {
            let cluster = shard.clusters().get(cluster);
            if cluster.is_none_or(|c| c.session.is_none() || c.operator_backoff_until_unix_nanos > now) {
                return Some(Fate::OperatorBackoff);
            }
        }
        if action.kind == ActionKind::Reclaim && self.is_capped(action) {
            return Some(Fate::Capped);
        }
        let bound = rails.max_actions_per_cycle;
        (action.kind != ActionKind::Preempt && bound > 0 && self.begun >= bound).then_some(Fate::OverBound)
    }

    fn is_capped(&self, action: &Action) -> bool {
        let known = action.cluster.as_ref().and_then(|name| self.shard.clusters().get_key_value(name));
        let Some((name, cluster)) = known else { return true };
        let cap = reclaim_cap(self.shard, name, cluster, self.now);
        self.reclaimed.get(name).copied().unwrap_or(0) + cap.used >= cap.cap
    }

    fn begin(&self, action: &Action) -> Fate {
        let Some(view) = self.shard.machine(&action.machine) else { return Fate::Busy };
        let from = match action.kind {
            ActionKind::Bootstrap | ActionKind::Delete => MachineState::Idle,
            ActionKind::Provision => MachineState::Speculative,
            ActionKind::Preempt | ActionKind::Reclaim => MachineState::Configured,
        };
        if view.flight.is_some() || *view.care != Care::Fine || view.machine.state != from {
            return Fate::Busy;
        }
        if self.shard.queues().waiting >= self.shard.config().limits.flights {
            Fate::NoPlace
        } else {
            Fate::Begun
        }
    }
}

impl<S: Shards> View<S> {
    pub(crate) async fn rails(&self) -> Result<v1::Rails, Status> {
        let simulated = self.about.simulated;
        // A cycle may have withheld as much as there is: it is read through elsewhere, not on the shard's thread.
        let last = self.shards.inspect(|shard, _| shard.recent().next_back().cloned()).await?;
        let held: Vec<&Ordered> = last.iter().flat_map(|record| decisions::withheld(record)).collect();
        let capped: BTreeSet<Arc<str>> = held
            .iter()
            .filter(|ordered| ordered.fate == Fate::Capped)
            .filter_map(|ordered| ordered.action.cluster.clone())
            .collect();
        let mut rails = self.shards.inspect(move |shard, now| look(shard, now, simulated, &capped)).await?;
        rails.withheld = totals(held.iter().map(|ordered| (ordered.action.kind, ordered.fate)));
        let told = last.iter().flat_map(|record| {
            decisions::withheld(record).take(TOLD).map(|ordered| message((&**record).into(), &ordered.into()))
        });
        rails.withheld_actions = self.described(told.collect()).await?;
        Ok(rails)
    }

    pub(crate) async fn costs(&self, request: v1::GetCostsRequest) -> Result<v1::Costs, Status> {
        let simulated = self.about.simulated;
        let look = move |shard: &Shard, now: i64| {
            if !request.cluster.is_empty() {
                find_cluster(&request.cluster, shard.clusters().keys().map(|name| &**name))?;
            }
            let mut costs = costs(shard);
            costs.cells.retain(|cell| request.cluster.is_empty() || cell.cluster == request.cluster);
            costs.as_of = Some(as_of(shard, now, simulated));
            Ok(costs)
        };
        self.shards.inspect(look).await?
    }
}

fn look(shard: &Shard, now: i64, simulated: bool, capped: &BTreeSet<Arc<str>>) -> v1::Rails {
    let config = shard.config();
    let since = now - config.rails.reclaim_window;
    let reclaimed = |cluster: &Cluster| cluster.reclaims.iter().any(|(at, _)| *at > since);
    let caps = shard.clusters().iter().filter(|(name, cluster)| reclaimed(cluster) || capped.contains(*name));
    let providers = (0..shard.providers().len()).map(|index| provider(shard, index, now));
    v1::Rails {
        as_of: Some(as_of(shard, now, simulated)),
        reclaim_fraction: config.rails.reclaim_fraction,
        reclaim_window_nanos: config.rails.reclaim_window,
        max_actions_per_cycle: config.rails.max_actions_per_cycle as u64,
        dry_run: config.rails.dry_run,
        max_moves: config.limits.flights as u64,
        moves: shard.queues().calling as u64,
        caps: caps.map(|(name, cluster)| reclaim_cap(shard, name, cluster, now)).collect(),
        pauses: shard.pauses().iter().map(|(number, p)| pause(*number, p)).collect(),
        held_rollups: shard.clusters().iter().filter_map(|(name, c)| held_rollup(shard, name, c)).collect(),
        providers: providers
            .filter(|p| p.held || p.brief.as_ref().is_some_and(|brief| brief.stale))
            .collect(),
        silent_clusters: shard
            .clusters()
            .iter()
            .filter(|(_, cluster)| !cluster.has_reported())
            .map(|(name, _)| name.to_string())
            .collect(),
        withheld: Vec::new(),
        withheld_actions: Vec::new(),
        demand_drop: config.guard.demand_drop,
        supply_drop: config.guard.supply_drop,
        confirmations: config.guard.confirmations,
    }
}

/// What everything costs.
pub(crate) fn costs(shard: &Shard) -> v1::Costs {
    let money = shard.money();
    let sum = |states: &[MachineState]| {
        let bills = money.by_state().filter(|(state, ..)| states.contains(state));
        bills.fold(Bill::default(), |sum, (_, _, bill)| sum.plus(bill)).usd_per_hour()
    };
    let mut cells: BTreeMap<(&str, CapacityType), Bill> = BTreeMap::new();
    for (cluster, capacity_type, bill) in money.by_cluster() {
        cells.insert((cluster, capacity_type), bill);
    }
    let unbound = [MachineState::Idle, MachineState::Deleting, MachineState::Failed];
    for (_, capacity_type, bill) in money.by_state().filter(|(state, ..)| unbound.contains(state)) {
        let cell = cells.entry(("", capacity_type)).or_default();
        *cell = cell.plus(bill);
    }
    let cell = |((cluster, capacity_type), bill): ((&str, CapacityType), Bill)| v1::CostCell {
        cluster: cluster.to_owned(),
        capacity_type: capacity_type.to_wire(),
        machines: bill.machines as u32,
        usd_per_hour: bill.usd_per_hour(),
    };
    v1::Costs {
        as_of: None,
        usd_per_hour: money.spend().usd_per_hour(),
        idle_usd_per_hour: money.idle().usd_per_hour(),
        moving_usd_per_hour: sum(&[
            MachineState::Configuring,
            MachineState::Draining,
            MachineState::Deleting,
        ]),
        failed_usd_per_hour: sum(&[MachineState::Failed]),
        cells: cells.into_iter().map(cell).collect(),
    }
}
