//! Choosing domains across clusters: one walk over the gangs that depend on free machines.
//!
//! Gangs are taken in demand order whatever cluster they belong to. Each chooses its domain from what its
//! cluster holds there and what is free there, takes its credit, and earmarks the free machines it will want
//! for the rest. Earmarks only keep later gangs from counting on the same machines; they are not claims.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bigfleet_model::resource::MAX_AMOUNT;

use crate::amounts::{contributes, subtract};
use crate::bits::Bits;
use crate::intern::{Map, NONE, Sym};
use crate::merge::Merge;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::choice::{Contest, Tally, Totals};
use super::credit::{Chosen, Sources, Walk};
use super::prices::free_cost;
use super::sets::{SupplySet, SupplySets};

/// Free machines by domain, for one supply set.
struct FreeTable {
    set: u32,
    domain: usize,
    values: Vec<Sym>,
    counts: Vec<u32>,
    /// `dims` totals per domain; wide, because machines are taken off again.
    totals: Vec<u128>,
    by_value: Map<Sym, u32>,
}

/// The walk's memory: who has an eye on which free machine.
pub(crate) struct DomainWalk<'a> {
    sources: Sources<'a>,
    sets: &'a mut SupplySets,
    tables: Vec<FreeTable>,
    by_set: Map<(u32, usize), usize>,
    earmarked: Bits,
    /// Earmarked machines per cell, for tables that are made later.
    earmarked_in: Map<(usize, u32), u32>,
}

/// Takes all paused walks to their ends, in demand order.
pub(crate) fn finish_walks<'a>(
    mut walks: Vec<Walk<'a>>,
    cluster_rank: &[u32],
    sources: Sources<'a>,
    sets: &'a mut SupplySets,
) -> Vec<Walk<'a>> {
    let mut domains = DomainWalk {
        sources,
        sets,
        tables: Vec::new(),
        by_set: Map::default(),
        earmarked: Bits::default(),
        earmarked_in: Map::default(),
    };
    let place = |walk: &Walk<'_>, at: usize| {
        let need = &walk.current().expect("a paused walk stands before a gang").need;
        Reverse((
            Reverse(need.profile.priority()),
            need.first_seen_unix_nanos,
            cluster_rank[walk.cluster as usize],
            at,
        ))
    };
    let mut queue: BinaryHeap<_> = walks.iter().enumerate().map(|(at, walk)| place(walk, at)).collect();
    while let Some(Reverse((_, _, _, at))) = queue.pop() {
        let walk = &mut walks[at];
        domains.serve(walk);
        if !walk.advance() {
            queue.push(place(walk, at));
        }
    }
    walks
}

impl DomainWalk<'_> {
    /// Chooses the domain of the gang a walk stands before, credits it, and earmarks for the rest.
    fn serve(&mut self, walk: &mut Walk<'_>) {
        let demand = walk.current().expect("a paused walk stands before a gang").clone();
        let tallies = walk.tally(&demand);
        let set = self.sets.number(&demand, self.sources.classes, self.sources.sets);
        let domain = self.sources.classes.domain(demand.same.expect("only gangs choose domains"));
        let table = self.table(set, domain);
        let chosen = self.tables[table].choose(&demand, &tallies, self.sources);
        walk.credit.shared = true;
        walk.credit_gang(&demand, chosen, &tallies);
        if let (Some(chosen), Some(missing)) = (chosen, walk.last_missing()) {
            self.earmark(&demand, set, domain, chosen.value, missing.clone());
        }
    }

    /// The table of a supply set, made when first asked for.
    fn table(&mut self, set: u32, domain: usize) -> usize {
        if let Some(table) = self.by_set.get(&(set, domain)) {
            return *table;
        }
        let mut table = FreeTable {
            set,
            domain,
            values: Vec::new(),
            counts: Vec::new(),
            totals: Vec::new(),
            by_value: Map::default(),
        };
        let Sources { index, classes, .. } = self.sources;
        let cells = &index.free.domains[domain];
        for class in &self.sets.get(set).classes {
            let provides = classes.provides(*class);
            for cell in cells.of_class(*class) {
                let marked = self.earmarked_in.get(&(domain, *cell)).copied().unwrap_or(0);
                let count = cells.cells[*cell as usize].machines.len() as u32 - marked;
                if count > 0 {
                    table.add(cells.cells[*cell as usize].value, count, provides);
                }
            }
        }
        self.tables.push(table);
        self.by_set.insert((set, domain), self.tables.len() - 1);
        self.tables.len() - 1
    }

    /// Earmarks the machines acquisition would take in the chosen domain, until the rest is covered.
    fn earmark(&mut self, demand: &Demand, set: u32, domain: usize, value: Sym, mut missing: Amounts) {
        let sources = self.sources;
        let cells = &sources.index.free.domains[domain];
        let mut merge = domain_merge(sources, self.sets.get(set), demand, domain, value);
        loop {
            let earmarked = &self.earmarked;
            let list = |cell: u32| cells.cells[cell as usize].machines.as_slice();
            let Some(best) = merge.best(list, |m| earmarked.contains(m), sources.inventory) else { break };
            let provides = sources.classes.provides(best.class);
            if !contributes(provides, &missing) {
                merge.set_aside();
                continue;
            }
            self.mark(best.machine, best.class);
            if subtract(&mut missing, provides) {
                break;
            }
        }
    }

    /// Takes a machine out of everybody's count.
    fn mark(&mut self, machine: u32, class: u32) {
        let Sources { inventory, index, classes, .. } = self.sources;
        self.earmarked.insert(machine);
        let row = inventory.row(machine);
        let lot = index.free_lot(class, row);
        for (domain, cells) in index.free.domains.iter().enumerate() {
            let value = classes.domain_of_kind(domain, row.kind);
            if value != NONE {
                let cell = cells.find(lot, value).expect("a free machine with a value is in a cell");
                *self.earmarked_in.entry((domain, cell)).or_default() += 1;
            }
        }
        for table in &mut self.tables {
            if self.sets.get(table.set).members.contains(class) {
                let value = classes.domain_of_kind(table.domain, row.kind);
                table.take(value, classes.provides(class));
            }
        }
    }
}

/// The free machines of one domain that count for a need, in the order acquisition takes them.
pub(crate) fn domain_merge(
    sources: Sources<'_>,
    set: &SupplySet,
    demand: &Demand,
    domain: usize,
    value: Sym,
) -> Merge {
    let free = &sources.index.free;
    let cells = &free.domains[domain];
    let bucket = demand.need.profile.interruption();
    let lists = cells.of_value(value).iter().filter_map(|number| {
        let cell = &cells.cells[*number as usize];
        let cost = free_cost(free.lots[cell.lot as usize].rank, bucket, sources.vocab);
        set.members.contains(cell.class).then_some((cost, *number, cell.class, cell.machines.as_slice()))
    });
    Merge::new(lists, sources.inventory)
}

impl FreeTable {
    fn add(&mut self, value: Sym, count: u32, provides: &[u64]) {
        let dims = provides.len();
        let next = self.values.len() as u32;
        let at = *self.by_value.entry(value).or_insert(next) as usize;
        if at == next as usize {
            self.values.push(value);
            self.counts.push(0);
            self.totals.resize(self.totals.len() + dims, 0);
        }
        self.counts[at] += count;
        let totals = &mut self.totals[at * dims..][..dims];
        totals
            .iter_mut()
            .zip(provides)
            .for_each(|(total, one)| *total += u128::from(*one) * u128::from(count));
    }

    fn take(&mut self, value: Sym, provides: &[u64]) {
        let dims = provides.len();
        let Some(at) = self.by_value.get(&value).map(|at| *at as usize) else { return };
        self.counts[at] -= 1;
        let totals = &mut self.totals[at * dims..][..dims];
        totals.iter_mut().zip(provides).for_each(|(total, one)| *total -= u128::from(*one));
    }

    /// The best domain for a gang, over what its cluster holds and what is free.
    fn choose(&self, demand: &Demand, tallies: &[Tally], sources: Sources<'_>) -> Option<Chosen> {
        let mut contest = Contest::new(demand, sources.vocab);
        let dims = sources.vocab.dim_count();
        let mut free = Totals::new();
        let mut load = |at: usize| {
            let totals = &self.totals[at * dims..][..dims];
            free.clear();
            let saturated =
                |total: u128| u64::try_from(total).map_or(MAX_AMOUNT, |total| total.min(MAX_AMOUNT));
            free.extend(demand.aggregate.iter().map(|(dim, _)| saturated(totals[*dim as usize])));
            free.clone()
        };
        for tally in tallies {
            match self.by_value.get(&tally.value) {
                Some(at) => {
                    let at = *at as usize;
                    contest.enter(tally.value, Some(tally), &load(at), self.counts[at] as usize);
                }
                None => contest.enter(tally.value, Some(tally), &[], 0),
            }
        }
        for (at, value) in self.values.iter().enumerate() {
            if self.counts[at] > 0 && !tallies.iter().any(|tally| tally.value == *value) {
                contest.enter(*value, None, &load(at), self.counts[at] as usize);
            }
        }
        contest.winner()
    }
}
