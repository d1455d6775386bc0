//! Flights in line for a place, and what may happen to them there.

use bigfleet_model::machine::MachineState::Idle;
use bigfleet_shard::{Event, MINUTE, Pause, PauseScope, SECOND, SessionId};

use super::harness::*;

/// Bootstraps that have waited in line for two minutes, with blobs good for so many seconds.
fn in_line(ttls: &[i64]) -> World {
    let mut world = World::new(machines(ttls.len(), Idle));
    world.manner = Manner::Silent;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, ttls.len() as u64)]);
    world.pass(SECOND);
    let pause = Pause {
        scope: PauseScope::default(),
        dry_run: false,
        reason: "maintenance".into(),
        author: "test".into(),
        since_unix_nanos: world.now,
        until_unix_nanos: None,
    };
    world.command(|shard, now, step| shard.pause(pause, now, step)).unwrap();
    // Blobs come while nothing may be called, and are too old when something may.
    world.answer_blobs(ttls);
    world.pass(2 * MINUTE);
    world
}

#[test]
fn blobs_that_expire_in_line_without_an_operator_end_their_flights_alone() {
    let mut world = in_line(&[60, 60]);
    assert_eq!(world.shard.queues().waiting, 2);
    world.event(Event::Closed { session: SessionId(1) });
    world.command(|shard, now, step| shard.resume(&PauseScope::default(), now, step)).unwrap();
    assert_eq!((world.shard.queues().waiting, world.called("Configure")), (0, 0));
    assert_eq!((world.state("m-000"), world.state("m-001")), (Idle, Idle));
}

#[test]
fn who_is_in_line_behind_an_expired_blob_is_called_once() {
    let mut world = in_line(&[60, 0]);
    world.event(Event::Closed { session: SessionId(1) });
    world.command(|shard, now, step| shard.resume(&PauseScope::default(), now, step)).unwrap();
    let called: Vec<&str> = world.calls.iter().map(|(_, call)| call.machine()).collect();
    assert_eq!(called, ["m-001"], "its blob has no end");
    assert_eq!((world.state("m-000"), world.shard.queues().calling), (Idle, 0));
}
