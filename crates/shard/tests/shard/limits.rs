//! Names from outside are bounded before the engine gives them numbers.

use bigfleet_model::limits::{
    CLUSTER_KEYS, CLUSTER_RESOURCE_NAMES, FLEET_DEMAND_RESOURCE_NAMES, FLEET_RESOURCE_NAMES,
    MACHINE_RESOURCES,
};
use bigfleet_model::machine::MachineState::Idle;
use bigfleet_model::need::Need;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_shard::{Event, Reception, SECOND, SessionId};

use super::harness::*;

/// Resources of these numbers.
fn resources(numbers: std::ops::Range<usize>) -> ResourceVec {
    let name = |n| ResourceName::new(&format!("example.org/r{n}")).unwrap();
    ResourceVec::new(numbers.map(|n| (name(n), 1))).unwrap()
}

/// A need for resources of these numbers.
fn asking(cluster: &str, numbers: std::ops::Range<usize>) -> Need {
    Need { aggregate: resources(numbers.clone()), min_unit: resources(numbers), ..need(cluster, 7, 1) }
}

fn refused(world: &World, part: &str) {
    let Reception::Refused { why } = world.reception() else { panic!("{:?}", world.reception()) };
    assert!(why.contains(part), "{why}");
}

#[test]
fn a_cluster_that_makes_up_names_uses_up_its_own_share() {
    let mut world = World::new(vec![]);
    world.open(1, "shop");
    let most = CLUSTER_RESOURCE_NAMES;
    // A little at a time is the same as all at once.
    for n in (32..=most).step_by(32) {
        world.report(1, "shop", vec![asking("shop", 0..n)]);
    }
    assert_eq!(world.shard.tally().rollups.get("refused"), None);
    world.report(1, "shop", vec![asking("shop", 1..most + 1)]);
    refused(&world, "resource names nobody else has; at most 256 are taken");
    assert_eq!(world.shard.clusters()["shop"].demand[0].aggregate, resources(0..most), "the last good stays");
    world.event(Event::RollupAgain { session: SessionId(1) });
    refused(&world, "send it whole");
    // What others brought costs nothing, and others have a share of their own.
    world.open(2, "ml");
    world.report(2, "ml", vec![asking("ml", 0..2 * most)]);
    assert_eq!(world.reception(), &Reception::Accepted);
}

#[test]
fn the_names_of_a_fleet_are_bounded_and_never_share_a_number() {
    let mut world = World::new(vec![machine("m", Idle)]);
    world.pass(SECOND);
    let share = CLUSTER_RESOURCE_NAMES;
    for n in 0..3 {
        let (session, cluster) = (n as u64 + 1, format!("c{n}"));
        world.open(session, &cluster);
        world.report(session, &cluster, vec![asking(&cluster, n * share..(n + 1) * share)]);
    }
    // The machine's cpu is one of them.
    let most = FLEET_DEMAND_RESOURCE_NAMES;
    refused(&world, &format!("the fleet has {} resource names; at most {most} are taken", 1 + 3 * share));
    // Demand leaves room for machines, and machines are bounded too.
    let mut odd = machine("odd", Idle);
    odd.resources = resources(9000..9000 + MACHINE_RESOURCES);
    world.clouds[0].machines.insert("odd".into(), odd.clone());
    (odd.id, odd.resources) = ("odder".into(), resources(8000..8000 + FLEET_RESOURCE_NAMES));
    world.clouds[0].machines.insert("odder".into(), odd);
    world.pass(60 * SECOND);
    assert_eq!((world.shard.machine_count(), world.shard.machine("odder").is_none()), (2, true));
    assert!(world.shard.tally().bad_records["over_limit"] > 0);
}

#[test]
fn keys_of_requirements_are_bounded_as_well() {
    let mut world = World::new(vec![]);
    world.open(1, "shop");
    let asking = |range: std::ops::Range<usize>| {
        let requirements = range.map(|n| Requirement::is_in(format!("example.org/k{n}"), ["x"])).collect();
        need_where("shop", 7, 1, requirements)
    };
    world.report(1, "shop", vec![asking(0..CLUSTER_KEYS)]);
    assert_eq!(world.reception(), &Reception::Accepted);
    world.report(1, "shop", vec![asking(1..CLUSTER_KEYS + 1)]);
    refused(&world, "keys of requirements nobody else has; at most 1000 are taken");
}
