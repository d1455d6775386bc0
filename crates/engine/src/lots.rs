//! Lots: machines of one class at one price, in id order.
//!
//! Every order the engine takes machines in is a cost that is equal within a lot, then the id. So a lot is
//! sorted once and for all, and taking the best machines is a merge of lots. For keys that name domains each
//! lot is also split into *cells*, one per value, so that the machines of one rack are at hand without
//! looking at the others.
//!
//! The same index serves free machines (a rank is a state and a price) and bound ones (a rank is what they
//! were worth when they were bound). It is built in one go without an allocation per cell: cells point into
//! one long list, and get a list of their own only when a machine comes or goes.

use crate::classes::Classes;
use crate::intern::{NONE, hash_one};
use crate::inventory::Inventory;
use std::sync::Arc;

use hashbrown::HashTable;

/// Machines of one class and rank, by id.
#[derive(Clone)]
pub(crate) struct Lot {
    pub(crate) class: u32,
    pub(crate) rank: u32,
    machines: List<Shelved>,
}

/// The machines of one lot that lie in one domain, by id.
#[derive(Clone)]
pub(crate) struct Cell {
    pub(crate) lot: u32,
    /// The domain, as numbered by [`Classes`].
    pub(crate) value: u32,
    machines: List<Shelved>,
}

/// A machine in a list that is in id order, with its place in that order: rows lie all over memory, and lists are compared and
/// merged by nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shelved {
    pub(crate) order: u64,
    pub(crate) machine: u32,
}

/// One of many short lists.
#[derive(Clone)]
enum List<T> {
    /// As built: a piece of the long list all of them were built into.
    Built { start: u32, len: u32 },
    /// Changed since.
    Own(Vec<T>),
}

impl<T: Copy> List<T> {
    const EMPTY: Self = Self::Own(Vec::new());

    #[inline]
    fn of<'l>(&'l self, built: &'l [T]) -> &'l [T] {
        match self {
            Self::Built { start, len } => &built[*start as usize..][..*len as usize],
            Self::Own(own) => own,
        }
    }

    /// The same about to change.
    fn of_mut(&mut self, built: &[T]) -> &mut Vec<T> {
        if let Self::Built { .. } = self {
            *self = Self::Own(self.of(built).to_vec());
        }
        match self {
            Self::Own(own) => own,
            Self::Built { .. } => unreachable!("the list was just given room of its own"),
        }
    }

    fn heap_bytes(&self) -> usize {
        if let Self::Own(own) = self { own.capacity() * size_of::<T>() } else { 0 }
    }
}

/// The cells of one domain key.
#[derive(Clone, Default)]
pub(crate) struct Domain {
    pub(crate) cells: Vec<Cell>,
    built: Vec<Shelved>,
    /// The cells of each lot, by value. As built these are numbers that follow each other.
    of_lot: Vec<List<u32>>,
    numbers: Vec<u32>,
    /// The cells of each value.
    of_value: Vec<List<u32>>,
    by_value: Vec<u32>,
    empty: usize,
}

/// All lots and cells of one kind of supply.
#[derive(Clone, Default)]
pub(crate) struct Lots {
    #[expect(clippy::struct_field_names, reason = "the lots are what this index is of")]
    pub(crate) lots: Vec<Lot>,
    built: Vec<Shelved>,
    index: HashTable<u32>,
    by_class: Vec<Vec<u32>>,
    pub(crate) domains: Vec<Domain>,
    empty: usize,
    /// Which numbering of ids the places in lists are of; `None` until somebody [follows](Self::follow) it.
    numbering: Option<u64>,
}

/// Where a machine belongs.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) class: u32,
    pub(crate) rank: u32,
    pub(crate) kind: u32,
}

/// A machine to be placed, with its place in the order of ids.
#[derive(Clone, Copy)]
pub(crate) struct Newcomer {
    pub(crate) machine: u32,
    pub(crate) order: u64,
    pub(crate) place: Place,
}

impl Lots {
    /// Builds all lots and cells. The machines may come in any order: reading them in the order they lie in
    /// memory and sorting the short lots afterwards is faster than visiting them by id.
    pub(crate) fn build(newcomers: &[Newcomer], classes: &Classes) -> Self {
        let mut lots = Self::default();
        let mut lot_of = Vec::with_capacity(newcomers.len());
        let mut ends: Vec<u32> = Vec::new();
        for Newcomer { place, .. } in newcomers {
            let lot = lots.lot(place.class, place.rank);
            ends.resize(lots.lots.len(), 0);
            ends[lot as usize] += 1;
            lot_of.push(lot);
        }
        let mut total = 0;
        for (end, lot) in ends.iter_mut().zip(&mut lots.lots) {
            lot.machines = List::Built { start: total, len: *end };
            // For now where the lot begins; filling it in moves this to where it ends.
            total += std::mem::replace(end, total);
        }
        let mut sorted = vec![(Shelved::default(), 0_u32); newcomers.len()];
        for (Newcomer { machine, order, place }, lot) in newcomers.iter().zip(&lot_of) {
            let end = &mut ends[*lot as usize];
            sorted[*end as usize] = (Shelved { order: *order, machine: *machine }, place.kind);
            *end += 1;
        }
        let mut start = 0;
        for end in &ends {
            let members = &mut sorted[start..*end as usize];
            if !members.is_sorted_by_key(|(one, _)| one.order) {
                members.sort_unstable_by_key(|(one, _)| one.order);
            }
            start = *end as usize;
        }
        let (built, kinds): (Vec<Shelved>, Vec<u32>) = sorted.into_iter().unzip();
        lots.built = built;
        let domain = |at: usize| Domain::build(at, &lots, &ends, &kinds, classes);
        lots.domains = (0..classes.domains().len()).map(domain).collect();
        lots.empty = 0;
        lots
    }

    /// Follows the numbering of ids: when all of them get new places in their order, lists take these over. To be called when they
    /// were built, and whenever new ids may have come since.
    pub(crate) fn follow(lots: &mut Arc<Self>, inventory: &Inventory) {
        if lots.numbering != Some(inventory.numbering()) {
            Arc::make_mut(lots).catch_up(inventory);
        }
    }

    fn catch_up(&mut self, inventory: &Inventory) {
        let before = self.numbering.replace(inventory.numbering());
        if before.is_none_or(|before| before == inventory.numbering()) {
            return;
        }
        let renumber = |one: &mut Shelved| one.order = inventory.row(one.machine).order;
        let Self { lots, built, domains, .. } = self;
        let cells = domains.iter_mut().flat_map(|domain| &mut domain.cells).map(|cell| &mut cell.machines);
        for list in lots.iter_mut().map(|lot| &mut lot.machines).chain(cells) {
            if let List::Own(own) = list {
                own.iter_mut().for_each(renumber);
            }
        }
        built.iter_mut().for_each(renumber);
        domains.iter_mut().flat_map(|domain| &mut domain.built).for_each(renumber);
    }

    /// A machine with its place.
    fn shelved(&mut self, machine: u32, inventory: &Inventory) -> Shelved {
        debug_assert!(self.numbering.is_some(), "what was built is followed");
        self.catch_up(inventory);
        Shelved { order: inventory.row(machine).order, machine }
    }

    /// The machines of a lot, by id.
    #[inline]
    pub(crate) fn machines(&self, lot: u32) -> &[Shelved] {
        self.lots[lot as usize].machines.of(&self.built)
    }

    /// The lots of a class.
    pub(crate) fn of_class(&self, class: u32) -> &[u32] {
        self.by_class.get(class as usize).map_or(&[], Vec::as_slice)
    }

    /// The cells of a class under one domain key.
    pub(crate) fn cells_of_class(&self, domain: usize, class: u32) -> impl Iterator<Item = u32> + '_ {
        let domain = &self.domains[domain];
        self.of_class(class).iter().flat_map(|lot| domain.of_lot(*lot)).copied()
    }

    /// Adds a machine at its place in the id order. Returns its lot.
    pub(crate) fn insert(
        &mut self,
        machine: u32,
        place: Place,
        classes: &Classes,
        inventory: &Inventory,
    ) -> u32 {
        let one = self.shelved(machine, inventory);
        let lot = self.lot(place.class, place.rank);
        let list = self.lots[lot as usize].machines.of_mut(&self.built);
        self.empty -= usize::from(list.is_empty());
        shelve(list, one);
        for (at, domain) in self.domains.iter_mut().enumerate() {
            let value = classes.domain_of_kind(at, place.kind);
            if value != NONE {
                let list = domain.list_mut(lot, value);
                let was_empty = list.is_empty();
                shelve(list, one);
                domain.empty -= usize::from(was_empty);
            }
        }
        lot
    }

    /// Takes a machine out. Returns the lot it lay in.
    pub(crate) fn remove(
        &mut self,
        machine: u32,
        place: Place,
        classes: &Classes,
        inventory: &Inventory,
    ) -> u32 {
        let one = self.shelved(machine, inventory);
        let lot = self.lot(place.class, place.rank);
        let list = self.lots[lot as usize].machines.of_mut(&self.built);
        unshelve(list, one);
        self.empty += usize::from(list.is_empty());
        for (at, domain) in self.domains.iter_mut().enumerate() {
            let value = classes.domain_of_kind(at, place.kind);
            if value != NONE {
                let list = domain.list_mut(lot, value);
                unshelve(list, one);
                domain.empty += usize::from(list.is_empty());
            }
        }
        lot
    }

    /// Whether so many lots or cells stand empty (prices move on, machines change racks) that building anew
    /// pays.
    pub(crate) fn is_sparse(&self) -> bool {
        let sparse = |empty: usize, all: usize| empty > 4096 && empty > all / 2;
        sparse(self.empty, self.lots.len()) || self.domains.iter().any(|d| sparse(d.empty, d.cells.len()))
    }

    /// The lot of a class and rank, if there is one.
    pub(crate) fn find(&self, class: u32, rank: u32) -> Option<u32> {
        let same = |lot: &u32| {
            let lot = &self.lots[*lot as usize];
            (lot.class, lot.rank) == (class, rank)
        };
        self.index.find(hash_one(&(class, rank)), same).copied()
    }

    /// The lot of a class and rank, made if there is none.
    fn lot(&mut self, class: u32, rank: u32) -> u32 {
        if let Some(lot) = self.find(class, rank) {
            return lot;
        }
        let number = self.lots.len() as u32;
        self.lots.push(Lot { class, rank, machines: List::EMPTY });
        self.empty += 1;
        let lots = &self.lots;
        self.index.insert_unique(hash_one(&(class, rank)), number, |lot| {
            let lot = &lots[*lot as usize];
            hash_one(&(lot.class, lot.rank))
        });
        if self.by_class.len() <= class as usize {
            self.by_class.resize(class as usize + 1, Vec::new());
        }
        self.by_class[class as usize].push(number);
        number
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let lots: usize = self.lots.iter().map(|lot| lot.machines.heap_bytes() + size_of::<Lot>() + 8).sum();
        lots + self.built.capacity() * size_of::<Shelved>()
            + self.index.allocation_size()
            + self.domains.iter().map(Domain::heap_bytes).sum::<usize>()
    }
}

impl Domain {
    /// Splits lots into cells. `ends` tells where in the long list of machines each lot ends, `kinds` of what kind these are.
    fn build(at: usize, lots: &Lots, ends: &[u32], kinds: &[u32], classes: &Classes) -> Self {
        let mut domain = Self { built: Vec::with_capacity(kinds.len()), ..Self::default() };
        let mut counts = vec![0; classes.domain_len(at)];
        // A domain and a place in the lot: sorting groups the domains and keeps the ids in order.
        let mut scratch: Vec<u64> = Vec::new();
        let mut start = 0;
        for (lot, end) in (0..).zip(ends.iter().copied()) {
            let places = start..end;
            start = end;
            scratch.clear();
            scratch.extend(places.map(|place| {
                let value = classes.domain_of_kind(at, kinds[place as usize]);
                u64::from(value) << 32 | u64::from(place)
            }));
            if !scratch.is_sorted() {
                scratch.sort_unstable();
            }
            let first = domain.cells.len() as u32;
            for group in scratch.chunk_by(|a, b| a >> 32 == b >> 32) {
                let value = (group[0] >> 32) as u32;
                if value == NONE {
                    continue;
                }
                let (start, len) = (domain.built.len() as u32, group.len() as u32);
                domain.built.extend(group.iter().map(|entry| lots.built[*entry as u32 as usize]));
                domain.cells.push(Cell { lot, value, machines: List::Built { start, len } });
                counts[value as usize] += 1;
            }
            let len = domain.cells.len() as u32 - first;
            domain.of_lot.push(List::Built { start: first, len });
        }
        domain.numbers = (0..domain.cells.len() as u32).collect();
        let (mut total, mut ends) = (0, Vec::with_capacity(counts.len()));
        for len in counts {
            domain.of_value.push(List::Built { start: total, len });
            ends.push(total);
            total += len;
        }
        domain.by_value = vec![0; domain.cells.len()];
        for (number, cell) in (0..).zip(&domain.cells) {
            let end = &mut ends[cell.value as usize];
            domain.by_value[*end as usize] = number;
            *end += 1;
        }
        domain
    }

    /// The cells of a lot, by value.
    fn of_lot(&self, lot: u32) -> &[u32] {
        self.of_lot.get(lot as usize).map_or(&[], |cells| cells.of(&self.numbers))
    }

    /// The cells of a value.
    pub(crate) fn of_value(&self, value: u32) -> &[u32] {
        self.of_value.get(value as usize).map_or(&[], |cells| cells.of(&self.by_value))
    }

    /// A cell's machines, by id.
    #[inline]
    pub(crate) fn machines(&self, cell: u32) -> &[Shelved] {
        self.cells[cell as usize].machines.of(&self.built)
    }

    /// The cell of a lot's machines with this value, if there is one.
    pub(crate) fn find(&self, lot: u32, value: u32) -> Option<u32> {
        let cells = self.of_lot(lot);
        cells.binary_search_by_key(&value, |cell| self.cells[*cell as usize].value).ok().map(|at| cells[at])
    }

    /// The machines of a cell, made if there is none, about to change.
    fn list_mut(&mut self, lot: u32, value: u32) -> &mut Vec<Shelved> {
        let number = self.find(lot, value).unwrap_or_else(|| self.add_cell(lot, value));
        self.cells[number as usize].machines.of_mut(&self.built)
    }

    fn add_cell(&mut self, lot: u32, value: u32) -> u32 {
        let number = self.cells.len() as u32;
        self.cells.push(Cell { lot, value, machines: List::EMPTY });
        self.empty += 1;
        if self.of_lot.len() <= lot as usize {
            self.of_lot.resize(lot as usize + 1, List::EMPTY);
        }
        let cells = &self.cells;
        let of_lot = self.of_lot[lot as usize].of_mut(&self.numbers);
        let at = of_lot.partition_point(|cell| cells[*cell as usize].value < value);
        of_lot.insert(at, number);
        if self.of_value.len() <= value as usize {
            self.of_value.resize(value as usize + 1, List::EMPTY);
        }
        self.of_value[value as usize].of_mut(&self.by_value).push(number);
        number
    }

    fn heap_bytes(&self) -> usize {
        let lists =
            |lists: &[List<u32>]| size_of_val(lists) + lists.iter().map(List::heap_bytes).sum::<usize>();
        let cells: usize = self.cells.iter().map(|cell| size_of::<Cell>() + cell.machines.heap_bytes()).sum();
        let built = self.built.capacity() * size_of::<Shelved>();
        let numbers = self.numbers.capacity() + self.by_value.capacity();
        cells + built + numbers * 4 + lists(&self.of_lot) + lists(&self.of_value)
    }
}

/// Puts a machine at its place.
fn shelve(list: &mut Vec<Shelved>, one: Shelved) {
    let at = list.partition_point(|other| other.order < one.order);
    list.insert(at, one);
}

/// Takes a machine out.
fn unshelve(list: &mut Vec<Shelved>, one: Shelved) {
    let at = list.partition_point(|other| other.order < one.order);
    assert_eq!(list.get(at), Some(&one), "an indexed machine is where the index put it");
    list.remove(at);
}

/// Puts a machine at its place in a list that is in id order.
pub(crate) fn insert_by_id(list: &mut Vec<u32>, machine: u32, inventory: &Inventory) {
    let order = inventory.row(machine).order;
    let at = list.partition_point(|other| inventory.row(*other).order < order);
    list.insert(at, machine);
}

/// Takes a machine out of a list that is in id order and holds it.
pub(crate) fn remove_by_id(list: &mut Vec<u32>, machine: u32, inventory: &Inventory) {
    let order = inventory.row(machine).order;
    let at = list.partition_point(|other| inventory.row(*other).order < order);
    assert_eq!(list.get(at), Some(&machine), "an indexed machine is where the index put it");
    list.remove(at);
}
