//! Drives a shard over real sockets and a real disk.
//!
//! ```text
//!                 ┌──────────────── inputs, one bounded queue ────────────────┐
//!   operators ──► sessions                                                    ▼
//!   people ─────► view ──────────────────────────────────────────────► core thread: Shard
//!                 ▲                                                           │ steps
//!                 └── frames ◄── committer thread: facts to disk, then ◄──────┘
//!   providers ◄────── calls ◄──  effects, in order ──► recorder thread: decision record
//! ```
//!
//! What is read and written, and what it means, is in `bigfleet-border`, which the simulator runs as well; here are the
//! sockets and the threads.
//!
//! Three threads own what must have one owner: the shard, the store, the record. Everything that waits for a socket is a
//! task and owns nothing. Every queue has a bound, and nobody who is slow is waited for by anybody but himself.
//!
//! [`start`] brings up a whole server. Time comes from the [`Clock`](bigfleet_net::Clock) it is given.

mod commit;
mod coordinator;
mod core;
mod hands;
mod laps;
mod metrics;
mod pace;
mod provider;
mod raw;
mod ready;
mod recorder;
mod server;
mod session;
mod settings;
pub mod telemetry;
mod view;

pub use commit::KeepError;
pub use core::{Core, Gone};
pub use metrics::specimen as metrics_specimen;
pub use server::{Running, start};
pub use settings::{Keep, ProviderAddress, Reporting, RunError, Settings, StartError};
