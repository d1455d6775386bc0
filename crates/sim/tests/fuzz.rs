//! Random worlds hold every invariant and come to rest, and planted bugs are found.

use bigfleet_sim::{Planted, Setup, fuzz, soak};

fn seeds(seeds: std::ops::Range<u64>) {
    let found = seeds.filter_map(|seed| fuzz::run_seed(seed, None));
    let failures: Vec<String> =
        found.map(|found| format!("seed {}: {}", found.seed, found.violation)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn random_worlds_hold_and_settle_first_quarter() {
    seeds(1..250);
}

#[test]
fn random_worlds_hold_and_settle_second_quarter() {
    seeds(250..500);
}

#[test]
fn random_worlds_hold_and_settle_third_quarter() {
    seeds(500..750);
}

#[test]
fn random_worlds_hold_and_settle_fourth_quarter() {
    seeds(750..1000);
}

/// What these seeds found is in docs/bugs.md.
#[test]
fn worlds_that_failed_once_hold() {
    for seed in [1_053, 1_638, 2_418, 2_521, 4_726] {
        seeds(seed..seed + 1);
    }
}

#[test]
fn a_failing_world_is_made_small_and_still_fails() {
    let found =
        (1..20).find_map(|seed| fuzz::run_seed(seed, Some(Planted::FixedDeleted))).expect("a seed fails");
    let small = fuzz::shrink(&found);
    assert_eq!(small.violation.number, found.violation.number);
    assert!(small.scenario.faults.is_empty(), "no fault is needed for this one: {:?}", small.scenario.faults);
    let machines =
        |scenario: &bigfleet_sim::Scenario| scenario.fleet.iter().map(|pool| pool.count).sum::<usize>();
    assert!(machines(&small.scenario) < machines(&found.scenario));
    let again = bigfleet_sim::Scenario::from_json(&small.scenario.to_json()).expect("the file is good");
    let outcome =
        bigfleet_sim::run(&again, Setup { planted: Some(Planted::FixedDeleted), ..Setup::default() });
    assert!(outcome.violations.iter().any(|violation| violation.number == found.violation.number));
}

/// A quarter of the hundred simulated days that every change must survive.
fn soak_days(first_seed: u64) {
    let soak = soak::soak(25.0, first_seed, &mut |_, _| {});
    let failures: Vec<String> =
        soak.found.iter().map(|found| format!("seed {}: {}", found.seed, found.violation)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(soak.days >= 25.0 && soak.actions > 0);
}

#[test]
fn a_hundred_days_first_quarter() {
    soak_days(1_000);
}

#[test]
fn a_hundred_days_second_quarter() {
    soak_days(2_000);
}

#[test]
fn a_hundred_days_third_quarter() {
    soak_days(3_000);
}

#[test]
fn a_hundred_days_fourth_quarter() {
    soak_days(4_000);
}
