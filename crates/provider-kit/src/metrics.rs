//! What can be measured about a provider, in one registry.

use std::sync::Arc;

use bigfleet_proto::transport::code_name;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use tonic::Code;

use crate::fleet::Fleet;
use crate::list::census;
use crate::operation::OperationKind;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Shared by everything that counts.
#[derive(Clone)]
pub(crate) struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    calls: Family<Labels<2>, Counter>,
    call_seconds: Family<Labels<1>, Histogram>,
    transitions: Family<Labels<2>, Counter>,
    commits: Family<Labels<1>, Counter>,
    commit_seconds: Histogram,
    commit_changes: Histogram,
    machines: Family<Labels<1>, Gauge>,
    under_way: Gauge,
    stranger_marks: Gauge,
    revision: Gauge,
}

/// A scrape in which every metric has a series with its labels: what dashboards and alert rules are made from, and held
/// against.
pub fn specimen() -> String {
    let metrics = Metrics::new();
    metrics.answered("x", Code::Ok, 0);
    metrics.ended(OperationKind::Create, "x");
    metrics.committed(0, 0, true);
    metrics.scrape(&Fleet::default(), 0)
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.000_05, 2.0, 20));
        let mut inner = Inner {
            registry: Registry::with_prefix("bigfleet_provider"),
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(seconds),
            transitions: Family::default(),
            commits: Family::default(),
            commit_seconds: seconds(),
            commit_changes: Histogram::new(exponential_buckets(1.0, 2.0, 13)),
            machines: Family::default(),
            under_way: Gauge::default(),
            stranger_marks: Gauge::default(),
            revision: Gauge::default(),
        };
        let registry = &mut inner.registry;
        registry.register("calls", "Calls by method and status code", inner.calls.clone());
        let help = "How long calls took to answer";
        registry.register_with_unit("call_duration", help, Unit::Seconds, inner.call_seconds.clone());
        registry.register("transitions", "Moves ended, by kind and outcome", inner.transitions.clone());
        registry.register("commits", "Transactions by outcome", inner.commits.clone());
        let help = "How long transactions took";
        registry.register_with_unit("commit_duration", help, Unit::Seconds, inner.commit_seconds.clone());
        registry.register("commit_changes", "Changes per transaction", inner.commit_changes.clone());
        registry.register("machines", "Machines by state", inner.machines.clone());
        registry.register("transitions_under_way", "Moves under way", inner.under_way.clone());
        registry.register("stranger_marks", "Fence marks of unknown machines", inner.stranger_marks.clone());
        registry.register("revision", "The revision of the newest change", inner.revision.clone());
        Self(Arc::new(inner))
    }

    pub(crate) fn answered(&self, method: &'static str, code: Code, nanos: i64) {
        self.0.calls.get_or_create(&[("method", method), ("code", code_name(code))]).inc();
        self.0.call_seconds.get_or_create(&[("method", method)]).observe(nanos as f64 / 1e9);
    }

    pub(crate) fn ended(&self, kind: OperationKind, outcome: &'static str) {
        self.0.transitions.get_or_create(&[("kind", kind.name()), ("outcome", outcome)]).inc();
    }

    pub(crate) fn committed(&self, changes: usize, nanos: i64, ok: bool) {
        self.0.commits.get_or_create(&[("outcome", if ok { "ok" } else { "failed" })]).inc();
        self.0.commit_seconds.observe(nanos as f64 / 1e9);
        self.0.commit_changes.observe(changes as f64);
    }

    /// The text Prometheus reads.
    pub(crate) fn scrape(&self, fleet: &Fleet, under_way: usize) -> String {
        for (state, count) in census(fleet) {
            self.0.machines.get_or_create(&[("state", state.name())]).set(count.cast_signed());
        }
        self.0.under_way.set(under_way.cast_signed() as i64);
        self.0.stranger_marks.set(fleet.marks.strangers().cast_signed() as i64);
        self.0.revision.set(fleet.revision().cast_signed());
        let mut text = String::new();
        encode(&mut text, &self.0.registry).expect("a string takes everything");
        text
    }
}
