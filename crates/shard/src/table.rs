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
    /// What the provider last said its state was.
    pub(crate) told: MachineState,
    /// When it entered the state we see it in.
    pub(crate) since: i64,
    /// When its provider last spoke about it in answer to a call. Listings begun before know less.
    pub(crate) touched: i64,
    /// A listing spoke of it at a time when it could not be believed: ask when that is over.
    pub(crate) missed: bool,
    pub(crate) care: Care,
    pub(crate) words: Words,
    /// Moves that were refused in a row.
    pub(crate) refusals: u32,
    pub(crate) flight: Option<Box<Flight>>,
    /// What is on disk about it.
    pub(crate) memo: Option<Box<MachineMemo>>,
    /// Whether the engine has it.
    pub(crate) shown: bool,
    /// Whether it is a slot beyond what this shard may hold.
    pub(crate) is_beyond_quota: bool,
}

/// What a provider said of a machine in its listings and when asked, to notice where the two disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// The state its last listing told.
    pub(crate) listed: Option<MachineState>,
    /// The answer to the last question since then.
    pub(crate) asked: Option<Answer>,
    /// How often in a row the listing took back what the answer had said.
    pub(crate) disputes: u8,
    /// The state it was in before an order that its provider says is of no machine it knows.
    pub(crate) denied_from: Option<MachineState>,
}

/// What a provider said when it was asked about a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is in this state.
    Is(MachineState),
    /// It knows no such machine.
    Unknown,
}

/// What was heard of a machine, as far as it can be compared without reading it. These lie apart from the rows: a
/// listing in which nothing changed touches them and nothing else, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// The digest of the bytes of its provider's last word, by which it is known again at once. 0 if there is none, and
    /// whenever we have written the row ourselves since: what the provider says must then be looked at again.
    pub(crate) digest: u128,
    /// The hash of what that word says, however it is written; 0 if the next one must be read whatever it is.
    pub(crate) content: u64,
    /// The listing that last named it.
    pub(crate) listing: u32,
    /// The hash of its id, so that a table that grows need not look for the ids.
    hash: u32,
}

/// All machines.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Option<Row>>,
    /// One for each place in `rows`.
    heard: Vec<Heard>,
    /// By place: how many machines left it before.
    lives: Vec<u32>,
    free: Vec<u32>,
    by_id: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
    len: usize,
}

/// Spreads a short hash over the bits the table of ids looks at, which are the lowest and the highest.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Table {
    fn hash(&self, id: &str) -> u32 {
        use std::hash::BuildHasher as _;
        self.hasher.hash_one(id) as u32
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn find(&self, id: &str) -> Option<Slot> {
        let found = self.by_id.find(spread(self.hash(id)), |slot| {
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

    /// The machine whose last word had this digest, if there is one: at `guess`, or by its id.
    ///
    /// A digest is over a whole record, its id included, so whoever has it is that machine and has not changed; no
    /// row and no id need be read to know it. Listings mostly repeat their order, so that the guess is mostly right.
    pub(crate) fn recognise<'r>(
        &self,
        guess: u32,
        digest: u128,
        id: impl FnOnce() -> &'r str,
    ) -> Option<Slot> {
        if self.heard.get(guess as usize).is_some_and(|heard| heard.digest == digest) {
            return Some(self.slot(guess));
        }
        let same = |place: &u32| self.heard[*place as usize].digest == digest;
        self.by_id.find(spread(self.hash(id())), same).map(|place| self.slot(*place))
    }

    /// What was heard of a machine that must be there.
    pub(crate) fn heard(&mut self, slot: Slot) -> &mut Heard {
        assert!(self.is_current(slot), "the slot is in use");
        &mut self.heard[slot.place as usize]
    }

    /// Whatever its provider says of a machine next must be read.
    pub(crate) fn unhear(&mut self, slot: Slot) {
        let heard = self.heard(slot);
        (heard.digest, heard.content) = (0, 0);
    }

    /// Machines that a listing did not name, whoever's they are.
    pub(crate) fn unnamed_in(&self, listing: u32) -> impl Iterator<Item = (Slot, &Row)> {
        let unnamed = self.heard.iter().enumerate().filter(move |(_, heard)| heard.listing != listing);
        unnamed.filter_map(|(place, _)| self.rows[place].as_ref().map(|row| (self.slot(place as u32), row)))
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

    /// Takes in a machine that a listing names, with the hash of what it says.
    pub(crate) fn insert(&mut self, row: Row, content: u64, listing: u32) -> Slot {
        let hash = self.hash(&row.machine.id);
        let heard = Heard { digest: 0, content, listing, hash };
        let place = self.free.pop().unwrap_or(self.rows.len() as u32);
        if place as usize == self.rows.len() {
            self.rows.push(Some(row));
            self.heard.push(heard);
            self.lives.push(0);
        } else {
            debug_assert!(self.rows[place as usize].is_none(), "a free place is empty");
            self.rows[place as usize] = Some(row);
            self.heard[place as usize] = heard;
        }
        self.len += 1;
        let heard = &self.heard;
        self.by_id.insert_unique(spread(hash), place, |place| spread(heard[*place as usize].hash));
        self.slot(place)
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Row> {
        self.get(slot)?;
        let row = self.rows[slot.place as usize].take()?;
        let heard = std::mem::take(&mut self.heard[slot.place as usize]);
        if let Ok(entry) = self.by_id.find_entry(spread(heard.hash), |other| *other == slot.place) {
            entry.remove();
        }
        self.len -= 1;
        // 2^32 machines later a slot repeats; nothing stays open that long.
        let life = &mut self.lives[slot.place as usize];
        *life = life.wrapping_add(1);
        self.free.push(slot.place);
        Some(row)
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
            told: MachineState::Speculative,
            since: 0,
            touched: 0,
            missed: false,
            care: Care::Fine,
            words: Words::default(),
            refusals: 0,
            flight: None,
            memo: None,
            shown: false,
            is_beyond_quota: false,
        }
    }

    #[test]
    fn slots_are_found_by_id_and_their_places_used_again() {
        let mut table = Table::default();
        let slots: Vec<Slot> = (0..1000).map(|n| table.insert(row(&format!("m-{n}")), 1, 0)).collect();
        assert_eq!((table.len(), table.find("m-417")), (1000, Some(slots[417])));
        assert_eq!(&*table.remove(slots[417]).unwrap().machine.id, "m-417");
        assert_eq!((table.len(), table.find("m-417"), table.get(slots[417]).is_none()), (999, None, true));
        let other = table.insert(row("other"), 1, 0);
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
    #[test]
    fn a_record_is_known_again_by_its_digest_alone() {
        let mut table = Table::default();
        let slots: Vec<Slot> = (0..1000).map(|n| table.insert(row(&format!("m-{n}")), 1, 0)).collect();
        for (n, slot) in slots.iter().enumerate() {
            table.heard(*slot).digest = 1000 + n as u128;
        }
        let never = || -> &str { panic!("the guess was right") };
        assert_eq!(table.recognise(slots[7].place(), 1007, never), Some(slots[7]));
        assert_eq!(table.recognise(u32::MAX, 1007, || "m-7"), Some(slots[7]));
        assert_eq!(table.recognise(slots[7].place(), 1008, || "m-8"), Some(slots[8]));
        // Another machine's digest is no proof, and neither is a digest of before.
        assert_eq!(table.recognise(0, 1008, || "m-9"), None);
        table.unhear(slots[8]);
        assert_eq!(
            (table.recognise(slots[8].place(), 1008, || "m-8"), table.find("m-8")),
            (None, Some(slots[8]))
        );
        table.heard(slots[3]).listing = 5;
        assert_eq!(table.unnamed_in(5).count(), 999);
        table.remove(slots[9]);
        assert_eq!(
            (table.recognise(slots[9].place(), 1009, || "m-9"), table.unnamed_in(5).count()),
            (None, 998)
        );
    }
}
