//! When providers are listed: often while they move things for us, and otherwise at leisure.

use bigfleet_model::machine::MachineState::{Configured, Configuring, Creating, Idle, Speculative};
use bigfleet_shard::{CallErrorKind, MINUTE, SECOND};

use super::harness::*;

/// The spans between listings begun since a time.
fn gaps(world: &World, since: i64) -> Vec<i64> {
    let times: Vec<i64> = world.listed_at.iter().copied().filter(|at| *at >= since).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn slow_cloud(count: usize, state: bigfleet_model::machine::MachineState) -> World {
    let mut world = World::new(machines(count, state));
    world.clouds[0].instant = false;
    world.open(1, "shop");
    world.pass(5 * SECOND);
    world
}

#[test]
fn the_end_of_a_move_is_heard_of_within_a_second_and_then_there_is_no_haste() {
    let mut world = slow_cloud(1, Speculative);
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(2 * SECOND);
    assert_eq!(world.state("m-000"), Creating);
    world.clouds[0].finish("m-000");
    world.pass(SECOND);
    assert_eq!(world.state("m-000"), Configuring, "it was seen Idle and bound");
    world.clouds[0].finish("m-000");
    world.pass(SECOND);
    assert_eq!(world.state("m-000"), Configured);
    let arrived = world.now;
    world.pass(MINUTE);
    assert_eq!(gaps(&world, arrived), [10 * SECOND; 6]);
}

#[test]
fn many_moves_make_one_listing_a_second_and_not_one_each() {
    let mut world = slow_cloud(60, Idle);
    let begun = world.now;
    for count in 1..=50 {
        world.report(1, "shop", vec![need("shop", 7, count)]);
        world.pass(SECOND / 5);
    }
    assert_eq!(gaps(&world, begun), [SECOND; 9], "50 moves in ten seconds");
    assert!(world.shard.queues().timers < 250, "{:?}", world.shard.queues());
    world.shard.audit().unwrap();
}

#[test]
fn what_takes_long_is_looked_at_less_and_less_often() {
    let mut world = slow_cloud(1, Speculative);
    let begun = world.now;
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(5 * MINUTE);
    let gaps = gaps(&world, begun);
    assert!(gaps.is_sorted(), "{gaps:?}");
    assert_eq!((gaps[0], gaps[gaps.len() - 1]), (SECOND, 10 * SECOND));
    assert!(gaps.iter().filter(|gap| **gap < 2 * SECOND).count() < 20, "{gaps:?}");
    world.report(1, "shop", vec![need("shop", 7, 1), need("shop", 8, 1)]);
    world.clouds[0].machines.insert("late".into(), machine("late", Idle));
    world.pass(11 * SECOND);
    assert_eq!(world.state("late"), Configuring);
    world.clouds[0].finish("late");
    world.pass(2 * SECOND);
    assert_eq!(world.state("late"), Configured, "a move that has just begun is looked at soon all the same");
}

#[test]
fn listings_that_take_long_leave_time_between_them() {
    for (has_revisions, tenths) in [(false, 45), (true, 10)] {
        let mut world = slow_cloud(1, Speculative);
        world.clouds[0].has_revisions = has_revisions;
        world.pass(10 * SECOND);
        world.report(1, "shop", vec![need("shop", 7, 1)]);
        let mut rests = vec![];
        for _ in 0..5 {
            world.hold_lists = true;
            let (before, ended) = (world.listed_at.len(), world.now);
            while world.listed_at.len() == before {
                world.pass(SECOND / 10);
            }
            rests.push((world.listed_at[before] - ended) / (SECOND / 10));
            world.pass(world.listed_at[before] + SECOND / 2 - world.now);
            world.release();
        }
        assert_eq!(rests[1..], [tenths; 4], "after half a second of listing, revisions {has_revisions}");
    }
}

#[test]
fn a_provider_in_trouble_is_not_hurried() {
    let mut world = slow_cloud(1, Idle);
    world.clouds[0].broken = Some(CallErrorKind::Unavailable);
    world.pass(2 * MINUTE);
    world.clouds[0].broken = None;
    let tried = *world.listed_at.last().unwrap();
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(tried + 60 * SECOND - 1 - world.now);
    assert_eq!((world.called("Configure"), world.state("m-000")), (1, Configuring));
    assert_eq!(world.listed_at.last(), Some(&tried), "its time to recover is its own");
    world.pass(1);
    assert_eq!(world.listed_at.last(), Some(&(tried + 60 * SECOND)));
}

#[test]
fn a_machine_found_on_its_way_after_a_crash_is_followed_as_well() {
    let mut world = slow_cloud(1, Idle);
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(SECOND / 2);
    world.crash();
    world.pass(2 * SECOND);
    assert_eq!(world.state("m-000"), Configuring);
    world.clouds[0].finish("m-000");
    world.pass(SECOND);
    assert_eq!(world.state("m-000"), Configured);
}
