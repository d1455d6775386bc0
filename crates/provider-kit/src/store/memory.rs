//! State without a disk. Writes are immediate and happen in the caller's thread, so that a simulation on
//! one thread stays in one order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::{Batch, Disk, Loaded, StoreError, decode_row, encode_row};
use crate::fence::Mark;

/// The tables; what is left when the provider on them is gone.
pub(crate) type SharedTables = Arc<Mutex<Tables>>;

#[derive(Debug, Default)]
pub(crate) struct Tables {
    instance: Option<u64>,
    next_operation: u64,
    rows: BTreeMap<String, Vec<u8>>,
    marks: BTreeMap<(String, String), (Mark, u64)>,
    open: bool,
}

pub(crate) struct MemoryStore(SharedTables);

impl MemoryStore {
    /// Takes the tables, unless another provider has them.
    pub(crate) fn open(tables: SharedTables) -> Result<Self, StoreError> {
        if std::mem::replace(&mut tables.lock().expect("no holder panics").open, true) {
            return Err(StoreError::InUse("(memory)".into()));
        }
        Ok(Self(tables))
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.0.lock().expect("no holder panics").open = false;
    }
}

impl Disk for MemoryStore {
    fn load(&mut self, instance: u64) -> Result<Loaded, StoreError> {
        let mut tables = self.0.lock().expect("no holder panics");
        let damaged = |reason| StoreError::Damaged { path: "(memory)".into(), reason };
        Ok(Loaded {
            instance: *tables.instance.get_or_insert(instance),
            next_operation: tables.next_operation,
            rows: tables
                .rows
                .iter()
                .map(|(id, row)| decode_row(id, row))
                .collect::<Result<_, _>>()
                .map_err(damaged)?,
            marks: tables
                .marks
                .iter()
                .map(|((m, s), (mark, moved))| (m.clone(), s.clone(), *mark, *moved))
                .collect(),
        })
    }

    fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut tables = self.0.lock().expect("no holder panics");
        for (machine, shard) in &batch.forgotten_marks {
            tables.marks.remove(&(machine.to_string(), shard.to_string()));
        }
        for (machine, shard, mark, moved) in &batch.marks {
            tables.marks.insert((machine.clone(), shard.clone()), (*mark, *moved));
        }
        for row in &batch.rows {
            tables.rows.insert(row.machine.id.clone(), encode_row(row));
        }
        if let Some(next) = batch.next_operation {
            tables.next_operation = next;
        }
        Ok(())
    }
}
