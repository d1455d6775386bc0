//! Operators come, go, and are told everything when they come back.

use bigfleet_model::machine::MachineState::{Idle, Speculative};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_shard::{
    Confidence, Event, Frame, HangUp, MINUTE, Pause, PauseScope, Reception, SECOND, SessionId,
};

use super::harness::*;

#[test]
fn the_newest_session_wins_and_begins_with_the_whole_truth() {
    let mut world = World::new(vec![bound("a", "shop", 7), bound("b", "shop", 7), bound("c", "ml", 7)]);
    world.pass(SECOND);
    world.open(1, "shop");
    world.sent.clear();
    world.open(2, "shop");
    assert_eq!(world.hung_up, [(SessionId(1), HangUp::Replaced)]);
    assert!(world.sent.iter().all(|(session, _)| *session == SessionId(2)));
    let told: Vec<&str> = world
        .sent
        .iter()
        .filter_map(|(_, frame)| match frame {
            Frame::Node(machine) => Some(&*machine.id),
            _ => None,
        })
        .collect();
    assert!(matches!(world.sent[0].1, Frame::HelloAck));
    assert_eq!(told, ["a", "b"]);
    world.report(1, "shop", vec![need("shop", 1, 1)]);
    assert!(world.shard.clusters()["shop"].demand.is_empty(), "the old one is not listened to");
    world.event(Event::Closed { session: SessionId(1) });
    assert_eq!(world.shard.clusters()["shop"].session, Some(SessionId(2)), "nor does its end matter");
}

#[test]
fn a_roll_up_of_another_cluster_is_refused() {
    let mut world = World::new(vec![]);
    world.open(1, "shop");
    world.report(1, "ml", vec![need("ml", 7, 1)]);
    let Reception::Refused { why } = world.reception() else { panic!("{:?}", world.reception()) };
    assert!(why.contains("may only report its own demand"), "{why}");
    world.event(Event::Rollup { session: SessionId(1), rollup: Err("row 3: no such bucket".into()) });
    assert_eq!(world.reception(), &Reception::Refused { why: "row 3: no such bucket".into() });
    assert_eq!(world.shard.tally().rollups["refused"], 2);
}

#[test]
fn hints_say_what_there_is_and_only_when_it_changes() {
    let mut quota = machine("q-1", Speculative);
    quota.price_usd_per_hour = 0.5;
    let mut world = World::new(vec![machine("m", Idle), quota, machine("q-2", Speculative)]);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 0)]);
    world.pass(60 * SECOND);
    let hints = |world: &World| -> Vec<(u32, Confidence, f64)> {
        let frames = world.sent.iter().filter_map(|(_, frame)| match frame {
            Frame::Available(hint) => Some((hint.count, hint.confidence, hint.usd_per_hour)),
            _ => None,
        });
        frames.collect()
    };
    assert_eq!(hints(&world), [(3, Confidence::High, 0.5)], "said once");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(30 * SECOND);
    assert_eq!(hints(&world).last(), Some(&(2, Confidence::Medium, 0.5)), "only quota is left");
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(30 * SECOND);
    assert_eq!(hints(&world).last(), Some(&(0, Confidence::None, 0.0)));
    world.sent.clear();
    world.open(2, "shop");
    world.pass(30 * SECOND);
    assert_eq!(hints(&world), [(0, Confidence::None, 0.0)], "a new operator knows nothing");
}

#[test]
fn all_sessions_are_ended_at_a_stop() {
    let mut world = World::new(vec![]);
    world.open(1, "shop");
    world.open(2, "ml");
    world.command(|shard, _, step| shard.stop(step));
    assert_eq!(world.hung_up, [(SessionId(1), HangUp::Stopping), (SessionId(2), HangUp::Stopping)]);
}

#[test]
fn a_refused_roll_up_is_refused_each_time_and_opens_no_gate() {
    let mut world = World::new(vec![]);
    world.open(1, "shop");
    let over_nothing = TopologySpread::new("", 1, WhenUnsatisfiable::DoNotSchedule);
    let profile = Profile::new(vec![], vec![over_nothing], 7, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
    let bad = bigfleet_model::need::Need { profile: profile.into(), ..need("shop", 7, 1) };
    world.report(1, "shop", vec![bad]);
    assert!(matches!(world.reception(), Reception::Refused { .. }), "{:?}", world.reception());
    assert!(!world.shard.has_taken_rollup(SessionId(1)));
    world.event(Event::RollupAgain { session: SessionId(1) });
    assert!(matches!(world.reception(), Reception::Refused { .. }), "{:?}", world.reception());
    assert!(!world.shard.clusters()["shop"].has_reported(), "nothing may be reclaimed by a refused report");

    world.report(1, "shop", vec![need("shop", 7, 1)]);
    assert!(world.shard.has_taken_rollup(SessionId(1)));
    world.event(Event::RollupAgain { session: SessionId(1) });
    assert_eq!(world.reception(), &Reception::Accepted);
    world.open(2, "shop");
    world.event(Event::RollupAgain { session: SessionId(2) });
    assert!(matches!(world.reception(), Reception::Refused { .. }), "a new connection has said nothing yet");
}

#[test]
fn demand_the_engine_refuses_is_neither_acknowledged_nor_remembered() {
    let mut world = World::new(vec![]);
    world.open(1, "");
    world.report(1, "", vec![need("", 7, 1)]);
    let Reception::Refused { why } = world.reception() else { panic!("{:?}", world.reception()) };
    assert!(why.contains("names no cluster"), "{why}");
    assert!(world.memory.demand.is_empty() && world.shard.clusters()[""].demand.is_empty());
    assert!(!world.shard.clusters()[""].has_reported());
}

#[test]
fn a_cluster_nobody_reports_for_and_that_holds_nothing_is_forgotten() {
    let mut world = World::new(vec![bound("m", "holder", 7)]);
    world.pass(SECOND);
    for (session, name) in [(1, "gone"), (2, "wants"), (3, "stays"), (4, "paused")] {
        world.open(session, name);
        world.report(session, name, vec![]);
    }
    world.report(2, "wants", vec![need("wants", 7, 1)]);
    let scope = PauseScope { cluster: Some("paused".into()), kind: None };
    let pause = Pause {
        scope,
        dry_run: false,
        reason: "test".into(),
        author: "test".into(),
        since_unix_nanos: world.now,
        until_unix_nanos: None,
    };
    world.command(|shard, now, step| shard.pause(pause, now, step)).unwrap();
    for session in [1, 2, 4] {
        world.event(Event::Closed { session: SessionId(session) });
    }
    world.pass(50 * MINUTE);
    assert!(world.shard.clusters().contains_key("gone"), "not at once");
    world.pass(20 * MINUTE);
    let left: Vec<&str> = world.shard.clusters().keys().map(|name| &**name).collect();
    assert_eq!(left, ["holder", "paused", "stays", "wants"]);
    assert!(world.has_said("clusters_forgotten"));
    assert_eq!(world.shard.tally().clusters_forgotten, 1);
    assert!(!world.shard.options().ready.contains("gone"), "it must report before anything is taken from it");
    world.open(9, "gone");
    world.report(9, "gone", vec![need("gone", 7, 1)]);
    assert_eq!(world.reception(), &Reception::Accepted);
}
