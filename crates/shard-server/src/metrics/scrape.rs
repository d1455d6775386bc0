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

/// Names of labels, in the order of their values.
type Names = &'static [&'static str];
/// Values of labels, and the number they stand at.
type Series<V> = Vec<(Vec<String>, V)>;
type Amount = Gauge<f64, AtomicU64>;

/// One metric. What its labels are called is said once, also where there is no series yet.
struct Named<V> {
    name: &'static str,
    help: &'static str,
    labels: Names,
    series: Series<V>,
}

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
        self.gauge("sessions", "Sessions open", sessions as f64);
        self.gauge("outbox_frames", "Frames that wait to be sent, over all sessions", waiting as f64);
        self.gauge("outbox_frames_most", "Frames that wait for the slowest session", most as f64);
        self
    }

    /// How many bytes of unfinished messages callers have us hold.
    pub(crate) fn with_in_flight(mut self, bytes: usize) -> Self {
        let help = "Bytes of requests that are not whole or not read yet";
        self.gauge("bytes_in_flight", help, bytes as f64);
        self
    }

    /// What a walk over all machines found.
    pub(crate) fn with_survey(mut self, survey: Survey) -> Self {
        let series = survey.moves.into_iter();
        let series = series
            .map(|((kind, stage), count)| (vec![kind.to_owned(), stage.to_owned()], count as f64))
            .collect();
        self.labelled("moves_in_flight", "Moves under way by kind and stage", &["kind", "stage"], series);
        let series = survey.care.into_iter().map(|(code, count)| (vec![code.to_owned()], count as f64));
        let help = "Machines something is wrong with, by what";
        self.labelled("machines_cared_for", help, &["why"], series.collect());
        self
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.labelled(name, help, &[], vec![(Vec::new(), value)]);
    }

    fn labelled(&mut self, name: &'static str, help: &'static str, labels: Names, series: Series<f64>) {
        self.gauges.push(Named { name, help, labels, series });
    }

    fn counter(&mut self, name: &'static str, help: &'static str, labels: Names, series: Series<u64>) {
        self.counters.push(Named { name, help, labels, series });
    }

    /// The same with a made-up series wherever there is none, so that every metric is seen with its labels.
    pub(super) fn filled(mut self) -> Self {
        fn fill<V: Default>(all: &mut [Named<V>]) {
            for one in all.iter_mut().filter(|one| one.series.is_empty()) {
                one.series.push((vec!["x".to_owned(); one.labels.len()], V::default()));
            }
        }
        fill(&mut self.gauges);
        fill(&mut self.counters);
        self
    }

    fn machines(&mut self, shard: &Shard) {
        let by_state = shard.money().by_state().map(|(state, capacity, bill)| {
            (vec![state.name().to_owned(), word(capacity)], bill.machines as f64)
        });
        let help = "Machines by state and capacity type";
        self.labelled("machines", help, &["state", "capacity_type"], by_state.collect());
    }

    fn money(&mut self, shard: &Shard) {
        let money = shard.money();
        let help = "What all hardware costs an hour, in dollars";
        self.gauge("spend_usd_per_hour", help, money.spend().usd_per_hour());
        let help = "What hardware that nobody uses costs an hour, in dollars";
        self.gauge("idle_usd_per_hour", help, money.idle().usd_per_hour());
        let series = money.by_cluster().map(|(cluster, capacity, bill)| {
            (vec![cluster.to_string(), word(capacity)], bill.usd_per_hour())
        });
        let help = "What a cluster's machines cost an hour, in dollars, by capacity type";
        self.labelled("cluster_usd_per_hour", help, &["cluster", "capacity_type"], series.collect());
    }

    fn demand(&mut self, shard: &Shard, now: i64) {
        let ages = shard.ledger().by_age(now);
        let series = ages.into_iter().map(|(age, count)| (vec![age.to_owned()], count as f64));
        let help = "Needs even preemption could not meet, by age";
        self.labelled("shortfalls", help, &["age"], series.collect());
        let clusters = shard.clusters();
        let held = clusters.values().filter(|cluster| cluster.held.is_some()).count();
        self.gauge("rollups_held", "Clusters whose last roll-up waits to be confirmed", held as f64);
        let rows: usize = clusters.values().map(|cluster| cluster.demand.len()).sum();
        self.gauge("needs", "Rows of accepted demand", rows as f64);
        let refused =
            clusters.values().filter(|cluster| cluster.operator_backoff_until_unix_nanos > now).count();
        self.gauge("operators_backed_off", "Clusters whose operator failed lately", refused as f64);
        let in_force = |until: Option<i64>| until.is_none_or(|until| now < until);
        let pauses = shard.pauses().values().filter(|pause| in_force(pause.until_unix_nanos)).count();
        self.gauge("pauses", "Pauses in force", pauses as f64);
    }

    fn providers(&mut self, shard: &Shard, now: i64) {
        let of = |value: &dyn Fn(&bigfleet_shard::Provider) -> Option<f64>| {
            let all = shard.providers().iter();
            all.filter_map(|p| Some((vec![p.name.to_string()], value(p)?))).collect::<Vec<_>>()
        };
        let ages = of(&|provider| provider.age_nanos(now).map(|age| age as f64 / 1e9));
        let by: Names = &["provider"];
        self.labelled("inventory_age_seconds", "How old the listing is that we go by", by, ages);
        self.labelled("provider_machines", "Machines by provider", by, of(&|p| Some(p.machines as f64)));
        let help = "Listings that failed in a row";
        self.labelled("provider_failures_in_a_row", help, by, of(&|p| Some(f64::from(p.failures))));
        let help = "Machines missing from a listing that is not believed yet";
        let missing = of(&|p| Some(p.held.map_or(0.0, |held| held.missing as f64)));
        self.labelled("listing_held_missing", help, by, missing);
    }

    fn queues(&mut self, shard: &Shard, now: i64) {
        let queues = shard.queues();
        let all = [("waiting", queues.waiting), ("calling", queues.calling), ("open_calls", queues.open)];
        let series = all.into_iter().map(|(name, count)| (vec![name.to_owned()], count as f64));
        self.labelled("queue", "How full the queues are", &["queue"], series.collect());
        self.gauge("epoch", "The number of this life", shard.config().epoch as f64);
        self.gauge("cycle", "The number of the last cycle, over all lives", shard.cycle() as f64);
        // None before the first cycle.
        let age = shard.last_cycle_unix_nanos().map(|last| (Vec::new(), (now - last) as f64 / 1e9));
        self.labelled("cycle_age_seconds", "How long ago the last cycle ran", &[], age.into_iter().collect());
    }

    fn tally(&mut self, tally: &Tally) {
        type Counts = BTreeMap<&'static str, u64>;
        let mut by = |name, help, label: Names, counts: &Counts| {
            let series = counts.iter().map(|(value, count)| (vec![(*value).to_owned()], *count));
            self.counter(name, help, label, series.collect());
        };
        by("cycles", "Cycles by reason; one may have several", &["reason"], &tally.cycle_reasons);
        let help = "Records of machines that were refused, by reason";
        by("machines_rejected", help, &["reason"], &tally.bad_records);
        by("machines_lost", "Bound machines lost without our order", &["how"], &tally.lost);
        by("rollups", "Roll-ups by reception", &["reception"], &tally.rollups);
        by("listings", "Listings by outcome", &["outcome"], &tally.listings);
        let pair = |kind: &str, other: &str, count: u64| (vec![kind.to_owned(), other.to_owned()], count);
        let actions = tally.actions.iter().map(|((kind, fate), n)| pair(kind.name(), fate.code(), *n));
        let help = "Decided actions by kind and what became of them";
        self.counter("actions", help, &["kind", "fate"], actions.collect());
        let moves = tally.flights.iter().map(|((kind, end), n)| pair(kind.name(), end, *n));
        self.counter("moves", "Moves that ended, by kind and outcome", &["kind", "outcome"], moves.collect());
        for (name, help, count) in [
            ("cycles_run", "Cycles", tally.cycles),
            ("cycles_quiet", "Cycles with nothing new to look at", tally.quiet_cycles),
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
            self.counter(name, help, &[], vec![(Vec::new(), count)]);
        }
    }

    /// Puts these numbers into a registry.
    pub(super) fn registry(&self, mut registry: Registry) -> Registry {
        for gauge in &self.gauges {
            register(&mut registry, gauge, |metric: &Amount, value| {
                metric.set(*value);
            });
        }
        for counter in &self.counters {
            register(&mut registry, counter, |metric: &Counter, value| {
                metric.inc_by(*value);
            });
        }
        registry
    }
}

/// A series without labels is a metric of its own: in a family it would carry empty braces.
fn register<M, V>(registry: &mut Registry, named: &Named<V>, set: impl Fn(&M, &V))
where
    M: EncodeMetric + TypedMetric + Default + Clone + Debug + Send + Sync + 'static,
{
    let Named { name, help, labels, series } = named;
    match &series[..] {
        [(values, number)] if values.is_empty() => {
            let metric = M::default();
            set(&metric, number);
            registry.register(*name, *help, metric);
        }
        [] if labels.is_empty() => {}
        _ => {
            let family = Family::<Vec<(&'static str, String)>, M>::default();
            for (values, number) in series {
                let series = labels.iter().copied().zip(values.iter().cloned()).collect();
                set(&family.get_or_create(&series), number);
            }
            registry.register(*name, *help, family);
        }
    }
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
