//! Explanations in sentences: one file for each thing that can be asked about.

pub mod cluster;
pub mod cost;
pub mod decision;
pub mod machine;
pub mod need;
mod origin;
pub mod preemption;
pub mod why_not;
