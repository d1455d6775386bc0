//! The whole system under a seed.
//!
//! The real shard, the real engine and a real provider made with the kit run in one process and in virtual time, against
//! model clusters that own pods and run a scheduler. Every fault of the world is injected from a seed; the same seed
//! gives the same trace, byte for byte.
//!
//! ```text
//!   scenario file ──► World ──► clusters: pods, scheduler, operator ──┐ roll-ups, blobs, acks
//!                       │                                             ▼
//!                       ├─────► host: Shard + its disk ──► calls ──► link (faults) ──► cloud: provider kit
//!                       └─────► watch: invariants, trace, money, counts
//! ```
//!
//! Read [`Scenario`] for what can be said, [`World`] for how time passes, `invariant` for what must hold.

pub mod cli;
mod cloud;
mod cluster;
pub mod fuzz;
mod invariant;
pub mod library;
mod planted;
mod present;
mod random;
mod run;
mod scenario;
pub mod soak;
pub mod svg;
mod trace;
mod world;

pub use bigfleet_provider_sim::Span;
pub use cluster::Pods as ClusterPods;
pub use invariant::{INVARIANTS, PANIC, Violation};
pub use planted::Planted;
pub use present::{Ahead, Present, PresentError, Standing};
pub use random::Random;
pub use run::{Missed, Outcome, Summary, run};
pub use scenario::{
    CODES, Call, Cluster, Council, CouncilFault, CouncilOrder, Curve, Dwell, Expect, Fault, Lie, Machines,
    Measure, Ordered, Pods, Point, Problem, Problems, RACK, Requirement, Scenario, ShardSetup, Spread,
    StartState, Trust, What, Work, Wrong,
};
pub use trace::Trace;
pub use world::{Money, Point as PicturePoint, START_UNIX_NANOS, Setup, World};
