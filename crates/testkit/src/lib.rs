//! What tests of several crates need, so that each of them does not write its own. Never shipped.

mod disk;

pub use disk::{Disk, Fault};
