//! A world that begins as a fleet stands: so that somebody can ask what the next hours would bring.
//!
//! Everything a scenario says of machines, demand and the shard is taken from a living fleet instead: the same ids, states,
//! stamps and prices, the same rows of demand with their ages, the shard's own settings. From there on it is a world like any
//! other. Demand and prices stay as they are; machines are lost as likely as their providers say, and in two worlds of one
//! seed the same machines are lost in the same minutes, so that what differs between them is what was asked about.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_proto::convert::resources::to_map;
use bigfleet_proto::v1alpha1;
use bigfleet_provider_kit::{Offering, RecordError};
use bigfleet_provider_sim::Span;
use bigfleet_shard::{Config, Memory, Mode, ProviderConfig};
use thiserror::Error;

use crate::cluster::Pods;
use crate::random::Random;
use crate::scenario::{self, Dwell, Machines, Measure, Scenario, ShardSetup, StartState};
use crate::world::{START_UNIX_NANOS, Setup, World};

/// A machine of a fleet.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Whose it is.
    pub provider: Arc<str>,
    /// What it is now; under way to nowhere.
    pub machine: Arc<Machine>,
    /// How long its moves take.
    pub dwell: Dwell,
}

/// A fleet as it stands.
#[derive(Debug)]
pub struct Present {
    config: Config,
    machines: Vec<Standing>,
    needs: BTreeMap<Arc<str>, Vec<Need>>,
    providers: Vec<Arc<str>>,
}

/// Why a fleet cannot be simulated.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PresentError {
    /// A machine the simulated providers would not list.
    #[error("it cannot be simulated: {0}")]
    Machine(#[from] RecordError),
    /// A machine on its way, which nobody would end.
    #[error("machine {0} is under way")]
    Moving(Box<str>),
    /// It did not come to its end.
    #[error("the simulation ended early: {0}")]
    Ended(String),
}

/// What some hours brought.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ahead {
    /// Dollars spent on machines.
    pub usd: f64,
    /// Machines that were taken away.
    pub interruptions: u64,
    /// Machines taken from lower priority.
    pub preemptions: u64,
    /// Machines bought.
    pub provisions: u64,
    /// Hours that needs were unmet, all together.
    pub unmet_need_hours: f64,
}

impl Present {
    /// A fleet with the settings of its shard. Rows of demand say when they were first seen, by the clock that shows
    /// `now_unix_nanos`. Pauses and modes take no part: it is about what would be decided.
    pub fn new(
        config: &Config,
        machines: Vec<Standing>,
        needs: Vec<Need>,
        clusters: impl IntoIterator<Item = Arc<str>>,
        now_unix_nanos: i64,
    ) -> Result<Self, PresentError> {
        for standing in &machines {
            if standing.machine.state.is_transitional() {
                return Err(PresentError::Moving(standing.machine.id.clone()));
            }
            offering(&standing.machine).check()?;
        }
        let providers: BTreeSet<&Arc<str>> = machines.iter().map(|standing| &standing.provider).collect();
        let providers: Vec<Arc<str>> = providers.into_iter().cloned().collect();
        let mut rows: BTreeMap<Arc<str>, Vec<Need>> =
            clusters.into_iter().map(|cluster| (cluster, Vec::new())).collect();
        for standing in machines.iter().filter(|standing| !standing.machine.cluster.is_empty()) {
            rows.entry((&*standing.machine.cluster).into()).or_default();
        }
        for need in needs {
            let age = now_unix_nanos.saturating_sub(need.first_seen_unix_nanos).max(0);
            let first_seen_unix_nanos = START_UNIX_NANOS.saturating_sub(age);
            let row = Need { parked: false, first_seen_unix_nanos, ..need };
            rows.entry(row.cluster.clone()).or_default().push(row);
        }
        let named = |name: &Arc<str>| {
            let own = config.providers.iter().find(|provider| provider.name == *name);
            own.cloned().unwrap_or_else(|| ProviderConfig::named(name.clone()))
        };
        let mut config = config.clone();
        config.providers = providers.iter().map(named).collect();
        (config.rails.dry_run, config.rails.mode) = (false, Mode::Auto);
        (config.is_assigned, config.planted) = (false, None);
        // What moves is listed more often all the same; a loss is heard of within a minute.
        config.pace.tick = config.pace.tick.max(LOOK.nanos());
        for provider in &mut config.providers {
            provider.list_every = provider.list_every.max(LOOK.nanos());
            provider.stale_after = provider.stale_after.max(6 * LOOK.nanos());
        }
        Ok(Self { config, machines, needs: rows, providers })
    }

    /// How many machines there are.
    pub fn machines(&self) -> usize {
        self.machines.len()
    }

    /// Lets it go on for so many hours, with the chances of a seed.
    pub fn run(self: &Arc<Self>, hours: u32, seed: u64) -> Result<Ahead, PresentError> {
        let setup = Setup { unwatched: true, present: Some(self.clone()), ..Setup::default() };
        let mut world = World::new(&self.scenario(hours, seed), setup);
        world.run();
        if let Some(wrong) = world.violations().first() {
            return Err(PresentError::Ended(wrong.to_string()));
        }
        let count = |wanted: Measure| -> u64 {
            let counts = world.tally().counts.iter().filter(|(_, measure, _, _)| *measure == wanted);
            counts.map(|(_, _, _, number)| number).sum()
        };
        Ok(Ahead {
            usd: world.usd(),
            interruptions: count(Measure::MachinesFailed),
            preemptions: count(Measure::Preempts),
            provisions: count(Measure::Provisions),
            unmet_need_hours: world.tally().unmet as f64 / 3.6e12,
        })
    }

    /// The frame of the run. Its pools only name the providers: the machines are those of the fleet.
    fn scenario(&self, hours: u32, seed: u64) -> Scenario {
        let is_risky = self.machines.iter().any(|standing| standing.machine.interruption_probability > 0.0);
        let pool = |provider: &Arc<str>| Machines {
            name: provider.to_string(),
            count: 0,
            provider: provider.to_string(),
            instance_type: String::new(),
            zones: Vec::new(),
            rack_size: 0,
            capacity: "spot".into(),
            state: StartState::Speculative,
            cluster: String::new(),
            price: 0.0,
            interruption: if is_risky { 1.0 } else { 0.0 },
            resources: BTreeMap::new(),
            labels: BTreeMap::new(),
        };
        let clusters = self.needs.iter().map(|(name, rows)| scenario::Cluster {
            roll_up: LOOK,
            work: rows.iter().map(Pieces::of).map(Pieces::work).collect(),
            ..scenario::Cluster::named(name)
        });
        Scenario {
            name: "the present".into(),
            note: String::new(),
            seed,
            lasts: Span::from_secs(3600 * u64::from(hours)),
            settle: false,
            shard: ShardSetup::default(),
            dwell: Dwell { repair: REPAIR, ..Dwell::default() },
            latency: Span::from_millis(20),
            listing: Span::from_secs(0),
            fleet: self.providers.iter().map(pool).collect(),
            clusters: clusters.collect(),
            faults: Vec::new(),
            expect: Vec::new(),
        }
    }

    /// How the shard is set up.
    pub(crate) fn config(&self, epoch: i64, seed: u64) -> Config {
        Config { epoch, seed, ..self.config.clone() }
    }

    /// What the shard remembers: the demand it has accepted, with its age.
    pub(crate) fn memory(&self) -> Memory {
        let demand = self.needs.iter().map(|(name, rows)| (name.clone(), rows.as_slice().into()));
        Memory { demand: demand.collect(), ..Memory::default() }
    }

    /// The pods of a cluster.
    pub(crate) fn pods(&self, cluster: &str) -> Pods {
        let rows = self.needs.get(cluster).map_or(&[][..], Vec::as_slice);
        Pods::asking(cluster, rows.iter().map(|row| (row, Pieces::of(row))))
    }

    /// The machines of a provider.
    pub(crate) fn of_provider<'a>(&'a self, provider: &'a str) -> impl Iterator<Item = &'a Standing> {
        self.machines.iter().filter(move |standing| *standing.provider == *provider)
    }
}

/// How often everybody looks and reports while nothing moves: seldom, so that a day is soon over.
const LOOK: Span = Span::from_secs(60);
/// How long until what was taken away is there again.
const REPAIR: Span = Span::from_secs(600);

/// The row of demand as like pods: none larger than its largest piece, and together exactly what it asks for, but for less
/// than a pod of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// How many.
    pub(crate) count: u64,
    /// Whether they belong together.
    pub(crate) is_gang: bool,
}

/// Into how many a row is divided that does not say how large its pieces are.
const UNSAID: u64 = 100;

impl Pieces {
    fn of(need: &Need) -> Self {
        let parts = need.aggregate.iter().filter_map(|(name, amount)| {
            let piece = need.min_unit.get(name);
            (piece > 0).then(|| amount.div_ceil(piece))
        });
        Self { count: parts.max().unwrap_or(UNSAID).max(1), is_gang: !need.group.is_empty() }
    }

    fn work(self) -> scenario::Work {
        let (pods, gang) = if self.is_gang { (1, self.count as usize) } else { (self.count, 0) };
        scenario::Work::like(pods, gang)
    }
}

/// The slot as a provider made with the kit offers it. What other providers may leave out, and the kit does not let pass, is
/// filled in so that it means the same.
pub(crate) fn offering(machine: &Machine) -> Offering {
    let said = |text: &str| if text.is_empty() { "unsaid".to_owned() } else { text.to_owned() };
    let is_spot = machine.capacity_type == CapacityType::Spot;
    let least = if is_spot { f64::MIN_POSITIVE } else { 0.0 };
    Offering {
        capacity_type: machine.capacity_type,
        price_usd_per_hour: machine.price_usd_per_hour,
        interruption_probability: machine.interruption_probability.max(least),
        resources: to_map(&machine.resources),
        allocatable: (!machine.allocatable.is_zero()).then(|| to_map(&machine.allocatable)),
        labels: machine.labels.iter().map(|(key, value)| (key.into(), value.into())).collect(),
        host: machine.host.as_ref().map(|host| host.reference.to_string()),
        ..Offering::new(&*machine.id, said(&machine.instance_type), said(&machine.zone))
    }
}

/// Puts a slot as offered into the state the machine is in.
pub(crate) fn stand(slot: &mut v1alpha1::Machine, machine: &Machine) {
    let told = v1alpha1::Machine::from(machine);
    slot.state = told.state;
    slot.cluster = told.cluster;
    slot.shard_metadata = told.shard_metadata;
    slot.last_error = told.last_error;
    if machine.state == MachineState::Failed && slot.last_error.is_empty() {
        slot.last_error = "it was broken before".into();
    }
    slot.host = told.host;
}

/// Whether a machine is taken away in this minute: decided by the seed, the minute and its name alone.
pub(crate) fn is_taken(seed: u64, minute: i64, id: &str, probability: f64) -> bool {
    // The minute is added to what seed and name have come to: added to the seed, one run would be the next one a minute later.
    let own = Random::new(seed).fork(id).bits();
    Random::new(own.wrapping_add(minute.unsigned_abs())).happens(probability)
}

#[cfg(test)]
mod tests;
