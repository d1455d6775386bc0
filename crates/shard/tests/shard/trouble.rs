//! Calls that fail, and what becomes of the machine.

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState::{Configured, Configuring, Failed, Idle, Speculative};
use bigfleet_shard::{CallErrorKind, Care, MINUTE, SECOND};

use super::harness::*;

fn wanting(count: u64, machines: Vec<bigfleet_model::machine::Machine>) -> World {
    let mut world = World::new(machines);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, count)]);
    world
}

#[test]
fn a_fenced_machine_is_let_alone_and_somebody_is_told() {
    let mut world = wanting(1, machines(2, Idle));
    world.clouds[0].refused.insert("m-000".into(), CallErrorKind::Fenced);
    world.pass(MINUTE);
    assert_eq!(world.shard.machine("m-000").unwrap().care, &Care::Fenced);
    assert_eq!((world.state("m-001"), world.has_said("fenced")), (Configured, true));
    assert_eq!(world.called("Configure"), 2);
    world.pass(60 * MINUTE);
    assert_eq!(world.called("Configure"), 2, "never again in this life");
}

#[test]
fn a_refused_machine_is_left_alone_for_a_while_and_another_taken() {
    let mut world = wanting(1, machines(2, Speculative));
    world.clouds[0].refused.insert("m-000".into(), CallErrorKind::Refused);
    world.pass(20 * SECOND);
    assert!(matches!(world.shard.machine("m-000").unwrap().care, Care::Cooling { .. }));
    assert_eq!((world.state("m-000"), world.state("m-001")), (Speculative, Configured));
    world.pass(5 * MINUTE);
    assert_eq!(world.shard.machine("m-000").unwrap().care, &Care::Fine);
}

#[test]
fn a_pool_that_stays_empty_is_asked_at_growing_intervals() {
    let mut world = wanting(1, machines(1, Speculative));
    world.clouds[0].refused.insert("m-000".into(), CallErrorKind::Refused);
    world.pass(60 * MINUTE);
    let tries = world.called("Create");
    assert!((4..=10).contains(&tries), "{tries} tries in an hour");
    world.clouds[0].refused.clear();
    world.pass(40 * MINUTE);
    assert_eq!(world.state("m-000"), Configured);
}

#[test]
fn an_unanswered_call_is_tried_again_with_a_new_number() {
    let mut world = wanting(1, machines(1, Idle));
    world.clouds[0].refused.insert("m-000".into(), CallErrorKind::TimedOut);
    world.pass(5 * SECOND);
    let tries: Vec<i64> = world.calls.iter().map(|(sequence, _)| *sequence).collect();
    assert!(tries.len() >= 2 && tries.windows(2).all(|pair| pair[0] < pair[1]), "{tries:?}");
    assert_eq!(world.state("m-000"), Configuring, "it may have taken effect");
    world.clouds[0].refused.clear();
    world.pass(30 * SECOND);
    assert_eq!(world.state("m-000"), Configured);
    assert_eq!(world.begun(ActionKind::Bootstrap), 1, "all that was one action");
}

#[test]
fn tries_are_bounded_and_the_machine_is_left_to_the_listing() {
    let mut world = wanting(1, machines(1, Idle));
    world.clouds[0].refused.insert("m-000".into(), CallErrorKind::Unavailable);
    world.pass(45 * SECOND);
    assert!(world.has_said("gave_up"));
    assert_eq!(world.shard.tally().flights[&(ActionKind::Bootstrap, "gave_up")], 1);
    world.clouds[0].refused.clear();
    world.pass(MINUTE);
    assert_eq!(world.state("m-000"), Configured, "the provider says it is Idle, so it is bound anew");
}

#[test]
fn a_machine_its_provider_does_not_know_is_gone() {
    let mut world = wanting(1, machines(2, Idle));
    world.clouds[0].refused.insert("m-000".into(), CallErrorKind::NotFound);
    world.clouds[0].hidden.push("m-000".into());
    world.pass(5 * SECOND);
    assert_eq!(world.state("m-001"), Configured);
}

#[test]
fn a_failed_drain_leaves_the_machine_as_supply() {
    let mut world = World::new(vec![bound("m", "shop", 7)]);
    world.clouds[0].refused.insert("m".into(), CallErrorKind::Refused);
    world.open(1, "shop");
    world.report(1, "shop", vec![]);
    world.pass(20 * SECOND);
    assert_eq!(world.state("m"), Configured);
    assert!(matches!(world.shard.machine("m").unwrap().care, Care::Cooling { .. }));
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(60 * MINUTE);
    assert_eq!((world.state("m"), world.called("Drain")), (Configured, 1), "wanted again");
}

#[test]
fn a_provider_that_comes_back_finds_everything_as_it_was() {
    let mut world = wanting(3, machines(3, Idle));
    world.pass(5 * SECOND);
    world.clouds[0].broken = Some(CallErrorKind::Unavailable);
    world.pass(60 * MINUTE);
    world.clouds[0].broken = None;
    let calls = world.called("Configure") + world.called("Drain");
    world.pass(5 * MINUTE);
    assert_eq!(
        world.called("Configure") + world.called("Drain"),
        calls,
        "nothing moves after an hour of silence"
    );
    assert_eq!(world.clouds[0].count(Configured), 3);
}

#[test]
fn a_late_word_about_a_lost_machine_is_not_about_its_successor() {
    let mut failed = machine("old", Failed);
    failed.last_error = "fan".into();
    let mut world = World::new(vec![failed]);
    world.pass(SECOND);
    // The question about it is under way while it leaves and another machine takes its place.
    world.hold_calls = true;
    world.pass(5 * MINUTE);
    world.clouds[0].machines.remove("old");
    world.pass(2 * MINUTE);
    world.clouds[0].machines.insert("new".into(), machine("new", Idle));
    world.pass(2 * MINUTE);
    assert!(world.shard.machine("old").is_none() && world.shard.machine("new").is_some());
    world.release();
    assert_eq!(world.calls.iter().filter(|(_, call)| call.machine() == "old").count(), 1);
    assert!(world.shard.machine("new").is_some(), "whoever has the place now was not asked about");
}
