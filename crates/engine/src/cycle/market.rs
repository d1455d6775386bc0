//! The free machines while a cycle goes on: who took what, and what is left for whom.
//!
//! Needs take from it strictly in precedence order. What is kept here for speed (stocks per penalty bucket, totals per
//! domain) notices later what happened meanwhile: every take and every return is written down, and whoever is used
//! again first catches up.

use std::sync::Arc;

use bigfleet_model::penalty::PenaltyBucket;

use crate::bits::Bits;
use crate::index::split_free_rank;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::bargain::{Bargain, CellShelf, Lines, Pick};
use super::book::Book;
use super::by_domain::FreeByDomain;
use super::choice::{Free, Totals};
use super::prices::{Asking, Tier};
use super::sets::SupplySets;
use super::sources::Sources;
use super::stock::{Ranks, Shelf, Stock, Touched};
use super::tables::{News, Origin, Tables};
use super::totals::DomainTotals;

/// What is kept of the free machines from cycle to cycle, by penalty bucket.
#[derive(Clone, Default)]
pub(crate) struct Stocks {
    by_bucket: Vec<Option<Arc<Stock>>>,
    /// The lots that changed since.
    pub(crate) touched: Touched,
    tables: Tables,
}

impl Stocks {
    /// Takes note of what the indexes followed: lots of free machines, and machines that came or went.
    pub(crate) fn note(
        &mut self,
        lots: impl ExactSizeIterator<Item = u32>,
        news: impl ExactSizeIterator<Item = News>,
    ) {
        self.touched.note(lots);
        self.tables.note_all(news);
    }
}

/// The free machines while needs take from them.
pub(crate) struct Market<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) sets: &'a mut SupplySets,
    stocks: &'a mut Stocks,
    /// The buckets whose stocks are in use.
    open: Vec<usize>,
    /// Machines taken so far.
    pub(crate) taken: Bits,
    /// By lot, how many of its first machines are taken.
    done: Vec<u32>,
    /// By class, how many free machines are left.
    left: Vec<u32>,
    ranks: Ranks,
    /// Every machine taken or returned.
    moves: Vec<(u32, bool)>,
}

impl<'a> Market<'a> {
    pub(crate) fn new(sources: Sources<'a>, sets: &'a mut SupplySets, stocks: &'a mut Stocks) -> Self {
        stocks.tables.open(Origin {
            generation: sources.index.generation,
            sets: sets.stamp(),
            dims: sources.vocab.dim_count(),
        });
        Self {
            sources,
            sets,
            stocks,
            open: Vec::new(),
            taken: Bits::with_bound(sources.inventory.bound()),
            done: vec![0; sources.index.free.lots.len()],
            left: sources.index.free_counts(),
            ranks: Ranks::default(),
            moves: Vec::new(),
        }
    }

    /// Closes the market: what was taken is free again for all who come in the next cycle, unless it is gone by then.
    pub(crate) fn close(self) {
        let Sources { inventory, index, .. } = self.sources;
        if Touched::is_too_much(self.moves.len()) {
            self.stocks.touched.note_all();
            self.stocks.tables.forget();
            return;
        }
        for (machine, was_taken) in &self.moves {
            self.stocks.tables.note(News { kind: inventory.row(*machine).kind, came: *was_taken });
        }
        let lot = |(machine, _): &(u32, bool)| {
            index.free_lot(self.sources.class_of(*machine), inventory.row(*machine))
        };
        self.stocks.touched.note(self.moves.iter().map(lot));
    }

    /// The number of the set of classes that count for a need.
    pub(crate) fn set(&mut self, demand: &Demand) -> u32 {
        self.sets.number(demand, self.sources.classes, self.sources.sets)
    }

    /// Opens the stock of a bucket.
    pub(super) fn open(&mut self, bucket: PenaltyBucket) {
        let at = bucket.ordinal();
        if self.open.contains(&at) {
            return;
        }
        self.open.push(at);
        let Stocks { by_bucket, touched, .. } = &mut *self.stocks;
        if by_bucket.len() <= at {
            by_bucket.resize_with(at + 1, || None);
        }
        let stock = Arc::make_mut(by_bucket[at].get_or_insert_default());
        stock.open(bucket, self.sources, self.sets, touched);
    }

    fn stock(&mut self, bucket: usize) -> &mut Stock {
        Arc::make_mut(self.stocks.by_bucket[bucket].as_mut().expect("an open stock is there"))
    }

    /// What free ranks ask of needs of a bucket that was opened.
    pub(super) fn book(&self, bucket: PenaltyBucket) -> &Book {
        &self.stocks.by_bucket[bucket.ordinal()].as_ref().expect("an open stock is there").book
    }

    /// Takes machines for a need wherever they are until nothing is missing.
    pub(crate) fn take_anywhere(&mut self, demand: &Demand, missing: &mut Amounts) -> Vec<Pick> {
        let number = self.set(demand);
        let bucket = demand.need.profile.interruption();
        self.open(bucket);
        let Self { sources, sets, stocks, taken, done, left, ranks, moves, .. } = self;
        let stock = stocks.by_bucket[bucket.ordinal()].as_mut().expect("an open stock is there");
        let mut shelf = Shelf { sources: *sources, taken, done };
        let set = (number, sets.get(number));
        let picked = Arc::make_mut(stock).cover(set, demand, missing, &mut shelf, ranks);
        for pick in &picked {
            let kind = sources.inventory.row(pick.machine).kind;
            moves.push((pick.machine, true));
            stocks.tables.note(News { kind, came: false });
            left[sources.classes.of_kind(kind) as usize] -= 1;
        }
        picked
    }

    /// Takes machines for a gang in its domain until nothing is missing.
    pub(crate) fn take_in_domain(
        &mut self,
        demand: &Demand,
        domain: usize,
        value: u32,
        missing: &mut Amounts,
    ) -> Vec<Pick> {
        let picked = self.would_take_in_domain(demand, domain, value, missing);
        for pick in &picked {
            self.take(*pick);
        }
        picked
    }

    /// The cells of a domain key as they stand.
    pub(crate) fn cells(&self, domain: usize) -> CellShelf<'_> {
        CellShelf { cells: &self.sources.index.free.domains[domain], taken: &self.taken }
    }

    /// The lines some cells make for a need.
    fn lines(&mut self, demand: &Demand, domain: usize, cells: impl Iterator<Item = u32>) -> Lines {
        let number = self.set(demand);
        let bucket = demand.need.profile.interruption();
        self.open(bucket);
        let (members, book, shelf) = (&self.sets.get(number).members, self.book(bucket), self.cells(domain));
        let Sources { index, classes, .. } = self.sources;
        let mut lines = Lines::default();
        for number in cells {
            let cell = &shelf.cells.cells[number as usize];
            let lot = &index.free.lots[cell.lot as usize];
            if !members.contains(lot.class) {
                continue;
            }
            let (cost, colour) = book.of(lot.rank);
            if let Some(head) = shelf.first(number, cost, split_free_rank(lot.rank).speculative) {
                lines.enter(lot.class, colour, cell.value, head, classes);
            }
        }
        lines
    }

    pub(super) fn would_take_in_domain(
        &mut self,
        demand: &Demand,
        domain: usize,
        value: u32,
        missing: &mut Amounts,
    ) -> Vec<Pick> {
        let Sources { index, classes, .. } = self.sources;
        let cells = index.free.domains[domain].of_value(value).iter().copied();
        let mut lines = self.lines(demand, domain, cells);
        Bargain::new(&mut lines.lines, self.cells(domain), demand, missing, classes).cover(missing)
    }

    /// The lines of all domains of a key, for a strict spread.
    pub(crate) fn lines_by_domain(&mut self, demand: &Demand, domain: usize) -> Lines {
        let number = self.set(demand);
        let classes = self.sets.get(number).classes.iter().copied();
        let classes: Vec<u32> = classes.filter(|class| self.left[*class as usize] > 0).collect();
        let lots = &self.sources.index.free;
        self.lines(demand, domain, classes.iter().flat_map(|class| lots.cells_of_class(domain, *class)))
    }

    /// Takes one machine.
    pub(crate) fn take(&mut self, pick: Pick) {
        let fresh = self.taken.insert(pick.machine);
        debug_assert!(fresh, "a machine is taken once");
        let kind = self.sources.inventory.row(pick.machine).kind;
        self.left[self.sources.classes.of_kind(kind) as usize] -= 1;
        self.moves.push((pick.machine, true));
        self.stocks.tables.note(News { kind, came: false });
    }

    /// Returns a machine that was taken: it is there for whoever comes next.
    pub(crate) fn give_back(&mut self, pick: Pick) {
        let sources = self.sources;
        let Sources { inventory, index, .. } = sources;
        self.taken.remove(pick.machine);
        let row = inventory.row(pick.machine);
        // The pick's class stands for the shape only.
        let class = sources.class_of(pick.machine);
        self.left[class as usize] += 1;
        let lot = index.free_lot(class, row);
        let machines = index.free.machines(lot);
        let at = machines.partition_point(|one| one.order < row.order) as u32;
        debug_assert_eq!(machines[at as usize].machine, pick.machine, "a returned machine lies in its lot");
        let done = &mut self.done[lot as usize];
        *done = (*done).min(at);
        for open in 0..self.open.len() {
            let bucket = self.open[open];
            self.stock(bucket).touch(lot, sources);
        }
        self.moves.push((pick.machine, false));
        self.stocks.tables.note(News { kind: row.kind, came: true });
    }

    /// What is free for a gang, by domain.
    pub(crate) fn free_by_domain<'b>(
        &'b mut self,
        demand: &'b Demand,
        domain: usize,
    ) -> FreeByDomain<'b, 'a> {
        let number = self.set(demand);
        self.open(demand.need.profile.interruption());
        self.catch_up(number, domain);
        FreeByDomain::new(self, demand, domain, number)
    }

    /// The domains in which machines that count for a need are free.
    pub(crate) fn free_domains(&mut self, demand: &Demand, domain: usize) -> Vec<u32> {
        self.free_by_domain(demand, domain).values()
    }

    /// How many machines that count for a need are free in a domain, and what they provide.
    pub(crate) fn free_in(&mut self, demand: &Demand, domain: usize, value: u32) -> (usize, Totals) {
        self.free_by_domain(demand, domain).free(value)
    }

    /// Brings the table of a set up to the present, making it if there is none.
    fn catch_up(&mut self, number: u32, domain: usize) {
        let Sources { vocab, index, classes, .. } = self.sources;
        let Self { sets, stocks, taken, left, .. } = self;
        let set = sets.get(number);
        let make = |heard| {
            let mut table = DomainTotals::new(classes.domain_len(domain), vocab.dim_count(), heard);
            let cells = &index.free.domains[domain];
            for class in set.classes.iter().filter(|class| left[**class as usize] > 0) {
                let provides = classes.provides(*class);
                let is_whole = left[*class as usize] == index.free_count(*class);
                for cell in index.free.cells_of_class(domain, *class) {
                    let machines = cells.machines(cell);
                    let count = if is_whole {
                        machines.len() as u32
                    } else {
                        machines.iter().filter(|one| !taken.contains(one.machine)).count() as u32
                    };
                    if count > 0 {
                        table.add(cells.cells[cell as usize].value, count, provides);
                    }
                }
            }
            table
        };
        stocks.tables.catch_up((number, set), domain, classes, make);
    }

    /// What is free for a set by domain, as it was when somebody last asked.
    pub(super) fn table(&self, set: u32, domain: usize) -> &DomainTotals {
        self.stocks.tables.get(set, domain)
    }
}

impl Pick {
    /// What taking it adds to the bill an hour: nothing, if it is paid for anyway.
    pub(crate) fn new_money(self) -> f64 {
        match Asking::of_key(self.cost) {
            (Tier::Fixed | Tier::FixedPinned, _) => 0.0,
            (Tier::Paid | Tier::Pinned, asking) => asking,
        }
    }
}
