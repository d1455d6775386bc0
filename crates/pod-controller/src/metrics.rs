//! What can be measured about the controller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::ledger::Tally;
use crate::translate::Skip;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Counts, shared by everything that counts.
#[derive(Clone)]
pub(crate) struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    writes: Family<Labels<2>, Counter>,
    watch_errors: Family<Labels<2>, Counter>,
    leading: Gauge,
    /// Read at each scrape.
    tally: Mutex<Tally>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut inner = Inner {
            registry: Registry::with_prefix("bigfleet_pod_controller"),
            writes: Family::default(),
            watch_errors: Family::default(),
            leading: Gauge::default(),
            tally: Mutex::default(),
        };
        let registry = &mut inner.registry;
        registry.register(
            "writes",
            "Calls that changed a request, by kind and outcome",
            inner.writes.clone(),
        );
        registry.register(
            "watch_errors",
            "Watches that broke off, by resource and cause",
            inner.watch_errors.clone(),
        );
        registry.register("leading", "1 if this replica does the work", inner.leading.clone());
        Self(Arc::new(inner))
    }

    pub(crate) fn wrote(&self, step: &'static str, outcome: &'static str) {
        self.0.writes.get_or_create(&[("step", step), ("outcome", outcome)]).inc();
    }

    pub(crate) fn watch_error(&self, resource: &'static str, cause: &'static str) {
        self.0.watch_errors.get_or_create(&[("resource", resource), ("cause", cause)]).inc();
    }

    pub(crate) fn leads(&self, leads: Leads) {
        self.0.leading.set(i64::from(leads == Leads::Yes));
        if leads == Leads::No {
            *self.0.tally.lock().expect("no holder panics") = Tally::default();
        }
    }

    pub(crate) fn tally(&self, tally: &Tally) {
        self.0.tally.lock().expect("no holder panics").clone_from(tally);
    }

    /// All of it, as text.
    pub(crate) fn scrape(&self) -> String {
        let mut text = String::new();
        encode_registry(&mut text, &self.0.registry).expect("text can be written");
        encode_registry(&mut text, &survey(&self.0.tally.lock().expect("no holder panics")))
            .expect("text can be written");
        encode_eof(&mut text).expect("text can be written");
        text
    }
}

/// A scrape in which every metric has a series with its labels: what dashboards and alert rules are made from, and held
/// against.
pub fn specimen() -> String {
    let metrics = Metrics::new();
    metrics.wrote("x", "x");
    metrics.watch_error("x", "x");
    metrics.tally(&Tally {
        losses: BTreeMap::from([(("x", "x"), 1)]),
        bad_penalties: BTreeMap::from([("x", 1)]),
        ..Tally::default()
    });
    metrics.scrape()
}

/// Whether this replica does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    Yes,
    No,
}

/// What is there now. Made anew at each scrape, so that a field nobody uses any more leaves no series behind.
fn survey(tally: &Tally) -> Registry {
    let mut registry = Registry::with_prefix("bigfleet_pod_controller");
    let pods = Family::<Labels<1>, Gauge>::default();
    pods.get_or_create(&[("state", "asking")]).set(tally.asking);
    for skip in Skip::ALL {
        pods.get_or_create(&[("state", skip.name())]).set(tally.skipped.get(&skip).copied().unwrap_or(0));
    }
    registry.register("pods", "Pods, by whether they ask for capacity or why they do not", pods);
    let losses = Family::<Labels<2>, Gauge>::default();
    for ((field, effect), count) in tally.losses.iter().filter(|(_, count)| **count != 0) {
        losses.get_or_create(&[("field", field), ("effect", effect)]).set(*count);
    }
    registry.register(
        "not_carried",
        "Pods by field that their request does not carry, and what follows",
        losses,
    );
    let bad = Family::<Labels<1>, Gauge>::default();
    for (annotation, count) in tally.bad_penalties.iter().filter(|(_, count)| **count != 0) {
        bad.get_or_create(&[("annotation", annotation)]).set(*count);
    }
    registry.register("bad_penalties", "Pods by penalty annotation that could not be read", bad);
    let refused = Gauge::<i64>::default();
    refused.set(tally.refused);
    registry.register("refused", "Pods whose request the API server refuses", refused);
    let requests = Gauge::<i64>::default();
    requests.set(tally.requests);
    registry.register("requests", "Requests that speak for pods", requests);
    registry
}
