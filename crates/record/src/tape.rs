//! The decision record on disk: a folder of segments, each begun with a full state.
//!
//! ```text
//!   000041.bfr   bigfleet tape 1⏎ | options | full | changes | changes | full | changes …
//!   000042.bfr   bigfleet tape 1⏎ | options | full | changes | options | changes …
//! ```
//!
//! A frame is a head (sizes, cycle, time, checksums) and a compressed piece of the [`codec`](crate::codec). Heads have
//! a checksum of their own, so that looking for a cycle hops from head to head without reading what lies between.
//! Records point at the options they ran with, which hardly ever change.
//!
//! The tape is not what a shard lives on; the store is. So it is synced when a segment is full and at the end, not every
//! cycle: a killed process loses nothing, a power loss may lose the last seconds. A torn tail is cut off when the tape
//! is next written, and reported. A damaged frame costs the rest of its segment and nothing else, because the next
//! segment begins with a full state.

mod error;
mod frame;
mod reader;
mod segment;
mod writer;

pub use error::{AppendError, Damage, TapeError};
pub use reader::{Entry, Reader, Records};
pub use writer::{Limits, Writer};
