//! Machines that are kept because the like of them would be bound in their place.
//!
//! The world of these tests: a gang of 24 cpu and a service of 32. In zone a the gang fits three small machines exactly, in
//! zone b it wastes part of two large ones; it goes where there is less in all, and a large machine that nobody claims
//! makes zone b the larger one.

use bigfleet_engine::ActionKind;
use bigfleet_model::label::{Labels, ZONE};
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::ResourceVec;
use bigfleet_shard::{Fate, MINUTE, SECOND};

use super::harness::*;

fn placed(mut machine: Machine, zone: &str, cpu: &str, price: f64) -> Machine {
    machine.zone = zone.into();
    machine.resources = ResourceVec::parse([("cpu", cpu)]).unwrap();
    machine.price_usd_per_hour = price;
    machine
}

fn fleet() -> Vec<Machine> {
    let small = (0..3).map(|n| placed(bound(&format!("small-{n}"), "train", 7), "a", "8", 1.0));
    let large = (0..3).map(|n| placed(bound(&format!("large-{n}"), "train", 7), "b", "16", 2.0));
    let spare = [placed(machine("spare", MachineState::Idle), "b", "16", 2.0)];
    let dear = (0..2).map(|n| placed(machine(&format!("dear-{n}"), MachineState::Idle), "a", "16", 9.0));
    let mut fleet: Vec<Machine> = small.chain(large).chain(spare).chain(dear).collect();
    for machine in &mut fleet {
        // Fixed, so that nothing is given back for having idled.
        machine.capacity_type = bigfleet_model::capacity::CapacityType::BareMetal;
    }
    fleet
}

fn in_eights(need: Need, units: u64) -> Need {
    let unit = ResourceVec::parse([("cpu", "8")]).unwrap();
    let Need { cluster, profile, group, .. } = need;
    Need { group, ..Need::of_unit(cluster, profile, unit).times(units) }
}

fn demand(service: u64) -> Vec<Need> {
    let same = Requirement::new(ZONE, Operator::Same, [] as [&str; 0]);
    let job = Need { group: "job".into(), ..need_where("train", 9, 1, vec![same]) };
    vec![in_eights(job, 3), in_eights(need("train", 7, 1), service)]
}

#[test]
fn a_machine_whose_like_would_be_bound_in_its_place_is_kept() {
    let mut world = World::new(fleet());
    world.open(1, "train");
    world.report(1, "train", demand(4));
    world.pass(60 * MINUTE);
    assert!(world.fates(ActionKind::Reclaim, Fate::Regretted) > 0);
    assert_eq!(world.begun(ActionKind::Reclaim) + world.begun(ActionKind::Bootstrap), 0);
    assert_eq!(world.calls.len(), 0, "{:?}", world.calls);
    assert_eq!(world.clouds[0].count(MachineState::Configured), 6);
}

#[test]
fn it_goes_when_demand_shrinks() {
    let mut world = World::new(fleet());
    world.open(1, "train");
    world.report(1, "train", demand(4));
    world.pass(MINUTE);
    world.report(1, "train", demand(2));
    world.pass(10 * MINUTE);
    assert_eq!(world.begun(ActionKind::Bootstrap), 0);
    assert_eq!(world.clouds[0].count(MachineState::Configured), 4);
    let left = world.shard.machines_of("train").map(|view| view.machine.provides().clone());
    let cpu: u64 = left.map(|size| size.iter().map(|(_, amount)| amount).sum::<u64>()).sum();
    assert_eq!(cpu, 40_000, "three small machines for the gang, a large one for the service");
}

#[test]
fn it_goes_when_another_cluster_waits_for_it() {
    let mut fleet = fleet();
    let fast = fleet.iter_mut().find(|machine| &*machine.id == "large-2").unwrap();
    fast.labels = Labels::new([("disk", "fast")]).unwrap();
    let mut world = World::new(fleet);
    world.open(1, "train");
    world.open(2, "web");
    world.report(1, "train", demand(4));
    let disk = Requirement::new("disk", Operator::In, ["fast"]);
    world.report(2, "web", vec![need_where("web", 7, 1, vec![disk])]);
    world.pass(30 * SECOND);
    assert_eq!(&*world.shard.machine("large-2").unwrap().machine.cluster, "web");
    assert_eq!(&*world.shard.machine("spare").unwrap().machine.cluster, "train");
    let begun = (world.begun(ActionKind::Reclaim), world.begun(ActionKind::Bootstrap));
    world.pass(60 * MINUTE);
    assert_eq!(begun, (1, 2), "one machine goes over, one comes in its place");
    assert_eq!((world.begun(ActionKind::Reclaim), world.begun(ActionKind::Bootstrap)), begun);
}
