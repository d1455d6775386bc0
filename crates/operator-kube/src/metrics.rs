//! What can be measured about an operator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Label = [(&'static str, &'static str); 1];
type Named = [(&'static str, String); 1];

/// Counts as it happens; shared by everything that counts.
#[derive(Clone)]
pub(crate) struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    is_ready: AtomicBool,
    pub(crate) requests: Family<Label, Gauge>,
    rows: Gauge,
    nodes: Family<Label, Gauge>,
    stuck_pods: Gauge,
    rollups: Family<Label, Counter>,
    rollup_seconds: Histogram,
    reserved: Family<Named, Gauge<f64, std::sync::atomic::AtomicU64>>,
    revisions: Family<Label, Counter>,
    sessions_ended: Counter,
    is_connected: Gauge,
    has_verdicts: Gauge,
    lists: Family<Label, Counter>,
    watches_broken: Family<[(&'static str, &'static str); 2], Counter>,
    evictions: Family<Label, Counter>,
    drains: Gauge,
    writes: Family<[(&'static str, &'static str); 2], Counter>,
    blobs: Family<Label, Counter>,
}

/// A scrape in which every metric has a series with its labels: what dashboards and alert rules are made from, and held
/// against.
pub fn specimen() -> String {
    let metrics = Metrics::new();
    metrics.demand(0, 0, 0, 0);
    metrics.nodes(0, 0);
    metrics.rollup("x");
    metrics.reserved(&[("x".into(), 0.0)]);
    metrics.revision("x");
    metrics.listed("x");
    metrics.watch_broke("x", "x");
    metrics.eviction("x");
    metrics.write("x", "x");
    metrics.blob("x");
    metrics.text()
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut inner = Inner {
            registry: Registry::with_prefix("bigfleet_operator"),
            is_ready: AtomicBool::new(false),
            requests: Family::default(),
            rows: Gauge::default(),
            nodes: Family::default(),
            stuck_pods: Gauge::default(),
            rollups: Family::default(),
            rollup_seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 16)),
            reserved: Family::default(),
            revisions: Family::default(),
            sessions_ended: Counter::default(),
            is_connected: Gauge::default(),
            has_verdicts: Gauge::default(),
            lists: Family::default(),
            watches_broken: Family::default(),
            evictions: Family::default(),
            drains: Gauge::default(),
            writes: Family::default(),
            blobs: Family::default(),
        };
        let r = &mut inner.registry;
        r.register("requests", "Requests by what is done with them", inner.requests.clone());
        r.register("rows", "Rows of the last roll-up", inner.rows.clone());
        r.register("nodes", "Nodes by whose they are", inner.nodes.clone());
        r.register("stuck_pods", "Pods the scheduler has no place for", inner.stuck_pods.clone());
        r.register("rollups", "Roll-ups by what became of them", inner.rollups.clone());
        r.register("rollup_build_seconds", "Time to build a roll-up", inner.rollup_seconds.clone());
        r.register(
            "reserved",
            "Asked for beyond the sum of requests because pods found no hole",
            inner.reserved.clone(),
        );
        r.register("revisions", "Looks at stuck pods of covered needs by outcome", inner.revisions.clone());
        r.register("sessions_ended", "Sessions with the shard that ended", inner.sessions_ended.clone());
        r.register("connected", "Whether a session with the shard is open", inner.is_connected.clone());
        r.register("verdicts_available", "Whether the shard tells verdicts", inner.has_verdicts.clone());
        r.register(
            "lists",
            "Lists begun: one at the start, one for each watch that broke",
            inner.lists.clone(),
        );
        r.register("watches_broken", "Watches that broke and began again", inner.watches_broken.clone());
        r.register("evictions", "Evictions asked for by outcome", inner.evictions.clone());
        r.register("drains", "Instructions to let go that are being carried out", inner.drains.clone());
        r.register("writes", "Objects written by kind and outcome", inner.writes.clone());
        r.register("bootstrap_requests", "Requests for bootstrap data by outcome", inner.blobs.clone());
        Self(Arc::new(inner))
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }

    pub(crate) fn set_ready(&self) {
        self.0.is_ready.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Relaxed)
    }

    pub(crate) fn demand(&self, good: usize, bad: usize, aside: usize, rows: usize) {
        for (what, count) in [("asked", good), ("refused", bad), ("served_elsewhere", aside)] {
            self.0.requests.get_or_create(&[("state", what)]).set(count.cast_signed() as i64);
        }
        self.0.rows.set(rows.cast_signed() as i64);
    }

    pub(crate) fn nodes(&self, ours: usize, others: usize) {
        self.0.nodes.get_or_create(&[("owner", "fleet")]).set(ours.cast_signed() as i64);
        self.0.nodes.get_or_create(&[("owner", "other")]).set(others.cast_signed() as i64);
    }

    pub(crate) fn stuck(&self, pods: usize) {
        self.0.stuck_pods.set(pods.cast_signed() as i64);
    }

    pub(crate) fn rollup_built(&self, nanos: i64) {
        self.0.rollup_seconds.observe(nanos as f64 / 1e9);
    }

    pub(crate) fn rollup(&self, outcome: &'static str) {
        self.0.rollups.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub(crate) fn reserved(&self, amounts: &[(String, f64)]) {
        self.0.reserved.clear();
        for (resource, amount) in amounts {
            self.0.reserved.get_or_create(&[("resource", resource.clone())]).set(*amount);
        }
    }

    pub(crate) fn revision(&self, outcome: &'static str) {
        self.0.revisions.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub(crate) fn session_ended(&self) {
        self.0.sessions_ended.inc();
    }

    pub(crate) fn connected(&self, is_connected: bool) {
        self.0.is_connected.set(is_connected.into());
    }

    pub(crate) fn verdicts(&self, has: bool) {
        self.0.has_verdicts.set(has.into());
    }

    pub(crate) fn listed(&self, what: &'static str) {
        self.0.lists.get_or_create(&[("what", what)]).inc();
    }

    pub(crate) fn watch_broke(&self, what: &'static str, cause: &'static str) {
        self.0.watches_broken.get_or_create(&[("what", what), ("cause", cause)]).inc();
    }

    pub(crate) fn eviction(&self, outcome: &'static str) {
        self.0.evictions.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub(crate) fn drains(&self, count: usize) {
        self.0.drains.set(count.cast_signed() as i64);
    }

    pub(crate) fn write(&self, kind: &'static str, outcome: &'static str) {
        self.0.writes.get_or_create(&[("kind", kind), ("outcome", outcome)]).inc();
    }

    pub(crate) fn blob(&self, outcome: &'static str) {
        self.0.blobs.get_or_create(&[("outcome", outcome)]).inc();
    }
}
