//! Where a fleet is kept: in etcd, for several replicas on several machines, or in a file, for one.
//!
//! Both promise the same, and pass the same tests:
//!
//! * a [commit](Store::commit) is all or nothing, and durable when it returns;
//! * only the holder of the [leadership](Store::lead) commits: whoever lost it changes nothing, however late it notices;
//! * terms rise with every leadership.

mod embedded;
mod etcd;

use std::sync::Arc;

use bigfleet_coordinator::{Write, Writes};
use bigfleet_net::Clock;
use thiserror::Error;
use tokio::sync::{oneshot, watch};

pub use embedded::Embedded;
pub use etcd::{Etcd, EtcdSettings};

/// A store.
#[derive(Clone, Debug)]
pub enum Store {
    /// A file, for one replica.
    Embedded(Arc<Embedded>),
    /// An etcd, for any number.
    Etcd(Arc<Etcd>),
}

/// Why a store did not do something.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Somebody else leads by now. Nothing was changed.
    #[error("another replica leads by now")]
    Deposed,
    /// It is not known whether it was done.
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    /// What was to be watched from is gone: load again.
    #[error("the store has forgotten what changed since revision {0}")]
    Compacted(i64),
    /// The file cannot be used.
    #[error("{0}")]
    File(String),
}

/// All that a store holds, as of a revision.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Keys and values, without the prefix.
    pub entries: Vec<(String, Vec<u8>)>,
    /// As of when.
    pub revision: i64,
}

/// The right to commit, for as long as it lasts.
#[derive(Debug)]
pub struct Leadership {
    /// Which leadership this is: later ones are greater.
    pub term: i64,
    /// Turns true when it is over, as far as we can know. A commit finds out for certain.
    lost: watch::Receiver<bool>,
    /// Whoever drops this gives it up.
    _guard: oneshot::Sender<()>,
}

impl Leadership {
    /// One that is over and does not know it, for tests of what it can do then: nothing.
    #[doc(hidden)]
    pub fn stale(term: i64) -> Self {
        let (guard, _) = oneshot::channel();
        Self { term, lost: watch::channel(false).1, _guard: guard }
    }

    /// Waits for its end, as far as we can know.
    pub async fn until_lost(&self) {
        // A file has no lease: its sender is gone, and its leadership ends with the process.
        if self.lost.clone().wait_for(|is_lost| *is_lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// What somebody else has changed.
#[derive(Debug)]
pub enum Change {
    /// An entry, as it is stored: the key, and the value unless it was deleted.
    Entry(String, Option<Vec<u8>>),
    /// Who leads, and where it serves; nobody just now.
    Leader(Option<String>),
}

/// Changes from a revision on.
#[derive(Debug)]
pub enum Changes {
    /// Nobody else can change anything.
    Never,
    /// As etcd tells them.
    Etcd(Box<etcd::Watching>),
}

impl Changes {
    /// The next ones, with their revision.
    pub async fn next(&mut self) -> Result<(Vec<Change>, i64), StoreError> {
        match self {
            Self::Never => std::future::pending().await,
            Self::Etcd(watching) => watching.next().await,
        }
    }
}

impl Store {
    /// What it is called in status and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embedded(_) => "embedded",
            Self::Etcd(_) => "etcd",
        }
    }

    /// All there is.
    pub async fn load(&self) -> Result<Loaded, StoreError> {
        match self {
            Self::Embedded(store) => store.load(),
            Self::Etcd(store) => store.load().await,
        }
    }

    /// What others change after a revision.
    pub async fn changes(&self, after: i64) -> Result<Changes, StoreError> {
        match self {
            Self::Embedded(_) => Ok(Changes::Never),
            Self::Etcd(store) => Ok(Changes::Etcd(Box::new(store.watch(after).await?))),
        }
    }

    /// Waits until it is this replica's turn to lead. `address` is where it serves.
    pub async fn lead(&self, address: &str, clock: &Arc<dyn Clock>) -> Result<Leadership, StoreError> {
        match self {
            Self::Embedded(store) => store.lead(),
            Self::Etcd(store) => store.lead(address, clock).await,
        }
    }

    /// Stores changes, all or none. Refused if the leadership is over. Says the revision.
    pub async fn commit(&self, leadership: &Leadership, writes: &Writes) -> Result<i64, StoreError> {
        match self {
            Self::Embedded(store) => {
                let (store, term, writes) = (store.clone(), leadership.term, writes.clone());
                // A disk is waited for where nobody else waits.
                let done = tokio::task::spawn_blocking(move || store.commit(term, &writes)).await;
                done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
            }
            Self::Etcd(store) => store.commit(leadership.term, writes).await,
        }
    }
}

/// A change as it is stored.
fn stored(write: &Write) -> (String, Option<Vec<u8>>) {
    match write {
        Write::Put(entry) => (entry.key().to_string(), Some(entry.encode())),
        Write::Delete(key) => (key.to_string(), None),
    }
}
