//! The facts in a file, by redb.
//!
//! One table holds all facts, another the format, the epoch and the number of commits. After the disk has refused once,
//! redb takes nothing more until the file is opened anew, which is done at the next commit.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bigfleet_shard::Memory;
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition, TableHandle,
};

use super::{CommitError, OpenDatabase, OpenError};
use crate::codec::{Entry, decode_fact};

const FACTS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bigfleet-shard-facts");
const META: TableDefinition<&str, u64> = TableDefinition::new("bigfleet-shard-meta");

const FORMAT_KEY: &str = "format";
const EPOCH_KEY: &str = "epoch";
const COMMITS_KEY: &str = "commits";

const FORMAT: u64 = 1;
const CACHE_BYTES: usize = 32 << 20;

pub(super) struct Disk {
    path: PathBuf,
    open: OpenDatabase,
    /// None after the disk has failed, until it is opened anew.
    database: Option<Database>,
    /// The number of the last commit known to be on disk.
    commits: u64,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Disk({}, {} commits)", self.path.display(), self.commits)
    }
}

/// What a file holds.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) memory: Memory,
    pub(super) epoch: Option<i64>,
    pub(super) after_crash: bool,
    commits: u64,
}

impl Disk {
    /// Opens, checks and reads the file. It must hold at least `commits`; a new one counts on from there.
    pub(super) fn open(
        path: PathBuf,
        open: OpenDatabase,
        existed: bool,
        commits: u64,
    ) -> Result<(Self, Loaded), OpenError> {
        let (database, after_crash) = open_checked(&path, &open)?;
        let inspect = || -> Result<Loaded, Trouble> {
            if !existed {
                initialise(&database, commits)?;
            }
            look_for_tables(&database)?;
            read_all(&database)
        };
        // redb has assertions that damaged pages can trip; for us these are findings, not reasons to die.
        let mut loaded = catch_unwind(AssertUnwindSafe(inspect))
            .map_err(|_| OpenError::damaged(&path, "reading it fails"))?
            .map_err(|trouble| trouble.about(&path))?;
        loaded.after_crash = after_crash;
        if loaded.commits < commits {
            let reason = format!(
                "it ends at commit {}, and there were {commits}: an older copy, or its head is damaged",
                loaded.commits
            );
            return Err(OpenError::damaged(&path, reason));
        }
        Ok((Self { path, open, database: Some(database), commits: loaded.commits }, loaded))
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    /// Puts the epoch of a new life on disk.
    pub(super) fn begin_life(&mut self, epoch: i64) -> Result<(), OpenError> {
        let database = self.database.as_ref().expect("just opened");
        let written = guarded(|| transaction(database, [], Some(epoch)));
        self.commits = written.map_err(|reason| OpenError::io("write", &self.path, &reason))?;
        Ok(())
    }

    /// One transaction; on disk when this returns.
    pub(super) fn write(&mut self, entries: impl Iterator<Item = Entry>) -> Result<(), CommitError> {
        if self.database.is_none() {
            self.reopen()?;
        }
        let database = self.database.as_ref().expect("just opened");
        match guarded(|| transaction(database, entries, None)) {
            Ok(commits) => {
                self.commits = commits;
                Ok(())
            }
            Err(reason) => {
                self.database = None;
                Err(CommitError::Io { path: self.path.clone(), reason })
            }
        }
    }

    /// Opens the file anew. It must be the one that was there.
    fn reopen(&mut self) -> Result<(), CommitError> {
        let (database, _) = open_checked(&self.path, &self.open)?;
        let found = guarded(|| -> Result<u64, redb::Error> {
            let meta = database.begin_read()?.open_table(META)?;
            Ok(meta.get(COMMITS_KEY)?.map_or(0, |number| number.value()))
        });
        let found = found.map_err(|reason| CommitError::Io { path: self.path.clone(), reason })?;
        if found < self.commits {
            let reason = format!("it ends at commit {found}, and there were {}", self.commits);
            return Err(OpenError::damaged(&self.path, reason).into());
        }
        self.database = Some(database);
        Ok(())
    }

    /// Closes the file in order.
    pub(super) fn close(self) -> Result<(), CommitError> {
        let Self { path, database, .. } = self;
        guarded(|| {
            drop(database);
            Ok::<(), redb::Error>(())
        })
        .map_err(|reason| CommitError::Io { path, reason })
    }
}

/// Runs what may trip an assertion of redb, and tells it as an error.
fn guarded<T, E: ToString>(work: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("the database gave up".into()),
    }
}

/// Writes entries and perhaps the epoch; answers with the number of the commit.
fn transaction(
    database: &Database,
    entries: impl IntoIterator<Item = Entry>,
    epoch: Option<i64>,
) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let number = {
        let mut facts = transaction.open_table(FACTS)?;
        for Entry { key, value } in entries {
            match value {
                Some(value) => facts.insert(key.as_slice(), value.as_slice())?,
                None => facts.remove(key.as_slice())?,
            };
        }
        let mut meta = transaction.open_table(META)?;
        if let Some(epoch) = epoch {
            meta.insert(EPOCH_KEY, epoch.cast_unsigned())?;
        }
        // Counted from what is there: after a failure nobody knew whether the commit was.
        let number = meta.get(COMMITS_KEY)?.map_or(0, |number| number.value()) + 1;
        meta.insert(COMMITS_KEY, number)?;
        number
    };
    transaction.commit()?;
    Ok(number)
}

/// What can be wrong inside a file.
enum Trouble {
    Redb(redb::Error),
    Damaged(String),
    Foreign(String),
    Newer(u64),
}

impl<E: Into<redb::Error>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Redb(error.into())
    }
}

impl Trouble {
    fn about(self, path: &Path) -> OpenError {
        match self {
            Self::Redb(redb::Error::Io(error)) => io_or_damage(path, &error),
            Self::Redb(error) => OpenError::damaged(path, error),
            Self::Damaged(reason) => OpenError::damaged(path, reason),
            Self::Foreign(table) => OpenError::Foreign { path: path.into(), table },
            Self::Newer(found) => OpenError::Newer { path: path.into(), found, known: FORMAT },
        }
    }
}

/// What redb says when it was led astray by what it read, and what the system says.
fn io_or_damage(path: &Path, error: &std::io::Error) -> OpenError {
    match error.kind() {
        // The file does not begin like one of redb's own.
        ErrorKind::InvalidData => OpenError::damaged(path, "it is not a database"),
        ErrorKind::UnexpectedEof => OpenError::damaged(path, "it refers to a place after its end"),
        _ => OpenError::io("read", path, error),
    }
}

/// Makes the tables of a new file.
fn initialise(database: &Database, commits: u64) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        transaction.open_table(FACTS)?;
        let mut meta = transaction.open_table(META)?;
        if meta.get(FORMAT_KEY)?.is_none() {
            meta.insert(FORMAT_KEY, FORMAT)?;
            meta.insert(COMMITS_KEY, commits)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// A file that was there has our tables. One without any has lost its root; one with others is somebody else's.
fn look_for_tables(database: &Database) -> Result<(), Trouble> {
    let reading = database.begin_read()?;
    let tables: Vec<String> = reading.list_tables()?.map(|table| table.name().to_owned()).collect();
    if [FACTS.name(), META.name()].iter().all(|name| tables.iter().any(|table| table == name)) {
        return Ok(());
    }
    Err(match tables.into_iter().find(|table| table != FACTS.name() && table != META.name()) {
        Some(table) => Trouble::Foreign(table),
        None => Trouble::Damaged("its tables are gone".into()),
    })
}

fn read_all(database: &Database) -> Result<Loaded, Trouble> {
    let reading = database.begin_read()?;
    let meta = reading.open_table(META)?;
    let number = |key| -> Result<Option<u64>, redb::Error> { Ok(meta.get(key)?.map(|value| value.value())) };
    match number(FORMAT_KEY)? {
        Some(FORMAT) => {}
        Some(found) if found > FORMAT => return Err(Trouble::Newer(found)),
        found => return Err(Trouble::Damaged(format!("it says that its format is {found:?}"))),
    }
    let mut loaded = Loaded {
        epoch: number(EPOCH_KEY)?.map(u64::cast_signed),
        commits: number(COMMITS_KEY)?.unwrap_or_default(),
        ..Loaded::default()
    };
    for entry in reading.open_table(FACTS)?.iter()? {
        let (key, value) = entry?;
        let fact = decode_fact(key.value(), value.value());
        let fact = fact.map_err(|error| {
            Trouble::Damaged(format!("fact {:?}: {error}", String::from_utf8_lossy(key.value())))
        })?;
        loaded.memory.learn(fact);
    }
    Ok(loaded)
}

/// Opens the file and holds every page against its checksum. Also tells whether it had to be repaired after a crash.
fn open_checked(path: &Path, open: &OpenDatabase) -> Result<(Database, bool), OpenError> {
    let damaged = |reason: String| OpenError::damaged(path, reason);
    let repaired = Arc::new(AtomicBool::new(false));
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    let note = repaired.clone();
    builder.set_repair_callback(move |_| note.store(true, Ordering::Relaxed));
    let opened = catch_unwind(AssertUnwindSafe(|| open(&mut builder)));
    let mut database = match opened.map_err(|_| damaged("opening it fails".into()))? {
        Ok(database) => database,
        Err(DatabaseError::DatabaseAlreadyOpen) => return Err(OpenError::InUse(path.into())),
        Err(DatabaseError::Storage(StorageError::Corrupted(reason))) => return Err(damaged(reason)),
        Err(DatabaseError::Storage(StorageError::Io(error))) => return Err(io_or_damage(path, &error)),
        Err(error @ (DatabaseError::RepairAborted | DatabaseError::UpgradeRequired(_))) => {
            return Err(damaged(error.to_string()));
        }
        Err(error) => return Err(OpenError::io("open", path, &error)),
    };
    let reason = match catch_unwind(AssertUnwindSafe(|| database.check_integrity())) {
        Ok(Ok(true)) => return Ok((database, repaired.load(Ordering::Relaxed))),
        Ok(Ok(false)) => "its pages do not match their checksums".into(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "checking it fails".into(),
    };
    // A database that is dropped while it is in this state may trip over itself once more.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(database)));
    Err(damaged(reason))
}

/// Makes a new file. It gets its name only when it is complete, so that a power loss meanwhile leaves no half of it
/// behind.
pub(super) fn create_file(path: &Path, commits: u64) -> Result<(), OpenError> {
    let unfinished = path.with_extension("new");
    let create = || -> Result<(), redb::Error> {
        match std::fs::remove_file(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        // The database takes an empty file for a new one, and keeps who may read it.
        drop(bigfleet_durable::private_file().create_new(true).write(true).open(&unfinished)?);
        let database = Database::create(&unfinished)?;
        initialise(&database, commits)?;
        drop(database);
        std::fs::File::open(&unfinished)?.sync_all()?;
        std::fs::rename(&unfinished, path)?;
        bigfleet_durable::sync_folder(bigfleet_durable::folder_of(path))?;
        Ok(())
    };
    guarded(create).map_err(|reason| OpenError::io("make", path, &reason))
}
