//! Steady demand ends in silence, and in silence nobody is short beside what a lesser need holds.
//!
//! `BIGFLEET_SEEDS=FIRST..LAST` tries other seeds than the usual ones; a failure prints the line to repeat it.

use std::ops::Range;

use bigfleet_oracle::{Steady, decide, inversions};

/// How many cycles after the last thing the world owed everything must rest.
const MOST_CYCLES_BEYOND: usize = 40;

fn seeds(usual: u64) -> Range<u64> {
    let Ok(asked) = std::env::var("BIGFLEET_SEEDS") else { return 0..usual };
    let (first, last) = asked.split_once("..").expect("BIGFLEET_SEEDS is FIRST..LAST");
    first.parse().expect("the first seed is a number")..last.parse().expect("the last seed is a number")
}

#[test]
fn steady_demand_comes_to_rest_without_inversion() {
    let seeds = seeds(600);
    let mut beyond: Vec<usize> = Vec::new();
    let mut failures = Vec::new();
    for seed in seeds.clone() {
        let world = Steady::of_seed(seed);
        let course = world.run(decide);
        let repeat = format!(
            "seed {seed}; repeat with: BIGFLEET_SEEDS={seed}..{} cargo test -p bigfleet-oracle --test steady",
            seed + 1
        );
        let Some(rest) = course.rests_from() else {
            failures.push(format!("no rest, actions by cycle {:?}, {repeat}", course.actions));
            continue;
        };
        let late = rest.saturating_sub(world.owed_until(&course));
        if late > MOST_CYCLES_BEYOND {
            failures.push(format!("rests {late} cycles late, {repeat}"));
        }
        beyond.push(late);
        for inversion in inversions(&course.end, &course.answer) {
            failures.push(format!("{inversion}, {repeat}"));
        }
    }
    let within = |cycles: usize| {
        100.0 * beyond.iter().filter(|late| **late <= cycles).count() as f64
            / (seeds.end - seeds.start) as f64
    };
    println!(
        "{} worlds; at rest after 3 cycles {:.1} %, 10 {:.1} %, 40 {:.1} %",
        seeds.end - seeds.start,
        within(3),
        within(10),
        within(40)
    );
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
