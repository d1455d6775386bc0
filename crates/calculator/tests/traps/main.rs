//! Mistakes an engine like this one has made before, one test each.
//!
//! Each test is named after the mistake and builds the smallest fleet on which making it would show. What is
//! expected is exact: every action, in order. The oracle is asked as well, so that a case here cannot enshrine
//! a reading of the rules that the rest of the tests do not share.

mod allocations;
mod build;
mod change;
mod cost;
mod determinism;
mod gangs;
mod preemption;
mod supply;
