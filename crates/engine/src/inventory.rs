//! The inventory: one row per machine, and what changed since the indexes last looked.
//!
//! A machine's number is the number of its id, so an id that comes back finds its old row. Writing a row is
//! cheap: it is compared, stored, and remembered as changed together with what it was before. The indexes
//! catch up once, at the start of the next cycle, however often a machine changed in between.

use std::cmp::Ordering;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineError, MachineState};

use crate::intern::{Map, NONE, Strings};
use crate::paged::Paged;
use crate::vocab::{Vocabulary, Worth};

/// Everything the decisions read of one machine: one cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    /// Orders machines by id; see [`Inventory::number_new_ids`].
    pub(crate) order: u64,
    pub(crate) price: f64,
    pub(crate) reclamation_usd: f64,
    /// Since when it is Idle, if `stamped`.
    pub(crate) idle_since: i64,
    pub(crate) kind: u32,
    /// The cluster it is bound to, or [`NONE`].
    pub(crate) cluster: u32,
    /// The identity of the need it was bound or is being created for, or [`NONE`].
    pub(crate) key: u32,
    pub(crate) worth: u32,
    pub(crate) terms: u32,
    /// The identity of the need it is draining for, or [`NONE`].
    pub(crate) draining_for: u32,
    /// `None`: no machine of this id is known any more.
    pub(crate) state: Option<MachineState>,
    pub(crate) capacity: CapacityType,
    pub(crate) stamped: bool,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            order: 0,
            price: 0.0,
            reclamation_usd: 0.0,
            idle_since: 0,
            kind: 0,
            cluster: NONE,
            key: NONE,
            worth: 0,
            terms: 0,
            draining_for: NONE,
            state: None,
            capacity: CapacityType::Unspecified,
            stamped: false,
        }
    }
}

impl Row {
    /// Keep order: price up, reclamation penalty down, id up.
    #[inline]
    pub(crate) fn cmp_keep(&self, other: &Self) -> Ordering {
        self.price
            .total_cmp(&other.price)
            .then_with(|| other.reclamation_usd.total_cmp(&self.reclamation_usd))
            .then_with(|| self.order.cmp(&other.order))
    }
}

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
        let number = self.ids.lookup(&machine.id).unwrap_or_else(|| {
            let number = Arc::make_mut(&mut self.ids).intern(&machine.id);
            self.rows.push(Row::default());
            self.unnumbered.push(number);
            number
        });
        let old = *self.rows.get(number);
        let row = Row { order: old.order, ..row_of(vocab, machine) };
        if row == old {
            return Ok(Observed::Unchanged);
        }
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
        self.place_in_changed.clear();
        std::mem::take(&mut self.changed)
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
        (0..self.rows.len() as u32).map(|machine| (machine, self.decided(machine)))
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

/// The row of a machine, without its place in the order of ids.
fn row_of(vocab: &mut Vocabulary, machine: &Machine) -> Row {
    let stamp = &machine.assigned;
    let cluster = if machine.state.is_bound() && !machine.cluster.is_empty() {
        vocab.cluster(&machine.cluster)
    } else {
        NONE
    };
    let key = if stamp.fingerprint.is_empty() {
        NONE
    } else if cluster == NONE {
        vocab.key(&stamp.cluster, &stamp.fingerprint, &stamp.group)
    } else {
        vocab.key(&machine.cluster, &stamp.fingerprint, &stamp.group)
    };
    let worth = Worth {
        priority: stamp.priority,
        interruption_usd: stamp.interruption_penalty_usd,
        reclamation_usd: stamp.reclamation_penalty_usd,
    };
    let draining_for = match &machine.draining_for {
        Some(need) if machine.state == MachineState::Draining => {
            vocab.key(&need.cluster, &need.fingerprint, &need.group)
        }
        _ => NONE,
    };
    let idle_since = machine.idle_since_unix_nanos.filter(|_| machine.state == MachineState::Idle);
    Row {
        order: 0,
        price: machine.price_usd_per_hour,
        reclamation_usd: worth.reclamation_usd,
        idle_since: idle_since.unwrap_or_default(),
        kind: vocab.kind(machine),
        cluster,
        key,
        worth: vocab.worth(worth),
        terms: vocab.terms(machine.price_usd_per_hour, machine.interruption_probability),
        draining_for,
        state: Some(machine.state),
        capacity: machine.capacity_type,
        stamped: idle_since.is_some(),
    }
}

#[cfg(test)]
mod tests {
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
