//! A file, for one machine. One process at a time can open it, so whoever has it open leads.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bigfleet_coordinator::Writes;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use tokio::sync::{oneshot, watch};

use super::{Leadership, Loaded, StoreError, stored};

const ENTRIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("entries");
const COUNTERS: TableDefinition<'_, &str, i64> = TableDefinition::new("counters");
const TERM: &str = "term";
const REVISION: &str = "revision";

/// The file of a fleet.
pub(super) const FILE: &str = "fleet.redb";

/// An open file.
#[derive(Debug)]
pub struct Embedded {
    folder: PathBuf,
    /// One writer at a time. None after an error: what is open does nothing more then, as after a disk that was full, and the
    /// file is opened anew.
    database: Mutex<Option<Database>>,
}

fn open(folder: &Path) -> Result<Database, StoreError> {
    let wrong = |what: &str, why: &dyn std::fmt::Display| {
        StoreError::File(format!("{what} {} cannot be used: {why}", folder.display()))
    };
    bigfleet_durable::private_folder(folder).map_err(|error| wrong("the folder", &error))?;
    let path = folder.join(FILE);
    let file =
        bigfleet_durable::private_file().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|error| wrong("the file in", &error))?;
    // Two processes on one file would both lead. The system forgets the lock when its process ends.
    file.try_lock().map_err(|error| wrong("another process has the file in", &error))?;
    Database::builder().create_file(file).map_err(|error| wrong("the file in", &error))
}

impl Embedded {
    /// Opens the file in a folder, or makes both, for their owner alone.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let database = open(folder)?;
        Ok(Self { folder: folder.to_owned(), database: Mutex::new(Some(database)) })
    }

    /// Does something with the file.
    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        let mut database = self.database.lock().expect("no holder panics");
        if database.is_none() {
            *database = Some(open(&self.folder)?);
        }
        let done = work(database.as_ref().expect("it was opened above"));
        done.map_err(|error| {
            *database = None;
            StoreError::Unavailable(error.to_string())
        })
    }

    /// Changes the file in one transaction.
    fn write<T>(
        &self,
        change: impl FnOnce(&redb::WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        self.with(|database| {
            let transaction = database.begin_write()?;
            let changed = change(&transaction)?;
            transaction.commit()?;
            Ok(changed)
        })
    }

    pub(super) fn load(&self) -> Result<Loaded, StoreError> {
        // Makes the tables, so that reading finds them.
        self.write(|transaction| {
            transaction.open_table(ENTRIES)?;
            transaction.open_table(COUNTERS)?;
            Ok(())
        })?;
        self.with(|database| {
            let transaction = database.begin_read()?;
            let mut loaded = Loaded::default();
            for entry in transaction.open_table(ENTRIES)?.iter()? {
                let (key, value) = entry?;
                loaded.entries.push((key.value().to_owned(), value.value().to_vec()));
            }
            let revision = transaction.open_table(COUNTERS)?.get(REVISION)?;
            loaded.revision = revision.map_or(0, |revision| revision.value());
            Ok(loaded)
        })
    }

    /// Every leadership of this process is another term, and the first is greater than all of the last process.
    pub(super) fn lead(&self) -> Result<Leadership, StoreError> {
        let term = self.write(|transaction| raise(transaction, TERM))?;
        let (_, lost) = watch::channel(false);
        let (guard, _) = oneshot::channel();
        Ok(Leadership { term, lost, _guard: guard })
    }

    pub(super) fn commit(&self, term: i64, writes: &Writes) -> Result<i64, StoreError> {
        let committed = self.write(|transaction| {
            let counters = transaction.open_table(COUNTERS)?;
            let present = counters.get(TERM)?.map(|term| term.value());
            drop(counters);
            if present != Some(term) {
                return Ok(None);
            }
            let mut entries = transaction.open_table(ENTRIES)?;
            for write in writes.as_slice() {
                match stored(write) {
                    (key, Some(value)) => drop(entries.insert(key.as_str(), value.as_slice())?),
                    (key, None) => drop(entries.remove(key.as_str())?),
                }
            }
            drop(entries);
            raise(transaction, REVISION).map(Some)
        });
        committed?.ok_or(StoreError::Deposed)
    }
}

/// Counts one up.
fn raise(transaction: &redb::WriteTransaction, counter: &str) -> Result<i64, redb::Error> {
    let mut counters = transaction.open_table(COUNTERS)?;
    let next = counters.get(counter)?.map_or(0, |value| value.value()) + 1;
    counters.insert(counter, next)?;
    Ok(next)
}
