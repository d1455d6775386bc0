//! What the programs of BigFleet that run in a cluster share.
//!
//! * [`Connection`]: how the API server is reached, from inside a cluster or with a kubeconfig.
//! * [`Election`]: one of several replicas does the work, by a Lease.
//! * [`Announcement`]: an Event on an object, told once however often it is said.
//! * [`install`]: makes a server know our custom resources.
//! * [`pod_requests`]: what a pod takes of its node.
//! * [`server_unix_nanos`]: what time the API server has.

mod amounts;
mod connect;
mod election;
mod event;
mod install;
mod time;
mod watch;

pub use amounts::{Amounts, Unread, pod_requests};
pub use connect::{ConnectError, Connection};
pub use election::{Election, ElectionSettings, Timing};
pub use event::{Announcement, Severity, announce};
pub use install::{InstallError, install, server_version};
pub use time::{micro_time, server_unix_nanos, time, unix_nanos};
pub use watch::watch_cause;
