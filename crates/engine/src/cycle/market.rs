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
use crate::vocab::Amounts;

use super::bargain::{Bargain, CellShelf, Lines, LotShelf, Pick, PriceKeys};
use super::choice::{Free, Totals};
use super::totals::DomainTotals;
use super::prices::{Asking, Tier};
use super::sets::{SupplySet, SupplySets};
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
    prices: &'a mut Map<usize, PriceKeys>,
    /// Machines taken so far.
    pub(crate) taken: Bits,
    /// By lot, how many of its first machines are taken.
    done: Vec<u32>,
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
        prices: &'a mut Map<usize, PriceKeys>,
    ) -> Self {
        Self {
            sources,
            sets,
            prices,
            taken: Bits::with_bound(sources.inventory.bound()),
            done: vec![0; sources.index.free.lots.len()],
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
    fn prices(&mut self, bucket: PenaltyBucket) -> &PriceKeys {
        let prices = self.prices.entry(bucket.ordinal()).or_default();
        prices.refresh(bucket, self.sources.vocab);
        prices
    }

    /// Takes machines for a need wherever they are until nothing is missing.
    pub(crate) fn take_anywhere(&mut self, demand: &Demand, missing: &mut Amounts) -> Vec<Pick> {
        let number = self.set(demand);
        let bucket = demand.need.profile.interruption();
        self.prices(bucket);
        let sources = self.sources;
        let (classes, lots) = (sources.classes, &*sources.index.free);
        let Self { sets, prices, taken, done, streams, returns, moves, .. } = self;
        let (set, prices) = (sets.get(number), &prices[&bucket.ordinal()]);
        let mut shelf = LotShelf { lots, inventory: sources.inventory, taken, done };
        let enter = |lines: &mut Lines, lot: u32, shelf: &mut LotShelf<'_>| {
            let one = &lots.lots[lot as usize];
            let (cost, colour) = prices.of(one.rank);
            let speculative = split_free_rank(one.rank).speculative;
            if let Some(head) = shelf.first(lot, cost, speculative) {
                lines.enter(one.class, colour, NONE, head, classes);
            }
        };
        let stream = streams.entry((number, bucket.ordinal())).or_insert_with(|| {
            let mut lines = Lines::default();
            for class in sources.index.free_among(&set.classes) {
                lots.of_class(class).iter().for_each(|lot| enter(&mut lines, *lot, &mut shelf));
            }
            Stream { lines, heard: returns.len() }
        });
        for lot in &returns[stream.heard..] {
            if set.members.contains(lots.lots[*lot as usize].class) {
                enter(&mut stream.lines, *lot, &mut shelf);
            }
        }
        stream.heard = returns.len();
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
        picked.iter().for_each(|pick| self.take(*pick));
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
        FreeByDomain { market: self, demand, domain, set: number, known: Map::default() }
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
    prices: &PriceKeys,
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
    /// Domains with the same machines to offer cost the same: by lots and how many of each could be of use.
    known: Map<Vec<(u32, u32)>, f64>,
}

impl FreeByDomain<'_, '_> {
    fn table(&self) -> &DomainTotals {
        &self.market.tables[&(self.set, self.domain)]
    }

    /// What a domain has to offer a gang that has nothing yet: its lots, and how many machines of each, up to as many
    /// as could ever be of use. `None` if it has several shapes to offer, or prices so close that they may tie:
    /// then ids may decide what is bought, and no two domains are alike.
    fn offer(&self, value: u32) -> Option<Vec<(u32, u32)>> {
        let Sources { index, classes, .. } = self.market.sources;
        let cells = &index.free.domains[self.domain];
        let set = self.market.sets.get(self.set);
        let prices = &self.market.prices[&self.demand.need.profile.interruption().ordinal()];
        let mut offer: Vec<(u32, u32)> = Vec::new();
        let mut shape = None;
        for cell in cells.of_value(value) {
            let number = cells.cells[*cell as usize].lot;
            let class = index.free.lots[number as usize].class;
            if !set.members.contains(class) {
                continue;
            }
            let provides = classes.provides(class);
            let of_use = self.demand.aggregate.iter().map(|(dim, amount)| {
                let one = provides[*dim as usize];
                if one == 0 { 0 } else { amount.div_ceil(one) }
            });
            let of_use = of_use.max().unwrap_or(0);
            let left = cells.machines(*cell).iter().filter(|machine| !self.market.taken.contains(**machine));
            let left = left.take(usize::try_from(of_use).unwrap_or(usize::MAX)).count() as u32;
            if left == 0 {
                continue;
            }
            offer.push((number, left));
            let rank = index.free.lots[number as usize].rank;
            if *shape.get_or_insert(classes.shape(class)) != classes.shape(class) || prices.of(rank).1 != 0 {
                return None;
            }
        }
        offer.sort_unstable();
        Some(offer)
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
        let fresh = missing[..] == self.demand.aggregate[..];
        let offer = fresh.then(|| self.offer(value)).flatten();
        if let Some(known) = offer.as_ref().and_then(|offer| self.known.get(offer)) {
            return *known;
        }
        let wanted = missing.clone();
        let mut picked = self.market.would_take_in_domain(self.demand, self.domain, value, &mut missing);
        if crate::amounts::is_zero(&missing) {
            let classes = self.market.sources.classes;
            trim(&mut picked, &wanted, |pick| classes.provides(pick.class), |_| {});
        }
        let money = picked.iter().fold(0.0, |sum, pick| sum + pick.new_money());
        if let Some(offer) = offer {
            self.known.insert(offer, money);
        }
        money
    }
}
