//! Seeded generators of the fleets the benchmarks run on.

mod amount;
mod archetype;
mod ask;
mod catalogue;
mod deal;
mod demand;
mod fleet;
mod floor;
mod ground;
mod offer;
pub mod place;
mod scarce;
mod sets;
mod settle;
pub mod shape;
mod terms;

use bigfleet_scenario::Scenario;

pub use shape::Shape;

/// The instant of every generated scenario.
pub const NOW_UNIX_NANOS: i64 = 1_800_000_000_000_000_000;

/// Which fleet of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Cold,
    Scarce,
}

/// The fleet of a shape, with nine tenths and more of the demand already served.
pub fn generate(shape: Shape, seed: u64) -> Scenario {
    fleet::make(shape, seed, Variant::Cold)
}

/// The fleet of a shape with twice as much demand as supply; a fifth of the needs may preempt.
pub fn scarce(shape: Shape, seed: u64) -> Scenario {
    fleet::make(shape, seed, Variant::Scarce)
}
