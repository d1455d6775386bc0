//! From a roll-up to machines in a cluster.

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState::{Configured, Configuring, Creating, Idle, Speculative};
use bigfleet_shard::{Fate, Frame, Request, SECOND};

use super::harness::*;

#[test]
fn demand_is_met_from_idle_machines_and_then_nothing_moves() {
    let mut world = World::new(machines(5, Idle));
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(20 * SECOND);
    assert_eq!(world.clouds[0].count(Configured), 3);
    assert_eq!((world.called("Configure"), world.begun(ActionKind::Bootstrap)), (3, 3));
    let Request::Configure { cluster, blob, metadata, .. } = &world.calls[0].1 else {
        panic!("{:?}", world.calls[0])
    };
    assert_eq!((&**cluster, &**blob), ("shop", &b"join"[..]));
    assert_eq!(metadata["bigfleet.lucy.sh/assigned-priority"], "7", "the stamp travels with the machine");

    let (calls, cycles) = (world.calls.len(), world.shard.tally().cycles);
    world.pass(300 * SECOND);
    assert_eq!(world.calls.len(), calls, "at steady demand nothing moves");
    assert!(world.shard.tally().cycles >= cycles + 30, "although cycles go on");
}

#[test]
fn a_bought_machine_is_bound_once_it_is_there() {
    let mut world = World::new(machines(2, Speculative));
    world.clouds[0].instant = false;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(60 * SECOND);
    assert_eq!((world.state("m-000"), world.called("Create")), (Creating, 1), "one on order is enough");
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!(world.state("m-000"), Configuring);
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!((world.state("m-000"), world.called("Create"), world.called("Configure")), (Configured, 1, 1));
    assert_eq!(world.state("m-001"), Speculative);
}

#[test]
fn nothing_is_decided_before_every_provider_was_heard() {
    let mut world = World::new(machines(1, Idle));
    world.hold_lists = true;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(60 * SECOND);
    assert_eq!(world.shard.tally().cycles, 0, "what it holds already is not known yet");
    world.release();
    world.pass(SECOND);
    assert_eq!(world.clouds[0].count(Configured), 1);
}

#[test]
fn a_provider_that_stays_silent_is_not_waited_for_for_ever() {
    let mut world = World::new(machines(1, Idle));
    world.clouds[0].broken = Some(bigfleet_shard::CallErrorKind::Unavailable);
    world.pass(119 * SECOND);
    assert_eq!(world.shard.tally().cycles, 0);
    world.pass(2 * SECOND);
    assert_eq!(world.shard.tally().cycles, 1);
    assert!(world.has_said("listing_failed"));
}

#[test]
fn news_is_answered_at_once_but_cycles_keep_their_distance() {
    let mut world = World::new(machines(100, Idle));
    world.open(1, "shop");
    world.pass(SECOND);
    let before = world.shard.tally().cycles;
    for count in 1..=20 {
        world.report(1, "shop", vec![need("shop", 7, count)]);
        world.pass(SECOND / 100);
    }
    let cycles = world.shard.tally().cycles - before;
    assert!((1..=3).contains(&cycles), "20 reports in 200 ms at a spacing of 100 ms: {cycles} cycles");
    world.pass(SECOND);
    assert_eq!(world.clouds[0].count(Configured), 20, "the newest report counts");
}

#[test]
fn a_machine_nobody_could_bind_is_neither_bound_nor_bought() {
    let mut world = World::new([machines(1, Idle), vec![machine("x", Speculative)]].concat());
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.event(bigfleet_shard::Event::Closed { session: bigfleet_shard::SessionId(1) });
    world.pass(60 * SECOND);
    assert_eq!((world.called("Configure"), world.called("Create")), (0, 0));
    assert!(world.fates(ActionKind::Bootstrap, Fate::OperatorBackoff) > 0);
    world.open(2, "shop");
    world.pass(30 * SECOND);
    assert_eq!(world.clouds[0].count(Configured), 2, "as soon as somebody is there again");
}

#[test]
fn an_operator_without_blobs_burns_no_machines() {
    let mut world = World::new(machines(3, Idle));
    world.manner = Manner::Refusing;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(120 * SECOND);
    assert_eq!((world.called("Configure"), world.state("m-000")), (0, Idle));
    let asked = world.sent.iter().filter(|(_, frame)| matches!(frame, Frame::Bootstrap { .. })).count();
    assert!((3..=24).contains(&asked), "it is asked again at growing intervals: {asked}");
    assert_eq!(&*world.shard.clusters()["shop"].operator_error, "no template");
    world.manner = Manner::Prompt;
    world.pass(300 * SECOND);
    assert_eq!(world.clouds[0].count(Configured), 3);
    assert_eq!(world.shard.clusters()["shop"].operator_failures, 0);
}

#[test]
fn a_silent_operator_is_given_up_after_its_time() {
    let mut world = World::new(machines(1, Idle));
    world.manner = Manner::Silent;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(SECOND);
    assert_eq!(world.state("m-000"), Configuring, "it is spoken for");
    world.pass(10 * SECOND);
    assert_eq!(world.state("m-000"), Idle, "and free again");
    assert_eq!(world.shard.tally().blob_failures, 1);
}

#[test]
fn a_gang_that_cannot_be_assembled_is_parked_and_may_try_again() {
    let rack = |id: &str, rack: &str| {
        let mut machine = machine(id, Idle);
        machine.labels = bigfleet_model::label::Labels::new([("rack", rack)]).unwrap();
        machine
    };
    let mut world = World::new(vec![rack("a", "1"), rack("b", "1"), rack("c", "2")]);
    world.open(1, "ml");
    world.report(1, "ml", vec![gang("ml", 7, 4, "train")]);
    world.pass(60 * SECOND);
    assert_eq!(world.clouds[0].count(Configured), 2, "the best rack is taken as far as it goes");
    world.pass(120 * SECOND);
    let key = gang("ml", 7, 4, "train").key();
    assert!(world.shard.stuck(&key).unwrap().parked_cycle.is_some());
    assert_eq!(world.shard.ledger().len(), 1);
    for id in ["d", "e"] {
        world.clouds[0].machines.insert(id.into(), rack(id, "1"));
    }
    world.pass(400 * SECOND);
    assert_eq!(world.clouds[0].count(Configured), 4, "within 32 cycles it tries again");
    assert!(world.shard.stuck(&key).is_none() && world.shard.ledger().is_empty());
}
