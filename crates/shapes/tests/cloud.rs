//! The catalogue at cloud prices is the one described, and its demands can be served.

use std::collections::BTreeSet;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_shapes::{cloud_demand, digest};

#[test]
fn offers_are_those_of_the_table() {
    let demand = cloud_demand(1);
    assert_eq!(demand.offers.len(), 11 * 8 * 2);
    for pair in demand.offers.chunks(2) {
        let [hourly, spot] = pair else { unreachable!() };
        assert_eq!((hourly.capacity, spot.capacity), (CapacityType::OnDemand, CapacityType::Spot));
        assert_eq!((hourly.family, hourly.cpus, &hourly.provides), (spot.family, spot.cpus, &spot.provides));
        let factor = spot.price_usd_per_hour / hourly.price_usd_per_hour;
        assert!((0.25..0.6).contains(&factor), "{factor}");
        assert_eq!(hourly.interruption_probability, 0.0);
        assert!([0.0005, 0.002, 0.005].contains(&spot.interruption_probability));
        assert!([5, 20, 100].contains(&hourly.stock) && [5, 20, 100].contains(&spot.stock));
    }
    let large = demand.offers.iter().find(|offer| (offer.family, offer.cpus) == ("r7g", 64)).unwrap();
    assert_eq!(large.price_usd_per_hour, 64.0 * 0.0535);
    assert_eq!(large.provides.get(&ResourceName::CPU), 61_380);
    let gib = large.provides.get(&ResourceName::MEMORY) as f64 / f64::from(1 << 30);
    assert!((gib - (512.0 * 0.93 - 0.4)).abs() < 1e-6, "{gib}");
}

#[test]
fn every_demand_is_drawn_and_can_be_served() {
    let (mut sizes, mut penalties, mut families) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for seed in 0..200 {
        let demand = cloud_demand(seed);
        let sum = demand.pods.iter().fold(ResourceVec::ZERO, |sum, pod| sum.add(pod));
        assert_eq!(demand.need.aggregate, sum);
        assert!(demand.pods.iter().all(|pod| demand.need.min_unit.covers(pod)));
        sizes.insert(demand.pods.len());
        penalties.insert(demand.need.profile.interruption().upper_bound_dollars().to_bits());
        families.insert(demand.need.profile.requirements()[0].values().len());
        // Twice what is asked for is there, of machines that count: pods that do not fit side by side find a place too.
        let supply = demand
            .admitted()
            .fold(ResourceVec::ZERO, |all, offer| all.add(&offer.provides.scale(offer.stock)));
        assert!(supply.covers(&sum.scale(2)), "seed {seed}");
    }
    assert_eq!(sizes, [3, 10, 30, 100, 300].into());
    assert_eq!(penalties, [0.0_f64, 0.5, 4.0, 64.0].map(f64::to_bits).into());
    assert_eq!(families, [3, 6, 11].into());
}

#[test]
fn the_same_seed_gives_the_same_demand() {
    let digests: BTreeSet<u64> = (0..8).map(|seed| digest(&cloud_demand(seed).scenario())).collect();
    assert_eq!(digests.len(), 8);
    let demand = cloud_demand(7);
    assert_eq!(cloud_demand(7), demand);
    let machines = demand.scenario().machines;
    assert_eq!(machines.len() as u64, demand.offers.iter().map(|offer| offer.stock).sum::<u64>());
    for machine in machines {
        machine.check().unwrap();
    }
}
