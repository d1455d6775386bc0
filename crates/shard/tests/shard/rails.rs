//! Pauses, rehearsals and bounds.

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState::{Configured, Draining, Idle};
use bigfleet_shard::{CommandError, Fate, MINUTE, Pause, PauseScope, SECOND};

use super::harness::*;

fn pause(cluster: Option<&str>, kind: Option<ActionKind>, until: Option<i64>) -> Pause {
    Pause {
        scope: PauseScope { cluster: cluster.map(Into::into), kind },
        dry_run: false,
        reason: "drill".into(),
        author: "sre".into(),
        since_unix_nanos: START,
        until_unix_nanos: until,
    }
}

#[test]
fn a_paused_cluster_stands_still_and_the_others_move() {
    let mut world = World::new(machines(4, Idle));
    world.open(1, "shop");
    world.open(2, "ml");
    world.command(|shard, now, step| shard.pause(pause(Some("shop"), None, None), now, step)).unwrap();
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.report(2, "ml", vec![need("ml", 7, 2)]);
    world.pass(30 * SECOND);
    assert!(world.fates(ActionKind::Bootstrap, Fate::Paused) > 0);
    assert_eq!(world.shard.machines_of("ml").count(), 2);
    assert_eq!(world.shard.machines_of("shop").count(), 0);
    let scope = PauseScope { cluster: Some("shop".into()), kind: None };
    world.command(|shard, now, step| shard.resume(&scope, now, step)).unwrap();
    world.pass(SECOND);
    assert_eq!(world.shard.machines_of("shop").count(), 2);
    let again = world.command(|shard, now, step| shard.resume(&scope, now, step));
    assert_eq!(again, Err(CommandError::NoSuchPause("cluster shop".into())));
}

#[test]
fn a_pause_survives_a_crash_and_ends_by_itself() {
    let mut world = World::new(machines(1, Idle));
    world
        .command(|shard, now, step| shard.pause(pause(None, None, Some(now + 5 * MINUTE)), now, step))
        .unwrap();
    world.crash();
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(4 * MINUTE);
    assert_eq!(world.calls.len(), 0);
    world.pass(2 * MINUTE);
    assert_eq!(world.clouds[0].count(Configured), 1);
    assert!(world.memory.pauses.is_empty());
}

#[test]
fn a_drain_that_was_announced_waits_while_paused() {
    let mut world = World::new(vec![bound("m", "shop", 7)]);
    world.manner = Manner::Silent;
    world.open(1, "shop");
    world.report(1, "shop", vec![]);
    world.pass(SECOND);
    assert_eq!(world.state("m"), Draining);
    world
        .command(|shard, now, step| shard.pause(pause(None, Some(ActionKind::Reclaim), None), now, step))
        .unwrap();
    world.pass(30 * MINUTE);
    assert_eq!(world.called("Drain"), 0, "nothing is executed while paused");
    let scope = PauseScope { cluster: None, kind: Some(ActionKind::Reclaim) };
    world.command(|shard, now, step| shard.resume(&scope, now, step)).unwrap();
    assert_eq!(world.called("Drain"), 1);
}

#[test]
fn a_dry_run_says_everything_and_does_nothing() {
    let mut world = World::with(machines(2, Idle), |config| config.rails.dry_run = true);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(30 * MINUTE);
    assert_eq!(world.calls.len(), 0);
    assert!(world.fates(ActionKind::Bootstrap, Fate::DryRun) > 0);
    assert_eq!(world.records.last().unwrap().actions.len(), 2);
}

#[test]
fn a_pause_must_have_a_reason_and_an_end_to_come() {
    let mut world = World::new(vec![]);
    let empty = Pause { reason: " ".into(), ..pause(None, None, None) };
    let refused = world.command(|shard, now, step| shard.pause(empty, now, step));
    assert_eq!(refused, Err(CommandError::NoReason));
    let past = world.command(|shard, now, step| shard.pause(pause(None, None, Some(now)), now, step));
    assert_eq!(past, Err(CommandError::Past));
}

#[test]
fn what_the_bound_on_actions_leaves_over_follows_at_once() {
    let mut world = World::with(machines(10, Idle), |config| config.rails.max_actions_per_cycle = 3);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 10)]);
    world.pass(SECOND);
    assert_eq!(world.clouds[0].count(Configured), 10, "four cycles within a second");
    assert!(world.records.iter().all(|record| record.begun(ActionKind::Bootstrap) <= 3));
}

#[test]
fn places_are_bounded_and_those_in_line_follow() {
    let mut world = World::with(machines(10, Idle), |config| config.limits.flights = 2);
    world.hold_calls = true;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 10)]);
    world.pass(5 * SECOND);
    let queues = world.shard.queues();
    assert_eq!((queues.calling, queues.waiting), (2, 2), "as many in line as have a place: {queues:?}");
    assert!(world.fates(ActionKind::Bootstrap, Fate::NoPlace) > 0);
    world.release();
    world.pass(5 * SECOND);
    assert_eq!(world.clouds[0].count(Configured), 10);
}

#[test]
fn a_record_lists_only_the_first_of_those_there_was_no_room_for() {
    let mut world = World::with(machines(300, Idle), |config| config.rails.max_actions_per_cycle = 5);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 300)]);
    world.pass(SECOND / 10);
    let record = world.records.iter().find(|record| record.decided > 0).expect("something was decided");
    assert_eq!((record.decided, record.begun(ActionKind::Bootstrap)), (300, 5));
    assert!(record.actions.len() < 110, "{} listed", record.actions.len());
}

#[test]
fn a_rehearsal_says_what_the_next_cycle_does_and_changes_nothing() {
    let serving = (0..20).map(|n| bound(&format!("s-{n:02}"), "shop", 7));
    let free = machines(6, Idle);
    let mut world = World::with(serving.chain(free).collect(), |config| {
        config.limits.flights = 1;
        config.rails.max_actions_per_cycle = 4;
        config.rails.reclaim_fraction = 0.1;
    });
    world.hold_calls = true;
    for (session, cluster) in [(1, "shop"), (2, "ml"), (3, "web")] {
        world.open(session, cluster);
    }
    world.command(|shard, now, step| shard.pause(pause(Some("web"), None, None), now, step)).unwrap();
    world.report(1, "shop", vec![need("shop", 7, 20)]);
    world.report(2, "ml", vec![]);
    world.report(3, "web", vec![]);
    world.pass(SECOND);
    world.report(1, "shop", vec![need("shop", 7, 12)]);
    world.report(2, "ml", vec![need("ml", 9, 5)]);
    world.report(3, "web", vec![need("web", 8, 1)]);
    let decision = world.shard.engine().fork().cycle(&world.shard.options(), world.now);
    let before = format!("{:?} {:?}", world.shard.queues(), world.shard.tally().actions);
    let rehearsed = world.shard.rehearse(&decision, world.now);
    assert_eq!(format!("{:?} {:?}", world.shard.queues(), world.shard.tally().actions), before);
    let cycles = world.records.len();
    world.pass(0);
    let record = world.records[cycles..].iter().find(|record| record.decided > 0).expect("a cycle ran");
    let fates: Vec<Fate> = record.actions.iter().map(|ordered| ordered.fate).collect();
    assert_eq!(fates, rehearsed);
    let count = |wanted: Fate| rehearsed.iter().filter(|fate| **fate == wanted).count();
    assert_eq!((count(Fate::Begun), count(Fate::NoPlace), count(Fate::Paused)), (4, 3, 1), "{rehearsed:?}");
    assert!(count(Fate::Capped) > 0, "{rehearsed:?}");
}
