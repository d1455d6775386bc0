//! Runs a coordinator: a replica over a store, and the services that shards, people and tools call.
//!
//! What is decided is in `bigfleet-coordinator`; here is what waits. One task owns the fleet ([`start`]); calls, the election
//! and the store's watch are tasks that own nothing. Every queue has a bound.

mod convert;
mod export;
mod gate;
mod metrics;
mod replica;
mod server;
mod service;
pub mod snapshot;
pub mod store;

pub use export::Export;
pub use metrics::specimen as metrics_specimen;
pub use replica::ReplicaError;
pub use server::{Running, Settings, StartError, start, start_by};
pub use service::LEADER_HEADER;
