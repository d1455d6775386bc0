//! Phase 1, credit: what a cluster already holds, attributed to its needs once.
//!
//! This is the engine's only supply arithmetic. Needs are walked in demand order; each takes whole machines
//! of its cluster in keep order until nothing is missing. What nobody took is the release tail, already in
//! order. Clusters do not share bound machines, so each is walked alone, and a walk is repeated only when
//! the cluster's needs or machines changed.
//!
//! The one exception is a gang that its cluster's own machines do not settle: its domain depends on free
//! machines and on what earlier gangs of other clusters have their eye on. There the walk pauses, and is
//! resumed in demand order across clusters (see [`super::domains`]).

use std::sync::Arc;

use crate::amounts::{contributes, is_zero, subtract};
use crate::bits::Bits;
use crate::classes::{Classes, RequirementSets};
use crate::index::{Held, Index, Supply};
use crate::inventory::Inventory;
use crate::needs::Demand;
use crate::vocab::{Amounts, Vocabulary};

use super::choice::{Choice, Tally, settle_at_home};

/// The domain a gang was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Which domain, as numbered by the classes.
    pub(crate) value: u32,
    /// Whether everything in that domain together covers the gang.
    pub(crate) covers: bool,
}

/// A cluster's needs after credit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credit {
    /// The cluster's needs in demand order, after folding.
    pub(crate) rows: Arc<[Arc<Demand>]>,
    /// The machines credited, need after need.
    claims: Vec<u32>,
    /// Where each need's machines end in `claims`.
    ends: Vec<u32>,
    /// What the short needs still miss, in demand order.
    pub(crate) short: Vec<(u32, Amounts)>,
    /// The domains of the gangs, in demand order.
    pub(crate) domains: Vec<(u32, Option<Chosen>)>,
    /// Configured machines no need took, in keep order.
    pub(crate) excess: Vec<u32>,
    /// Whether some gang's domain depended on more than this cluster.
    pub(crate) shared: bool,
}

impl Credit {
    /// The machines credited to a need.
    pub(crate) fn claims_of(&self, row: usize) -> &[u32] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.claims[start..self.ends[row] as usize]
    }

    /// All machines credited, with the need they are credited to.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        (0..self.ends.len()).flat_map(|row| self.claims_of(row).iter().map(move |machine| (row, *machine)))
    }

    /// The domain of a gang, if it got one.
    pub(crate) fn domain_of(&self, row: u32) -> Option<Chosen> {
        self.domains.iter().find(|(gang, _)| *gang == row).and_then(|(_, chosen)| *chosen)
    }
}

/// What every walk reads.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) vocab: &'a Vocabulary,
    pub(crate) inventory: &'a Inventory,
    pub(crate) index: &'a Index,
    pub(crate) classes: &'a Classes,
    pub(crate) sets: &'a RequirementSets,
}

/// A walk over one cluster's needs.
pub(crate) struct Walk<'a> {
    sources: Sources<'a>,
    pub(crate) cluster: u32,
    supply: &'a Supply,
    /// For each class the cluster holds, the positions of its machines.
    positions: Vec<(u32, Bits)>,
    claimed: Bits,
    claimed_creating: Vec<u32>,
    mask: Vec<u64>,
    pub(crate) credit: Credit,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(sources: Sources<'a>, cluster: u32, rows: Arc<[Arc<Demand>]>) -> Self {
        let supply = sources.index.supply(cluster);
        let held = supply.configured.len() + supply.configuring.len();
        let mut positions: Vec<(u32, Bits)> = Vec::new();
        let mut last = 0;
        for (position, Held { class, .. }) in (0..).zip(supply.configured.iter().chain(&supply.configuring)) {
            // Machines of one class tend to stand together: they have the same price.
            if positions.get(last).is_none_or(|(known, _)| known != class) {
                last = positions.iter().position(|(known, _)| known == class).unwrap_or(positions.len());
                if last == positions.len() {
                    positions.push((*class, Bits::with_bound(held)));
                }
            }
            positions[last].1.insert(position);
        }
        let claimed = Bits::with_bound(held);
        let ends = Vec::with_capacity(rows.len());
        let credit = Credit { rows, ends, claims: Vec::with_capacity(held), ..Credit::default() };
        Self {
            sources,
            cluster,
            supply,
            positions,
            mask: vec![0; claimed.words().len()],
            claimed,
            claimed_creating: Vec::new(),
            credit,
        }
    }

    /// Walks on until a gang needs more than this cluster to choose its domain, or to the end. True at the
    /// end.
    pub(crate) fn advance(&mut self) -> bool {
        while let Some(demand) = self.current().cloned() {
            if demand.same.is_none() {
                self.credit_plain(&demand);
                continue;
            }
            let tallies = self.tally(&demand);
            let Sources { classes, vocab, .. } = self.sources;
            let domain = classes.domain(demand.same.expect("a gang has a domain key"));
            let text = move |value| vocab.text(classes.domain_value(domain, value));
            match settle_at_home(&demand, &tallies, &text) {
                Choice::Settled(chosen) => self.credit_gang(&demand, chosen, &tallies),
                Choice::Open => return false,
            }
        }
        self.finish();
        true
    }

    /// The need the walk stands before.
    pub(crate) fn current(&self) -> Option<&Arc<Demand>> {
        self.credit.rows.get(self.credit.ends.len())
    }

    fn held(&self, position: u32) -> Held {
        let configured = &self.supply.configured;
        let position = position as usize;
        configured
            .get(position)
            .copied()
            .unwrap_or_else(|| self.supply.configuring[position - configured.len()])
    }

    /// Marks the positions of the unclaimed machines that count for a need.
    fn mark_counting(&mut self, demand: &Demand) {
        let Sources { classes, sets, .. } = self.sources;
        let admitted = sets.admits(demand.requirements);
        self.mask.fill(0);
        for (class, positions) in &self.positions {
            if admitted.contains(*class) && classes.covers(*class, &demand.min_unit) {
                self.mask.iter_mut().zip(positions.words()).for_each(|(mask, word)| *mask |= word);
            }
        }
        self.mask.iter_mut().zip(self.claimed.words()).for_each(|(mask, claimed)| *mask &= !claimed);
    }

    /// Our own machines being created for this need that count and are not yet claimed.
    fn own_creating(&self, demand: &Demand) -> Vec<Held> {
        let Sources { inventory, index, classes, sets, .. } = self.sources;
        let held =
            |machine: &u32| Held { machine: *machine, class: classes.of_kind(inventory.row(*machine).kind) };
        let counts = |held: &Held| {
            sets.admits(demand.requirements).contains(held.class)
                && classes.covers(held.class, &demand.min_unit)
                && !self.claimed_creating.contains(&held.machine)
        };
        index.creating(demand.key).iter().map(held).filter(counts).collect()
    }

    fn credit_plain(&mut self, demand: &Demand) {
        let mut missing = Amounts::from_slice(&demand.aggregate);
        let mut covered = is_zero(&missing);
        if !covered {
            self.mark_counting(demand);
        }
        let mut word = 0;
        while !covered && word < self.mask.len() {
            let mut bits = self.mask[word];
            while bits != 0 && !covered {
                let position = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                let held = self.held(position);
                let provides = self.sources.classes.provides(held.class);
                if contributes(provides, &missing) {
                    self.claimed.insert(position);
                    self.credit.claims.push(held.machine);
                    covered = subtract(&mut missing, provides);
                }
            }
            word += 1;
        }
        if !covered {
            for held in self.own_creating(demand) {
                let provides = self.sources.classes.provides(held.class);
                if !covered && contributes(provides, &missing) {
                    self.claimed_creating.push(held.machine);
                    self.credit.claims.push(held.machine);
                    covered = subtract(&mut missing, provides);
                }
            }
        }
        self.close_row(missing, covered);
    }

    /// Ends the current need and goes on to the next.
    fn close_row(&mut self, missing: Amounts, covered: bool) {
        let row = self.credit.ends.len() as u32;
        self.credit.ends.push(self.credit.claims.len() as u32);
        if !covered {
            self.credit.short.push((row, missing));
        }
    }

    /// The creditable machines of a gang, by domain.
    pub(crate) fn tally(&mut self, demand: &Demand) -> Vec<Tally> {
        let Sources { inventory, classes, .. } = self.sources;
        let domain = classes.domain(demand.same.expect("only gangs are tallied"));
        self.mark_counting(demand);
        let mut tallies: Vec<Tally> = Vec::new();
        let bound = (0..)
            .zip(&self.mask)
            .flat_map(|(word, bits)| crate::bits::ones(*bits).map(move |bit| word * 64 + bit));
        let bound = bound.map(|position| (Some(position), self.held(position)));
        let creating = self.own_creating(demand).into_iter().map(|held| (None, held));
        for (position, held) in bound.chain(creating) {
            let row = inventory.row(held.machine);
            let value = classes.domain_of_kind(domain, row.kind);
            let at = tallies.iter().position(|tally| tally.value == value).unwrap_or_else(|| {
                tallies.push(Tally::new(value, demand));
                tallies.len() - 1
            });
            let own = row.key == demand.key;
            tallies[at].add(position, held, own, classes.provides(held.class));
        }
        tallies
    }

    /// Credits a gang inside its domain: its own machines first, each half in order.
    pub(crate) fn credit_gang(&mut self, demand: &Demand, chosen: Option<Chosen>, tallies: &[Tally]) {
        let row = self.credit.ends.len() as u32;
        self.credit.domains.push((row, chosen));
        let mut missing = Amounts::from_slice(&demand.aggregate);
        let mut covered = is_zero(&missing);
        let tally = chosen.and_then(|chosen| tallies.iter().find(|tally| tally.value == chosen.value));
        for member in tally.into_iter().flat_map(Tally::own_first) {
            let provides = self.sources.classes.provides(member.held.class);
            if covered || !contributes(provides, &missing) {
                continue;
            }
            match member.position {
                Some(position) => {
                    self.claimed.insert(position);
                }
                None => self.claimed_creating.push(member.held.machine),
            }
            self.credit.claims.push(member.held.machine);
            covered = subtract(&mut missing, provides);
        }
        self.close_row(missing, covered);
    }

    /// What the gang just credited still misses.
    pub(crate) fn last_missing(&self) -> Option<&Amounts> {
        let row = self.credit.ends.len() as u32 - 1;
        self.credit.short.last().filter(|(short, _)| *short == row).map(|(_, missing)| missing)
    }

    fn finish(&mut self) {
        let configured = (0..).zip(&self.supply.configured);
        let excess = configured.filter(|(position, _)| !self.claimed.contains(*position));
        self.credit.excess = excess.map(|(_, held)| held.machine).collect();
    }
}
