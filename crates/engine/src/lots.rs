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

use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::classes::Classes;
use crate::intern::{NONE, hash_one};
use crate::inventory::Inventory;

/// Machines of one class and rank, by id.
#[derive(Clone)]
pub(crate) struct Lot {
    pub(crate) class: u32,
    pub(crate) rank: u32,
    pub(crate) machines: Vec<u32>,
}

/// The machines of one lot that lie in one domain, by id.
#[derive(Clone)]
pub(crate) struct Cell {
    pub(crate) lot: u32,
    /// The domain, as numbered by [`Classes`].
    pub(crate) value: u32,
    machines: List,
}

#[derive(Clone)]
enum List {
    /// As built: a piece of the domain's long list.
    Built { start: u32, len: u32 },
    /// Changed since.
    Own(Vec<u32>),
}

/// The cells of one domain key.
#[derive(Clone, Default)]
pub(crate) struct Domain {
    pub(crate) cells: Vec<Cell>,
    built: Vec<u32>,
    /// The cells of each lot, by value.
    of_lot: Vec<Vec<u32>>,
    /// The cells of each value.
    of_value: Vec<SmallVec<[u32; 6]>>,
    empty: usize,
}

/// All lots and cells of one kind of supply.
#[derive(Clone, Default)]
pub(crate) struct Lots {
    #[expect(clippy::struct_field_names, reason = "the lots are what this index is of")]
    pub(crate) lots: Vec<Lot>,
    index: HashTable<u32>,
    by_class: Vec<Vec<u32>>,
    pub(crate) domains: Vec<Domain>,
    empty: usize,
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
        for end in &mut ends {
            // For now where the lot begins; filling it in moves this to where it ends.
            total += std::mem::replace(end, total);
        }
        let mut sorted = vec![(0_u64, 0_u32, 0_u32); newcomers.len()];
        for (Newcomer { machine, order, place }, lot) in newcomers.iter().zip(&lot_of) {
            let end = &mut ends[*lot as usize];
            sorted[*end as usize] = (*order, *machine, place.kind);
            *end += 1;
        }
        let domains = classes.domains().len();
        lots.domains = (0..domains)
            .map(|domain| Domain::with_room(classes.domain_len(domain), lots.lots.len()))
            .collect();
        let (mut start, mut scratch) = (0, Vec::new());
        for (number, end) in (0..).zip(ends) {
            let members = &mut sorted[start..end as usize];
            start = end as usize;
            if !members.is_sorted() {
                members.sort_unstable();
            }
            lots.lots[number as usize].machines = members.iter().map(|(_, machine, _)| *machine).collect();
            for (at, domain) in lots.domains.iter_mut().enumerate() {
                let values = members.iter().map(|(_, _, kind)| classes.domain_of_kind(at, *kind));
                domain.split(number, values, &lots.lots[number as usize].machines, &mut scratch);
            }
        }
        lots.empty = 0;
        lots
    }

    /// The lots of a class.
    pub(crate) fn of_class(&self, class: u32) -> &[u32] {
        self.by_class.get(class as usize).map_or(&[], Vec::as_slice)
    }

    /// The cells of a class under one domain key.
    pub(crate) fn cells_of_class(&self, domain: usize, class: u32) -> impl Iterator<Item = u32> + '_ {
        let of_lot = &self.domains[domain].of_lot;
        self.of_class(class).iter().flat_map(|lot| of_lot.get(*lot as usize).into_iter().flatten()).copied()
    }

    /// Adds a machine at its place in the id order. Returns its lot.
    pub(crate) fn insert(
        &mut self,
        machine: u32,
        place: Place,
        classes: &Classes,
        inventory: &Inventory,
    ) -> u32 {
        let lot = self.lot(place.class, place.rank);
        let list = &mut self.lots[lot as usize].machines;
        self.empty -= usize::from(list.is_empty());
        insert_by_id(list, machine, inventory);
        for (at, domain) in self.domains.iter_mut().enumerate() {
            let value = classes.domain_of_kind(at, place.kind);
            if value != NONE {
                let list = domain.list_mut(lot, value);
                let was_empty = list.is_empty();
                insert_by_id(list, machine, inventory);
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
        let lot = self.lot(place.class, place.rank);
        let list = &mut self.lots[lot as usize].machines;
        remove_by_id(list, machine, inventory);
        self.empty += usize::from(list.is_empty());
        for (at, domain) in self.domains.iter_mut().enumerate() {
            let value = classes.domain_of_kind(at, place.kind);
            if value != NONE {
                let list = domain.list_mut(lot, value);
                remove_by_id(list, machine, inventory);
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
        self.lots.push(Lot { class, rank, machines: Vec::new() });
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
        let lots: usize =
            self.lots.iter().map(|lot| lot.machines.capacity() * 4 + size_of::<Lot>() + 8).sum();
        lots + self.index.allocation_size() + self.domains.iter().map(Domain::heap_bytes).sum::<usize>()
    }
}

impl Domain {
    fn with_room(values: usize, lots: usize) -> Self {
        Self { of_value: vec![SmallVec::new(); values], of_lot: Vec::with_capacity(lots), ..Self::default() }
    }

    /// Splits the next lot into cells; `values` are the domains of its machines.
    fn split(
        &mut self,
        lot: u32,
        values: impl Iterator<Item = u32>,
        machines: &[u32],
        scratch: &mut Vec<u64>,
    ) {
        // A domain and a place in the lot: sorting groups the domains and keeps the ids in order.
        scratch.clear();
        scratch.extend((0_u64..).zip(values).map(|(place, value)| u64::from(value) << 32 | place));
        if !scratch.is_sorted() {
            scratch.sort_unstable();
        }
        let mut cells = Vec::new();
        for group in scratch.chunk_by(|a, b| a >> 32 == b >> 32) {
            let value = (group[0] >> 32) as u32;
            if value == NONE {
                continue;
            }
            let cell = self.cells.len() as u32;
            let (start, len) = (self.built.len() as u32, group.len() as u32);
            self.built.extend(group.iter().map(|entry| machines[*entry as u32 as usize]));
            self.cells.push(Cell { lot, value, machines: List::Built { start, len } });
            self.of_value[value as usize].push(cell);
            cells.push(cell);
        }
        self.of_lot.push(cells);
    }

    /// The cells of a value.
    pub(crate) fn of_value(&self, value: u32) -> &[u32] {
        self.of_value.get(value as usize).map_or(&[], |cells| cells.as_slice())
    }

    /// A cell's machines, by id.
    #[inline]
    pub(crate) fn machines(&self, cell: u32) -> &[u32] {
        match &self.cells[cell as usize].machines {
            List::Built { start, len } => &self.built[*start as usize..][..*len as usize],
            List::Own(machines) => machines,
        }
    }

    /// The cell of a lot's machines with this value, if there is one.
    pub(crate) fn find(&self, lot: u32, value: u32) -> Option<u32> {
        let cells = self.of_lot.get(lot as usize)?;
        cells.binary_search_by_key(&value, |cell| self.cells[*cell as usize].value).ok().map(|at| cells[at])
    }

    /// The machines of a cell, made if there is none, about to change.
    fn list_mut(&mut self, lot: u32, value: u32) -> &mut Vec<u32> {
        let number = self.find(lot, value).unwrap_or_else(|| self.add_cell(lot, value));
        if let List::Built { .. } = self.cells[number as usize].machines {
            let machines = self.machines(number).to_vec();
            self.cells[number as usize].machines = List::Own(machines);
        }
        match &mut self.cells[number as usize].machines {
            List::Own(machines) => machines,
            List::Built { .. } => unreachable!("the cell was just given a list of its own"),
        }
    }

    fn add_cell(&mut self, lot: u32, value: u32) -> u32 {
        let number = self.cells.len() as u32;
        self.cells.push(Cell { lot, value, machines: List::Own(Vec::new()) });
        self.empty += 1;
        if self.of_lot.len() <= lot as usize {
            self.of_lot.resize(lot as usize + 1, Vec::new());
        }
        let cells = &self.cells;
        let of_lot = &mut self.of_lot[lot as usize];
        let at = of_lot.partition_point(|cell| cells[*cell as usize].value < value);
        of_lot.insert(at, number);
        if self.of_value.len() <= value as usize {
            self.of_value.resize(value as usize + 1, SmallVec::new());
        }
        self.of_value[value as usize].push(number);
        number
    }

    fn heap_bytes(&self) -> usize {
        let own = |cell: &Cell| if let List::Own(list) = &cell.machines { list.capacity() * 4 } else { 0 };
        let cells = self.cells.capacity() * size_of::<Cell>() + self.cells.iter().map(own).sum::<usize>();
        let of_lot: usize = self.of_lot.iter().map(|cells| cells.capacity() * 4 + 24).sum();
        cells + self.built.capacity() * 4 + of_lot + self.of_value.capacity() * 32
    }
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
