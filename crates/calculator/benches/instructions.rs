//! One cycle to be counted instruction by instruction: `scripts/count-instructions quiet|churn SHAPE`.
//!
//! Instructions do not depend on what else the machine is doing, so they can be compared between commits.

use bigfleet_calculator::{engine_options, load};
use bigfleet_engine::{Fleet, Options, Parallelism};
use bigfleet_shapes::{Change, Shape, churn, generate};

/// What callgrind counts.
#[inline(never)]
fn measured_cycle(fleet: &mut Fleet, options: &Options, now_unix_nanos: i64) -> usize {
    fleet.cycle(options, now_unix_nanos).actions.len()
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (Some(cycle), Some(shape)) = (arguments.next(), arguments.next()) else {
        // Without a question (as `cargo bench` runs it) there is nothing to count.
        eprintln!("usage: scripts/count-instructions quiet|churn 5k|50k|500k");
        return;
    };
    let shape: Shape = shape.parse().expect("a shape is 5k, 50k or 500k");
    let scenario = generate(shape, 1);
    let options = engine_options(&scenario.options);
    let mut fleet = load(&scenario, Parallelism::default()).expect("a generated scenario is valid");
    let before = fleet.cycle(&options, scenario.now_unix_nanos).actions.len();
    if cycle == "churn" {
        for change in churn(&scenario, 1, 0.001) {
            match change {
                Change::Machine(machine) => assert!(fleet.observe(&machine).is_ok()),
                Change::Needs { cluster, rows } => {
                    assert!(fleet.replace(&cluster, rows, scenario.now_unix_nanos).is_ok());
                }
            }
        }
    }
    let after = measured_cycle(&mut fleet, &options, scenario.now_unix_nanos);
    assert!(cycle == "churn" || after == before, "a quiet cycle repeats the last answer");
    eprintln!("{cycle} {shape}: {after} actions");
}
