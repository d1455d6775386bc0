//! The machines a shard knows, each with what its provider said and what we have set in motion.
//!
//! A row's machine is *our view*: the provider's word, overlaid by an order of ours that the provider has not answered
//! yet. The overlay is what keeps the engine from deciding the same thing twice.

use std::sync::Arc;

use bigfleet_model::machine::{Machine, MachineState};
use hashbrown::HashTable;

use crate::event::ProviderId;
use crate::flight::Flight;
use crate::memory::MachineMemo;

/// A machine's row: its place, and which of the machines that were ever there. Places are used again, slots are not: an
/// answer or a timer about a machine that is gone finds nobody, never whoever has its place now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot {
    place: u32,
    life: u32,
}

impl Slot {
    pub(crate) fn place(self) -> u32 {
        self.place
    }
}

/// Why a machine is not offered to the engine, if it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Care {
    /// Nothing is wrong with it.
    Fine,
    /// It failed; its provider is asked about it again and again.
    Failed {
        /// How often it was asked so far.
        tries: u32,
    },
    /// It failed and stays failed: a human should look at it.
    Quarantined,
    /// It has been in transition for too long.
    Overdue,
    /// A move was refused; it is left alone for a while.
    Cooling {
        /// Until when.
        until_unix_nanos: i64,
    },
    /// Somebody else drives it.
    Fenced,
}

impl Care {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Failed { .. } => "failed",
            Self::Quarantined => "quarantined",
            Self::Overdue => "overdue",
            Self::Cooling { .. } => "cooling",
            Self::Fenced => "fenced",
        }
    }

    /// Whether the engine may see a machine in this state at all. One that was refused a drain is still supply.
    pub(crate) fn is_shown(&self, state: MachineState) -> bool {
        match self {
            Self::Fine | Self::Failed { .. } | Self::Quarantined => true,
            Self::Cooling { .. } => state.is_bound(),
            Self::Overdue | Self::Fenced => false,
        }
    }
}

/// One machine.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) machine: Arc<Machine>,
    pub(crate) provider: ProviderId,
    /// The hash of the provider's last word; 0 if the next one must be read whatever it is.
    pub(crate) content: u64,
    /// The listing that last named it.
    pub(crate) listing: u32,
    /// What the provider last said its state was.
    pub(crate) told: MachineState,
    /// When it entered the state we see it in.
    pub(crate) since: i64,
    /// When its provider last spoke about it in answer to a call. Listings begun before know less.
    pub(crate) touched: i64,
    /// A listing spoke of it at a time when it could not be believed: ask when that is over.
    pub(crate) missed: bool,
    pub(crate) care: Care,
    /// Moves that were refused in a row.
    pub(crate) refusals: u32,
    pub(crate) flight: Option<Box<Flight>>,
    /// What is on disk about it.
    pub(crate) memo: Option<Box<MachineMemo>>,
    /// Whether the engine has it.
    pub(crate) shown: bool,
}

/// All machines.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Option<Row>>,
    /// By place: how many machines left it before.
    lives: Vec<u32>,
    free: Vec<u32>,
    by_id: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
    len: usize,
}

impl Table {
    fn hash(&self, id: &str) -> u64 {
        use std::hash::BuildHasher as _;
        self.hasher.hash_one(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn find(&self, id: &str) -> Option<Slot> {
        let found = self.by_id.find(self.hash(id), |slot| {
            self.rows[*slot as usize].as_ref().is_some_and(|row| *row.machine.id == *id)
        });
        found.map(|place| self.slot(*place))
    }

    /// The slot of whoever is in a place, or comes there next.
    fn slot(&self, place: u32) -> Slot {
        Slot { place, life: self.lives[place as usize] }
    }

    fn is_current(&self, slot: Slot) -> bool {
        self.lives.get(slot.place as usize) == Some(&slot.life)
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Row> {
        self.rows.get(slot.place as usize).filter(|_| self.is_current(slot))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Row> {
        if !self.is_current(slot) {
            return None;
        }
        self.rows.get_mut(slot.place as usize)?.as_mut()
    }

    /// A row that must be there.
    pub(crate) fn row(&self, slot: Slot) -> &Row {
        self.get(slot).expect("the slot is in use")
    }

    /// A row that must be there.
    pub(crate) fn row_mut(&mut self, slot: Slot) -> &mut Row {
        self.get_mut(slot).expect("the slot is in use")
    }

    pub(crate) fn insert(&mut self, row: Row) -> Slot {
        let hash = self.hash(&row.machine.id);
        let place = self.free.pop().unwrap_or(self.rows.len() as u32);
        if place as usize == self.rows.len() {
            self.rows.push(Some(row));
            self.lives.push(0);
        } else {
            debug_assert!(self.rows[place as usize].is_none(), "a free place is empty");
            self.rows[place as usize] = Some(row);
        }
        self.len += 1;
        let (rows, hasher) = (&self.rows, &self.hasher);
        self.by_id.insert_unique(hash, place, |place| {
            use std::hash::BuildHasher as _;
            rows[*place as usize].as_ref().map_or(0, |row| hasher.hash_one(&*row.machine.id))
        });
        self.slot(place)
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Row> {
        let hash = self.hash(&self.get(slot)?.machine.id);
        if let Ok(entry) = self.by_id.find_entry(hash, |other| *other == slot.place) {
            entry.remove();
        }
        self.len -= 1;
        // 2^32 machines later a slot repeats; nothing stays open that long.
        let life = &mut self.lives[slot.place as usize];
        *life = life.wrapping_add(1);
        self.free.push(slot.place);
        self.rows[slot.place as usize].take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Row)> {
        self.iter_from(0)
    }

    pub(crate) fn iter_from(&self, from: u32) -> impl Iterator<Item = (Slot, &Row)> {
        let rows = self.rows.iter().enumerate().skip(from as usize);
        rows.filter_map(|(place, row)| row.as_ref().map(|row| (self.slot(place as u32), row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> Row {
        Row {
            machine: Arc::new(Machine::new(id, MachineState::Speculative)),
            provider: ProviderId(0),
            content: 1,
            listing: 0,
            told: MachineState::Speculative,
            since: 0,
            touched: 0,
            missed: false,
            care: Care::Fine,
            refusals: 0,
            flight: None,
            memo: None,
            shown: false,
        }
    }

    #[test]
    fn slots_are_found_by_id_and_their_places_used_again() {
        let mut table = Table::default();
        let slots: Vec<Slot> = (0..1000).map(|n| table.insert(row(&format!("m-{n}")))).collect();
        assert_eq!((table.len(), table.find("m-417")), (1000, Some(slots[417])));
        assert_eq!(&*table.remove(slots[417]).unwrap().machine.id, "m-417");
        assert_eq!((table.len(), table.find("m-417"), table.get(slots[417]).is_none()), (999, None, true));
        let other = table.insert(row("other"));
        assert_eq!(
            (other.place(), other == slots[417]),
            (417, false),
            "the place is used again, the slot is not"
        );
        assert!(table.get(slots[417]).is_none() && table.get_mut(slots[417]).is_none());
        assert!(table.remove(slots[417]).is_none(), "whoever is there now stays");
        assert_eq!((table.find("other"), table.iter().count()), (Some(other), 1000));
        assert!((0..1000).filter(|n| *n != 417).all(|n| table.find(&format!("m-{n}")) == Some(slots[n])));
    }
}
