//! What every server and client of BigFleet shares, so that it is right once.
//!
//! * [`Clock`]: time, passed in. Whoever waits or measures asks one.
//! * [`TlsFiles`]: certificate, key and CA as files, the leaf read again when it changes, for both directions.
//! * [`incoming`]: connections accepted, plain or TLS, never more than a fixed number; each says who it is: [`Peer`].
//! * [`CallLayer`]: calls that must say what they want in time, and whose bytes in flight are bounded.
//! * [`dial`]: a channel to a server that connects when it is needed.
//! * [`Role`]: who a certificate says its holder is.
//! * [`http`]: the small port for metrics and for the two questions an orchestrator asks.
//!
//! Absent on purpose: what is served. That is for the crates that use this one.

mod accept;
mod budget;
mod calls;
mod clock;
mod descriptors;
mod dial;
pub mod http;
mod identity;
mod patient;
mod reflection;
mod tls;

pub use accept::{Connection, Cut, Peer, Seat, Ticket, incoming};
pub use budget::{Budget, InFlight, Lease, OverBudget, Purse};
pub use calls::{CallLayer, Calls};
pub use clock::{Clock, Sleep, SystemClock, VirtualClock, nanos};
pub use descriptors::descriptors;
pub use dial::{DialError, dial};
pub use identity::{IdentityError, Role};
pub use reflection::{reflection, until};
pub use tls::{TlsError, TlsFiles};
