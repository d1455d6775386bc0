//! A quarter of a million requests: what they weigh, and how long a roll-up takes when one in a hundred changed.
//!
//! `cargo bench -p bigfleet-operator`. Fails if the work was not done; the bars are printed beside the figures.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::time::{Duration, Instant};

use bigfleet_operator::ask::{Asked, Expression};
use bigfleet_operator::demand::Demand;

const REQUESTS: usize = 250_000;
const PROFILES: usize = 2_000;
const SHAPES: usize = 40;
const CHANGED: usize = REQUESTS / 100;
const ROUNDS: usize = 20;

fn asked(number: usize, shape: usize) -> Asked {
    let profile = number % PROFILES;
    let requirement =
        |key: &str, value: String| Expression { key: key.into(), operator: "In".into(), values: vec![value] };
    Asked {
        namespace: format!("team-{}", profile % 50),
        requirements: vec![
            requirement("topology.kubernetes.io/zone", format!("zone-{}", profile % 3)),
            requirement("example.org/pool", format!("pool-{profile}")),
        ],
        resources: vec![
            ("cpu".into(), format!("{}m", 100 + 50 * (shape % SHAPES))),
            ("memory".into(), format!("{}Mi", 128 + 64 * (shape % SHAPES))),
        ],
        priority: i32::try_from(profile % 5).expect("below five") * 1_000,
        interruption_penalty: Some("2".into()),
        ..Asked::default()
    }
}

fn name(number: usize) -> String {
    format!("team-{}/cr-6f1b2c3d-0000-4000-8000-{number:012}", number % 50)
}

/// Resident memory in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
fn now() -> Instant {
    Instant::now()
}

/// Time this thread has spent on a processor, where the system tells: indifferent to what else the machine does.
fn worked() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn main() {
    let before = resident();
    let begun = now();
    let mut demand = Demand::new("shop");
    for number in 0..REQUESTS {
        demand.put(&name(number), &asked(number, number / PROFILES)).expect("good");
    }
    let filled = now() - begun;
    assert_eq!(demand.rollup(|_| None).len(), PROFILES);
    let weight = resident() - before;
    println!(
        "{REQUESTS} requests in {PROFILES} rows: {} ms to take in, {} MB (bar 300)",
        filled.as_millis(),
        weight >> 20
    );

    let (mut taking, mut building) = (Vec::new(), Vec::new());
    let (mut cpu_taking, mut cpu_building) = (Duration::ZERO, Duration::ZERO);
    for round in 1..=ROUNDS {
        let (begun, cpu_begun) = (now(), worked());
        for changed in 0..CHANGED {
            let number = (changed * 101 + round * 7) % REQUESTS;
            demand.put(&name(number), &asked(number, number / PROFILES + round)).expect("good");
        }
        let (taken, cpu_taken) = (now(), worked());
        let revision = demand.revision();
        let rows = demand.rollup(|_| None);
        building.push(now() - taken);
        if let (Some(begun), Some(taken), Some(built)) = (cpu_begun, cpu_taken, worked()) {
            cpu_taking += taken.checked_sub(begun).unwrap();
            cpu_building += built.checked_sub(taken).unwrap();
        }
        taking.push(taken - begun);
        assert_eq!((rows.len(), demand.len()), (PROFILES, REQUESTS));
        assert!(revision > 0, "the demand changed");
    }
    building.sort();
    taking.sort();
    println!(
        "1 % changed: taking the changes in {:.2} ms, building the roll-up {:.2} ms (bar 50); median of {ROUNDS}, worst {:.2} ms",
        taking[ROUNDS / 2].as_secs_f64() * 1e3,
        building[ROUNDS / 2].as_secs_f64() * 1e3,
        building[ROUNDS - 1].as_secs_f64() * 1e3,
    );
    println!(
        "on the processor, mean of {ROUNDS}: taking the changes in {:.2} ms, building the roll-up {:.2} ms",
        cpu_taking.as_secs_f64() * 1e3 / ROUNDS as f64,
        cpu_building.as_secs_f64() * 1e3 / ROUNDS as f64,
    );
}
