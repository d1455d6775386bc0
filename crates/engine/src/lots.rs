//! Lots: machines of one class at one price, in id order.
//!
//! Every order the engine takes machines in is a cost that is equal within a lot, then the id. So a lot is
//! sorted once and for all, and taking the best machines is a merge of lots. For keys that name domains each
//! lot is also split into *cells*, one per value, so that the machines of one rack are at hand without
//! looking at the others.
//!
//! The same index serves free machines (a rank is a state and a price) and bound ones (a rank is what they
//! were worth when they were bound).

use hashbrown::HashTable;

use crate::intern::{Map, NONE, Sym, hash_one};
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
    pub(crate) class: u32,
    pub(crate) value: Sym,
    pub(crate) machines: Vec<u32>,
}

/// The cells of one domain key.
#[derive(Clone, Default)]
pub(crate) struct Domain {
    pub(crate) cells: Vec<Cell>,
    index: HashTable<u32>,
    by_class: Vec<Vec<u32>>,
    by_value: Map<Sym, Vec<u32>>,
}

/// All lots and cells of one kind of supply.
#[derive(Clone, Default)]
pub(crate) struct Lots {
    pub(crate) lots: Vec<Lot>,
    index: HashTable<u32>,
    by_class: Vec<Vec<u32>>,
    pub(crate) domains: Vec<Domain>,
    empty: usize,
}

/// Where a machine belongs.
pub(crate) struct Place<'a> {
    pub(crate) class: u32,
    pub(crate) rank: u32,
    /// Its value for each domain key.
    pub(crate) values: &'a [Sym],
}

impl Lots {
    pub(crate) fn new(domains: usize) -> Self {
        Self { domains: vec![Domain::default(); domains], ..Self::default() }
    }

    /// The lots of a class.
    pub(crate) fn of_class(&self, class: u32) -> &[u32] {
        self.by_class.get(class as usize).map_or(&[], Vec::as_slice)
    }

    /// Adds a machine whose id is above all others already here.
    pub(crate) fn append(&mut self, machine: u32, place: &Place<'_>) {
        let lot = self.lot(place);
        self.lots[lot as usize].machines.push(machine);
        for (domain, value) in self.domains.iter_mut().zip(place.values) {
            if *value != NONE {
                let cell = domain.cell(lot, place.class, *value);
                domain.cells[cell as usize].machines.push(machine);
            }
        }
    }

    /// Adds a machine at its place in the id order.
    pub(crate) fn insert(&mut self, machine: u32, place: &Place<'_>, inventory: &Inventory) {
        let lot = self.lot(place);
        let list = &mut self.lots[lot as usize].machines;
        self.empty -= usize::from(list.is_empty());
        insert_by_id(list, machine, inventory);
        for (domain, value) in self.domains.iter_mut().zip(place.values) {
            if *value != NONE {
                let cell = domain.cell(lot, place.class, *value);
                insert_by_id(&mut domain.cells[cell as usize].machines, machine, inventory);
            }
        }
    }

    /// Takes a machine out.
    pub(crate) fn remove(&mut self, machine: u32, place: &Place<'_>, inventory: &Inventory) {
        let lot = self.lot(place);
        let list = &mut self.lots[lot as usize].machines;
        remove_by_id(list, machine, inventory);
        self.empty += usize::from(list.is_empty());
        for (domain, value) in self.domains.iter_mut().zip(place.values) {
            if *value != NONE {
                let cell = domain.cell(lot, place.class, *value);
                remove_by_id(&mut domain.cells[cell as usize].machines, machine, inventory);
            }
        }
    }

    /// Whether so many lots stand empty (prices move on) that building anew pays.
    pub(crate) fn is_sparse(&self) -> bool {
        self.empty > 4096 && self.empty > self.lots.len() / 2
    }

    /// The lot of a class and rank, if there is one.
    pub(crate) fn find(&self, class: u32, rank: u32) -> Option<u32> {
        let same = |lot: &u32| {
            let lot = &self.lots[*lot as usize];
            (lot.class, lot.rank) == (class, rank)
        };
        self.index.find(hash_one(&(class, rank)), same).copied()
    }

    /// The lot of a place, made if there is none.
    fn lot(&mut self, place: &Place<'_>) -> u32 {
        if let Some(lot) = self.find(place.class, place.rank) {
            return lot;
        }
        let number = self.lots.len() as u32;
        self.lots.push(Lot { class: place.class, rank: place.rank, machines: Vec::new() });
        self.empty += 1;
        let lots = &self.lots;
        self.index.insert_unique(hash_one(&(place.class, place.rank)), number, |lot| {
            let lot = &lots[*lot as usize];
            hash_one(&(lot.class, lot.rank))
        });
        list_under(&mut self.by_class, place.class, number);
        number
    }

    /// Counts empty lots afresh after a bulk build with [`Self::append`].
    pub(crate) fn recount(&mut self) {
        self.empty = self.lots.iter().filter(|lot| lot.machines.is_empty()).count();
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let list = |machines: &Vec<u32>| machines.capacity() * 4;
        let lots: usize = self.lots.iter().map(|lot| list(&lot.machines) + size_of::<Lot>()).sum();
        let cells = |domain: &Domain| {
            let cells: usize = domain.cells.iter().map(|cell| list(&cell.machines) + size_of::<Cell>()).sum();
            cells + domain.cells.len() * 16 + domain.index.allocation_size()
        };
        lots + self.index.allocation_size()
            + self.lots.len() * 8
            + self.domains.iter().map(cells).sum::<usize>()
    }
}

impl Domain {
    /// The cells of a class.
    pub(crate) fn of_class(&self, class: u32) -> &[u32] {
        self.by_class.get(class as usize).map_or(&[], Vec::as_slice)
    }

    /// The cells of a value.
    pub(crate) fn of_value(&self, value: Sym) -> &[u32] {
        self.by_value.get(&value).map_or(&[], Vec::as_slice)
    }

    /// The cell of a lot's machines with this value, if there is one.
    pub(crate) fn find(&self, lot: u32, value: Sym) -> Option<u32> {
        let same = |cell: &u32| {
            let cell = &self.cells[*cell as usize];
            (cell.lot, cell.value) == (lot, value)
        };
        self.index.find(hash_one(&(lot, value)), same).copied()
    }

    fn cell(&mut self, lot: u32, class: u32, value: Sym) -> u32 {
        if let Some(cell) = self.find(lot, value) {
            return cell;
        }
        let number = self.cells.len() as u32;
        self.cells.push(Cell { lot, class, value, machines: Vec::new() });
        let cells = &self.cells;
        self.index.insert_unique(hash_one(&(lot, value)), number, |cell| {
            let cell = &cells[*cell as usize];
            hash_one(&(cell.lot, cell.value))
        });
        list_under(&mut self.by_class, class, number);
        self.by_value.entry(value).or_default().push(number);
        number
    }
}

fn list_under(lists: &mut Vec<Vec<u32>>, at: u32, entry: u32) {
    if lists.len() <= at as usize {
        lists.resize(at as usize + 1, Vec::new());
    }
    lists[at as usize].push(entry);
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
