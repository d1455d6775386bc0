//! Fuzzing the world: a random fleet, load and set of faults per seed.
//!
//! Each run has two halves. In the first, faults come and go and the invariants are checked at every step. Then all
//! faults are lifted and the load stands still: all that is wanted must be there or be stated as missing, and nothing
//! may move any more.

mod councils;
mod shrink;
mod worlds;

use crate::invariant::Violation;
use crate::planted::Planted;
use crate::run::{Outcome, outcome};
use crate::scenario::Scenario;
use crate::world::{Setup, World};

pub use councils::{council_of, deposed, outranked, skewed};
pub use shrink::shrink;
pub use worlds::{long_world_of, world_of};

/// A world in which something did not hold.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its seed.
    pub seed: u64,
    /// What did not hold.
    pub violation: Violation,
    /// The world.
    pub scenario: Scenario,
    /// The bug that was planted, if one was.
    pub planted: Option<Planted>,
}

/// Plays the world of a seed; what did not hold, if anything.
pub fn run_seed(seed: u64, planted: Option<Planted>) -> Option<Found> {
    let scenario = world_of(seed);
    let (violation, _) = first_violation(&scenario, planted);
    Some(Found { seed, violation: violation?, scenario, planted })
}

/// Plays the world of a seed to its end; all that did not hold, at most two of each kind.
pub fn run_seed_through(seed: u64, planted: Option<Planted>) -> Vec<Violation> {
    let scenario = world_of(seed);
    let played = caught(|| crate::run::run(&scenario, Setup { planted, ..Setup::default() }).violations);
    played.unwrap_or_else(|panic| vec![panic])
}

/// Plays the world of a seed in which several shards have a coordinator; all that did not hold, at most two of each kind.
pub fn run_council(seed: u64, planted: Option<Planted>) -> Vec<Violation> {
    let scenario = council_of(seed);
    let played = caught(|| crate::run::run(&scenario, Setup { planted, ..Setup::default() }).violations);
    played.unwrap_or_else(|panic| vec![panic])
}

/// Plays both halves of a world; the first thing that did not hold, and how many steps it took.
fn first_violation(scenario: &Scenario, planted: Option<Planted>) -> (Option<Violation>, u64) {
    match caught(|| play(scenario, Setup { planted, ..Setup::default() })) {
        Ok(outcome) => (outcome.violations.into_iter().next(), outcome.summary.steps),
        Err(panic) => (Some(panic), 0),
    }
}

/// Runs something that may panic. A panic is a finding like any other: it has a seed, and a world to make smaller.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Violation> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        let text = format!("panicked: {}", text.unwrap_or_else(|| "without a word".into()));
        Violation { at: 0, number: 0, name: crate::invariant::PANIC, text }
    })
}

/// Plays both halves of a world, up to the first thing that does not hold.
pub fn play(scenario: &Scenario, setup: Setup) -> Outcome {
    let mut world = World::new(scenario, setup);
    world.stop_at_first();
    world.run();
    outcome(scenario, &world)
}
