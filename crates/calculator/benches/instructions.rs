//! One piece of work to be counted instruction by instruction: `scripts/count-instructions WORK SHAPE`.
//!
//! Instructions do not depend on what else the machine is doing, so they can be compared between commits. Only what happens in functions
//! whose name begins with `measured_` is counted.

#[path = "shared/bed.rs"]
#[allow(dead_code, reason = "each benchmark uses its part")]
mod bed;

use std::hint::black_box;

use bed::Bed;
use bigfleet_engine::{Fleet, Parallelism};
use bigfleet_model::machine::Machine;
use bigfleet_shapes::{Change, Shape, churn, generate, scarce, storm};

const WORK: &str = "quiet|churn|first|cold|storm|scarce|settled|settled-apply|list|unchanged|limit";
/// How often everything is carried out before a fleet counts as settled.
const ROUNDS_TO_REST: usize = 120;

#[inline(never)]
fn measured_cycle(bed: &mut Bed) -> usize {
    bed.cycle().actions.len()
}

#[inline(never)]
fn measured_apply(bed: &mut Bed, changes: &[Change]) {
    bed.apply(changes);
}

#[inline(never)]
fn measured_list(fleet: &mut Fleet, machines: &[Machine]) {
    // No closure: it would bear this function's name and switch counting off again.
    for machine in machines {
        fleet.observe(machine).expect("a generated machine is valid");
    }
}

#[inline(never)]
fn measured_limit(fleet: &Fleet) -> f64 {
    black_box(fleet.read_every_row())
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (Some(work), Some(shape)) = (arguments.next(), arguments.next()) else {
        // Without a question (as `cargo bench` runs it) there is nothing to count.
        eprintln!("usage: scripts/count-instructions {WORK} SHAPE");
        return;
    };
    let shape: Shape = shape.parse().unwrap_or_else(|unknown| panic!("{unknown}"));
    let scenario = if work == "scarce" { scarce(shape, 1) } else { generate(shape, 1) };
    let mut bed = Bed::new(&scenario, Parallelism::default());
    let done = match work.as_str() {
        "first" => measured_cycle(&mut bed),
        "quiet" => {
            let before = bed.cycle().actions.len();
            let after = measured_cycle(&mut bed);
            assert_eq!(after, before, "a quiet cycle repeats the last answer");
            after
        }
        "cold" | "scarce" => {
            bed.cycle();
            bed.fleet.forget_cache();
            measured_cycle(&mut bed)
        }
        "churn" | "storm" => {
            bed.cycle();
            let changes = if work == "churn" { churn(&scenario, 1, 0.001) } else { storm(&scenario, 1) };
            bed.apply(&changes);
            measured_cycle(&mut bed)
        }
        "settled" | "settled-apply" => {
            let (rounds, left) = bed.settle(ROUNDS_TO_REST);
            eprintln!("{rounds} rounds, {left} left");
            let machines = bed.machines.values().cloned().collect();
            let changes = churn(&bigfleet_scenario::Scenario { machines, ..scenario }, 1, 0.001);
            if work == "settled" {
                bed.apply(&changes);
                measured_cycle(&mut bed)
            } else {
                measured_apply(&mut bed, &changes);
                bed.cycle().actions.len()
            }
        }
        "list" | "unchanged" => {
            let mut fleet = Fleet::default();
            if work == "unchanged" {
                scenario.machines.iter().for_each(|machine| assert!(fleet.observe(machine).is_ok()));
            }
            measured_list(&mut fleet, &scenario.machines);
            fleet.machine_count()
        }
        "limit" => {
            bed.cycle();
            assert!(measured_limit(&bed.fleet) > 0.0, "machines cost something");
            bed.machines.len()
        }
        other => panic!("there is no work {other:?}; it is one of {WORK}"),
    };
    assert!(done > 0 || work == "quiet", "nothing was done");
    eprintln!("{work} {shape}: {done} actions or machines");
}
