//! What can go wrong with a tape. None of it stops a shard.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A part of a tape that is lost. What lies before it in its segment and all other segments can be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} is damaged at byte {at}: {reason}; {bytes} bytes are lost, up to the end of this segment", .path.display())]
pub struct Damage {
    /// Which segment.
    pub path: PathBuf,
    /// Where the damage begins.
    pub at: u64,
    /// How much is lost, up to the end of the segment.
    pub bytes: u64,
    /// What was found.
    pub reason: String,
}

/// Why a tape, or a part of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TapeError {
    /// Another process writes it.
    #[error("tape {} is being written by another process; stop that one first", .0.display())]
    InUse(PathBuf),
    /// A part is lost.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Written by a newer build.
    #[error("{} is a tape of version {found:?}, this build reads version 1; use the newer build", .path.display())]
    Newer {
        /// Which segment.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// Nothing was recorded at all.
    #[error("there is no decision record in {}; is it the right folder, and is recording on?", .0.display())]
    Empty(PathBuf),
    /// Nothing was recorded then, or it has been dropped since.
    #[error("the record holds nothing as early as that; it begins at cycle {cycle}")]
    TooEarly {
        /// The first cycle there is.
        cycle: u64,
        /// When that ran.
        unix_nanos: i64,
    },
    /// What leads to a record has been dropped since the tape was opened.
    #[error(
        "the record of that moment has just been dropped, because it was the oldest; ask for a later one"
    )]
    Dropped,
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

impl TapeError {
    /// Tells what was tried on which file when the system refuses.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| Self::Io { doing, path: path.clone(), reason: error.to_string() }
    }
}

/// Why a cycle was not recorded. The writer then wants a full state, because changes alone would lead nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AppendError {
    /// Changes, where only a full state can begin a segment.
    #[error("cycle {cycle} is not recorded: the record has a gap and goes on with the next full state")]
    WantsFull {
        /// Which cycle.
        cycle: u64,
    },
    /// The disk refused.
    #[error("cycle {cycle} is not recorded: {source}")]
    Disk {
        /// Which cycle.
        cycle: u64,
        /// What happened.
        source: TapeError,
    },
}
