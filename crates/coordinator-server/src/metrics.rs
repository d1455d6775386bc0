//! What a coordinator counts.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::replica::State;

/// Everything that is counted; cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    leads: Gauge,
    term: Gauge,
    decisions: Counter<u64, AtomicU64>,
    reports: Counter<u64, AtomicU64>,
    shards: Gauge,
    domains: Gauge,
    clusters: Gauge,
    transfers: Gauge,
    instructions: Gauge,
    asks: Gauge,
}

/// A scrape in which every metric has a series with its labels: what dashboards and alert rules are made from, and held
/// against.
pub fn specimen() -> String {
    Metrics::default().text()
}

impl Metrics {
    /// As `OpenMetrics` has it.
    pub(crate) fn text(&self) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        self.register(&mut registry);
        encode(&mut text, &registry).expect("a string takes everything");
        text
    }

    /// With names for everything.
    fn register(&self, registry: &mut Registry) {
        let to = registry.sub_registry_with_prefix("bigfleet_coordinator");
        to.register("leads", "1 while this replica leads", self.leads.clone());
        to.register("term", "The term of the leader that this replica knows of", self.term.clone());
        to.register("decisions", "Decisions that were stored", self.decisions.clone());
        to.register("reports", "Reports of shards that were taken", self.reports.clone());
        to.register("shards", "Shards that are registered", self.shards.clone());
        to.register("domains", "Domains that have a holder", self.domains.clone());
        to.register("clusters", "Clusters that are bound to a shard", self.clusters.clone());
        to.register(
            "transfers",
            "Machines that were handed from one shard to another",
            self.transfers.clone(),
        );
        to.register("instructions", "Instructions that have not been answered", self.instructions.clone());
        to.register("asks", "Donors that are thinking about what they can spare", self.asks.clone());
    }

    pub(crate) fn leads(&self, leads: bool) {
        self.leads.set(i64::from(leads));
    }

    pub(crate) fn committed(&self, decisions: usize) {
        self.decisions.inc_by(decisions as u64);
    }

    pub(crate) fn reported(&self) {
        self.reports.inc();
    }

    pub(crate) fn measured(&self, state: &State) {
        let set = |gauge: &Gauge, count: usize| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.term.set(state.fleet.term());
        set(&self.shards, state.fleet.shards().len());
        set(&self.domains, state.fleet.domains().len());
        set(&self.clusters, state.fleet.clusters().len());
        set(&self.transfers, state.fleet.transfers().len());
        set(&self.instructions, state.fleet.instructions().len());
        set(&self.asks, state.help.asks().len());
    }
}
