//! Reclaim, preempt, release.

use bigfleet_engine::ActionKind;
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState::{Configured, Draining, Idle, Speculative};
use bigfleet_shard::{CallErrorKind, Event, Fate, Frame, MINUTE, Reception, Request, SECOND, SessionId};

use super::harness::*;

fn forty_bound() -> World {
    let fleet = (0..40).map(|n| bound(&format!("m-{n:03}"), "shop", 7)).collect();
    let mut world = World::new(fleet);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 40)]);
    world.pass(SECOND);
    world
}

/// Says the same until it is believed.
fn insist(world: &mut World, needs: &[bigfleet_model::need::Need]) {
    for _ in 0..3 {
        world.report(1, "shop", needs.to_vec());
        world.pass(6 * SECOND);
    }
    assert_eq!(world.reception(), &Reception::Accepted);
}

#[test]
fn a_report_that_erases_most_is_held_until_three_agree() {
    let mut world = forty_bound();
    for seen in 1..=2 {
        world.report(1, "shop", vec![]);
        let Reception::Held { seen: said, of, .. } = world.reception() else {
            panic!("{:?}", world.reception())
        };
        assert_eq!((*said, *of), (seen, 3));
        world.pass(10 * SECOND);
        assert_eq!(world.begun(ActionKind::Reclaim), 0, "a held report changes nothing");
    }
    world.event(Event::RollupAgain { session: SessionId(1) });
    assert_eq!(world.reception(), &Reception::Accepted, "the same again counts as well");
    world.pass(SECOND);
    assert!(world.begun(ActionKind::Reclaim) > 0);
}

#[test]
fn a_crash_looping_operator_confirms_nothing() {
    let mut world = forty_bound();
    for session in 2..10 {
        world.open(session, "shop");
        world.report(session, "shop", vec![]);
        assert!(matches!(world.reception(), Reception::Held { seen: 1, .. }), "{:?}", world.reception());
        world.pass(20 * SECOND);
    }
    assert_eq!(world.begun(ActionKind::Reclaim), 0);
    world.report(9, "shop", vec![need("shop", 7, 40)]);
    assert_eq!(world.reception(), &Reception::Accepted);
    assert!(world.shard.clusters()["shop"].held.is_none() && world.memory.held.is_empty());
}

#[test]
fn reclaims_are_capped_by_cycle_and_by_window() {
    let mut world = forty_bound();
    insist(&mut world, &[]);
    let begun = world.begun(ActionKind::Reclaim);
    assert_eq!(begun, 2, "five percent of forty");
    // News makes cycles run back to back; the window holds all the same.
    for priority in 100..130 {
        world.report(1, "shop", vec![need("shop", priority, 0)]);
        world.pass(SECOND / 2);
    }
    assert!(world.begun(ActionKind::Reclaim) <= 3, "{}", world.begun(ActionKind::Reclaim));
    assert!(world.fates(ActionKind::Reclaim, Fate::Capped) > 0);
    let before = world.begun(ActionKind::Reclaim);
    world.pass(60 * SECOND);
    assert!(world.begun(ActionKind::Reclaim) - before <= 2 * 2);
}

#[test]
fn a_drain_waits_for_its_cluster_or_for_the_grace() {
    let mut world = World::new(vec![bound("m", "shop", 7)]);
    world.manner = Manner::Silent;
    world.open(1, "shop");
    world.report(1, "shop", vec![]);
    world.pass(SECOND);
    assert_eq!((world.state("m"), world.called("Drain")), (Draining, 0));
    let instruction = world.sent.iter().find_map(|(_, frame)| match frame {
        Frame::Reclaim { instruction, grace_secs, .. } => Some((*instruction, *grace_secs)),
        _ => None,
    });
    let (instruction, grace) = instruction.expect("the cluster was told");
    assert_eq!(grace, 600);
    let ack = |nodes_started| Event::ReclaimAcked { session: SessionId(1), instruction, nodes_started };
    world.event(ack(1));
    world.pass(MINUTE);
    assert_eq!(world.called("Drain"), 0, "cordoned is not yet empty");
    world.event(ack(1));
    assert_eq!(world.called("Drain"), 1, "empty before the grace was over");
    let Request::Drain { grace_secs, .. } = &world.calls.last().unwrap().1 else { panic!() };
    assert!((530..=540).contains(grace_secs), "what is left of the grace: {grace_secs}");

    let mut world = World::new(vec![bound("m", "shop", 7)]);
    world.manner = Manner::Silent;
    world.open(1, "shop");
    world.report(1, "shop", vec![]);
    world.pass(599 * SECOND);
    assert_eq!(world.called("Drain"), 0);
    world.pass(2 * SECOND);
    assert_eq!(world.called("Drain"), 1, "the grace is over");
}

#[test]
fn idle_rented_machines_are_released_after_their_hold_and_owned_ones_never() {
    let mut metal = machine("metal", Idle);
    metal.capacity_type = CapacityType::BareMetal;
    let mut world = World::new(vec![machine("rented", Idle), metal]);
    world.pass(9 * MINUTE);
    assert_eq!(world.called("Delete"), 0);
    world.pass(2 * MINUTE);
    assert_eq!((world.state("rented"), world.state("metal")), (Speculative, Idle));
    world.pass(60 * MINUTE);
    assert_eq!(world.called("Delete"), 1);
}

#[test]
fn a_provider_that_takes_nothing_back_is_not_asked_again() {
    let mut world = World::new(machines(3, Idle));
    world.clouds[0].takes_no_deletes = true;
    world.pass(60 * MINUTE);
    assert!(world.called("Delete") <= 3, "{}", world.called("Delete"));
    assert_eq!(world.state("m-000"), Idle);
    assert!(!world.shard.providers()[0].supports_delete);
}

#[test]
fn nothing_is_taken_by_a_stale_listing_but_things_are_bought() {
    let mut world = World::new(vec![bound("m", "shop", 7), machine("spare", Idle)]);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(SECOND);
    world.clouds[0].broken = Some(CallErrorKind::Unavailable);
    world.pass(2 * MINUTE);
    insist(&mut world, &[need("shop", 9, 0)]);
    world.pass(15 * MINUTE);
    assert_eq!((world.begun(ActionKind::Reclaim), world.begun(ActionKind::Delete)), (0, 0));
    assert!(world.fates(ActionKind::Reclaim, Fate::StaleInventory) > 0);
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(SECOND);
    assert_eq!(world.begun(ActionKind::Bootstrap), 1, "acquisition goes on");
    world.clouds[0].broken = None;
    insist(&mut world, &[need("shop", 9, 0)]);
    world.pass(2 * MINUTE);
    assert!(world.begun(ActionKind::Reclaim) > 0, "fresh again");
}

#[test]
fn nobody_is_evicted_for_a_drain_that_cannot_be_ordered() {
    let mut world = World::new((0..4).map(|n| bound(&format!("m-{n}"), "batch", 1)).collect());
    world.open(1, "batch");
    world.open(2, "shop");
    world.report(1, "batch", vec![need("batch", 1, 4)]);
    world.pass(SECOND);
    world.clouds[0].broken = Some(CallErrorKind::Unavailable);
    world.pass(2 * MINUTE);
    world.report(2, "shop", vec![need("shop", 50_000, 2)]);
    world.pass(60 * MINUTE);
    assert_eq!(world.begun(ActionKind::Preempt), 0);
    assert!(world.fates(ActionKind::Preempt, Fate::StaleInventory) > 0);
    world.clouds[0].broken = None;
    world.pass(2 * MINUTE);
    assert_eq!(world.begun(ActionKind::Preempt), 2);
}

#[test]
fn a_deficit_preempts_once_however_long_the_drain() {
    let fleet = (0..10).map(|n| bound(&format!("m-{n}"), "batch", 1)).collect();
    let mut world = World::new(fleet);
    world.clouds[0].instant = false;
    world.open(1, "batch");
    world.open(2, "shop");
    world.report(1, "batch", vec![need("batch", 1, 10)]);
    world.report(2, "shop", vec![need("shop", 50_000, 3)]);
    world.pass(9 * MINUTE);
    assert_eq!(world.begun(ActionKind::Preempt), 3, "one wave");
    assert_eq!(world.clouds[0].count(Draining), 3, "evicted at once, so drained at once");
    let machine = world.shard.machines_of("batch").find(|m| m.machine.state == Draining).unwrap();
    assert_eq!(&*machine.machine.draining_for.as_ref().unwrap().cluster, "shop");
    world.clouds[0].finish_all();
    world.pass(30 * SECOND);
    world.clouds[0].finish_all();
    world.pass(30 * SECOND);
    let of =
        |world: &World, name: &str| world.clouds[0].machines.values().filter(|m| &*m.cluster == name).count();
    assert_eq!((of(&world, "shop"), of(&world, "batch"), world.clouds[0].count(Configured)), (3, 7, 10));
    assert_eq!(world.begun(ActionKind::Preempt), 3);
}

#[test]
fn an_operator_that_acknowledges_once_is_not_waited_for_twice() {
    let mut world = World::new(vec![bound("m", "shop", 7)]);
    world.manner = Manner::Silent;
    for (session, protocol) in [(1, "v1alpha1+acks-done"), (2, "v1alpha1")] {
        let opened =
            Event::Opened { session: SessionId(session), cluster: "shop".into(), protocol: protocol.into() };
        world.event(opened);
    }
    world.report(2, "shop", vec![]);
    world.pass(SECOND);
    let instruction = world.sent.iter().find_map(|(_, frame)| match frame {
        Frame::Reclaim { instruction, .. } => Some(*instruction),
        _ => None,
    });
    let instruction = instruction.expect("the cluster was told");
    world.pass(59 * SECOND);
    assert_eq!(world.called("Drain"), 0, "never before it has said anything");
    world.event(Event::ReclaimAcked { session: SessionId(2), instruction, nodes_started: 1 });
    let Some((_, Request::Drain { grace_secs, .. })) = world.calls.last() else {
        panic!("{:?}", world.calls)
    };
    assert!((535..=540).contains(grace_secs), "the provider keeps the rest of the grace: {grace_secs}");
    assert_eq!(world.state("m"), Idle);
}

/// Two machines of a cluster that asks for one: the other is on its way out, and its operator says nothing.
fn one_leaving() -> (World, &'static str) {
    let mut world = World::new(vec![
        bound("a", "shop", 7),
        bound("b", "shop", 7),
        machine("spare", Idle),
        machine("more", Idle),
    ]);
    world.manner = Manner::Silent;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(MINUTE);
    assert_eq!((world.begun(ActionKind::Reclaim), world.called("Drain")), (1, 0));
    let leaving = if world.state("a") == Draining { "a" } else { "b" };
    (world, leaving)
}

#[test]
fn demand_that_returns_within_the_grace_keeps_its_machine() {
    let (mut world, leaving) = one_leaving();
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(SECOND);
    assert_eq!(world.state(leaving), Configured);
    assert_eq!(world.fates(ActionKind::Bootstrap, Fate::TakenBack), 1);
    assert_eq!((world.begun(ActionKind::Bootstrap), world.called("Drain")), (0, 0));
    let told = world.sent.iter().rev().find_map(|(_, frame)| match frame {
        Frame::Node(machine) if &*machine.id == leaving => Some(machine.state),
        _ => None,
    });
    assert_eq!(told, Some(Configured), "the cluster hears that it may keep it");
    // The word of that may have overtaken the instruction. Whoever still acts on it is told once more.
    let instruction = world.sent.iter().find_map(|(_, frame)| match frame {
        Frame::Reclaim { instruction, .. } => Some(*instruction),
        _ => None,
    });
    let before = world.sent.len();
    let instruction = instruction.expect("the cluster was told");
    world.event(Event::ReclaimAcked { session: SessionId(1), instruction, nodes_started: 1 });
    let again = world.sent[before..].iter().any(|(_, frame)| match frame {
        Frame::Node(machine) => &*machine.id == leaving && machine.state == Configured,
        _ => false,
    });
    assert!(again, "{:?}", &world.sent[before..]);
    world.pass(30 * MINUTE);
    assert_eq!(
        (world.begun(ActionKind::Reclaim), world.begun(ActionKind::Bootstrap)),
        (1, 0),
        "and then nothing moves"
    );
    assert_eq!(world.called("Drain"), 0, "also not when the grace it once had is over");

    // More than it can give comes from elsewhere, once.
    let (mut world, leaving) = one_leaving();
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(SECOND);
    assert_eq!((world.state(leaving), world.begun(ActionKind::Bootstrap)), (Configured, 1));
}

#[test]
fn what_is_drained_already_or_asked_for_by_others_is_not_taken_back() {
    let (mut world, leaving) = one_leaving();
    let instruction = world.sent.iter().find_map(|(_, frame)| match frame {
        Frame::Reclaim { instruction, .. } => Some(*instruction),
        _ => None,
    });
    let instruction = instruction.expect("the cluster was told");
    world.clouds[0].instant = false;
    world.event(Event::ReclaimAcked { session: SessionId(1), instruction, nodes_started: 0 });
    assert_eq!(world.called("Drain"), 1);
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(SECOND);
    assert_eq!((world.state(leaving), world.begun(ActionKind::Bootstrap)), (Draining, 1));

    let (mut world, leaving) = one_leaving();
    world.open(2, "lab");
    world.report(2, "lab", vec![need("lab", 7, 1)]);
    world.pass(SECOND);
    assert_eq!(
        (world.state(leaving), world.begun(ActionKind::Bootstrap)),
        (Draining, 1),
        "its cluster's demand alone counts"
    );
}
