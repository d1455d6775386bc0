//! All machines in memory, as the last durable commit left them.
//!
//! Only the [journal](crate::journal) changes it, after the disk has the change. So whatever a reader sees
//! survives a crash, and revisions appear in the order in which they became durable: a reader that has seen
//! revision 7 can never miss revision 6 later.
//!
//! Machines are never removed; a deleted one is a slot again. Records are shared, so that a listing copies
//! pointers while it holds the lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::Machine;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::fence::{Mark, Marks};
use crate::operation::{OperationKind, state_of};

/// The last operation of each kind on a machine, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operations([Option<u64>; 4]);

impl Operations {
    pub(crate) fn get(self, kind: OperationKind) -> Option<u64> {
        self.0[kind as usize]
    }

    #[must_use]
    pub(crate) fn with(mut self, kind: OperationKind, number: Option<u64>) -> Self {
        self.0[kind as usize] = number;
        self
    }

    /// The highest number among them.
    pub(crate) fn newest(self) -> Option<u64> {
        self.0.into_iter().flatten().max()
    }
}

/// One machine and what the kit remembers about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) machine: Arc<Machine>,
    pub(crate) revision: u64,
    pub(crate) operations: Operations,
}

/// All machines and marks.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    rows: Vec<Row>,
    by_id: HashMap<Arc<str>, u32, FixedState>,
    by_revision: BTreeMap<u64, u32>,
    revision: u64,
    by_state: [u64; 9],
    pub(crate) marks: Marks,
}

impl Fleet {
    /// An empty fleet whose first change will be revision `revision + 1`.
    pub(crate) fn starting_at(revision: u64) -> Self {
        Self { revision, ..Self::default() }
    }

    /// One machine.
    pub(crate) fn get(&self, id: &str) -> Option<&Row> {
        self.by_id.get(id).map(|slot| &self.rows[*slot as usize])
    }

    /// Where the fence stands for a pair.
    pub(crate) fn mark(&self, machine_id: &str, shard_id: &str) -> Option<Mark> {
        self.marks.get(machine_id, shard_id)
    }

    /// The revision of the newest change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// How many machines there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many machines are in a state.
    pub(crate) fn count(&self, state: MachineState) -> u64 {
        self.by_state[state as usize]
    }

    /// Takes in a row: a new machine, or the next record of one we have.
    pub(crate) fn put(&mut self, row: Row) {
        self.revision = self.revision.max(row.revision);
        self.by_state[state_of(&row.machine) as usize] += 1;
        if let Some(&slot) = self.by_id.get(row.machine.id.as_str()) {
            self.by_revision.insert(row.revision, slot);
            let old = std::mem::replace(&mut self.rows[slot as usize], row);
            self.by_revision.remove(&old.revision);
            self.by_state[state_of(&old.machine) as usize] -= 1;
        } else {
            let slot = self.rows.len() as u32;
            self.marks.adopt(&row.machine.id);
            self.by_revision.insert(row.revision, slot);
            self.by_id.insert(row.machine.id.as_str().into(), slot);
            self.rows.push(row);
        }
    }

    /// All rows, beginning at slot `start` and going round once.
    pub(crate) fn rows_from(&self, start: usize) -> impl Iterator<Item = (usize, &Row)> {
        let count = self.rows.len();
        (0..count).map(move |step| {
            let slot = (start + step) % count;
            (slot, &self.rows[slot])
        })
    }

    /// Rows changed after `revision`, oldest change first.
    pub(crate) fn rows_since(&self, revision: u64) -> impl Iterator<Item = &Row> {
        let later = (std::ops::Bound::Excluded(revision), std::ops::Bound::Unbounded);
        self.by_revision.range(later).map(|(_, slot)| &self.rows[*slot as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offering::Offering;

    fn row(id: &str, revision: u64) -> Row {
        let machine = Offering::new(id, "t", "z").into_machine("p");
        Row { machine: machine.into(), revision, operations: Operations::default() }
    }

    fn ids<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'a str> {
        rows.map(|row| row.machine.id.as_str()).collect()
    }

    #[test]
    fn a_changed_machine_moves_to_the_end_of_the_changes() {
        let mut fleet = Fleet::starting_at(10);
        fleet.put(row("a", 11));
        fleet.put(row("b", 12));
        fleet.put(row("a", 13));
        assert_eq!(ids(fleet.rows_since(0)), ["b", "a"]);
        assert_eq!(ids(fleet.rows_since(12)), ["a"]);
        assert_eq!(ids(fleet.rows_since(13)), [""; 0]);
        assert_eq!((fleet.revision(), fleet.len(), fleet.count(MachineState::Speculative)), (13, 2, 2));
    }

    #[test]
    fn rows_go_round_once_from_anywhere() {
        let mut fleet = Fleet::default();
        for (revision, id) in ["a", "b", "c"].into_iter().enumerate() {
            fleet.put(row(id, revision as u64 + 1));
        }
        assert_eq!(ids(fleet.rows_from(2).map(|(_, row)| row)), ["c", "a", "b"]);
        assert_eq!(ids(fleet.rows_from(7).map(|(_, row)| row)), ["b", "c", "a"]);
        assert_eq!(Fleet::default().rows_from(5).count(), 0);
    }
}
