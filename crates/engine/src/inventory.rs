//! The inventory: one row per machine, and what changed since the indexes last looked.
//!
//! A machine's number is the number of its id, so an id that comes back finds its old row. Writing a row is
//! cheap: it is compared, stored, and remembered as changed together with what it was before. The indexes
//! catch up once, at the start of the next cycle, however often a machine changed in between.

mod row;

use std::sync::Arc;

use bigfleet_model::machine::{Machine, MachineError};

use crate::intern::{Map, Strings};
use crate::paged::Paged;
use crate::vocab::Vocabulary;

pub(crate) use row::Row;

/// What became of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// A machine we did not know.
    New,
    /// Something about it changed.
    Changed,
    /// Nothing the engine looks at changed.
    Unchanged,
}

/// All machines by number.
#[derive(Clone, Default)]
pub(crate) struct Inventory {
    ids: Arc<Strings>,
    rows: Paged<Row>,
    /// Machines in id order; those not yet numbered are in `unnumbered`.
    by_id: Arc<Vec<u32>>,
    unnumbered: Vec<u32>,
    /// What changed since the indexes last looked, as it was then, and where each machine stands in that list.
    changed: Vec<(u32, Row)>,
    place_in_changed: Map<u32, u32>,
    live: usize,
    revision: u64,
    /// Grows when all places in the order of ids get new numbers.
    numbering: u64,
}

/// The space left between two neighbours when all ids are numbered anew.
const GAP: u64 = 1 << 36;

impl Inventory {
    pub(crate) fn row(&self, machine: u32) -> &Row {
        self.rows.get(machine)
    }

    pub(crate) fn id(&self, machine: u32) -> &str {
        self.ids.get(machine)
    }

    /// The number of a known machine.
    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.ids.lookup(id).filter(|machine| self.row(*machine).state.is_some())
    }

    /// How many machines are known.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// How many rows of machines that are gone there are.
    pub(crate) fn removed(&self) -> usize {
        self.rows.len() - self.live
    }

    /// One above the largest machine number.
    pub(crate) fn bound(&self) -> usize {
        self.rows.len()
    }

    /// Grows with every change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Grows when all places in the order of ids get new numbers; the order itself stays.
    pub(crate) fn numbering(&self) -> u64 {
        self.numbering
    }

    /// All rows by number, known or not.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, &Row)> {
        (0..).zip(self.rows.iter())
    }

    /// The machines in id order. Valid after [`Self::number_new_ids`].
    pub(crate) fn in_id_order(&self) -> &Arc<Vec<u32>> {
        &self.by_id
    }

    /// Takes in what a provider or the shard says about a machine.
    pub(crate) fn observe(
        &mut self,
        vocab: &mut Vocabulary,
        machine: &Machine,
    ) -> Result<Observed, MachineError> {
        machine.check()?;
        let number = self.ids.lookup(&*machine.id).unwrap_or_else(|| {
            let number = Arc::make_mut(&mut self.ids).intern(&*machine.id);
            self.rows.push(Row::default());
            self.unnumbered.push(number);
            number
        });
        let old = *self.rows.get(number);
        if old.is_of(vocab, machine) {
            return Ok(Observed::Unchanged);
        }
        let row = Row { order: old.order, ..Row::of(vocab, machine) };
        debug_assert!(row != old, "a row that is not the machine's differs from it");
        self.write(number, old, row);
        Ok(if old.state.is_none() { Observed::New } else { Observed::Changed })
    }

    /// Forgets a machine; false if it was not known.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        let Some(number) = self.find(id) else { return false };
        let old = *self.rows.get(number);
        self.write(number, old, Row { order: old.order, ..Row::default() });
        true
    }

    fn write(&mut self, number: u32, old: Row, new: Row) {
        self.live = self.live + usize::from(new.state.is_some()) - usize::from(old.state.is_some());
        self.revision += 1;
        let next = self.changed.len() as u32;
        if *self.place_in_changed.entry(number).or_insert(next) == next {
            self.changed.push((number, old));
        }
        *self.rows.get_mut(number) = new;
    }

    /// The machines that changed since the last call, each with its row as it was then.
    pub(crate) fn take_changes(&mut self) -> Vec<(u32, Row)> {
        // Not cleared but dropped: after a full List it is as large as the fleet.
        self.place_in_changed = Map::default();
        std::mem::take(&mut self.changed)
    }

    /// Goes back to what the indexes last looked at.
    pub(crate) fn undo_changes(&mut self) {
        for (machine, old) in self.take_changes() {
            let new = self.rows.get_mut(machine);
            self.live = self.live + usize::from(old.state.is_some()) - usize::from(new.state.is_some());
            *new = old;
        }
        self.revision += 1;
    }

    /// A machine as the last cycle saw it, whatever was observed since.
    pub(crate) fn decided(&self, machine: u32) -> &Row {
        match self.place_in_changed.get(&machine) {
            Some(place) => &self.changed[*place as usize].1,
            None => self.row(machine),
        }
    }

    /// All rows by number, as the last cycle saw them.
    pub(crate) fn decided_rows(&self) -> impl Iterator<Item = (u32, &Row)> {
        let all_stand = self.changed.is_empty();
        self.rows().map(move |(machine, row)| (machine, if all_stand { row } else { self.decided(machine) }))
    }

    /// The number of a machine the last cycle knew.
    pub(crate) fn find_decided(&self, id: &str) -> Option<u32> {
        self.ids.lookup(id).filter(|machine| self.decided(*machine).state.is_some())
    }

    /// Gives new ids their place in the order of ids.
    ///
    /// Orders are compared constantly and ids are long, so each machine carries a number that orders like
    /// its id. Numbers leave room between them; when a place runs out of room, all are numbered anew, which
    /// changes no order.
    pub(crate) fn number_new_ids(&mut self) {
        let mut new = std::mem::take(&mut self.unnumbered);
        if new.is_empty() {
            return;
        }
        sort_by_id(&mut new, &self.ids);
        let (old, ids) = (&self.by_id, &self.ids);
        let mut merged = Vec::with_capacity(old.len() + new.len());
        let mut rest = &old[..];
        for machine in &new {
            let before = rest.partition_point(|other| ids.get(*other) < ids.get(*machine));
            merged.extend_from_slice(&rest[..before]);
            merged.push(*machine);
            rest = &rest[before..];
        }
        merged.extend_from_slice(rest);
        self.by_id = Arc::new(merged);
        if old_is_small(new.len(), self.by_id.len()) || !self.squeeze_in(&new) {
            self.numbering += 1;
            let order = self.by_id.clone();
            for (place, machine) in (1..).zip(order.iter()) {
                self.rows.get_mut(*machine).order = place * GAP;
            }
        }
    }

    /// Numbers new machines between their neighbours; false if there is no room somewhere.
    fn squeeze_in(&mut self, new: &[u32]) -> bool {
        let order = self.by_id.clone();
        let mut at = 0;
        for machine in new {
            at += order[at..].iter().position(|m| m == machine).expect("a new machine is in the order");
            let below = at.checked_sub(1).map_or(0, |before| self.row(order[before]).order);
            // The next machine may be new and unnumbered as well: look for the next one that has a number.
            let above = order[at + 1..].iter().map(|m| self.row(*m).order).find(|order| *order != 0);
            let above = above.unwrap_or(below.saturating_add(2 * GAP));
            let middle = below + (above - below) / 2;
            if middle == below {
                return false;
            }
            self.rows.get_mut(*machine).order = middle;
        }
        true
    }

    /// Drops the rows of machines that are gone and numbers the others anew, by id. What is noted as changed
    /// is dropped too: no index can follow this.
    pub(crate) fn forget_removed(&mut self) {
        self.number_new_ids();
        self.take_changes();
        if self.removed() == 0 {
            return;
        }
        let (mut ids, mut rows) = (Strings::default(), Paged::default());
        let known = self.by_id.iter().copied().filter(|machine| self.row(*machine).state.is_some());
        for (place, machine) in (1..).zip(known) {
            ids.intern(self.id(machine));
            rows.push(Row { order: place * GAP, ..*self.row(machine) });
        }
        self.by_id = Arc::new((0..rows.len() as u32).collect());
        (self.ids, self.rows) = (Arc::new(ids), rows);
    }

    /// Rewrites the row of every known machine, when the numbers in it are to stand for something else.
    pub(crate) fn rewrite(&mut self, mut write: impl FnMut(&mut Row)) {
        for machine in 0..self.rows.len() as u32 {
            if self.row(machine).state.is_some() {
                write(self.rows.get_mut(machine));
            }
        }
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.ids.heap_bytes()
            + self.rows.heap_bytes()
            + self.by_id.capacity() * 4
            + self.place_in_changed.allocation_size()
            + self.changed.capacity() * size_of::<(u32, Row)>()
    }
}

/// When most ids are new, numbering all of them is the cheaper way.
fn old_is_small(new: usize, all: usize) -> bool {
    new > 64 && new > all / 16
}

/// Sorts machines by the bytes of their ids.
///
/// Ids of one fleet mostly share a prefix, so eight bytes after it usually decide.
fn sort_by_id(machines: &mut Vec<u32>, ids: &Strings) {
    let Some(first) = machines.first().map(|m| ids.get(*m).as_bytes()) else { return };
    let shared = machines.iter().fold(first.len(), |shared, m| {
        first[..shared].iter().zip(ids.get(*m).as_bytes()).take_while(|(a, b)| a == b).count()
    });
    let mut keyed: Vec<(u64, u32)> = machines
        .iter()
        .map(|m| {
            let mut head = [0; 8];
            let rest = &ids.get(*m).as_bytes()[shared..];
            let len = rest.len().min(8);
            head[..len].copy_from_slice(&rest[..len]);
            (u64::from_be_bytes(head), *m)
        })
        .collect();
    keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| ids.get(a.1).cmp(ids.get(b.1))));
    machines.clear();
    machines.extend(keyed.into_iter().map(|(_, m)| m));
}

#[cfg(test)]
mod tests {
    use bigfleet_model::machine::MachineState;

    use super::*;

    fn observe(inventory: &mut Inventory, vocab: &mut Vocabulary, id: &str) {
        inventory.observe(vocab, &Machine::new(id, MachineState::Speculative)).unwrap();
    }

    #[test]
    fn orders_agree_with_ids_however_they_arrive() {
        let (mut inventory, mut vocab) = (Inventory::default(), Vocabulary::default());
        let mut ids: Vec<String> = (0..300).map(|n| format!("machine-{:x}", n * 7919 % 1009)).collect();
        for batch in ids.chunks(37) {
            for id in batch {
                observe(&mut inventory, &mut vocab, id);
            }
            inventory.number_new_ids();
        }
        // One place, again and again, until the room between its neighbours is used up.
        for n in 0..100 {
            let id = format!("machine-1{}", "0".repeat(n));
            observe(&mut inventory, &mut vocab, &id);
            inventory.number_new_ids();
            ids.push(id);
        }
        ids.sort_unstable();
        ids.dedup();
        let listed: Vec<&str> = inventory.in_id_order().iter().map(|m| inventory.id(*m)).collect();
        assert_eq!(listed, ids);
        let orders: Vec<u64> = inventory.in_id_order().iter().map(|m| inventory.row(*m).order).collect();
        assert!(orders.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_row_is_one_cache_line() {
        assert!(size_of::<Row>() <= 64, "{} bytes", size_of::<Row>());
    }

    #[test]
    fn repeated_and_equal_observations_are_told_apart() {
        let (mut inventory, mut vocab) = (Inventory::default(), Vocabulary::default());
        let mut machine = Machine::new("m", MachineState::Speculative);
        let mut tell = |machine: &Machine| inventory.observe(&mut vocab, machine).unwrap();
        assert_eq!(tell(&machine), Observed::New);
        assert_eq!(tell(&machine), Observed::Unchanged);
        machine.price_usd_per_hour = 2.0;
        assert_eq!(tell(&machine), Observed::Changed);
        machine.price_usd_per_hour = f64::NAN;
        assert!(inventory.observe(&mut vocab, &machine).is_err());
        assert!(inventory.remove("m") && !inventory.remove("m"));
        assert_eq!(
            (inventory.len(), inventory.take_changes().len(), inventory.take_changes().len()),
            (0, 1, 0)
        );
    }
}
