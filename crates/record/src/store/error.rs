//! What can go wrong with the folder of a shard, and the way out.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a shard cannot begin a life in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// Another process has the folder.
    #[error(
        "data folder {} is in use by another process: one shard, one folder. Stop that process first, or give this \
         one a folder of its own",
        .0.display()
    )]
    InUse(PathBuf),
    /// There was a memory and it is gone.
    #[error(
        "state file {path} is missing, but the epoch beside it says that a shard lived here. Put the file back if it was \
         moved. If it is gone for good, start once with --accept-lost-memory: that forgets pauses, modes, accepted \
         demand, what was under way and how long needs have waited; nothing is reclaimed before a cluster has reported \
         again. Pauses and modes have to be given again: start with --mode observe if one of them matters",
        path = .0.display()
    )]
    MemoryLost(PathBuf),
    /// The memory is damaged.
    #[error(
        "state file {path} is damaged: {reason}. It was not used. The way out: move it away (mv {path} {path}.damaged) \
         and start `bigfleet shard --data {folder} --accept-lost-memory` once. That forgets how long needs have waited, what was under way, \
         accepted demand, pauses and modes. It is safe: nothing is reclaimed before a cluster has reported again, nothing is \
         released before it has idled anew, and the epoch goes on from the file beside it. Pauses and modes have \
         to be given again: start with --mode observe if one of them matters",
        path = .path.display(),
        folder = .path.parent().unwrap_or(Path::new(".")).display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A database of something else.
    #[error(
        "state file {} is a database, but not of a shard (it has a table {table:?}). Give the shard a folder of its own \
         with --data",
        .path.display()
    )]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// A table in it that no shard has.
        table: String,
    },
    /// Written by a newer build.
    #[error(
        "{} has format {found}, this build reads up to {known}. Start the newer build again, or move the folder away to \
         begin without memory",
        .path.display()
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// Ours.
        known: u64,
    },
    /// The epoch is in neither file.
    #[error(
        "epoch file {path} is damaged: {reason}; and the state file does not know the epoch either. The way out: move it \
         away (mv {path} {path}.damaged). The next life then takes the seconds of the clock as its epoch; see that the \
         clock is right, or providers refuse this shard as an older one",
        path = .path.display()
    )]
    EpochDamaged {
        /// Which file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {reason}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

impl OpenError {
    pub(super) fn io(doing: &'static str, path: &Path, error: &impl ToString) -> Self {
        Self::Io { doing, path: path.into(), reason: error.to_string() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "errors, texts and arguments of a format alike")]
    pub(super) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged { path: path.into(), reason: reason.to_string() }
    }
}

/// Why facts are perhaps not on disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommitError {
    /// The disk refused. Commit the same facts again.
    #[error("cannot write state file {}: {reason}; nothing is begun until it is written. Is the disk full?", .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file cannot be opened again after the disk has refused.
    #[error(transparent)]
    Reopen(#[from] OpenError),
}
