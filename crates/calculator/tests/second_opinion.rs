//! The engine against the oracle on random fleets: from scratch, after edits, and on several threads.
//!
//! `BIGFLEET_SEEDS=FIRST..LAST` tries other seeds than the usual ones; a failure prints the line to repeat it.

use std::ops::Range;

use bigfleet_calculator::{answer, decide, engine_options, load};
use bigfleet_engine::{Draft, Fleet, Parallelism};
use bigfleet_model::need::Need;
use bigfleet_oracle::{Edit, Size, apply, as_vector, disagreement, random_edits, random_scenario};
use bigfleet_scenario::Scenario;
use bigfleet_scenario::answer::difference;
use bigfleet_scenario::seed::Seed;

const ALONE: Parallelism = Parallelism { threads: 1, from_clusters: 0 };

/// The seeds to try: the usual ones, or those asked for.
fn seeds(usual: u64) -> Range<u64> {
    let Ok(asked) = std::env::var("BIGFLEET_SEEDS") else { return 0..usual };
    let (first, last) = asked.split_once("..").expect("BIGFLEET_SEEDS is FIRST..LAST");
    first.parse().expect("the first seed is a number")..last.parse().expect("the last seed is a number")
}

/// How to run one seed of one test again.
fn repeat(test: &str, seed: u64) -> String {
    let last = seed + 1;
    format!(
        "repeat with: BIGFLEET_SEEDS={seed}..{last} cargo test -p bigfleet-calculator --test second_opinion {test}"
    )
}

fn agrees_from_scratch(test: &str, size: Size, usual: u64) {
    for seed in seeds(usual) {
        let scenario = random_scenario(seed, size);
        let ours = |scenario: &Scenario| decide(scenario, ALONE).expect("a random scenario is valid");
        if let Some(found) = disagreement(&scenario, ours) {
            panic!("seed {seed}: {found}\n{}", repeat(test, seed));
        }
    }
}

#[test]
fn tiny_fleets_from_scratch() {
    agrees_from_scratch("tiny_fleets_from_scratch", Size::Tiny, 30_000);
}

#[test]
fn small_fleets_from_scratch() {
    agrees_from_scratch("small_fleets_from_scratch", Size::Small, 6_000);
}

#[test]
fn medium_fleets_from_scratch() {
    agrees_from_scratch("medium_fleets_from_scratch", Size::Medium, 400);
}

#[test]
fn any_number_of_threads_gives_the_same_answer() {
    for seed in seeds(400) {
        let scenario = random_scenario(seed, if seed % 4 == 0 { Size::Medium } else { Size::Small });
        let alone = decide(&scenario, ALONE).expect("a random scenario is valid");
        for threads in [2, 3, 8] {
            let together = decide(&scenario, Parallelism { threads, from_clusters: 0 }).expect("valid");
            if let Some(found) = difference(&alone, &together) {
                panic!("seed {seed}, {threads} threads: {found}\n{}", repeat("any_number_of_threads", seed));
            }
        }
    }
}

/// The rows of a roll-up as the engine will keep them: those it knows keep the time they were first seen.
fn with_kept_stamps(scenario: &Scenario, mut rows: Vec<Need>) -> Vec<Need> {
    for row in &mut rows {
        if let Some(known) = scenario.needs.iter().find(|need| need.key() == row.key()) {
            row.first_seen_unix_nanos = known.first_seen_unix_nanos;
        }
    }
    rows
}

/// Makes one change to both sides.
fn edit_both(fleet: &mut Fleet, scenario: &mut Scenario, edit: &Edit) {
    match edit {
        Edit::Observe(machine) => {
            fleet.observe(machine).expect("a random machine is valid");
        }
        Edit::Remove(id) => {
            fleet.remove(id);
        }
        Edit::Replace { cluster, rows } => {
            let rows = with_kept_stamps(scenario, rows.clone());
            // Both ways in: made into numbers here, or beside the fleet.
            if rows.len().is_multiple_of(2) {
                fleet.replace(cluster, rows.clone(), 0).expect("a random roll-up is valid");
            } else {
                fleet.adopt(Draft::new(cluster, rows.clone()).expect("a random roll-up is valid"), 0);
            }
            apply(scenario, &Edit::Replace { cluster: cluster.clone(), rows });
            return;
        }
        Edit::Advance { .. } | Edit::SetOptions(_) => {}
    }
    apply(scenario, edit);
}

/// Runs a fleet through edits, a few at a time, and holds every cycle against the oracle.
fn agrees_after_edits(test: &str, size: Size, usual: u64, edits: usize) {
    for seed in seeds(usual) {
        let mut scenario = random_scenario(seed, size);
        let mut fleet = load(&scenario, ALONE).expect("a random scenario is valid");
        let edits = random_edits(seed ^ 0xED17, &scenario, edits);
        let mut batches = Seed::new(seed);
        let mut rest = &edits[..];
        loop {
            let decision = fleet.cycle(&engine_options(&scenario.options), scenario.now_unix_nanos);
            let ours = answer(&fleet, &decision);
            if let Some(found) = difference(&bigfleet_oracle::decide(&scenario), &ours) {
                let done = edits.len() - rest.len();
                let fresh = decide(&scenario, ALONE).expect("valid");
                let whose = if fresh == ours {
                    "the engine from scratch says the same"
                } else {
                    "only the cache is wrong"
                };
                let vector = as_vector("found/after-edits", "A random fleet after edits.", &scenario);
                panic!(
                    "seed {seed}, after {done} edits ({whose}): {found}\n{}\n{vector}",
                    repeat(test, seed)
                );
            }
            if rest.is_empty() {
                break;
            }
            let (batch, later) = rest.split_at((1 + batches.below(4) as usize).min(rest.len()));
            for edit in batch {
                edit_both(&mut fleet, &mut scenario, edit);
            }
            if batches.below(6) == 0 {
                fleet.compact();
            }
            rest = later;
        }
    }
}

#[test]
fn tiny_fleets_after_edits() {
    agrees_after_edits("tiny_fleets_after_edits", Size::Tiny, 3_000, 30);
}

#[test]
fn small_fleets_after_edits() {
    agrees_after_edits("small_fleets_after_edits", Size::Small, 600, 40);
}

#[test]
fn medium_fleets_after_edits() {
    agrees_after_edits("medium_fleets_after_edits", Size::Medium, 30, 40);
}

#[test]
fn a_fork_goes_its_own_way_and_leaves_the_original_alone() {
    for seed in seeds(300) {
        let scenario = random_scenario(seed, Size::Small);
        let mut fleet = load(&scenario, ALONE).expect("a random scenario is valid");
        let options = engine_options(&scenario.options);
        let decision = fleet.cycle(&options, scenario.now_unix_nanos);
        let before = answer(&fleet, &decision);
        let (mut fork, mut forked) = (fleet.fork(), scenario.clone());
        for edit in random_edits(seed, &scenario, 12) {
            edit_both(&mut fork, &mut forked, &edit);
        }
        let what_if = fork.cycle(&engine_options(&forked.options), forked.now_unix_nanos);
        let expected = bigfleet_oracle::decide(&forked);
        assert_eq!(difference(&expected, &answer(&fork, &what_if)), None, "{}", repeat("a_fork", seed));
        fleet.forget_cache();
        let again = fleet.cycle(&options, scenario.now_unix_nanos);
        assert_eq!(difference(&before, &answer(&fleet, &again)), None, "{}", repeat("a_fork", seed));
    }
}
