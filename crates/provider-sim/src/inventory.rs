//! The slots the cloud offers: a fleet drawn from the catalogue, or a handful of machines for test suites.
//!
//! Slot `n` is the same for every fleet size, so a cloud can be started larger without changing what it had.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_provider_kit::{CapacityType, Offering};
use serde::{Deserialize, Serialize};

use crate::catalogue::{CATALOGUE, InstanceType, find};
use crate::random::Dice;

/// The label that names the rack.
pub const RACK_LABEL: &str = "topology.bigfleet/rack";
/// The label every simulated machine carries, so that nobody mistakes it for a real one.
pub const SIMULATED_LABEL: &str = "bigfleet.sim/simulated";
/// The label of slots whose Create always fails, which test suites look for.
pub const FAULT_LABEL: &str = "conformance.fault/create";
/// Machines to a rack.
pub const RACK_SIZE: usize = 40;
/// How many slots of a test inventory always fail, on top of the machines asked for.
pub const FAULT_SLOTS: usize = 4;

/// What there is to offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inventory {
    /// A fleet of the catalogue's types.
    Fleet {
        /// Slots.
        machines: usize,
        /// Zones to spread them over.
        zones: Vec<String>,
    },
    /// So many machines for a test suite, one in eight Idle, and [`FAULT_SLOTS`] more that fail.
    TestMachines(usize),
    /// What the standard provider test binary has: exactly what is asked for.
    Slots {
        /// Healthy slots, all Speculative.
        speculative: usize,
        /// Machines of our own that are there from the start, Idle.
        idle: usize,
        /// Slots whose Create always fails.
        faults: usize,
    },
}

impl Default for Inventory {
    fn default() -> Self {
        Self::Fleet { machines: 2000, zones: ["zone-a", "zone-b", "zone-c"].map(String::from).to_vec() }
    }
}

impl Inventory {
    /// The zones of a fleet; none for test machines, whose places nobody names.
    pub(crate) fn zones(&self) -> BTreeSet<&str> {
        match self {
            Self::Fleet { zones, .. } => zones.iter().map(String::as_str).collect(),
            Self::TestMachines(_) | Self::Slots { .. } => BTreeSet::new(),
        }
    }

    /// The instance types of a fleet; none for test machines.
    pub(crate) fn types(&self) -> BTreeSet<&str> {
        match self {
            Self::Fleet { .. } => CATALOGUE.iter().map(|kind| kind.name).collect(),
            Self::TestMachines(_) | Self::Slots { .. } => BTreeSet::new(),
        }
    }

    /// All slots.
    pub(crate) fn offerings(&self, provider: &str, dice: Dice) -> Vec<Offering> {
        match self {
            Self::Fleet { machines, zones } => fleet(provider, *machines, zones, dice),
            Self::TestMachines(count) => test_machines(provider, *count),
            Self::Slots { speculative, idle, faults } => {
                let slots = (0..*speculative).map(|number| healthy_slot(provider, number));
                let machines = (0..*idle).map(|number| idle_machine(provider, number));
                slots
                    .chain(machines)
                    .chain((0..*faults).map(|number| broken_slot(provider, number)))
                    .collect()
            }
        }
    }
}

fn fleet(provider: &str, machines: usize, zones: &[String], dice: Dice) -> Vec<Offering> {
    let weights: u64 = CATALOGUE.iter().map(|kind| kind.weight).sum();
    let mut in_zone: BTreeMap<&str, usize> = BTreeMap::new();
    let slot = |number: usize| {
        let zone = zones[number % zones.len()].as_str();
        let place = in_zone.entry(zone).or_default();
        let rack = *place / RACK_SIZE;
        *place += 1;
        let kind = by_weight(dice.bits("type", "", number as u64) % weights);
        let capacity = capacity_type(kind, dice.unit("capacity", "", number as u64));
        let id = format!("{provider}-{zone}-{}-{number:06}", kind.name);
        with_host(offering(id, kind, zone, rack, capacity), is_owned(capacity))
    };
    (0..machines).map(slot).collect()
}

fn by_weight(mut drawn: u64) -> &'static InstanceType {
    for kind in &CATALOGUE {
        if drawn < kind.weight {
            return kind;
        }
        drawn -= kind.weight;
    }
    unreachable!("the draw is below the sum of all weights")
}

/// Whole hosts are owned or reserved; of the others 15 % are reserved, 50 % on demand and 35 % spot.
fn capacity_type(kind: &InstanceType, drawn: f64) -> CapacityType {
    match drawn {
        drawn if kind.metal && drawn < 0.7 => CapacityType::BareMetal,
        _ if kind.metal => CapacityType::Reserved,
        drawn if drawn < 0.15 => CapacityType::Reserved,
        drawn if drawn < 0.65 => CapacityType::OnDemand,
        _ => CapacityType::Spot,
    }
}

/// Whether machines of this kind are there from the start, and for ever.
pub(crate) fn is_owned(capacity: CapacityType) -> bool {
    matches!(capacity, CapacityType::BareMetal | CapacityType::Reserved)
}

const TEST_TYPES: [&str; 5] = ["std-4", "std-8", "arm-8", "mem-8", "infer-8"];
const TEST_ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

fn healthy_slot(provider: &str, number: usize) -> Offering {
    use CapacityType::{OnDemand, Reserved, Spot};
    let capacity = [OnDemand, Spot, OnDemand, Spot, Reserved][number % 5];
    let kind = find(TEST_TYPES[number / 5 % TEST_TYPES.len()]).expect("it is in the table");
    let (zone, rack) = (TEST_ZONES[number % TEST_ZONES.len()], number / TEST_ZONES.len() / RACK_SIZE);
    offering(format!("{provider}-{number:06}"), kind, zone, rack, capacity)
}

fn idle_machine(provider: &str, number: usize) -> Offering {
    let kind = find("metal-64").expect("it is in the table");
    let zone = TEST_ZONES[number % TEST_ZONES.len()];
    with_host(offering(format!("{provider}-idle-{number}"), kind, zone, 0, CapacityType::BareMetal), true)
}

fn broken_slot(provider: &str, number: usize) -> Offering {
    let kind = find("std-4").expect("it is in the table");
    let zone = TEST_ZONES[number % TEST_ZONES.len()];
    offering(format!("{provider}-fault-{number}"), kind, zone, 0, CapacityType::OnDemand)
        .with_label(FAULT_LABEL, "error")
}

fn test_machines(provider: &str, count: usize) -> Vec<Offering> {
    use CapacityType::{BareMetal, OnDemand, Reserved, Spot};
    const CAPACITIES: [CapacityType; 8] =
        [OnDemand, Spot, OnDemand, Spot, Reserved, OnDemand, Spot, BareMetal];
    let slot = |number: usize| {
        let capacity = CAPACITIES[number % CAPACITIES.len()];
        let kind = if capacity == BareMetal { "metal-64" } else { TEST_TYPES[number % TEST_TYPES.len()] };
        let kind = find(kind).expect("it is in the table");
        let id = format!("{provider}-{number:06}");
        let rack = number / TEST_ZONES.len() / RACK_SIZE;
        let zone = TEST_ZONES[number % TEST_ZONES.len()];
        with_host(offering(id, kind, zone, rack, capacity), capacity == BareMetal)
    };
    (0..count).map(slot).chain((0..FAULT_SLOTS).map(|number| broken_slot(provider, number))).collect()
}

fn offering(id: String, kind: &InstanceType, zone: &str, rack: usize, capacity: CapacityType) -> Offering {
    let (price, loss) = match capacity {
        CapacityType::Spot => (kind.usd_per_hour * 0.35, kind.spot_loss_per_hour),
        CapacityType::Reserved => (kind.usd_per_hour * 0.62, 0.0),
        CapacityType::BareMetal => (kind.usd_per_hour * 0.5, 0.0),
        CapacityType::OnDemand | CapacityType::Unspecified => (kind.usd_per_hour, 0.0),
    };
    Offering {
        capacity_type: capacity,
        price_usd_per_hour: price,
        interruption_probability: loss,
        resources: kind.resources(),
        allocatable: Some(kind.allocatable()),
        ..Offering::new(id, kind.name, zone)
    }
    .with_label(RACK_LABEL, format!("{zone}-rack-{rack:03}"))
    .with_label("kubernetes.io/arch", kind.arch)
    .with_label(SIMULATED_LABEL, "true")
}

fn with_host(offering: Offering, exists: bool) -> Offering {
    let host = exists.then(|| format!("sim-host-of-{}", offering.id));
    Offering { host, ..offering }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sim(machines: usize) -> Vec<Offering> {
        let zones = vec!["zone-a".into(), "zone-b".into()];
        Inventory::Fleet { machines, zones }.offerings("sim", Dice::new(1))
    }

    #[test]
    fn a_larger_fleet_begins_like_a_smaller_one() {
        assert_eq!(sim(500)[..100], sim(100));
    }

    #[test]
    fn the_mix_is_as_documented() {
        let fleet = sim(20_000);
        let share = |capacity| {
            fleet.iter().filter(|slot| slot.capacity_type == capacity).count() as f64 / fleet.len() as f64
        };
        let near = |got: f64, wanted: f64| (got - wanted).abs() < 0.02;
        assert!(near(share(CapacityType::OnDemand), 0.47), "{}", share(CapacityType::OnDemand));
        assert!(near(share(CapacityType::Spot), 0.33), "{}", share(CapacityType::Spot));
        assert!(near(share(CapacityType::Reserved), 0.16), "{}", share(CapacityType::Reserved));
        assert!(near(share(CapacityType::BareMetal), 0.04), "{}", share(CapacityType::BareMetal));
        assert!(fleet.iter().all(|slot| slot.host.is_some() == is_owned(slot.capacity_type)));
        assert_eq!(fleet[79].labels[RACK_LABEL], "zone-b-rack-000");
        assert_eq!(fleet[80].labels[RACK_LABEL], "zone-a-rack-001");
    }

    #[test]
    fn slots_are_exactly_those_asked_for() {
        let slots = |speculative, idle, faults| {
            Inventory::Slots { speculative, idle, faults }.offerings("p", Dice::new(1))
        };
        let plain = slots(100, 0, 0);
        assert_eq!(plain.len(), 100);
        assert!(plain.iter().all(|slot| slot.host.is_none() && !slot.labels.contains_key(FAULT_LABEL)));
        let more = slots(100, 3, 2);
        assert_eq!(more[..100], plain[..]);
        assert_eq!(more.iter().filter(|slot| slot.host.is_some()).count(), 3);
        assert_eq!(more.iter().filter(|slot| slot.labels.contains_key(FAULT_LABEL)).count(), 2);
    }

    #[test]
    fn test_machines_are_of_all_kinds() {
        let slots = Inventory::TestMachines(32).offerings("p", Dice::new(1));
        assert_eq!(slots.len(), 32 + FAULT_SLOTS);
        assert_eq!(slots.iter().filter(|slot| slot.host.is_some()).count(), 4);
        assert_eq!(slots.iter().filter(|slot| slot.labels.contains_key(FAULT_LABEL)).count(), FAULT_SLOTS);
        for slot in &slots {
            assert!(slot.price_usd_per_hour > 0.0 && !slot.zone.is_empty() && slot.allocatable.is_some());
            assert_eq!(slot.interruption_probability > 0.0, slot.capacity_type == CapacityType::Spot);
        }
    }
}
