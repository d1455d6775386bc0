//! Every scenario of the library does what it says, holds every invariant and is the same twice.

use bigfleet_sim::{Setup, library, run};

/// Played in full by hand (`bigfleet sim run`), and here only for its first minutes: a day of 5,000 machines.
const LARGE: &[&str] = &["day-of-5000"];

fn play(part: usize, parts: usize) {
    let mut failures = Vec::new();
    let each = library::all().filter(|scenario| !LARGE.contains(&scenario.name.as_str()));
    for scenario in each.enumerate().filter(|(index, _)| index % parts == part).map(|(_, scenario)| scenario)
    {
        let outcome = run(&scenario, Setup::default());
        failures.extend(outcome.missed.iter().map(|missed| format!("{}: {missed}", scenario.name)));
        failures.extend(outcome.violations.iter().map(|violation| format!("{}: {violation}", scenario.name)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_first_half_is_as_expected() {
    play(0, 2);
}

#[test]
fn the_second_half_is_as_expected() {
    play(1, 2);
}

#[test]
fn the_large_one_begins_well() {
    let mut scenario = library::find(LARGE[0]).expect("it is in the library");
    scenario.lasts = "10m".parse().expect("a span");
    scenario.expect.clear();
    let outcome = run(&scenario, Setup::default());
    assert_eq!(outcome.violations, []);
    assert_eq!((outcome.summary.pods_pending, outcome.summary.shortfalls), (0, 0));
    assert!(outcome.summary.configured > 1500, "{:?}", outcome.summary);
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    for name in ["answers-lost", "zone-outage", "restart-at-every-step", "small-days"] {
        let mut scenario = library::find(name).expect("it is in the library");
        scenario.lasts = scenario.lasts.min("3h".parse().expect("a span"));
        let trace = |seed| {
            let scenario = bigfleet_sim::Scenario { seed, ..scenario.clone() };
            run(&scenario, Setup { keep_trace: true, ..Setup::default() }).trace.expect("it was kept")
        };
        assert_eq!(trace(7), trace(7), "{name}");
    }
    let mut scenario = library::find("answers-lost").expect("it is in the library");
    let first = run(&scenario, Setup::default()).digest;
    scenario.seed += 1;
    assert_ne!(run(&scenario, Setup::default()).digest, first, "another seed is another run");
}
