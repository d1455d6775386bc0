//! What a provider is asked, in bytes, and what its answers mean.
//!
//! Nothing is retried here. The shard decides what to try again, with a new sequence number; whoever calls twice with one
//! number gets the call fenced off.

mod list;
mod listing;
mod request;
mod status;

pub use list::{Ask, Batch, ListCall, Lister};
pub use listing::{DigestKey, Listing, Part, Splitter, told};
pub use request::{Outgoing, Token, outgoing};
pub use status::{is_of_the_connection, is_too_large, meaning};
