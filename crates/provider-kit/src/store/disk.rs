//! State in a file, by redb.
//!
//! After the disk has refused once, redb takes nothing more until the file is opened anew. We do that at
//! once, and look whether the commit in doubt is there: each transaction carries a number for that. If it is
//! there, it has succeeded; if not, nothing of it is. Only when even that cannot be found out is the caller
//! told of a failure that may still turn out otherwise; the number settles it when the disk is back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition};

use super::{Batch, Disk, Loaded, OpenDatabase, StoreError, decode_row, encode_row};
use crate::fence::Mark;

const MACHINES: TableDefinition<&str, &[u8]> = TableDefinition::new("machines");
/// By machine and shard: epoch, sequence, and when the mark moved among all moves.
const MARKS: TableDefinition<(&str, &str), (i64, i64, u64)> = TableDefinition::new("marks");
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

const FORMAT_KEY: &str = "format";
const INSTANCE_KEY: &str = "instance";
const NEXT_OPERATION_KEY: &str = "next-operation";
const COMMIT_KEY: &str = "commit";

const FORMAT: u64 = 1;
const CACHE_BYTES: usize = 64 << 20;

pub(crate) struct DiskStore {
    path: PathBuf,
    open: OpenDatabase,
    /// None after the disk has failed, until it is opened anew.
    database: Option<Database>,
    /// The number of the last transaction known to be on disk.
    commit: u64,
    /// The number of a transaction that was reported as failed, while nobody knows whether it is on disk.
    doubt: Option<u64>,
}

impl DiskStore {
    /// Opens and checks the file.
    pub(crate) fn open(path: PathBuf, open: OpenDatabase) -> Result<Self, StoreError> {
        let is_new = !path.exists();
        let mut database = open_database(&path, &open)?;
        check_integrity(&path, &mut database)?;
        if is_new {
            sync_folder(&path);
        }
        Ok(Self { path, open, database: Some(database), commit: 0, doubt: None })
    }

    fn io(&self, error: impl std::fmt::Display) -> StoreError {
        StoreError::Io { path: self.path.clone(), reason: error.to_string() }
    }

    fn damaged(&self, reason: impl std::fmt::Display) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), reason: reason.to_string() }
    }

    /// Opens the file anew after a failure, and settles what was in doubt.
    fn reopen(&mut self) -> Result<(), StoreError> {
        if self.database.is_none() {
            self.database = Some(open_database(&self.path, &self.open)?);
        }
        if let Some(doubt) = self.doubt {
            if self.read_commit(self.database.as_ref().expect("just opened"))? >= doubt {
                return Err(StoreError::Diverged(self.path.clone()));
            }
            self.doubt = None;
        }
        Ok(())
    }

    fn read_commit(&self, database: &Database) -> Result<u64, StoreError> {
        let read = || -> Result<u64, redb::Error> {
            let meta = database.begin_read()?.open_table(META)?;
            Ok(meta.get(COMMIT_KEY)?.map_or(0, |number| number.value()))
        };
        read().map_err(|error| self.io(error))
    }

    fn transaction(&self, batch: &Batch, number: u64) -> Result<(), redb::Error> {
        let database = self.database.as_ref().expect("opened before");
        let transaction = database.begin_write()?;
        {
            let mut marks = transaction.open_table(MARKS)?;
            for (machine, shard) in &batch.forgotten_marks {
                marks.remove((&**machine, &**shard))?;
            }
            for (machine, shard, mark, moved) in &batch.marks {
                marks.insert((machine.as_str(), shard.as_str()), (mark.epoch, mark.sequence, *moved))?;
            }
            let mut machines = transaction.open_table(MACHINES)?;
            for row in &batch.rows {
                machines.insert(row.machine.id.as_str(), encode_row(row).as_slice())?;
            }
            let mut meta = transaction.open_table(META)?;
            if let Some(next) = batch.next_operation {
                meta.insert(NEXT_OPERATION_KEY, next)?;
            }
            meta.insert(COMMIT_KEY, number)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Makes the tables of a new file.
    fn initialise(&self, instance: u64) -> Result<(), redb::Error> {
        let database = self.database.as_ref().expect("just opened");
        let transaction = database.begin_write()?;
        {
            transaction.open_table(MACHINES)?;
            transaction.open_table(MARKS)?;
            let mut meta = transaction.open_table(META)?;
            if meta.get(FORMAT_KEY)?.is_none() {
                meta.insert(FORMAT_KEY, FORMAT)?;
                meta.insert(INSTANCE_KEY, instance)?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn read_all(&self) -> Result<Result<Loaded, StoreError>, redb::Error> {
        let transaction = self.database.as_ref().expect("just opened").begin_read()?;
        let meta = transaction.open_table(META)?;
        let number =
            |key| -> Result<Option<u64>, redb::Error> { Ok(meta.get(key)?.map(|value| value.value())) };
        let found = number(FORMAT_KEY)?.unwrap_or_default();
        if found != FORMAT {
            return Ok(Err(StoreError::Format { path: self.path.clone(), found, known: FORMAT }));
        }
        let mut loaded = Loaded {
            instance: number(INSTANCE_KEY)?.unwrap_or_default(),
            next_operation: number(NEXT_OPERATION_KEY)?.unwrap_or_default(),
            ..Loaded::default()
        };
        for entry in transaction.open_table(MACHINES)?.iter()? {
            let (id, bytes) = entry?;
            match decode_row(id.value(), bytes.value()) {
                Ok(row) => loaded.rows.push(row),
                Err(reason) => return Ok(Err(self.damaged(reason))),
            }
        }
        for entry in transaction.open_table(MARKS)?.iter()? {
            let (key, value) = entry?;
            let ((machine, shard), (epoch, sequence, moved)) = (key.value(), value.value());
            loaded.marks.push((machine.into(), shard.into(), Mark { epoch, sequence }, moved));
        }
        Ok(Ok(loaded))
    }
}

impl Disk for DiskStore {
    fn load(&mut self, instance: u64) -> Result<Loaded, StoreError> {
        self.initialise(instance).map_err(|error| self.io(error))?;
        let database = self.database.as_ref().expect("just opened");
        let commit = self.read_commit(database)?;
        let loaded = catch_unwind(AssertUnwindSafe(|| self.read_all()))
            .map_err(|_| self.damaged("reading it fails"))?
            .map_err(|error| self.damaged(error))??;
        self.commit = commit;
        Ok(loaded)
    }

    fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.reopen()?;
        let number = self.commit + 1;
        let Err(error) = self.transaction(batch, number) else {
            self.commit = number;
            return Ok(());
        };
        let failure = self.io(error);
        self.database = None;
        let found =
            self.reopen().and_then(|()| self.read_commit(self.database.as_ref().expect("just opened")));
        match found {
            Ok(found) if found == number => {
                self.commit = number;
                Ok(())
            }
            Ok(_) => Err(failure),
            Err(_) => {
                self.database = None;
                self.doubt = Some(number);
                Err(failure)
            }
        }
    }
}

/// redb has assertions that damaged pages can trip; for us these are findings, not reasons to die.
fn open_database(path: &Path, open: &OpenDatabase) -> Result<Database, StoreError> {
    let damaged = |reason: String| StoreError::Damaged { path: path.into(), reason };
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    let opened = catch_unwind(AssertUnwindSafe(|| open(&mut builder)));
    match opened.map_err(|_| damaged("opening it fails".into()))? {
        Ok(database) => Ok(database),
        Err(DatabaseError::DatabaseAlreadyOpen) => Err(StoreError::InUse(path.into())),
        Err(DatabaseError::Storage(StorageError::Corrupted(reason))) => Err(damaged(reason)),
        // redb says so when the file does not begin like one of its own.
        Err(DatabaseError::Storage(StorageError::Io(error)))
            if error.kind() == std::io::ErrorKind::InvalidData =>
        {
            Err(damaged(error.to_string()))
        }
        Err(error @ (DatabaseError::RepairAborted | DatabaseError::UpgradeRequired(_))) => {
            Err(damaged(error.to_string()))
        }
        Err(error) => Err(StoreError::Io { path: path.into(), reason: error.to_string() }),
    }
}

/// Damage is found only by looking, so we look at every start: every page against its checksum.
fn check_integrity(path: &Path, database: &mut Database) -> Result<(), StoreError> {
    let reason = match catch_unwind(AssertUnwindSafe(|| database.check_integrity())) {
        Ok(Ok(true)) => return Ok(()),
        Ok(Ok(false)) => "its pages do not match their checksums".into(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "checking it fails".into(),
    };
    Err(StoreError::Damaged { path: path.into(), reason })
}

/// A new file is there after a power loss only if its folder is on disk too. Where a system cannot do that,
/// the worst case is an empty start, of which nothing was acknowledged yet.
fn sync_folder(path: &Path) {
    let folder = bigfleet_durable::folder_of(path);
    if let Err(error) = bigfleet_durable::sync_folder(folder) {
        tracing::warn!(folder = %folder.display(), %error, "cannot sync the folder of a new store");
    }
}
