//! The shard as this crate needs it: somebody who owns it and lets others ask.
//!
//! A shard lives on a thread of its own. Whoever runs it implements [`Shards`]; everything here reaches it through short
//! closures, and works out whatever takes longer on a fork, elsewhere.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use bigfleet_net::Clock;
use bigfleet_shard::{Shard, Step};
use thiserror::Error;
use tokio::sync::watch;
use tonic::Status;

/// Whoever runs a shard.
pub trait Shards: Send + Sync + 'static {
    /// Lets somebody look at the shard, on its own thread, with the time. `look` must be short: cycles wait for it.
    fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&Shard, i64) -> R + Send + 'static,
    ) -> impl Future<Output = Result<R, Gone>> + Send;

    /// Lets somebody tell the shard something. Ends when the facts of the step are on disk.
    fn command<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Shard, i64, &mut Step) -> R + Send + 'static,
    ) -> impl Future<Output = Result<R, Gone>> + Send;

    /// The number of the last cycle, changed after each.
    fn cycles(&self) -> watch::Receiver<u64>;

    /// How long the last cycles took, the oldest first, in nanoseconds of real time; empty if nobody measures.
    fn cycle_times(&self) -> Vec<i64> {
        Vec::new()
    }
}

/// The shard has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the shard is stopping; try again when it is back")]
pub struct Gone;

impl From<Gone> for Status {
    fn from(gone: Gone) -> Self {
        Self::unavailable(gone.to_string())
    }
}

/// What people are told about the server itself, and what it lends to this crate.
#[derive(Clone, Debug)]
pub struct About {
    /// The version of the server program.
    pub server_version: String,
    /// The machines are not real. Whoever shows them must say so.
    pub simulated: bool,
    /// Where the decision record lies, if there is one.
    pub record_dir: Option<PathBuf>,
    /// There is no living shard behind it: now is the end of the record.
    pub record_only: bool,
    /// To wait by.
    pub clock: Arc<dyn Clock>,
}
