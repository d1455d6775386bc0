//! What the shard knows, taken at one moment and turned into series.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::AtomicU64;

use bigfleet_model::capacity::CapacityType;
use bigfleet_shard::{Care, Shard, Tally};
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;
/// A name, a help text, and series by label.
type Named<V> = (&'static str, &'static str, Vec<(Labels, V)>);
type Amount = Gauge<f64, AtomicU64>;

/// How many machines are looked at before others get a turn on the core thread.
const SLICE: usize = 8192;

/// What is under way and what is wrong, counted over all machines in slices.
#[derive(Default)]
pub(crate) struct Survey {
    moves: BTreeMap<(&'static str, &'static str), u64>,
    care: BTreeMap<&'static str, u64>,
}

impl Survey {
    /// Counts the machines from a place on; where to go on, if there are more.
    pub(crate) fn take(&mut self, shard: &Shard, from: u32) -> Option<u32> {
        let mut last = None;
        let mut count = 0;
        for view in shard.machines_from(from).take(SLICE) {
            count += 1;
            last = Some(view.place + 1);
            if let Some(flight) = view.flight {
                *self.moves.entry((flight.kind.name(), flight.stage.code())).or_insert(0) += 1;
            }
            if *view.care != Care::Fine {
                *self.care.entry(view.care.code()).or_insert(0) += 1;
            }
        }
        last.filter(|_| count == SLICE)
    }
}

/// Numbers by name: what the shard knew at one moment.
pub(crate) struct Snapshot {
    gauges: Vec<Named<f64>>,
    counters: Vec<Named<u64>>,
}

impl Snapshot {
    /// Takes it. Runs on the core thread, so it only copies.
    pub(crate) fn of(shard: &Shard, now: i64) -> Self {
        let mut snapshot = Self { gauges: Vec::new(), counters: Vec::new() };
        snapshot.machines(shard);
        snapshot.money(shard);
        snapshot.demand(shard, now);
        snapshot.providers(shard, now);
        snapshot.queues(shard, now);
        snapshot.tally(shard.tally());
        snapshot
    }

    /// What the server knows beside the shard: sessions, frames that wait, and those for the slowest.
    pub(crate) fn with_sessions(mut self, (sessions, waiting, most): (usize, usize, usize)) -> Self {
        self.gauge("sessions", "Sessions open", one(sessions as f64));
        self.gauge("outbox_frames", "Frames that wait to be sent, over all sessions", one(waiting as f64));
        self.gauge("outbox_frames_most", "Frames that wait for the slowest session", one(most as f64));
        self
    }

    /// How many bytes of unfinished messages callers have us hold.
    pub(crate) fn with_in_flight(mut self, bytes: usize) -> Self {
        self.gauge(
            "bytes_in_flight",
            "Bytes of requests that are not whole or not read yet",
            one(bytes as f64),
        );
        self
    }

    /// What a walk over all machines found.
    pub(crate) fn with_survey(mut self, survey: Survey) -> Self {
        let series = survey.moves.into_iter().map(|((kind, stage), count)| {
            (vec![("kind", kind.to_owned()), ("stage", stage.to_owned())], count as f64)
        });
        self.gauge("moves_in_flight", "Moves under way by kind and stage", series.collect());
        let series =
            survey.care.into_iter().map(|(code, count)| (vec![("why", code.to_owned())], count as f64));
        self.gauge("machines_cared_for", "Machines something is wrong with, by what", series.collect());
        self
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, series: Vec<(Labels, f64)>) {
        self.gauges.push((name, help, series));
    }

    fn counter(&mut self, name: &'static str, help: &'static str, series: Vec<(Labels, u64)>) {
        self.counters.push((name, help, series));
    }

    fn machines(&mut self, shard: &Shard) {
        let by_state = shard.money().by_state().map(|(state, capacity, bill)| {
            let labels = vec![("state", state.name().to_owned()), ("capacity_type", word(capacity))];
            (labels, bill.machines as f64)
        });
        self.gauge("machines", "Machines by state and capacity type", by_state.collect());
    }

    fn money(&mut self, shard: &Shard) {
        let money = shard.money();
        let help = "What all hardware costs an hour, in dollars";
        self.gauge("spend_usd_per_hour", help, one(money.spend().usd_per_hour()));
        let help = "What hardware that nobody uses costs an hour, in dollars";
        self.gauge("idle_usd_per_hour", help, one(money.idle().usd_per_hour()));
        let series = money.by_cluster().map(|(cluster, capacity, bill)| {
            let labels = vec![("cluster", cluster.to_string()), ("capacity_type", word(capacity))];
            (labels, bill.usd_per_hour())
        });
        let help = "What a cluster's machines cost an hour, in dollars, by capacity type";
        self.gauge("cluster_usd_per_hour", help, series.collect());
    }

    fn demand(&mut self, shard: &Shard, now: i64) {
        let ages = shard.ledger().by_age(now);
        let series = ages.into_iter().map(|(age, count)| (vec![("age", age.to_owned())], count as f64));
        self.gauge("shortfalls", "Needs even preemption could not meet, by age", series.collect());
        let clusters = shard.clusters();
        let held = clusters.values().filter(|cluster| cluster.held.is_some()).count();
        self.gauge("rollups_held", "Clusters whose last roll-up waits to be confirmed", one(held as f64));
        let rows: usize = clusters.values().map(|cluster| cluster.demand.len()).sum();
        self.gauge("needs", "Rows of accepted demand", one(rows as f64));
        let refused =
            clusters.values().filter(|cluster| cluster.operator_backoff_until_unix_nanos > now).count();
        self.gauge("operators_backed_off", "Clusters whose operator failed lately", one(refused as f64));
        let in_force = |until: Option<i64>| until.is_none_or(|until| now < until);
        let pauses = shard.pauses().values().filter(|pause| in_force(pause.until_unix_nanos)).count();
        self.gauge("pauses", "Pauses in force", one(pauses as f64));
    }

    fn providers(&mut self, shard: &Shard, now: i64) {
        let of = |value: &dyn Fn(&bigfleet_shard::Provider) -> Option<f64>| {
            let all = shard.providers().iter();
            all.filter_map(|p| Some((vec![("provider", p.name.to_string())], value(p)?))).collect::<Vec<_>>()
        };
        let ages = of(&|provider| provider.age_nanos(now).map(|age| age as f64 / 1e9));
        self.gauge("inventory_age_seconds", "How old the listing is that we go by", ages);
        self.gauge("provider_machines", "Machines by provider", of(&|p| Some(p.machines as f64)));
        let help = "Listings that failed in a row";
        self.gauge("provider_failures_in_a_row", help, of(&|p| Some(f64::from(p.failures))));
        let help = "Machines missing from a listing that is not believed yet";
        let missing = of(&|p| Some(p.held.map_or(0.0, |held| held.missing as f64)));
        self.gauge("listing_held_missing", help, missing);
    }

    fn queues(&mut self, shard: &Shard, now: i64) {
        let queues = shard.queues();
        let all = [("waiting", queues.waiting), ("calling", queues.calling), ("open_calls", queues.open)];
        let series = all.into_iter().map(|(name, count)| (vec![("queue", name.to_owned())], count as f64));
        self.gauge("queue", "How full the queues are", series.collect());
        self.gauge("epoch", "The number of this life", one(shard.config().epoch as f64));
        self.gauge("cycle", "The number of the last cycle, over all lives", one(shard.cycle() as f64));
        if let Some(last) = shard.last_cycle_unix_nanos() {
            let help = "How long ago the last cycle ran";
            self.gauge("cycle_age_seconds", help, one((now - last) as f64 / 1e9));
        }
    }

    fn tally(&mut self, tally: &Tally) {
        let by = |label: &'static str, map: &BTreeMap<&'static str, u64>| {
            map.iter().map(|(name, count)| (vec![(label, (*name).to_owned())], *count)).collect::<Vec<_>>()
        };
        let pairs = |series: &mut dyn Iterator<Item = (&'static str, &'static str, &'static str, u64)>| {
            let labels =
                |kind: &str, label, name: &str| vec![("kind", kind.to_owned()), (label, name.to_owned())];
            series.map(|(kind, label, name, count)| (labels(kind, label, name), count)).collect::<Vec<_>>()
        };
        let single = |count: u64| vec![(Labels::new(), count)];
        self.counter("cycles", "Cycles by reason; one may have several", by("reason", &tally.cycle_reasons));
        self.counter("cycles_run", "Cycles", single(tally.cycles));
        self.counter("cycles_quiet", "Cycles with nothing new to look at", single(tally.quiet_cycles));
        let mut actions =
            tally.actions.iter().map(|((kind, fate), n)| (kind.name(), "fate", fate.code(), *n));
        self.counter("actions", "Decided actions by kind and what became of them", pairs(&mut actions));
        let mut moves = tally.flights.iter().map(|((kind, end), n)| (kind.name(), "outcome", *end, *n));
        self.counter("moves", "Moves that ended, by kind and outcome", pairs(&mut moves));
        let help = "Records of machines that were refused, by reason";
        self.counter("machines_rejected", help, by("reason", &tally.bad_records));
        self.counter("machines_lost", "Bound machines lost without our order", by("how", &tally.lost));
        self.counter("rollups", "Roll-ups by reception", by("reception", &tally.rollups));
        self.counter("listings", "Listings by outcome", by("outcome", &tally.listings));
        for (name, help, count) in [
            (
                "provisions_carried_on",
                "Machines bound on arrival for the need they were bought for",
                tally.carried_on,
            ),
            ("bad_stamps", "Stamps on machines that could not be read", tally.bad_stamps),
            ("records_read_again", "Records read although unchanged, as a check", tally.read_again),
            ("records_read_otherwise", "Those of them that were not as we held them", tally.read_otherwise),
            ("foreign_records", "Records of machines outside our domains", tally.foreign_records),
            ("claimed_twice", "Machines of one id listed by two providers", tally.claimed_twice),
            ("unsolicited_moves", "Moves nobody ordered", tally.unsolicited),
            ("machines_overdue", "Machines that were too long in transition", tally.overdue),
            ("machines_quarantined", "Machines put into quarantine", tally.quarantined),
            ("fenced_calls", "Calls answered by a newer owner's fence", tally.fenced),
            ("bootstrap_failures", "Times an operator gave no blob", tally.blob_failures),
            ("late_answers", "Answers nobody waited for any more", tally.late_answers),
            ("early_drains", "Drains before the grace was over", tally.early_drains),
            ("reclaims_taken_back", "Reclaims taken back because demand returned", tally.taken_back),
        ] {
            self.counter(name, help, single(count));
        }
    }

    /// Puts these numbers into a registry.
    pub(super) fn registry(&self, mut registry: Registry) -> Registry {
        for (name, help, series) in &self.gauges {
            register(&mut registry, name, help, series, |gauge: &Amount, value| {
                gauge.set(*value);
            });
        }
        for (name, help, series) in &self.counters {
            register(&mut registry, name, help, series, |counter: &Counter, value| {
                counter.inc_by(*value);
            });
        }
        registry
    }
}

/// A series without labels is a metric of its own: in a family it would carry empty braces.
fn register<M, V>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    series: &[(Labels, V)],
    set: impl Fn(&M, &V),
) where
    M: EncodeMetric + TypedMetric + Default + Clone + Debug + Send + Sync + 'static,
{
    match series {
        [(labels, value)] if labels.is_empty() => {
            let metric = M::default();
            set(&metric, value);
            registry.register(name, help, metric);
        }
        _ => {
            let family = Family::<Labels, M>::default();
            for (labels, value) in series {
                set(&family.get_or_create(labels), value);
            }
            registry.register(name, help, family);
        }
    }
}

fn one(value: f64) -> Vec<(Labels, f64)> {
    vec![(Labels::new(), value)]
}

/// A capacity type in the word people use everywhere else.
fn word(capacity: CapacityType) -> String {
    match capacity {
        CapacityType::Unspecified => "unspecified",
        CapacityType::BareMetal => "bare-metal",
        CapacityType::Reserved => "reserved",
        CapacityType::OnDemand => "on-demand",
        CapacityType::Spot => "spot",
    }
    .to_owned()
}
