//! What can be measured about a shard.
//!
//! Two kinds, told apart by who knows them. What happens here, calls, cycles, sessions, is counted as it happens. What the
//! shard knows, machines, money, shortfalls, is read from it at each scrape into a registry of its own: a cluster or a
//! state that is gone leaves no series behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bigfleet_shard::{ALARMS, Config, Memory, Notice, Shard, Urgency};
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::laps::Laps;

mod process;
mod scrape;

pub(crate) use scrape::{Snapshot, Survey};

type Labels<const N: usize> = [(&'static str, &'static str); N];
type Owned<const N: usize> = [(&'static str, String); N];
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Counts as it happens; shared by everything that counts.
#[derive(Clone)]
pub(crate) struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    /// The name of the shard, on every series: several are scraped by one Prometheus.
    shard: String,
    cycle_seconds: Histogram,
    phase_seconds: Histograms<Labels<1>>,
    rollup_to_decision_seconds: Histogram,
    commits: Counter,
    commit_facts: Counter,
    commit_seconds: Histogram,
    /// When the commit under way began; 0 for none.
    committing_since: AtomicI64,
    provider_calls: Family<Owned<3>, Counter>,
    provider_call_seconds: Histograms<Owned<2>>,
    session_identity_rejected: Counter,
    sessions_ended: Family<Labels<1>, Counter>,
    rollups_unchanged: Counter,
    rollups_overtaken: Counter,
    frames_ignored: Counter,
    notices: Family<Labels<2>, Counter>,
    record_bytes: Gauge<u64, AtomicU64>,
    records_lost: Counter,
    reports: Family<Labels<1>, Counter>,
}

/// Steps of a quarter from 50 microseconds to a minute: fine enough to read quantiles from.
fn fine() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 1.25, 63))
}

/// Steps of a half from 10 microseconds to a few minutes.
fn coarse() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 1.5, 42))
}

impl Metrics {
    /// Of a shard of this name, and a program of this version.
    pub(crate) fn new(shard: &str, version: &str) -> Self {
        let mut inner = Inner {
            registry: labelled(shard),
            shard: shard.to_owned(),
            cycle_seconds: fine(),
            phase_seconds: Family::new_with_constructor(coarse),
            rollup_to_decision_seconds: fine(),
            commits: Counter::default(),
            commit_facts: Counter::default(),
            commit_seconds: coarse(),
            committing_since: AtomicI64::new(0),
            provider_calls: Family::default(),
            provider_call_seconds: Family::new_with_constructor(coarse),
            session_identity_rejected: Counter::default(),
            sessions_ended: Family::default(),
            rollups_unchanged: Counter::default(),
            rollups_overtaken: Counter::default(),
            frames_ignored: Counter::default(),
            notices: Family::default(),
            record_bytes: Gauge::default(),
            records_lost: Counter::default(),
            reports: Family::default(),
        };
        inner.register();
        let build = Info::new(vec![("version", version.to_owned())]);
        inner.registry.register("build", "What program this is", build);
        for code in ALARMS {
            let _ = inner.notices.get_or_create(&[("urgency", "alarm"), ("code", code)]);
        }
        Self(Arc::new(inner))
    }

    /// A cycle ran.
    pub(crate) fn cycled(&self, laps: &Laps<'_>, begun: i64, ended: i64) {
        self.0.cycle_seconds.observe(seconds(ended - begun));
        for (phase, began, ended) in laps.iter() {
            self.0.phase_seconds.get_or_create(&[("phase", phase)]).observe(seconds(ended - began));
        }
    }

    /// A cycle decided on a roll-up that arrived so long before.
    pub(crate) fn decided_upon(&self, nanos: i64) {
        self.0.rollup_to_decision_seconds.observe(seconds(nanos));
    }

    pub(crate) fn commit_begins(&self, now: i64) {
        self.0.committing_since.store(now.max(1), Ordering::Relaxed);
    }

    pub(crate) fn committed(&self, facts: usize, nanos: i64) {
        self.0.committing_since.store(0, Ordering::Relaxed);
        self.0.commits.inc();
        self.0.commit_facts.inc_by(facts as u64);
        self.0.commit_seconds.observe(seconds(nanos));
    }

    /// Since when the disk has been busy with one commit, if it is.
    pub(crate) fn committing_since(&self) -> Option<i64> {
        Some(self.0.committing_since.load(Ordering::Relaxed)).filter(|since| *since != 0)
    }

    pub(crate) fn called(&self, provider: &str, method: &'static str, code: &'static str, nanos: i64) {
        let method = || ("method", method.to_owned());
        let provider = || ("provider", provider.to_owned());
        self.0.provider_calls.get_or_create(&[provider(), method(), ("code", code.to_owned())]).inc();
        self.0.provider_call_seconds.get_or_create(&[provider(), method()]).observe(seconds(nanos));
    }

    pub(crate) fn identity_rejected(&self) {
        self.0.session_identity_rejected.inc();
    }

    pub(crate) fn session_ended(&self, why: &'static str) {
        self.0.sessions_ended.get_or_create(&[("why", why)]).inc();
    }

    /// A roll-up said what the last one said.
    pub(crate) fn rollup_again(&self) {
        self.0.rollups_unchanged.inc();
    }

    /// A roll-up was replaced by a newer one before anybody read it.
    pub(crate) fn rollup_skipped(&self) {
        self.0.rollups_overtaken.inc();
    }

    pub(crate) fn frame_ignored(&self) {
        self.0.frames_ignored.inc();
    }

    pub(crate) fn said(&self, notice: &Notice) {
        let urgency = match notice.urgency {
            Urgency::Info => "info",
            Urgency::Warning => "warning",
            Urgency::Alarm => "alarm",
        };
        self.0.notices.get_or_create(&[("urgency", urgency), ("code", notice.code)]).inc();
    }

    pub(crate) fn recorded(&self, bytes: u64) {
        self.0.record_bytes.set(bytes);
    }

    pub(crate) fn record_lost(&self) {
        self.0.records_lost.inc();
    }

    /// A report to the coordinator was answered, or not.
    pub(crate) fn reported(&self, outcome: &'static str) {
        self.0.reports.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// The text Prometheus reads: what was counted here, and what the shard knows if it answered.
    pub(crate) fn scrape(&self, snapshot: Option<&Snapshot>) -> String {
        let mut text = String::new();
        let encoded = encode_registry(&mut text, &self.0.registry)
            .and_then(|()| encode_registry(&mut text, &process::registry()))
            .and_then(|()| {
                let of_shard = |snapshot: &Snapshot| snapshot.registry(labelled(&self.0.shard));
                snapshot.map_or(Ok(()), |snapshot| encode_registry(&mut text, &of_shard(snapshot)))
            })
            .and_then(|()| encode_eof(&mut text));
        encoded.expect("a string takes everything");
        text
    }
}

impl Inner {
    fn register(&mut self) {
        let to = &mut self.registry;
        let timed = |to: &mut Registry, name: &str, help: &str, metric: Histogram| {
            to.register_with_unit(name, help, Unit::Seconds, metric);
        };
        timed(to, "cycle_duration", "How long cycles took", self.cycle_seconds.clone());
        let help = "How long the phases of cycles took";
        to.register_with_unit("cycle_phase_duration", help, Unit::Seconds, self.phase_seconds.clone());
        let help = "From the arrival of a roll-up to the end of the cycle that decided on it";
        timed(to, "rollup_to_decision", help, self.rollup_to_decision_seconds.clone());
        to.register("commits", "Transactions of the store", self.commits.clone());
        to.register("commit_facts", "Facts written", self.commit_facts.clone());
        timed(to, "commit_duration", "How long transactions took", self.commit_seconds.clone());
        let help = "Calls to providers by method and status code";
        to.register("provider_calls", help, self.provider_calls.clone());
        let help = "How long calls to providers took";
        to.register_with_unit(
            "provider_call_duration",
            help,
            Unit::Seconds,
            self.provider_call_seconds.clone(),
        );
        let help = "Sessions refused because the certificate was not the cluster's";
        to.register("session_identity_rejected", help, self.session_identity_rejected.clone());
        to.register("sessions_ended", "Sessions ended by us, by reason", self.sessions_ended.clone());
        let help = "Roll-ups that repeated the one before and were not read";
        to.register("rollups_unchanged", help, self.rollups_unchanged.clone());
        let help = "Roll-ups replaced by a newer one before they were read";
        to.register("rollups_overtaken", help, self.rollups_overtaken.clone());
        to.register("frames_ignored", "Frames of operators that meant nothing", self.frames_ignored.clone());
        to.register("notices", "Notices by urgency and code", self.notices.clone());
        let help = "Size of the decision record";
        to.register_with_unit("record_size", help, Unit::Bytes, self.record_bytes.clone());
        to.register("records_lost", "Cycles missing from the decision record", self.records_lost.clone());
        to.register("coordinator_reports", "Reports to the coordinator by outcome", self.reports.clone());
    }
}

/// A scrape in which every metric has a series with its labels: what dashboards and alert rules are made from, and held
/// against.
pub fn specimen() -> String {
    let metrics = Metrics::new("x", "x");
    let _ = metrics.0.phase_seconds.get_or_create(&[("phase", "x")]);
    metrics.called("x", "x", "x", 0);
    metrics.session_ended("x");
    metrics.reported("x");
    let shard = Shard::new(Config::new("x", 0, Vec::new()), Memory::default(), 0);
    let snapshot = Snapshot::of(&shard, 0).with_sessions((0, 0, 0)).with_in_flight(0);
    metrics.scrape(Some(&snapshot.with_survey(Survey::default()).filled()))
}

/// A registry whose series say whose they are.
fn labelled(shard: &str) -> Registry {
    let labels = std::iter::once(("shard".into(), shard.to_owned().into()));
    Registry::with_prefix_and_labels("bigfleet_shard", labels)
}

fn seconds(nanos: i64) -> f64 {
    nanos as f64 / 1e9
}
