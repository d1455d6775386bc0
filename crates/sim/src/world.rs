//! The world: everything that happens, in the order of virtual time, on one thread.
//!
//! A queue holds what will happen when. Time jumps to the earliest of: the queue, the next move of a machine that ends, the
//! next thing a shard wants to do. Nothing else decides the order, so a seed decides everything.

mod council;
mod faults;
mod happening;
mod host;
mod lies;
mod line;
mod link;
mod operator;
mod settle;
mod truth;

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_model::resource::ResourceName;
use bigfleet_shard::Shard;

use crate::cloud::Clouds;
use crate::cluster::{Pods, fits};
use crate::invariant::{Moment, Violation, Watch};
use crate::planted::{Distorter, Planted};
use crate::present::Present;
use crate::random::Random;
use crate::scenario::{Cluster, Expect, Measure, Scenario};
use crate::trace::Trace;

use council::Council;
use faults::Active;
use happening::{Happening, Queue};
use host::Host;
use link::Serves;
use operator::Operator;
use truth::Truth;

pub(crate) use host::config;
pub use truth::Money;
pub(crate) use truth::billionths;

/// When runs begin: 2026-11-15 00:00 UTC.
pub const START_UNIX_NANOS: i64 = bigfleet_provider_sim::replay::START_UNIX_NANOS;

/// How long it is watched being at rest.
const QUIET: i64 = 30 * MINUTE;

/// How many things may wait to happen. The largest worlds have some thousands.
const MOST_WAITING: usize = 200_000;

/// How a run is looked at.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Keep the text of the trace, not only its digest.
    pub keep_trace: bool,
    /// Check no invariants.
    pub unwatched: bool,
    /// A bug to be found.
    pub planted: Option<Planted>,
    /// Machines, demand and settings are those of a fleet, and the scenario is only its frame.
    pub present: Option<Arc<Present>>,
}

/// A run under way.
pub struct World {
    scenario: Scenario,
    setup: Setup,
    now: i64,
    queue: Queue,
    random: Random,
    clouds: Clouds,
    truth: Truth,
    hosts: Vec<Host>,
    operators: Vec<Operator>,
    active: Active,
    sessions: u64,
    watch: Watch,
    trace: Trace,
    tally: Tally,
    stalls: u32,
    distorter: Option<Distorter>,
    /// Their coordinator, if there is one.
    council: Option<Council>,
    /// How each provider can be listed.
    serves: Vec<Serves>,
}

/// What happened in a run, by the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// What was counted: when, what, of which cluster, how many.
    pub(crate) counts: Vec<(i64, Measure, Option<usize>, u64)>,
    /// What was looked at, for expectations about a moment.
    pub(crate) looks: BTreeMap<usize, u64>,
    /// Points of the picture.
    pub(crate) points: Vec<Point>,
    /// Pods that waited, times how long, in nanoseconds.
    pub(crate) waited: u128,
    /// Needs the newest cycle of any shard left unmet, and these times how long, in nanoseconds.
    pub(crate) unmet_now: u64,
    pub(crate) unmet: u128,
    /// Events worth a mark in the picture.
    pub(crate) marks: Vec<(i64, String)>,
    pub(crate) cycles: u64,
    pub(crate) calls: u64,
    pub(crate) steps: u64,
}

/// One point of the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When, in nanoseconds from the start.
    pub at: i64,
    /// Machines bound and ready.
    pub configured: u64,
    /// Machines that exist.
    pub hardware: u64,
    /// Pods wanted.
    pub wanted: u64,
    /// Pods that wait.
    pub waiting: u64,
    /// Dollars an hour.
    pub usd_per_hour: f64,
}

impl World {
    /// A world at its beginning.
    pub fn new(scenario: &Scenario, setup: Setup) -> Self {
        let mut clouds = Clouds::open(scenario, setup.present.as_deref(), START_UNIX_NANOS);
        let truth = Truth::new(scenario);
        let random = Random::new(scenario.seed);
        let pods = |cluster: &Cluster| match &setup.present {
            Some(present) => present.pods(&cluster.name),
            None => Pods::new(cluster),
        };
        let operators = scenario.clusters.iter().map(|one| Operator::new(one, pods(one))).collect();
        let watch = Watch::new(scenario);
        let trace = Trace::new(setup.keep_trace);
        let distorter = setup.planted.map(Distorter::new);
        let mut ways = random.fork("how providers are listed");
        let serves = scenario.providers().iter().map(|_| *ways.pick(&Serves::ALL)).collect();
        clouds.ignore_fences = setup.planted == Some(Planted::FenceIgnored);
        let council = scenario.shard.council.as_ref().map(|council| {
            let is_unfenced = setup.planted == Some(Planted::LeaderUnfenced);
            Council::new(council, scenario.shard.shards, random.fork("coordinator"), is_unfenced)
        });
        let mut world = Self {
            scenario: scenario.clone(),
            setup,
            now: START_UNIX_NANOS,
            queue: Queue::default(),
            random,
            clouds,
            truth,
            hosts: Vec::new(),
            operators,
            active: Active::default(),
            sessions: 0,
            watch,
            trace,
            tally: Tally::default(),
            stalls: 0,
            distorter,
            council,
            serves,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        self.look_at_machines();
        for index in 0..self.scenario.shard.shards {
            self.start_host(index, index);
        }
        self.begin_council();
        for cluster in 0..self.operators.len() {
            for work in 0..self.scenario.clusters[cluster].work.len() {
                self.queue.put(self.now, Happening::Load { cluster, work });
                if self.scenario.clusters[cluster].work[work].churn_per_hour > 0.0 {
                    self.queue.put(self.now + MINUTE, Happening::Churn { cluster, work });
                }
            }
            // Operators do not all connect in the same instant.
            let at = self.now + 7_000_000 * (1 + i64::try_from(cluster).unwrap_or(0));
            self.queue.put(at, Happening::Connect { cluster, life: 0 });
        }
        for (index, fault) in self.scenario.faults.iter().enumerate() {
            self.queue.put(START_UNIX_NANOS + fault.at.nanos(), Happening::FaultBegins(index));
        }
        for (index, expect) in self.scenario.expect.iter().enumerate() {
            if let Some(at) = expect.from.filter(|_| !expect.measure.is_count()) {
                self.queue.put(START_UNIX_NANOS + at.nanos(), Happening::Look(index));
            }
        }
        if self.scenario.fleet.iter().any(|pool| pool.interruption > 0.0) {
            self.queue.put(self.now + MINUTE, Happening::Interruptions);
        }
        self.queue.put(self.now, Happening::Sample);
    }

    /// How far the run is, in nanoseconds from its start.
    pub fn elapsed(&self) -> i64 {
        self.now - START_UNIX_NANOS
    }

    /// Runs to the end of the scenario.
    pub fn run(&mut self) {
        let lasts = self.scenario.lasts.nanos();
        self.run_until(lasts);
        if self.scenario.settle && !self.watch.is_full() {
            self.lift_faults();
            let owed = settle::owed_nanos(&self.scenario, &config(&self.scenario, 0, 1));
            self.run_until(lasts + owed + QUIET);
            self.settled(lasts + owed);
        }
        for (index, expect) in self.scenario.expect.clone().iter().enumerate() {
            if expect.from.is_none() && !expect.measure.is_count() {
                self.look(index, expect);
            }
        }
        self.sample();
    }

    /// Runs until this long after the start.
    pub fn run_until(&mut self, nanos: i64) {
        let end = START_UNIX_NANOS + nanos;
        loop {
            let next = self.next_moment();
            if next > end || self.watch.is_full() {
                break;
            }
            self.pass_to(next);
            self.happen();
        }
        self.pass_to(end);
    }

    fn next_moment(&self) -> i64 {
        let queue = self.queue.next().unwrap_or(i64::MAX);
        let clouds = self.clouds.next_wake().unwrap_or(i64::MAX);
        let hosts = self.hosts.iter().map(Host::next_wake).min().unwrap_or(i64::MAX);
        queue.min(clouds).min(hosts).max(self.now)
    }

    fn pass_to(&mut self, now: i64) {
        let passed = (now - self.now).max(0);
        let waiting: u64 = self.operators.iter().map(|operator| operator.waiting).sum();
        self.tally.waited += u128::from(waiting) * passed as u128;
        self.tally.unmet += u128::from(self.tally.unmet_now) * passed as u128;
        self.stalls = if passed > 0 { 0 } else { self.stalls + 1 };
        self.now = now;
        self.clouds.advance(now);
    }

    /// Lets everything happen that is due.
    fn happen(&mut self) {
        self.look_at_machines();
        while let Some(happening) = self.queue.take_due(self.now) {
            self.let_happen(happening);
            self.look_at_machines();
        }
        for host in 0..self.hosts.len() {
            self.advance_host(host);
        }
        self.look_at_machines();
        self.schedule_pods();
        if self.stalls > 20_000 {
            self.watch.fail(self.now, 12, "time stands still: something is due for ever".into());
        }
        if self.queue.len() > MOST_WAITING {
            let waiting = self.queue.len();
            self.watch.fail(self.now, 18, format!("{waiting} things wait to happen: the world runs away"));
        }
    }

    fn let_happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive(call) => self.arrive(*call),
            Happening::Answer { host, life, call, answer } => self.answer(host, life, call, *answer),
            Happening::Frame { cluster, session, frame } => self.receive(cluster, session, &frame),
            Happening::Say { session, saying } => self.say(session, saying),
            Happening::Report { cluster, session } => self.report(cluster, session),
            Happening::Connect { cluster, life } => self.connect(cluster, life),
            Happening::Crash { cluster, life } => self.operator_crashes(cluster, life),
            Happening::Load { cluster, work } => self.load(cluster, work),
            Happening::Churn { cluster, work } => self.churn(cluster, work),
            Happening::Join { cluster, machine, since } => self.join(cluster, &machine, since),
            Happening::Emptied { cluster, session, machine, instruction } => {
                self.emptied(cluster, session, &machine, &instruction);
            }
            Happening::FaultBegins(index) => self.fault_begins(index),
            Happening::FaultEnds(index) => self.fault_ends(index),
            Happening::Kill { host } => {
                self.kill(host);
                self.restart(host);
            }
            Happening::Restart { host } => self.restart(host),
            Happening::Repair { provider, machine } => self.repair(provider, &machine),
            Happening::Approve(fault) => self.approve(fault),
            Happening::Interruptions => self.interruptions(),
            Happening::Council(talk) => self.council(talk),
            Happening::Look(index) => {
                let expect = self.scenario.expect[index].clone();
                self.look(index, &expect);
            }
            Happening::Sample => {
                self.sample();
                let every = (self.scenario.lasts.nanos() / 480).max(MINUTE / 6);
                self.queue.put(self.now + every, Happening::Sample);
            }
        }
    }

    fn count(&mut self, measure: Measure, cluster: Option<usize>, number: u64) {
        if number > 0 {
            self.tally.counts.push((self.now - START_UNIX_NANOS, measure, cluster, number));
        }
    }

    fn mark(&mut self, text: String) {
        self.trace.note(self.now, format_args!("mark {text}"));
        self.tally.marks.push((self.now - START_UNIX_NANOS, text));
    }

    /// Looks at a number for an expectation.
    fn look(&mut self, index: usize, expect: &Expect) {
        let number = match &expect.resource {
            Some(resource) => self.missing(resource, expect.cluster.as_deref()),
            None => self.measure(expect.measure, expect.cluster.as_deref()),
        };
        self.tally.looks.insert(index, number);
    }

    /// How much of a resource needs are short of.
    fn missing(&self, resource: &str, cluster: Option<&str>) -> u64 {
        let Ok(resource) = ResourceName::new(resource) else { return 0 };
        let shards = self.hosts.iter().filter(|host| !host.superseded).filter_map(|host| host.shard.as_ref());
        let short = shards.flat_map(|shard| shard.ledger().iter());
        let short = short.filter(|(key, _)| cluster.is_none_or(|only| *key.cluster == *only));
        short.map(|(_, shortfall)| shortfall.missing.get(&resource)).sum()
    }

    /// A number as it is now.
    pub fn measure(&self, measure: Measure, cluster: Option<&str>) -> u64 {
        let of = |name: &str| cluster.is_none_or(|only| only == name);
        let operators = || self.operators.iter().filter(|operator| of(operator.pods.name()));
        match measure {
            Measure::PodsWanted => operators().map(|operator| operator.wanted).sum(),
            Measure::PodsPending => operators().map(|operator| operator.waiting).sum(),
            Measure::PodsBound => operators().map(|operator| operator.wanted - operator.waiting).sum(),
            Measure::Needs => operators().map(|operator| operator.pods.rollup().len() as u64).sum(),
            Measure::Shortfalls => {
                let hosts = self.hosts.iter().filter(|host| !host.superseded);
                let short = hosts.flat_map(|host| host.memory.shortfalls.keys());
                short.filter(|key| of(&key.cluster)).count() as u64
            }
            _ => self.truth.count(measure, cluster),
        }
    }

    fn sample(&mut self) {
        let at = self.now - START_UNIX_NANOS;
        let point = Point {
            at,
            configured: self.truth.count(Measure::Configured, None),
            hardware: self.truth.hardware(),
            wanted: self.measure(Measure::PodsWanted, None),
            waiting: self.measure(Measure::PodsPending, None),
            usd_per_hour: self.truth.money.usd_per_hour(),
        };
        self.tally.points.push(point);
    }

    /// Ends all faults now: the world must come to rest from here.
    pub fn lift_faults(&mut self) {
        for index in 0..self.scenario.faults.len() {
            self.fault_ends(index);
        }
        self.queue.drop_faults();
        self.active.lifted = true;
        self.mark("all faults are lifted".into());
    }

    /// Shows a moment to the invariants.
    fn show(&mut self, moment: &Moment<'_>) {
        if !self.setup.unwatched {
            self.watch.see(self.now, moment);
        }
    }
}

impl World {
    /// What did not hold so far.
    pub fn violations(&self) -> &[Violation] {
        self.watch.violations()
    }

    /// Stops the run at the first violation.
    pub fn stop_at_first(&mut self) {
        self.watch.stop_at(1);
    }

    /// What happened, line by line.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Dollars spent so far.
    pub fn usd(&self) -> f64 {
        self.truth.money.usd(self.now)
    }

    /// Asks the invariants about a world that should be at rest since an instant.
    pub(crate) fn settled(&mut self, quiet_since: i64) {
        self.check_council();
        let actions = self.tally.counts.iter().rev().find(|(_, measure, _, _)| *measure == Measure::Actions);
        let last_action = actions.map_or(0, |(at, _, _, _)| *at);
        let mut waiting = Vec::new();
        for operator in &self.operators {
            let host = &self.hosts[operator.host];
            let name = operator.pods.name();
            let stated = host.memory.shortfalls.keys().any(|key| key.cluster == *name);
            let unexplained = operator.pods.unexplained();
            let shard = host.shard.as_ref();
            if !unexplained.is_empty() && !stated && !shard.is_some_and(|shard| counts_crumbs(shard, name)) {
                waiting.push(format!("{name} {unexplained:?}"));
            }
        }
        let waiting = waiting.join(", ");
        let (untold, money) = (self.untold(), self.truth.money.clone());
        self.show(&Moment::Settled {
            quiet_since,
            last_action,
            waiting: &waiting,
            untold: &untold,
            money: &money,
        });
    }
}

impl World {
    /// What clusters believe of machines that is not so.
    fn untold(&self) -> String {
        let wrong = self.operators.iter().enumerate().find_map(|(index, operator)| {
            operator.session?;
            operator.told.iter().find_map(|(id, state)| {
                let real = self.truth.machines.get(&**id)?;
                // A cluster hears of machines of its own shard.
                if self.is_elsewhere(id, operator.host) {
                    return None;
                }
                let believes = *state == MachineState::Configured;
                let is = real.cluster == Some(index) && real.state == MachineState::Configured;
                (believes != is && !real.state.is_transitional()).then(|| {
                    format!(
                        "{} takes machine {id} for {state}, and it is {}",
                        operator.pods.name(),
                        real.state
                    )
                })
            })
        });
        wrong.unwrap_or_default()
    }
}

/// Whether gangs of a cluster that fit a machine each are credited with machines that hold fewer of them than there are:
/// enough in sum, but part of the sum is what is left over on each machine, too little for another gang.
fn counts_crumbs(shard: &Shard, cluster: &str) -> bool {
    let outcomes = shard.engine().outcomes();
    let folded = outcomes.iter().filter(|o| o.demand.folded && *o.demand.need.cluster == *cluster);
    let crumbs = |outcome: &bigfleet_engine::Outcome<'_>| {
        let gang = &outcome.demand.need.min_unit;
        let machines = outcome.credited.iter().filter_map(|id| shard.machine(id));
        let held: u64 = machines.map(|view| fits(view.machine.provides(), gang)).sum();
        held < fits(&outcome.demand.need.aggregate, gang)
    };
    folded.into_iter().any(crumbs)
}

pub(crate) const MINUTE: i64 = 60_000_000_000;
