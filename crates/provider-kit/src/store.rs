//! Durable state: machines, marks, and the counter of operations.
//!
//! A provider that forgets what it has acknowledged makes its shard pay for machines nobody knows. So state
//! lives in one file of an embedded store, changed by transactions that are on disk before the answer leaves.
//! What a transaction costs depends on what it changes, not on how many machines there are.
//!
//! [`Store::memory`] keeps the same state without a disk, for tests and simulations. It can be opened again
//! after the provider on it is gone, like a file.

mod disk;
mod memory;
mod row;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::fence::{Mark, MarkKey};
use crate::fleet::Row;

pub(crate) use row::{decode_row, encode_row};

/// Why state could not be read or written.
#[derive(Debug, Clone, Error)]
pub enum StoreError {
    /// Another process has the file.
    #[error("store {} is in use by another process; stop that one first, or give this one a file of its own", .0.display())]
    InUse(PathBuf),
    /// The file is damaged.
    #[error(
        "store {} is damaged ({reason}). Nothing was changed. To recover, restore the file from a copy; or move it \
         away and start again, which forgets bindings and fences: machines that exist must then be offered again \
         with their hosts, and shards restarted so that they use a new epoch",
        .path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The file was written by a newer kit.
    #[error("store {} has format {found}, this build reads {known}; use the newer build", .path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// Ours.
        known: u64,
    },
    /// The disk refused.
    #[error("store {}: {reason}", .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A commit that was reported as failed is on disk after all.
    #[error("store {} holds a change that was reported as failed; restart the provider to read it again", .0.display())]
    Diverged(PathBuf),
    /// Too much is waiting to be written.
    #[error("the store has a full queue of changes")]
    QueueFull,
    /// The provider has stopped.
    #[error("the store is closed")]
    Closed,
}

/// Where a provider keeps its state.
#[derive(Clone, Debug)]
pub struct Store(pub(crate) Place);

#[derive(Clone)]
pub(crate) enum Place {
    Disk { path: PathBuf, open: OpenDatabase },
    Memory(memory::SharedTables),
}

/// Opens the database behind a store; also called again after the disk has failed.
pub(crate) type OpenDatabase =
    Arc<dyn Fn(&mut redb::Builder) -> Result<redb::Database, redb::DatabaseError> + Send + Sync>;

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Disk { path, .. } => write!(f, "Disk({})", path.display()),
            Self::Memory(_) => f.write_str("Memory"),
        }
    }
}

impl Store {
    /// The file at `path`, made if it is not there.
    pub fn file(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_path_buf();
        let file = path.clone();
        Self::opened_by(path, move |builder| builder.create(&file))
    }

    /// A database that `open` opens, perhaps on another kind of storage; `name` is how errors call it.
    pub fn opened_by(
        name: impl Into<PathBuf>,
        open: impl Fn(&mut redb::Builder) -> Result<redb::Database, redb::DatabaseError> + Send + Sync + 'static,
    ) -> Self {
        Self(Place::Disk { path: name.into(), open: Arc::new(open) })
    }

    /// Memory. Clones share it, so a clone is what is left after the provider is gone.
    pub fn memory() -> Self {
        Self(Place::Memory(memory::SharedTables::default()))
    }
}

/// Everything a store holds.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Names this store among all stores; part of operation ids.
    pub(crate) instance: u64,
    pub(crate) next_operation: u64,
    pub(crate) rows: Vec<Row>,
    /// Machine, shard, mark, and when it moved among all moves.
    pub(crate) marks: Vec<(String, String, Mark, u64)>,
}

/// What one transaction changes.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) rows: Vec<Row>,
    pub(crate) forgotten_marks: Vec<MarkKey>,
    pub(crate) marks: Vec<(String, String, Mark, u64)>,
    /// Set when operations were begun.
    pub(crate) next_operation: Option<u64>,
}

/// A place that takes transactions whole or not at all.
pub(crate) trait Disk: Send {
    /// Reads everything, once, at the start. `instance` names the store if it is new.
    fn load(&mut self, instance: u64) -> Result<Loaded, StoreError>;

    /// Writes a transaction; on disk when this returns.
    fn write(&mut self, batch: &Batch) -> Result<(), StoreError>;
}

impl Place {
    pub(crate) fn open(&self) -> Result<Box<dyn Disk>, StoreError> {
        Ok(match self {
            Self::Disk { path, open } => Box::new(disk::DiskStore::open(path.clone(), open.clone())?),
            Self::Memory(tables) => Box::new(memory::MemoryStore::open(tables.clone())?),
        })
    }
}
