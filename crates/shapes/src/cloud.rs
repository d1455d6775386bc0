//! A catalogue at cloud prices, and random demands on it: for measuring decisions in dollars.
//!
//! Made to resemble public list prices; the ratios matter, not the provider.
//!
//! | family | GiB per cpu | dollars per cpu and hour on demand |
//! |---|---|---|
//! | `c6i`, `c5` | 2 | 0.0425 |
//! | `m6i`, `m5` | 4 | 0.0480 |
//! | `r6i`, `r5` | 8 | 0.0630 |
//! | `c7g` | 2 | 0.0362 |
//! | `m7g` | 4 | 0.0408 |
//! | `r7g` | 8 | 0.0535 |
//! | `t3` | 4 | 0.0416 |
//! | `x2` | 16 | 0.1042 |
//!
//! Each family has 2, 4, 8, 16, 32, 48, 64 and 96 cpus; prices are linear in size. Workloads get 96 % of the cpus less 60 thousandths
//! of one, and 93 % of the memory less 0.4 GiB. Each (family, size) is offered on demand, never taken away, and as spot: for a quarter to
//! six tenths of the price, taken away with a chance of 0.0005, 0.002 or 0.005 an hour. There are 5, 20 or 100 of each offer,
//! all Speculative.
//!
//! A demand is 3, 10, 30, 100 or 300 pods of 0.25, 0.5, 1, 2 or 4 cpus each, of one kind: 1.5, 3.5 or 7 GiB per cpu, or mixed (1,
//! 2, 4, 8 or 12, pod by pod). It may use 3, 6 or all 11 of the families; an interruption costs nothing, $0.50, $4 or $64.

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, aggregate};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;
use bigfleet_scenario::seed::Seed;
use bigfleet_scenario::{CycleOptions, Scenario};

use crate::NOW_UNIX_NANOS;
use crate::amount::{Amount, GIB};

/// The key of a machine's family.
pub const FAMILY: &str = "node.bigfleet/family";

/// Name, GiB per cpu, dollars per cpu and hour.
const FAMILIES: [(&str, u64, f64); 11] = [
    ("c6i", 2, 0.0425),
    ("c5", 2, 0.0425),
    ("m6i", 4, 0.0480),
    ("m5", 4, 0.0480),
    ("r6i", 8, 0.0630),
    ("r5", 8, 0.0630),
    ("c7g", 2, 0.0362),
    ("m7g", 4, 0.0408),
    ("r7g", 8, 0.0535),
    ("t3", 4, 0.0416),
    ("x2", 16, 0.1042),
];
const SIZES: [u64; 8] = [2, 4, 8, 16, 32, 48, 64, 96];
const RISKS: [f64; 3] = [0.0005, 0.002, 0.005];
const STOCKS: [u64; 3] = [5, 20, 100];
const PODS: [usize; 5] = [3, 10, 30, 100, 300];
const POD_CPU_MILLI: [u64; 5] = [250, 500, 1_000, 2_000, 4_000];
/// Memory per cpu of the kinds of pods, in halves of a GiB; the last kind draws it for each pod.
const KINDS: [&[u64]; 4] = [&[3], &[7], &[14], &[2, 4, 8, 16, 24]];
const PENALTIES_USD: [f64; 4] = [0.0, 0.5, 4.0, 64.0];
const ALLOWED: [usize; 3] = [3, 6, 11];

/// Machines alike, none of which is created yet.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudOffer {
    /// The family, a value of [`FAMILY`].
    pub family: &'static str,
    /// Its nominal cpus.
    pub cpus: u64,
    /// On demand or spot.
    pub capacity: CapacityType,
    /// What workloads may use of one.
    pub provides: ResourceVec,
    /// Its price.
    pub price_usd_per_hour: f64,
    /// The chance that it is taken away within an hour.
    pub interruption_probability: f64,
    /// How many there are.
    pub stock: u64,
}

impl CloudOffer {
    /// The machines of this offer; ids begin with the offer's name.
    pub fn machines(&self) -> impl Iterator<Item = Machine> + '_ {
        let way = if self.capacity == CapacityType::Spot { "spot" } else { "hourly" };
        (0..self.stock).map(move |number| {
            let id = format!("{}-{:02}-{way}-{number:03}", self.family, self.cpus);
            let mut machine = Machine::new(id, MachineState::Speculative);
            machine.instance_type = format!("{}-{}", self.family, self.cpus).into();
            machine.capacity_type = self.capacity;
            machine.labels = Labels::new([(FAMILY, self.family)]).expect("one label");
            machine.resources = self.provides.clone();
            machine.allocatable = self.provides.clone();
            machine.price_usd_per_hour = self.price_usd_per_hour;
            machine.interruption_probability = self.interruption_probability;
            machine
        })
    }
}

/// A demand and what could serve it.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudDemand {
    /// The whole catalogue.
    pub offers: Vec<CloudOffer>,
    /// The pods, in the order they were drawn.
    pub pods: Vec<ResourceVec>,
    /// Their need: amounts summed, `min_unit` the largest per dimension.
    pub need: Need,
}

impl CloudDemand {
    /// The offers the need admits: of an allowed family, and large enough for the largest pod.
    pub fn admitted(&self) -> impl Iterator<Item = &CloudOffer> {
        self.offers.iter().filter(|offer| {
            let requirements = self.need.profile.requirements();
            requirements.iter().all(|r| r.lists(offer.family)) && self.need.fits_on(&offer.provides)
        })
    }

    /// The same as a scenario.
    pub fn scenario(&self) -> Scenario {
        Scenario {
            now_unix_nanos: NOW_UNIX_NANOS,
            options: CycleOptions::default(),
            machines: self.offers.iter().flat_map(CloudOffer::machines).collect(),
            needs: vec![self.need.clone()],
        }
    }
}

/// The demand of a seed.
pub fn cloud_demand(seed: u64) -> CloudDemand {
    let mut seed = Seed::new(seed);
    let offers = offers(&mut seed.fork());
    let mut seed = seed.fork();
    let count = *seed.pick(&PODS);
    let kind = *seed.pick(&KINDS);
    let pods: Vec<ResourceVec> = (0..count)
        .map(|_| {
            let cpu_milli = *seed.pick(&POD_CPU_MILLI);
            let halves_per_cpu = *seed.pick(kind);
            Amount::new(cpu_milli, cpu_milli * halves_per_cpu * (GIB / 2) / 1_000, 0).to_vec()
        })
        .collect();
    let penalty = PenaltyBucket::for_dollars(*seed.pick(&PENALTIES_USD)).expect("dollars");
    let mut families: Vec<&str> = FAMILIES.iter().map(|(name, ..)| *name).collect();
    let allowed = *seed.pick(&ALLOWED);
    while families.len() > allowed {
        families.swap_remove(seed.below(families.len() as u64) as usize);
    }
    let requirements = vec![Requirement::is_in(FAMILY, families)];
    let profile =
        std::sync::Arc::new(Profile::new(requirements, vec![], 1_000, penalty, PenaltyBucket::ZERO));
    let rows = pods.iter().map(|pod| Need::of_unit("shop", profile.clone(), pod.clone()));
    let need = aggregate(rows).pop().expect("pods of one profile are one need");
    CloudDemand { offers, pods, need }
}

fn offers(seed: &mut Seed) -> Vec<CloudOffer> {
    let mut offers = Vec::with_capacity(FAMILIES.len() * SIZES.len() * 2);
    for (family, gib_per_cpu, usd_per_cpu_hour) in FAMILIES {
        for cpus in SIZES {
            let memory_bytes = cpus * gib_per_cpu * GIB / 100 * 93 - GIB / 10 * 4;
            let hourly = CloudOffer {
                family,
                cpus,
                capacity: CapacityType::OnDemand,
                provides: Amount::new(cpus * 960 - 60, memory_bytes, 0).to_vec(),
                price_usd_per_hour: cpus as f64 * usd_per_cpu_hour,
                interruption_probability: 0.0,
                stock: *seed.pick(&STOCKS),
            };
            let factor = 0.25 + 0.35 * seed.unit();
            let spot = CloudOffer {
                capacity: CapacityType::Spot,
                price_usd_per_hour: hourly.price_usd_per_hour * factor,
                interruption_probability: *seed.pick(&RISKS),
                stock: *seed.pick(&STOCKS),
                ..hourly.clone()
            };
            offers.extend([hourly, spot]);
        }
    }
    offers
}
