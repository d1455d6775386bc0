//! Holds a provider of machines against the contract `bigfleet.v1alpha1`, from outside.
//!
//! The suite is a client and nothing more: whoever serves `CapacityProvider` at an address can be examined,
//! in whatever language it is written. Each [`Behaviour`] has an id that never changes, a sentence about what
//! is looked at and one about what it means when it is missing. [`run`] tries them and gives a [`Report`].
//!
//! Three rules keep a verdict honest:
//!
//! * nothing is assumed about the inventory: machines are found by List, and each is used by one check at a time;
//! * a check that could not be carried out is *skipped*, with the reason, and never counts as passed;
//! * time decides nothing, except that an answer which does not come at all is a failure.
//!
//! Do not point it at machines that are needed: it creates, binds, drains and deletes.

mod behaviour;
mod calls;
mod catalogue;
mod checks;
pub mod cli;
mod clock;
mod config;
mod context;
mod latency;
mod moves;
mod random;
mod raw;
mod reference;
pub mod report;
mod restart;
mod runner;
mod scenes;
mod supply;
mod target;
mod verdict;

pub use behaviour::{Behaviour, Group, Level};
pub use catalogue::{catalogue, markdown};
pub use config::{Config, Limits, Selection, Tls};
pub use latency::Latency;
pub use report::{CheckResult, Outcome, Report};
pub use restart::{Restart, Restarter};
pub use runner::{Observer, Silent, run};
pub use target::CannotRun;
pub use verdict::Failure;
