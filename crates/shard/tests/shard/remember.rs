//! What survives a crash, and what a shard without memory does not dare to do.

use bigfleet_engine::{ActionKind, Fleet, Parallelism};
use bigfleet_model::label::Labels;
use bigfleet_model::machine::MachineState::{Configured, Creating, Draining, Failed, Idle, Speculative};
use bigfleet_model::resource::ResourceVec;
use bigfleet_shard::{Care, Frame, Input, MINUTE, Memory, Pause, PauseScope, SECOND, Shard};

use super::harness::*;

#[test]
fn nothing_is_reclaimed_before_a_cluster_has_reported_in_this_life() {
    let mut world = World::new((0..10).map(|n| bound(&format!("m-{n}"), "shop", 7)).collect());
    world.open(1, "shop");
    world.pass(10 * MINUTE);
    assert_eq!(world.begun(ActionKind::Reclaim), 0, "silence is not the same as wanting nothing");
    world.report(1, "shop", vec![need("shop", 7, 10)]);
    world.pass(SECOND);
    world.crash();
    world.memory = Memory::default();
    world.shard = Shard::new(world.config.clone(), Memory::default(), world.now);
    world.pass(10 * MINUTE);
    assert_eq!(world.begun(ActionKind::Reclaim), 0, "nor after everything was forgotten");
}

#[test]
fn accepted_demand_and_its_age_outlive_a_crash() {
    let mut world = World::new(machines(1, Idle));
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 5)]);
    world.pass(MINUTE);
    let since = world.shard.ledger().iter().next().unwrap().1.since;
    let cycle = world.shard.cycle();
    world.crash();
    world.pass(MINUTE);
    let shortfall = world.shard.ledger().iter().next().expect("still short").1;
    assert_eq!((shortfall.since, shortfall.demand.need.first_seen_unix_nanos), (since, START));
    assert!(world.shard.cycle() > cycle, "cycles are counted on");
    world.open(1, "shop");
    world.report(1, "shop", vec![]);
    assert!(
        matches!(world.reception(), bigfleet_shard::Reception::Held { .. }),
        "and so is the guard's baseline"
    );
}

#[test]
fn a_machine_on_order_is_known_to_be_ours_after_a_crash() {
    let mut world = World::new(machines(3, Speculative));
    world.clouds[0].instant = false;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(MINUTE);
    assert_eq!((world.state("m-000"), world.called("Create")), (Creating, 1));
    world.crash();
    world.open(2, "shop");
    world.pass(5 * MINUTE);
    assert_eq!(world.called("Create"), 1, "it is not bought twice");
}

#[test]
fn an_announced_drain_goes_on_after_a_crash() {
    let mut world = World::new(vec![bound("m", "shop", 7)]);
    world.manner = Manner::Silent;
    world.open(1, "shop");
    world.report(1, "shop", vec![]);
    world.pass(4 * MINUTE);
    assert_eq!(world.state("m"), Draining);
    world.crash();
    world.pass(MINUTE);
    assert_eq!((world.state("m"), world.called("Drain")), (Draining, 0));
    world.open(2, "shop");
    let left = world.sent.iter().rev().find_map(|(_, frame)| match frame {
        Frame::Reclaim { grace_secs, .. } => Some(*grace_secs),
        _ => None,
    });
    assert_eq!(left, Some(5 * 60), "the cluster is told again how long it has");
    world.pass(6 * MINUTE);
    assert_eq!(world.called("Drain"), 1);
}

#[test]
fn idle_machines_do_not_begin_to_idle_anew() {
    let mut world = World::new(vec![machine("m", Idle)]);
    world.pass(6 * MINUTE);
    world.crash();
    world.pass(5 * MINUTE);
    assert_eq!(world.called("Delete"), 1, "eleven minutes in all");

    let mut world = World::new(vec![machine("m", Idle)]);
    world.pass(6 * MINUTE);
    world.memory = Memory::default();
    world.crash();
    world.pass(5 * MINUTE);
    assert_eq!(world.called("Delete"), 0, "what was forgotten is held");
}

#[test]
fn the_reclaim_window_outlives_a_crash() {
    let mut world = World::new((0..40).map(|n| bound(&format!("m-{n:03}"), "shop", 7)).collect());
    world.open(1, "shop");
    world.report(1, "shop", vec![]);
    world.pass(SECOND);
    assert_eq!(world.begun(ActionKind::Reclaim), 2);
    for life in 2..8 {
        world.crash();
        world.open(life, "shop");
        world.report(life, "shop", vec![]);
        world.pass(SECOND);
    }
    assert_eq!(world.begun(ActionKind::Reclaim), 2, "a crash loop does not open the cap");
}

#[test]
fn what_is_remembered_of_machines_that_are_gone_is_forgotten() {
    let mut world = World::new(machines(3, Idle));
    world.pass(SECOND);
    assert_eq!(world.memory.machines.len(), 3);
    world.clouds[0].machines.remove("m-001");
    world.crash();
    world.pass(SECOND);
    assert_eq!(world.memory.machines.len(), 2);
}

/// Replays records from the last full one on.
fn replay(world: &World) -> usize {
    let mut fleet = Fleet::new(Parallelism::default());
    let feed = |fleet: &mut Fleet, input: &Input| match input {
        Input::Observe(machine) => drop(fleet.observe(machine).unwrap()),
        Input::Remove(id) => assert!(fleet.remove(id)),
        Input::Replace { cluster, needs, at_unix_nanos } => {
            fleet.replace(cluster, needs.to_vec(), *at_unix_nanos).unwrap();
        }
        Input::Park { key, parked } => {
            fleet.set_parked(key, *parked);
        }
    };
    let mut compared = 0;
    for record in &world.records {
        if let Some(full) = &record.full {
            fleet = Fleet::new(Parallelism::default());
            full.iter().for_each(|input| feed(&mut fleet, input));
        }
        record.inputs.iter().for_each(|input| feed(&mut fleet, input));
        let decision = fleet.cycle(&record.options, record.now_unix_nanos);
        let brief = |action: &bigfleet_engine::Action| {
            (action.kind, action.machine.clone(), action.cluster.clone(), action.grace_secs)
        };
        let decided: Vec<_> = decision.actions.iter().map(brief).collect();
        let recorded: Vec<_> = record.actions.iter().map(|ordered| brief(&ordered.action)).collect();
        assert_eq!(decided, recorded, "cycle {}", record.cycle);
        assert_eq!(bigfleet_shard::digest(&decision.actions), record.digest, "cycle {}", record.cycle);
        compared += 1;
    }
    compared
}

#[test]
fn the_records_replay_to_the_same_decisions() {
    let fleet =
        (0..10).map(|n| bound(&format!("b-{n}"), "batch", 1)).chain(machines(10, Speculative)).collect();
    let mut world = World::new(fleet);
    world.clouds[0].instant = false;
    world.open(1, "batch");
    world.open(2, "shop");
    for round in 0..12 {
        world.report(1, "batch", vec![need("batch", 1, 10 - round % 4)]);
        world.report(2, "shop", vec![need("shop", 50_000, 3 + round), gang("shop", 9, 30, "g")]);
        world.pass(40 * SECOND);
        world.clouds[0].finish_all();
        if round == 5 {
            world.shard.want_full_record();
        }
        if round == 8 {
            world.crash();
            world.open(3, "batch");
            world.open(4, "shop");
        }
    }
    assert!(world.clouds[0].count(Configured) > 10);
    assert!(replay(&world) > 30);
    assert_eq!(world.records.iter().filter(|record| record.full.is_some()).count(), 3);
}

#[test]
fn quarantine_outlives_a_restart() {
    let mut broken = machine("m", Failed);
    broken.last_error = "no boot".into();
    let mut world = World::new(vec![broken]);
    world.pass(6 * 60 * MINUTE);
    assert_eq!(world.shard.machine("m").unwrap().care, &Care::Quarantined);
    world.crash();
    world.pass(6 * 60 * MINUTE);
    assert_eq!(world.shard.machine("m").unwrap().care, &Care::Quarantined, "not asked about, and no panic");
}

#[test]
fn a_folded_gang_and_a_plain_need_of_one_name_age_together() {
    let mut serving = bound("m", "shop", 7);
    serving.labels = Labels::new([("rack", "r")]).unwrap();
    let mut world = World::new(vec![serving]);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 3), gang("shop", 7, 1, "g")]);
    world.pass(SECOND);
    let key = need("shop", 7, 3).key();
    let since = world.shard.ledger().get(&key).expect("both are short").since;
    assert_eq!(world.shard.ledger().len(), 1);
    for more in [4, 5] {
        world.pass(MINUTE);
        world.report(1, "shop", vec![need("shop", 7, more), gang("shop", 7, 1, "g")]);
        world.pass(SECOND);
        let short = world.shard.ledger().get(&key).expect("both are short");
        assert_eq!(short.since, since);
        let missing = ResourceVec::parse([("cpu", (16 * more).to_string().as_str())]).unwrap();
        assert_eq!(short.missing, missing, "the plain need lacks all but one machine, the gang its own");
    }
    assert_eq!(world.memory.shortfalls.get(&key), Some(&since));
}

#[test]
fn a_pause_is_never_shorter_than_asked_however_the_wall_clock_jumps() {
    let hour = 60 * MINUTE;
    for ahead_before in [true, false] {
        let mut world = World::new(vec![]);
        let jump = |world: &mut World| {
            let wall = world.now + hour;
            world.command(|shard, now, step| shard.note_wall(wall, now, step));
        };
        if ahead_before {
            // This machine slept for an hour, which its monotonic clock did not count.
            jump(&mut world);
        }
        let pause = Pause {
            scope: PauseScope::default(),
            dry_run: false,
            reason: "maintenance".into(),
            author: "test".into(),
            since_unix_nanos: world.now,
            until_unix_nanos: Some(world.now + 30 * MINUTE),
        };
        world.command(|shard, now, step| shard.pause(pause, now, step)).unwrap();
        if !ahead_before {
            // Somebody sets it while the pause is in force.
            jump(&mut world);
        }
        world.pass(10 * MINUTE);
        // The next life begins with the wall clock.
        world.now += hour;
        world.crash();
        world.pass(19 * MINUTE);
        assert_eq!(world.shard.pauses().len(), 1, "a minute is left");
        world.pass(2 * MINUTE);
        assert_eq!(world.shard.pauses().len(), 0);
    }
}

#[test]
fn a_wall_clock_set_back_makes_no_pause_shorter() {
    let mut world = World::new(vec![]);
    let wall = world.now - 60 * MINUTE;
    world.command(|shard, now, step| shard.note_wall(wall, now, step));
    let pause = Pause {
        scope: PauseScope::default(),
        dry_run: false,
        reason: "maintenance".into(),
        author: "test".into(),
        since_unix_nanos: world.now,
        until_unix_nanos: Some(world.now + 30 * MINUTE),
    };
    world.command(|shard, now, step| shard.pause(pause, now, step)).unwrap();
    world.pass(29 * MINUTE);
    assert_eq!(world.shard.pauses().len(), 1);
    world.pass(2 * MINUTE);
    assert_eq!(world.shard.pauses().len(), 0, "where a process lives its own time counts");
}
