//! The free machines while a cycle goes on: who took what, and what is left for whom.
//!
//! Needs take from it strictly in precedence order. What is kept here for speed (lines per set of classes, totals per
//! domain) notices later what happened meanwhile: every take and every return is written down, and whoever is used
//! again first catches up.

use bigfleet_model::penalty::PenaltyBucket;

use crate::bits::Bits;
use crate::index::split_free_rank;
use crate::intern::{Map, NONE};
use crate::needs::Demand;
use crate::vocab::{Amounts, Dim};

use super::bargain::{Bargain, Book, CellShelf, Lines, Pick, RunShelf};
use super::choice::{Free, Totals};
use super::prices::{Asking, Tier};
use super::sets::{SupplySet, SupplySets};
use super::totals::DomainTotals;
use super::trim::trim;
use super::walk::Sources;

/// The lines of one set of classes for one penalty bucket.
struct Stream {
    lines: Lines,
    /// How many returns it has heard of.
    heard: usize,
}

/// The free machines while needs take from them.
pub(crate) struct Market<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) sets: &'a mut SupplySets,
    prices: &'a mut Map<usize, Book>,
    /// Machines taken so far.
    pub(crate) taken: Bits,
    /// By lot, how many of its first machines are taken.
    done: Vec<u32>,
    /// By penalty bucket and run, how many of its first lots are used up.
    used: Map<usize, Vec<u32>>,
    streams: Map<(u32, usize), Stream>,
    tables: Map<(u32, usize), DomainTotals>,
    /// The lots machines were returned to.
    returns: Vec<u32>,
    /// Every machine taken or returned.
    moves: Vec<(u32, bool)>,
}

impl<'a> Market<'a> {
    pub(crate) fn new(
        sources: Sources<'a>,
        sets: &'a mut SupplySets,
        prices: &'a mut Map<usize, Book>,
    ) -> Self {
        Self {
            sources,
            sets,
            prices,
            taken: Bits::with_bound(sources.inventory.bound()),
            done: vec![0; sources.index.free.lots.len()],
            used: Map::default(),
            streams: Map::default(),
            tables: Map::default(),
            returns: Vec::new(),
            moves: Vec::new(),
        }
    }

    /// The number of the set of classes that count for a need.
    pub(crate) fn set(&mut self, demand: &Demand) -> u32 {
        self.sets.number(demand, self.sources.classes, self.sources.sets)
    }

    /// What free ranks ask of needs of a bucket.
    fn prices(&mut self, bucket: PenaltyBucket) -> &Book {
        let prices = self.prices.entry(bucket.ordinal()).or_default();
        prices.refresh(bucket, self.sources.vocab, self.sources.index.generation);
        prices
    }

    /// Takes machines for a need wherever they are until nothing is missing.
    pub(crate) fn take_anywhere(&mut self, demand: &Demand, missing: &mut Amounts) -> Vec<Pick> {
        let number = self.set(demand);
        let bucket = demand.need.profile.interruption();
        self.prices(bucket);
        let sources = self.sources;
        let (classes, lots) = (sources.classes, &*sources.index.free);
        let Self { sets, prices, taken, done, used, streams, returns, moves, .. } = self;
        let set = sets.get(number);
        let book = prices.get_mut(&bucket.ordinal()).expect("it was just looked up");
        let used = used.entry(bucket.ordinal()).or_default();
        let is_new = !streams.contains_key(&(number, bucket.ordinal()));
        let stream = streams
            .entry((number, bucket.ordinal()))
            .or_insert_with(|| Stream { lines: Lines::default(), heard: returns.len() });
        let mut entering: Vec<(u32, u32)> = Vec::new();
        if is_new {
            for class in sources.index.free_among(&set.classes) {
                entering.extend(book.runs_of(class, lots).into_iter().map(|run| (class, run)));
            }
        }
        for lot in &returns[stream.heard..] {
            let lot = &lots.lots[*lot as usize];
            if set.members.contains(lot.class) {
                entering.extend(book.runs_of(lot.class, lots).into_iter().map(|run| (lot.class, run)));
            }
        }
        stream.heard = returns.len();
        let mut shelf = RunShelf { book, lots, inventory: sources.inventory, taken, done, used };
        for (class, run) in entering {
            if let Some(head) = shelf.unknown(run) {
                stream.lines.enter(class, shelf.book.run(run).colour, NONE, head, classes);
            }
        }
        let picked =
            Bargain::new(&mut stream.lines.lines, &mut shelf, demand, missing, classes).cover(missing);
        moves.extend(picked.iter().map(|pick| (pick.machine, true)));
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

    /// The lines of one domain.
    fn lines_of_domain(&mut self, demand: &Demand, domain: usize, value: u32) -> Lines {
        let number = self.set(demand);
        self.prices(demand.need.profile.interruption());
        let prices = &self.prices[&demand.need.profile.interruption().ordinal()];
        let sources = self.sources;
        let (set, lots) = (self.sets.get(number), &sources.index.free);
        let cells = &lots.domains[domain];
        let shelf = CellShelf { cells, inventory: sources.inventory, taken: &self.taken };
        let mut lines = Lines::default();
        for cell in cells.of_value(value) {
            enter_cell(&mut lines, *cell, value, set, prices, &shelf, sources);
        }
        lines
    }

    fn would_take_in_domain(
        &mut self,
        demand: &Demand,
        domain: usize,
        value: u32,
        missing: &mut Amounts,
    ) -> Vec<Pick> {
        let mut lines = self.lines_of_domain(demand, domain, value);
        let sources = self.sources;
        let cells = &sources.index.free.domains[domain];
        let mut shelf = CellShelf { cells, inventory: sources.inventory, taken: &self.taken };
        Bargain::new(&mut lines.lines, &mut shelf, demand, missing, sources.classes).cover(missing)
    }

    /// The lines of all domains of a key, for a strict spread.
    pub(crate) fn lines_by_domain(&mut self, demand: &Demand, domain: usize) -> Lines {
        let number = self.set(demand);
        self.prices(demand.need.profile.interruption());
        let prices = &self.prices[&demand.need.profile.interruption().ordinal()];
        let sources = self.sources;
        let (set, lots) = (self.sets.get(number), &sources.index.free);
        let cells = &lots.domains[domain];
        let shelf = CellShelf { cells, inventory: sources.inventory, taken: &self.taken };
        let mut lines = Lines::default();
        for class in &set.classes {
            for cell in lots.cells_of_class(domain, *class) {
                let value = cells.cells[cell as usize].value;
                enter_cell(&mut lines, cell, value, set, prices, &shelf, sources);
            }
        }
        lines
    }

    /// Takes one machine.
    pub(crate) fn take(&mut self, pick: Pick) {
        let fresh = self.taken.insert(pick.machine);
        debug_assert!(fresh, "a machine is taken once");
        self.moves.push((pick.machine, true));
    }

    /// Returns a machine that was taken: it is there for whoever comes next.
    pub(crate) fn give_back(&mut self, pick: Pick) {
        let Sources { inventory, index, .. } = self.sources;
        self.taken.remove(pick.machine);
        let row = inventory.row(pick.machine);
        let lot = index.free_lot(pick.class_of(self.sources), row);
        let machines = &index.free.lots[lot as usize].machines;
        let at = machines.partition_point(|machine| inventory.row(*machine).order < row.order) as u32;
        debug_assert_eq!(machines[at as usize], pick.machine, "a returned machine lies in its lot");
        let done = &mut self.done[lot as usize];
        *done = (*done).min(at);
        // What was used up of its runs has something again.
        let Self { used, prices, .. } = self;
        let one = &index.free.lots[lot as usize];
        for (bucket, used) in used {
            let book = prices.get_mut(bucket).expect("a bucket in use has a book");
            let (cost, colour) = book.of(one.rank);
            for run in book.runs_of(one.class, &index.free) {
                if let Some(used) = used.get_mut(run as usize).filter(|_| book.run(run).colour == colour) {
                    let first = book.run(run).lots.partition_point(|(other, _)| *other < cost) as u32;
                    *used = (*used).min(first);
                }
            }
        }
        self.returns.push(lot);
        self.moves.push((pick.machine, false));
    }

    /// What is free for a gang, by domain.
    pub(crate) fn free_by_domain<'b>(
        &'b mut self,
        demand: &'b Demand,
        domain: usize,
    ) -> FreeByDomain<'b, 'a> {
        let number = self.set(demand);
        self.prices(demand.need.profile.interruption());
        self.catch_up(number, domain);
        FreeByDomain { market: self, demand, domain, set: number, offer: Vec::new() }
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
        let Sources { inventory, index, classes, .. } = self.sources;
        let Self { sets, taken, tables, moves, .. } = self;
        let set = sets.get(number);
        let table = tables.entry((number, domain)).or_insert_with(|| {
            let mut table = DomainTotals::new(classes.domain_len(domain), moves.len());
            let cells = &index.free.domains[domain];
            for class in &set.classes {
                let provides = classes.provides(*class);
                for cell in index.free.cells_of_class(domain, *class) {
                    let left = cells.machines(cell).iter().filter(|machine| !taken.contains(**machine));
                    let count = left.count() as u32;
                    if count > 0 {
                        table.add(cells.cells[cell as usize].value, count, provides);
                    }
                }
            }
            table
        });
        for (machine, was_taken) in &moves[table.heard..] {
            let kind = inventory.row(*machine).kind;
            let class = classes.of_kind(kind);
            let value = classes.domain_of_kind(domain, kind);
            if value == NONE || !set.members.contains(class) {
                continue;
            }
            if *was_taken {
                table.take(value, classes.provides(class));
            } else {
                table.add(value, 1, classes.provides(class));
            }
        }
        table.heard = moves.len();
    }
}

/// Puts a cell into its line, if it has anything for the set.
fn enter_cell(
    lines: &mut Lines,
    cell: u32,
    value: u32,
    set: &SupplySet,
    prices: &Book,
    shelf: &CellShelf<'_>,
    sources: Sources<'_>,
) {
    let lot = &sources.index.free.lots[shelf.cells.cells[cell as usize].lot as usize];
    if !set.members.contains(lot.class) {
        return;
    }
    let (cost, colour) = prices.of(lot.rank);
    if let Some(head) = shelf.first(cell, cost, split_free_rank(lot.rank).speculative) {
        lines.enter(lot.class, colour, value, head, sources.classes);
    }
}

impl Pick {
    fn class_of(self, sources: Sources<'_>) -> u32 {
        // The line's class stands for the shape only.
        sources.class_of(self.machine)
    }

    /// What taking it adds to the bill an hour: nothing, if it is paid for anyway.
    pub(crate) fn new_money(self) -> f64 {
        match Asking::of_key(self.cost) {
            (Tier::Fixed | Tier::FixedPinned, _) => 0.0,
            (Tier::Paid | Tier::Pinned, asking) => asking,
        }
    }
}

/// What is free for one gang, by domain.
pub(crate) struct FreeByDomain<'b, 'a> {
    market: &'b mut Market<'a>,
    demand: &'b Demand,
    domain: usize,
    set: u32,
    /// What the domain just looked at has to offer: price, how many, and their class.
    offer: Vec<(u64, usize, u32)>,
}

impl FreeByDomain<'_, '_> {
    fn table(&self) -> &DomainTotals {
        &self.market.tables[&(self.set, self.domain)]
    }

    /// What completing the gang adds to the bill where all machines that count are of one shape: then it takes as many
    /// as it takes, cheapest first, and none of them is superfluous. `None` if there are several shapes, or prices so
    /// close that their order may depend on ids.
    fn money_of_one_shape(&mut self, value: u32, missing: &[(Dim, u64)]) -> Option<f64> {
        let Sources { index, classes, .. } = self.market.sources;
        let cells = &index.free.domains[self.domain];
        let members = &self.market.sets.get(self.set).members;
        let prices = &self.market.prices[&self.demand.need.profile.interruption().ordinal()];
        self.offer.clear();
        let mut shape = None;
        for cell in cells.of_value(value) {
            let lot = &index.free.lots[cells.cells[*cell as usize].lot as usize];
            if !members.contains(lot.class) {
                continue;
            }
            let left = cells.machines(*cell).iter().filter(|machine| !self.market.taken.contains(**machine));
            let left = left.count();
            if left == 0 {
                continue;
            }
            let (key, colour) = prices.of(lot.rank);
            let of_class = classes.shape(lot.class);
            if colour != 0 || *shape.get_or_insert(of_class) != of_class {
                return None;
            }
            self.offer.push((key, left, lot.class));
        }
        let provides = classes.provides(self.offer.first()?.2);
        let wanted = missing.iter().filter(|(dim, _)| provides[*dim as usize] > 0);
        let wanted = wanted.map(|(dim, left)| left.div_ceil(provides[*dim as usize])).max().unwrap_or(0);
        self.offer.sort_unstable();
        let (mut money, mut wanted) = (0.0, usize::try_from(wanted).unwrap_or(usize::MAX));
        for (key, left, _) in &self.offer {
            let (tier, asking) = Asking::of_key(*key);
            for _ in 0..wanted.min(*left) {
                money += if matches!(tier, Tier::Fixed | Tier::FixedPinned) { 0.0 } else { asking };
            }
            wanted = wanted.saturating_sub(*left);
        }
        Some(money)
    }
}

impl Free for FreeByDomain<'_, '_> {
    fn values(&self) -> Vec<u32> {
        self.table().values().collect()
    }

    fn free(&self, value: u32) -> (usize, Totals) {
        self.table().of(value, self.demand, self.market.sources.vocab.dim_count())
    }

    fn new_money(&mut self, value: u32, mut missing: Amounts) -> f64 {
        if let Some(money) = self.money_of_one_shape(value, &missing) {
            return money;
        }
        let wanted = missing.clone();
        let mut picked = self.market.would_take_in_domain(self.demand, self.domain, value, &mut missing);
        if crate::amounts::is_zero(&missing) {
            let classes = self.market.sources.classes;
            trim(&mut picked, &wanted, |pick| classes.provides(pick.class), |_| {});
        }
        picked.iter().fold(0.0, |sum, pick| sum + pick.new_money())
    }
}
