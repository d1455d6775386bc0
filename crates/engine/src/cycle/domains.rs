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
use crate::intern::{Map, NONE};
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
    /// The domains that had a machine when the table was made, and the place of every domain among them or
    /// [`NONE`]: there are thousands of racks, and few have what a set asks for.
    values: Vec<u32>,
    place_of: Vec<u32>,
    /// By place, how many machines are left.
    counts: Vec<u32>,
    /// By place, `dims` totals; wide, because machines are taken off again.
    totals: Vec<u128>,
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
            self.earmark(&demand, set, domain, chosen.value, Amounts::from_slice(missing));
        }
    }

    /// The table of a supply set, made when first asked for.
    fn table(&mut self, set: u32, domain: usize) -> usize {
        if let Some(table) = self.by_set.get(&(set, domain)) {
            return *table;
        }
        let Sources { index, classes, .. } = self.sources;
        let mut table = FreeTable::new(set, domain, classes.domain_len(domain));
        let cells = &index.free.domains[domain];
        for class in &self.sets.get(set).classes {
            let provides = classes.provides(*class);
            for cell in index.free.cells_of_class(domain, *class) {
                let marked = self.earmarked_in.get(&(domain, cell)).copied().unwrap_or(0);
                let count = cells.machines(cell).len() as u32 - marked;
                if count > 0 {
                    table.add(cells.cells[cell as usize].value, count, provides);
                }
            }
        }
        self.tables.push(table);
        self.by_set.insert((set, domain), self.tables.len() - 1);
        self.tables.len() - 1
    }

    /// Earmarks the machines acquisition would take in the chosen domain, until the rest is covered.
    fn earmark(&mut self, demand: &Demand, set: u32, domain: usize, value: u32, mut missing: Amounts) {
        let sources = self.sources;
        let cells = &sources.index.free.domains[domain];
        let mut merge = domain_merge(sources, self.sets.get(set), demand, domain, value);
        loop {
            let earmarked = &self.earmarked;
            let list = |cell: u32| cells.machines(cell);
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
    value: u32,
) -> Merge {
    let free = &sources.index.free;
    let cells = &free.domains[domain];
    let bucket = demand.need.profile.interruption();
    let lists = cells.of_value(value).iter().filter_map(|number| {
        let lot = &free.lots[cells.cells[*number as usize].lot as usize];
        let cost = free_cost(lot.rank, bucket, sources.vocab);
        set.members.contains(lot.class).then_some((cost, *number, lot.class, cells.machines(*number)))
    });
    Merge::new(lists, sources.inventory)
}

impl FreeTable {
    fn new(set: u32, domain: usize, domains: usize) -> Self {
        let place_of = vec![NONE; domains];
        Self { set, domain, values: Vec::new(), place_of, counts: Vec::new(), totals: Vec::new() }
    }

    fn add(&mut self, value: u32, count: u32, provides: &[u64]) {
        let dims = provides.len();
        let place = &mut self.place_of[value as usize];
        if *place == NONE {
            *place = self.values.len() as u32;
            self.values.push(value);
            self.counts.push(0);
            self.totals.resize(self.totals.len() + dims, 0);
        }
        let at = *place as usize;
        self.counts[at] += count;
        let totals = &mut self.totals[at * dims..][..dims];
        totals
            .iter_mut()
            .zip(provides)
            .for_each(|(total, one)| *total += u128::from(*one) * u128::from(count));
    }

    fn take(&mut self, value: u32, provides: &[u64]) {
        let (at, dims) = (self.place_of[value as usize] as usize, provides.len());
        self.counts[at] -= 1;
        let totals = &mut self.totals[at * dims..][..dims];
        totals.iter_mut().zip(provides).for_each(|(total, one)| *total -= u128::from(*one));
    }

    /// How many machines are free in a domain, and what they provide by demanded dimension.
    fn free(&self, value: u32, demand: &Demand, dims: usize) -> (usize, Totals) {
        let place = self.place_of[value as usize] as usize;
        let Some(count) = self.counts.get(place) else {
            return (0, Totals::from_elem(0, demand.aggregate.len()));
        };
        let totals = &self.totals[place * dims..][..dims];
        let saturated = |total: u128| u64::try_from(total).map_or(MAX_AMOUNT, |total| total.min(MAX_AMOUNT));
        (*count as usize, demand.aggregate.iter().map(|(dim, _)| saturated(totals[*dim as usize])).collect())
    }

    /// The best domain for a gang, over what its cluster holds and what is free.
    fn choose(&self, demand: &Demand, tallies: &[Tally], sources: Sources<'_>) -> Option<Chosen> {
        let Sources { vocab, classes, .. } = sources;
        let text = |value| vocab.text(classes.domain_value(self.domain, value));
        let mut contest = Contest::new(demand, &text);
        let dims = vocab.dim_count();
        for tally in tallies {
            let (machines, free) = self.free(tally.value, demand, dims);
            contest.enter(tally.value, Some(tally), &free, machines);
        }
        for value in &self.values {
            let (machines, free) = self.free(*value, demand, dims);
            if machines > 0 && !tallies.iter().any(|tally| tally.value == *value) {
                contest.enter(*value, None, &free, machines);
            }
        }
        contest.winner()
    }
}
