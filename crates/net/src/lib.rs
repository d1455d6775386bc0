//! What every server and client of BigFleet shares, so that it is right once.
//!
//! * [`Clock`]: time, passed in. Whoever waits or measures asks one.
//! * [`TlsFiles`]: certificate, key and CA as files, the leaf read again when it changes, for both directions.
//! * [`CallLayer`]: connections accepted, plain or TLS, never more than a fixed number, each of which says who it is:
//!   [`Peer`]; and calls that must say what they want in time, and whose bytes in flight are bounded.
//! * [`pages`]: the same for servers of pages, and for small questions over HTTP.
//! * [`Backoff`]: how long to wait before trying again.
//! * [`dial`]: a channel to a server that connects when it is needed.
//! * [`Role`]: who a certificate says its holder is.
//! * [`http`]: the small port for metrics and for the two questions an orchestrator asks.
//!
//! Absent on purpose: what is served. That is for the crates that use this one.

mod accept;
mod backoff;
mod budget;
mod calls;
mod clock;
mod connection;
mod descriptors;
mod dial;
pub mod http;
mod identity;
pub mod pages;
mod reflection;
mod tls;

pub use backoff::Backoff;
pub use budget::{Budget, InFlight, Lease, OverBudget, Purse};
pub use calls::{CallLayer, Calls};
pub use clock::{Clock, Sleep, SystemClock, VirtualClock, nanos};
pub use connection::{Connection, Cut, Peer, Seat};
pub use descriptors::descriptors;
pub use dial::{DialError, dial};
pub use identity::{IdentityError, Role};
pub use reflection::{reflection, until};
pub use tls::{TlsError, TlsFiles};
