//! Fuzzing the world: a random fleet, load and set of faults per seed.
//!
//! Each run has two halves. In the first, faults come and go and the invariants are checked at every step. Then all
//! faults are lifted and the load stands still: all that is wanted must be there or be stated as missing, and nothing
//! may move any more.

mod shrink;
mod worlds;

use crate::invariant::Violation;
use crate::planted::Planted;
use crate::run::{Outcome, outcome};
use crate::scenario::Scenario;
use crate::world::{Setup, World};

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

/// Plays both halves of a world; the first thing that did not hold, and how many steps it took.
fn first_violation(scenario: &Scenario, planted: Option<Planted>) -> (Option<Violation>, u64) {
    let outcome = play(scenario, Setup { planted, ..Setup::default() });
    (outcome.violations.into_iter().next(), outcome.summary.steps)
}

/// Plays both halves of a world, up to the first thing that does not hold.
pub fn play(scenario: &Scenario, setup: Setup) -> Outcome {
    let mut world = World::new(scenario, setup);
    world.stop_at_first();
    world.run();
    outcome(scenario, &world)
}
