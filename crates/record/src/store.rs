//! The durable memory of a shard: a folder that one process at a time may use.
//!
//! | file | what | how it is written |
//! |---|---|---|
//! | `state.redb` | the facts | one transaction a commit, on disk when [`Store::commit`] returns |
//! | `epoch` | the number of the last life | a new file, synced and renamed, before a life begins |
//! | `commits` | how many commits there were | in place after each commit, synced only at the end |
//! | `lock` | nothing | held while a process uses the folder |
//!
//! **The epoch never falls.** It is in `epoch` and in `state.redb`, and both are on disk before [`Store::open`] returns,
//! so losing either does no harm. If both are lost, the life takes the seconds of the clock as its epoch, as the very
//! first one did: lives are longer than a second, so that is above every epoch before, as long as the clock is right.
//!
//! **Nothing is silently wrong.** Every page is checked against its checksum at every start. A file that went back in time,
//! because it was restored from a copy or because its head is damaged, is known by `commits` and refused: an old memory
//! would reclaim and release by what was true once. No memory is safe: nothing is reclaimed before a cluster has
//! reported again, nothing is released before it has idled anew.

mod claim;
mod disk;
mod epoch;
mod error;
mod witness;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bigfleet_shard::{Fact, Memory};

pub use claim::FolderWatch;
pub use error::{CommitError, OpenError};

use crate::codec::encode_fact;
use claim::Claim;
use disk::Disk;
use epoch::Known;
use witness::Witness;

/// The file of facts.
pub const STATE_FILE: &str = "state.redb";
const LOCK_FILE: &str = "lock";

/// Opens the database; also called again after the disk has failed.
pub(crate) type OpenDatabase =
    Arc<dyn Fn(&mut redb::Builder) -> Result<redb::Database, redb::DatabaseError> + Send + Sync>;

/// A folder in use.
#[derive(Debug)]
pub struct Store {
    disk: Disk,
    witness: Witness,
    watch: FolderWatch,
    /// Dropped last: the folder is free from then on.
    _lock: File,
    _claim: Claim,
}

/// A folder as it was found.
#[derive(Debug)]
pub struct Opened {
    /// To commit to.
    pub store: Store,
    /// All facts.
    pub memory: Memory,
    /// The number of this life, greater than that of every life before it.
    pub epoch: i64,
    /// How the life before ended.
    pub start: Start,
    /// What was wrong with the epoch file, if it had to be written anew from the memory.
    pub repaired_epoch: Option<String>,
}

/// What to do about a folder that has an epoch and no memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostMemory {
    /// Do not begin a life: somebody should look for the file, or say that it is gone.
    #[default]
    Refuse,
    /// Begin without it.
    Accept,
}

/// How a life begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// There was nothing: the first life, or everything was lost.
    New,
    /// There was an epoch and no memory: it was lost or moved away. Safe, but somebody should know; pauses and modes are gone.
    MemoryLost,
    /// The life before was cut short. Everything it committed is there.
    AfterCrash,
    /// The life before ended in order.
    Continued,
}

impl Store {
    /// Takes a folder, made if it is not there, and begins a new life in it, whether its memory is there or not.
    /// `now_unix_nanos` is used only if no epoch is known.
    pub fn open(folder: impl AsRef<Path>, now_unix_nanos: i64) -> Result<Opened, OpenError> {
        Self::open_with(folder, now_unix_nanos, LostMemory::Accept)
    }

    /// The same, for somebody who may want to know of a lost memory first. A folder that is refused is left as it was.
    pub fn open_with(
        folder: impl AsRef<Path>,
        now_unix_nanos: i64,
        lost: LostMemory,
    ) -> Result<Opened, OpenError> {
        let held = Held::take(folder.as_ref())?;
        let path = held.folder.join(STATE_FILE);
        let existed = path.exists();
        let is_lost = !existed && matches!(epoch::read(&held.folder)?, Known::At(_));
        if is_lost && lost == LostMemory::Refuse {
            return Err(OpenError::MemoryLost(path));
        }
        if !existed {
            disk::create_file(&path, held.witness.commits())?;
        }
        held.begin(now_unix_nanos, existed, Arc::new(move |builder| builder.open(&path)))
    }

    /// The same with a database that `open` opens, perhaps on another kind of storage. `existed` says whether there was
    /// one before.
    pub fn open_by(
        folder: impl AsRef<Path>,
        now_unix_nanos: i64,
        existed: bool,
        open: impl Fn(&mut redb::Builder) -> Result<redb::Database, redb::DatabaseError> + Send + Sync + 'static,
    ) -> Result<Opened, OpenError> {
        Held::take(folder.as_ref())?.begin(now_unix_nanos, existed, Arc::new(open))
    }

    /// Writes facts, all or none of them; they are on disk when this returns. Of two facts about one thing the later
    /// one holds.
    ///
    /// After an error nobody knows whether they are on disk. Commit them again before any newer ones: a fact is the
    /// newest value of a thing, so twice does no harm, and the file is opened anew each time.
    pub fn commit(&mut self, facts: &[Fact]) -> Result<(), CommitError> {
        if facts.is_empty() {
            return Ok(());
        }
        self.disk.write(facts.iter().map(encode_fact))?;
        self.witness.note(self.disk.commits());
        Ok(())
    }

    /// Tells whether the folder is still the one that was taken.
    pub fn watch(&self) -> FolderWatch {
        self.watch.clone()
    }

    /// Ends this life in order, and tells if that failed. Dropping the store does the same in silence; nothing is lost
    /// either way.
    pub fn close(self) -> Result<(), CommitError> {
        self.disk.close()?;
        self.witness.sync();
        Ok(())
    }
}

/// A folder that is ours, before its memory is read.
struct Held {
    folder: PathBuf,
    witness: Witness,
    watch: FolderWatch,
    lock: File,
    claim: Claim,
}

impl Held {
    /// Makes the folder and locks it.
    fn take(folder: &Path) -> Result<Self, OpenError> {
        bigfleet_durable::private_folder(folder)
            .map_err(|error| OpenError::io("make the folder", folder, &error))?;
        let claim = Claim::take(folder)?;
        let path = folder.join(LOCK_FILE);
        let lock = bigfleet_durable::private_file().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| OpenError::io("make", &path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(folder.into())),
            Err(TryLockError::Error(error)) => return Err(OpenError::io("lock", &path, &error)),
        }
        let watch = FolderWatch::of(&path, &lock).map_err(|error| OpenError::io("look at", &path, &error))?;
        Ok(Self { folder: folder.into(), witness: Witness::open(folder)?, watch, lock, claim })
    }

    /// Reads the memory and puts the epoch of a new life on disk, in both places.
    fn begin(self, now_unix_nanos: i64, existed: bool, open: OpenDatabase) -> Result<Opened, OpenError> {
        let Self { folder, mut witness, watch, lock, claim } = self;
        let known = epoch::read(&folder)?;
        let (mut disk, loaded) = Disk::open(folder.join(STATE_FILE), open, existed, witness.commits())?;
        let damaged =
            |reason: String| OpenError::EpochDamaged { path: folder.join(epoch::EPOCH_FILE), reason };
        let repaired_epoch = match &known {
            Known::Damaged(reason) => Some(reason.clone()),
            Known::Nothing | Known::At(_) => None,
        };
        let last = match (loaded.epoch, known) {
            (None, Known::Damaged(reason)) => return Err(damaged(reason)),
            (ours, Known::At(theirs)) => Some(ours.map_or(theirs, |ours| ours.max(theirs))),
            (ours, Known::Nothing | Known::Damaged(_)) => ours,
        };
        let epoch = match last {
            None => (now_unix_nanos / 1_000_000_000).max(1),
            Some(last) => last.checked_add(1).ok_or_else(|| damaged("no epoch comes after it".into()))?,
        };
        epoch::write(&folder, epoch)?;
        disk.begin_life(epoch)?;
        witness.note(disk.commits());
        let start = match (existed, last) {
            (_, None) => Start::New,
            (false, Some(_)) => Start::MemoryLost,
            (true, Some(_)) if loaded.after_crash => Start::AfterCrash,
            (true, Some(_)) => Start::Continued,
        };
        let store = Store { disk, witness, watch, _lock: lock, _claim: claim };
        Ok(Opened { store, memory: loaded.memory, epoch, start, repaired_epoch })
    }
}
