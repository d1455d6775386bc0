//! The pod controller: every pod that asks for capacity has exactly one CapacityRequest, for as long as it lives.
//!
//! * [`translate`]: a pod's demand as a request. Pure; a preview uses it too.
//! * `ledger`: which pods and requests there are, and what follows. Pure.
//! * [`run`]: watches, carries out what follows, and tells people.
//!
//! A request is named after its pod's UID. So two replicas, a restart or a cache that lags behind write the same object
//! and never a second one.

mod controller;
mod ledger;
mod metrics;
mod object;
mod replica;
pub mod translate;
mod write;

pub use metrics::specimen as metrics_specimen;
pub use object::request_name;
pub use replica::{Running, Settings, StartError, run};
