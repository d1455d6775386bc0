//! One decision cycle as a file.
//!
//! A [`Scenario`] is everything a cycle looks at: a fleet, a demand, the options and the instant. An
//! [`Answer`] is everything it must answer. Both have a JSON form, the one of the decision vectors under
//! `tests/vectors/`, so that examples can be read by people, compared with other engines, and written by a
//! failing test.

pub mod answer;
pub mod input;
pub mod options;
pub mod seed;
pub mod vectors;

pub use answer::Answer;
pub use options::CycleOptions;

use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;

/// Everything one cycle looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The instant idle holds are measured against.
    pub now_unix_nanos: i64,
    /// The options of the cycle.
    pub options: CycleOptions,
    /// The fleet.
    pub machines: Vec<Machine>,
    /// The demand.
    pub needs: Vec<Need>,
}
