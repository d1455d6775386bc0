//! What every fleet promises: exact counts, sound records, stamps that belong, the same from the same seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::profile::Profile;
use bigfleet_model::stamp::Assignment;
use bigfleet_scenario::{Scenario, input};
use bigfleet_shapes::place::RACK;
use bigfleet_shapes::{Shape, census, digest, generate, scarce};

#[test]
fn counts_are_those_of_the_table() {
    for shape in [Shape::Fleet5k, Shape::Fleet50k] {
        let (size, counted) = (shape.size(), census(&generate(shape, 1)));
        assert_eq!(counted.machines, size.machines as usize);
        assert_eq!(counted.states[&MachineState::Configured], size.configured as usize);
        assert_eq!(counted.states[&MachineState::Idle], size.idle as usize);
        let speculative = size.machines - size.configured - size.idle;
        assert_eq!(counted.states[&MachineState::Speculative], speculative as usize);
        assert_eq!(counted.clusters, size.clusters as usize);
        assert_eq!(counted.needs, size.needs as usize);
        assert_eq!(counted.racks, size.machines.div_ceil(40) as usize);
        let gangs = size.same_needs.unwrap_or(size.needs * 15 / 100);
        assert_eq!(counted.same_needs, gangs as usize);
        assert!(counted.classes <= 60 * 12 * 4);
        assert!((300..=2000).contains(&counted.requirement_sets), "{}", counted.requirement_sets);
        assert_eq!(counted.priorities.keys().copied().collect::<Vec<_>>(), [100, 1_000, 1_000_000]);
        assert!(counted.interruption_buckets >= 8);
        assert!(counted.spread_needs > 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_fleet_everywhere() {
    assert_eq!(format!("{:016x}", digest(&generate(Shape::Fleet5k, 1))), "1236096fca8aefc5");
    assert_eq!(format!("{:016x}", digest(&scarce(Shape::Fleet5k, 1))), "33a98c69731dbd17");
    assert_ne!(digest(&generate(Shape::Fleet5k, 2)), digest(&generate(Shape::Fleet5k, 1)));
}

#[test]
fn an_exported_fleet_reads_back() {
    let scenario = generate(Shape::Fleet5k, 2);
    let mut json = Vec::new();
    input::write(&mut json, &scenario).unwrap();
    assert_eq!(digest(&input::read(&json).unwrap()), digest(&scenario));
}

#[test]
fn records_are_sound_and_stamps_belong() {
    for scenario in [generate(Shape::Fleet5k, 3), scarce(Shape::Fleet5k, 3)] {
        let needs = by_stamp(&scenario);
        let mut ids = BTreeSet::new();
        for machine in &scenario.machines {
            machine.check().unwrap();
            assert!(ids.insert(&machine.id), "{} is there twice", machine.id);
            if machine.state != MachineState::Configured {
                assert_eq!(machine.assigned, Assignment::default());
                continue;
            }
            let assigned = &machine.assigned;
            assert_eq!(*assigned.cluster, *machine.cluster);
            let key = NeedKey {
                cluster: assigned.cluster.clone(),
                fingerprint: assigned.fingerprint.clone(),
                group: assigned.group.clone(),
            };
            let (profile, piece) = &needs[&key];
            assert!(profile.matches(machine.facts()), "{} does not match its need", machine.id);
            assert!(machine.provides().covers(piece), "{} is too small for its need", machine.id);
            assert_eq!(assigned.priority, profile.priority());
            assert_eq!(assigned.interruption_penalty_usd, profile.interruption().upper_bound_dollars());
            assert_eq!(assigned.reclamation_penalty_usd, profile.reclamation().upper_bound_dollars());
        }
    }
}

#[test]
fn needs_are_unique_and_well_formed() {
    let scenario = generate(Shape::Fleet5k, 4);
    let keys: BTreeSet<NeedKey> = scenario.needs.iter().map(Need::key).collect();
    assert_eq!(keys.len(), scenario.needs.len());
    for need in &scenario.needs {
        assert!(need.aggregate.covers(&need.min_unit));
        assert_eq!(need.group.is_empty(), need.profile.same().is_none());
        assert!(need.first_seen_unix_nanos <= scenario.now_unix_nanos);
        for requirement in need.profile.requirements() {
            requirement.validate().unwrap();
        }
    }
}

#[test]
fn a_rack_is_one_zone_and_one_family() {
    let scenario = generate(Shape::Fleet5k, 5);
    let mut racks: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    let mut sizes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for machine in &scenario.machines {
        let rack = machine.labels.get(RACK).unwrap();
        let family = machine.instance_type.split('-').next().unwrap();
        racks.entry(rack).or_default().insert((&machine.zone, family));
        sizes.entry(rack).or_default().insert(&machine.instance_type);
    }
    assert!(racks.values().all(|kinds| kinds.len() == 1));
    assert!(sizes.values().all(|types| types.len() <= 2));
}

#[test]
fn most_small_gangs_fit_one_machine() {
    let scenario = generate(Shape::Fleet5k, 6);
    let free = || scenario.machines.iter().filter(|m| m.state != MachineState::Configured);
    let kinds: BTreeMap<_, _> = free().map(|m| ((&m.instance_type, &m.zone, m.capacity_type), m)).collect();
    let foldable = scenario.needs.iter().filter(|need| need.profile.same().is_some()).filter(|need| {
        kinds.values().any(|m| m.provides().covers(&need.aggregate) && need.profile.matches(m.facts()))
    });
    let share = foldable.count() as f64 / 2_418.0;
    assert!((0.9..1.0).contains(&share), "{share}");
}

#[test]
fn scarce_demand_is_twice_the_supply() {
    let counted = census(&scarce(Shape::Fleet5k, 7));
    let ratio = counted.demanded_cpus as f64 / counted.supplied_cpus as f64;
    assert!((1.9..2.1).contains(&ratio), "{ratio}");
    let above: usize = counted.priorities.range(101..).map(|(_, rows)| rows).sum();
    let share = above as f64 / counted.needs as f64;
    assert!((0.17..0.25).contains(&share), "{share}");
}

/// What a stamp may name: every row, and every row as folding would make it; with what a machine must hold.
fn by_stamp(scenario: &Scenario) -> BTreeMap<NeedKey, (Arc<Profile>, bigfleet_model::resource::ResourceVec)> {
    let mut needs = BTreeMap::new();
    for need in &scenario.needs {
        needs.insert(need.key(), (need.profile.clone(), need.min_unit.clone()));
        if need.profile.same().is_some() {
            let folded = Arc::new(need.profile.without_same());
            let key = NeedKey {
                cluster: need.cluster.clone(),
                fingerprint: folded.fingerprint().into(),
                group: "".into(),
            };
            // Large gangs of the profile never fold; the smallest gang is what machines are bound for.
            let smallest = needs.entry(key).or_insert_with(|| (folded, need.aggregate.clone()));
            if smallest.1.covers(&need.aggregate) {
                smallest.1 = need.aggregate.clone();
            }
        }
    }
    needs
}
