//! Steady demand ends in silence, and in silence nobody is short beside what a lesser need holds.
//!
//! `BIGFLEET_SEEDS=FIRST..LAST` tries other seeds than the usual ones; a failure prints the line to repeat it and
//! the smallest world that fails. `BIGFLEET_LATE=CYCLES` asks for less patience than usual.

use std::fmt::Write;
use std::ops::Range;

use bigfleet_oracle::{Course, Steady, as_vector, decide, inversions, shrink};
use bigfleet_scenario::Scenario;

/// How many cycles after the last thing the world owed everything must rest.
const MOST_CYCLES_LATE: usize = 10;

fn seeds(usual: u64) -> Range<u64> {
    let Ok(asked) = std::env::var("BIGFLEET_SEEDS") else { return 0..usual };
    let (first, last) = asked.split_once("..").expect("BIGFLEET_SEEDS is FIRST..LAST");
    first.parse().expect("the first seed is a number")..last.parse().expect("the last seed is a number")
}

/// What is wrong with how a world went.
fn breach(world: &Steady, course: &Course, most_cycles_late: usize) -> Option<String> {
    match world.late(course) {
        None => return Some("does not rest".into()),
        Some(late) if late > most_cycles_late => return Some(format!("rests {late} cycles late")),
        Some(_) => {}
    }
    inversions(&course.end, &course.answer).into_iter().next()
}

/// The smallest world that goes as wrong, what it does cycle by cycle, and how to see it again.
fn report(seed: u64, world: &Steady, most_cycles_late: usize) -> String {
    let wrong = |scenario: &Scenario| {
        let world = world.with(scenario.clone());
        breach(&world, &world.run(decide), most_cycles_late)
    };
    let mut text = String::new();
    if wrong(&world.later).is_some() {
        let small = shrink(world.later.clone(), |candidate| wrong(candidate).is_some());
        let breach = wrong(&small).expect("shrinking keeps the failure");
        let world = world.with(small.clone());
        for (cycle, actions) in world.run(decide).actions.iter().enumerate().filter(|(_, a)| !a.is_empty()) {
            let told = actions.iter().map(|a| format!("{:?} {} {:?}", a.kind, a.machine, a.need));
            writeln!(text, "cycle {cycle}: {}", told.collect::<Vec<_>>().join(", ")).expect("text");
        }
        let Steady { latencies, carries_on, parks, change_at, .. } = &world;
        writeln!(text, "{latencies:?}, carries on {carries_on}, parks {parks}, changes at {change_at}")
            .expect("text");
        text.push_str(&as_vector("found/steady", &breach, &small));
    }
    format!(
        "{text}\nseed {seed}; repeat with: BIGFLEET_SEEDS={seed}..{} cargo test -p bigfleet-oracle --test steady",
        seed + 1
    )
}

#[test]
fn steady_demand_comes_to_rest_without_inversion() {
    let seeds = seeds(600);
    let count = seeds.end - seeds.start;
    let most: usize = std::env::var("BIGFLEET_LATE")
        .map_or(MOST_CYCLES_LATE, |text| text.parse().expect("a number of cycles"));
    let mut delays: Vec<usize> = Vec::new();
    let mut failures = Vec::new();
    for seed in seeds {
        let world = Steady::of_seed(seed);
        let course = world.run(decide);
        if let Some(late) = world.late(&course) {
            delays.push(late);
            if late > 3 {
                eprintln!("seed {seed} rests {late} cycles late");
            }
        }
        if let Some(breach) = breach(&world, &course, most) {
            failures.push(format!("{breach}\n{}", report(seed, &world, most)));
        }
    }
    let within = |cycles| 100.0 * delays.iter().filter(|late| **late <= cycles).count() as f64 / count as f64;
    eprintln!(
        "{count} worlds; at rest after 3 cycles {:.1} %, 10 {:.1} %, 40 {:.1} %",
        within(3),
        within(10),
        within(40)
    );
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
