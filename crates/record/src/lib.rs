//! What a shard keeps on disk: the memory it must not lose, and the record of its decisions.
//!
//! ```text
//!   facts ───► Store ──► state.redb, epoch     durable before effects begin; one process at a time
//!   records ─► tape::Writer ──► 000001.bfr …   not synced per cycle; bounded by size, then age
//!                   tape::Reader ──► replay    the same decisions, bit for bit
//! ```
//!
//! The [`codec`] turns both into bytes. Neither clock nor network is needed here: times come in as arguments or lie in
//! the records.

pub mod codec;
mod recorded;
pub mod replay;
pub mod store;
pub mod tape;

pub use recorded::{Decided, NeedName, Recorded};
pub use store::{CommitError, FolderWatch, LostMemory, OpenError, Opened, Start, Store};
