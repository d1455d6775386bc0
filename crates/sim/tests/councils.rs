//! Several shards and a coordinator: nothing is in two hands in any random world, and planted bugs are found.

use std::fmt::Write as _;

use bigfleet_shard::Bug;
use bigfleet_sim::{Planted, Scenario, Setup, Summary, World, fuzz};

/// How many worlds are played, in two halves; `BIGFLEET_COUNCIL_SEEDS` for more.
fn seeds() -> u64 {
    std::env::var("BIGFLEET_COUNCIL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

fn play(seeds: impl Iterator<Item = u64>) {
    let mut found = String::new();
    for seed in seeds {
        for violation in fuzz::run_council(seed, None) {
            let _ = writeln!(found, "seed {seed}: {violation}");
        }
    }
    assert!(found.is_empty(), "{found}");
}

#[test]
fn shards_and_their_coordinator_in_random_worlds_first_half() {
    play(1..=seeds() / 2);
}

#[test]
fn shards_and_their_coordinator_in_random_worlds_second_half() {
    play(seeds() / 2 + 1..=seeds());
}

/// Each bug, and what is meant to find it within so many seeds; 0 for the world of a deposed leader.
const TABLE: [(Planted, &str, u64); 5] = [
    (Planted::LeaderUnfenced, "what a leader knows is what is stored", 60),
    (Planted::Code(Bug::LetGoAmid), "a domain is let go of when nothing is under way in it", 60),
    (Planted::Code(Bug::TermIgnored), "nothing is done that a deposed coordinator says", 0),
    (
        Planted::Code(Bug::GivesWhileShort),
        "help never makes the donor's higher or equal priorities short",
        60,
    ),
    (Planted::Code(Bug::QuotaForgotten), "no shard holds more than its quota", 60),
];

#[expect(clippy::print_stdout, reason = "the table is what people look for in a run")]
fn find(bug: Planted) {
    let (_, meant, most) = *TABLE.iter().find(|(of, ..)| *of == bug).expect("it is in the table");
    if most == 0 {
        let played = |planted| {
            let scenario = fuzz::deposed();
            bigfleet_sim::run(&scenario, Setup { planted, ..Setup::default() }).violations
        };
        assert_eq!(played(None), [], "without a bug nothing is wrong");
        let found = played(Some(bug));
        assert!(found.iter().any(|violation| violation.name == meant), "{found:?}");
        println!("{:<20} a deposed leader  {meant}", bug.name());
        return;
    }
    let mut others: Vec<&str> = Vec::new();
    for seed in 1..=most {
        let violations = fuzz::run_council(seed, Some(bug));
        if violations.iter().any(|violation| violation.name == meant) {
            println!("{:<20} seed {seed:<6} {meant}", bug.name());
            return;
        }
        others.extend(violations.iter().map(|violation| violation.name));
    }
    others.sort_unstable();
    others.dedup();
    panic!("{} is not found in {most} seeds; others that found it: {others:?}", bug.name());
}

#[test]
fn a_store_that_looks_at_no_condition_is_found() {
    find(Planted::LeaderUnfenced);
}

#[test]
fn letting_go_amid_work_is_found() {
    find(Planted::Code(Bug::LetGoAmid));
}

#[test]
fn hearing_a_deposed_coordinator_is_found() {
    find(Planted::Code(Bug::TermIgnored));
}

#[test]
fn giving_while_short_is_found() {
    find(Planted::Code(Bug::GivesWhileShort));
}

#[test]
fn forgetting_quotas_is_found() {
    find(Planted::Code(Bug::QuotaForgotten));
}

#[test]
fn the_table_names_every_bug_once() {
    assert_eq!(TABLE.map(|(bug, ..)| bug), Planted::OF_COUNCILS);
}

#[test]
fn what_is_more_important_gets_machines_that_another_shard_uses_for_less() {
    let mut world = World::new(&fuzz::outranked(1), Setup::default());
    world.run();
    assert_eq!(world.violations(), []);
    // Nine machines for 36 pods, six of its own: three are preempted, and no more.
    assert_eq!(world.preempted_between_shards(), 3, "{:?}", world.moves_between_shards());
    assert!(world.moves_between_shards().values().all(|times| *times == 1));
}

/// Cycles of ten seconds after the last fault within which shards that help each other come to rest.
const RESTS_WITHIN_CYCLES: f64 = 180.0;
/// When the last fault of the skewed fleet is over, in seconds.
const LAST_FAULT: f64 = 600.0;

#[test]
#[expect(clippy::print_stdout, reason = "the gap is what people look for in a run")]
fn twenty_shards_help_each_other_and_rest() {
    let mut divided = World::new(&fuzz::skewed(1, true), Setup::default());
    divided.run();
    assert_eq!(divided.violations(), []);
    let moves = divided.moves_between_shards();
    assert!(!moves.is_empty() && moves.values().all(|times| *times == 1), "{moves:?}");
    let (divided, one) = (outcome_of(&fuzz::skewed(1, true)), outcome_of(&fuzz::skewed(1, false)));
    for (name, summary) in [("twenty shards", &divided), ("one shard", &one)] {
        println!(
            "{name}: ${:.0} in three hours, {:.1} pod hours unmet, last action after {:.0} s, {} pods wait",
            summary.usd, summary.unmet_pod_hours, summary.last_action_secs, summary.pods_pending
        );
    }
    println!("{} machines were given", moves.len());
    assert_eq!((divided.pods_pending, one.pods_pending), (0, 0), "there is enough for all");
    assert!(
        divided.last_action_secs <= LAST_FAULT + RESTS_WITHIN_CYCLES * 10.0,
        "the last action came after {} s",
        divided.last_action_secs
    );
}

fn outcome_of(scenario: &Scenario) -> Summary {
    let outcome = bigfleet_sim::run(scenario, Setup::default());
    assert_eq!(outcome.violations, []);
    outcome.summary
}
