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
use crate::holdings::{Held, Supply};
use crate::index::Index;
use crate::intern::NONE;
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

    /// All machines credited, with the priority they are claimed at.
    pub(crate) fn claimed_at(&self) -> impl Iterator<Item = (i32, u32)> + '_ {
        self.claims().map(|(row, machine)| (self.rows[row].priority(), machine))
    }

    /// Whether another credit of the same needs claims the same machines for each.
    pub(crate) fn has_same_claims(&self, other: &Self) -> bool {
        let priorities = |credit: &Self| credit.rows.iter().map(|row| row.priority()).collect::<Vec<_>>();
        (&self.claims, &self.ends) == (&other.claims, &other.ends) && priorities(self) == priorities(other)
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
    /// The classes the cluster holds, and for each position the place of its class among them.
    held_classes: Vec<u32>,
    place_of: Vec<u32>,
    /// For each held class, the last need it was judged for and whether it counts: needs look at most
    /// machines of a class or at none, so a class is judged once a need, when first met.
    judged: Vec<(u32, bool)>,
    unclaimed: Bits,
    claimed_creating: Vec<u32>,
    pub(crate) credit: Credit,
}

impl<'a> Walk<'a> {
    /// Starts a walk. `places` is scratch space, one entry a class, all [`NONE`].
    pub(crate) fn new(
        sources: Sources<'a>,
        cluster: u32,
        rows: Arc<[Arc<Demand>]>,
        places: &mut [u32],
    ) -> Self {
        let supply = sources.index.holdings.supply(cluster);
        let held = supply.configured.len() + supply.configuring.len();
        let (mut held_classes, mut place_of) = (Vec::new(), Vec::with_capacity(held));
        for held in supply.configured.iter().chain(&supply.configuring) {
            let class = sources.classes.of_kind(held.kind);
            let place = &mut places[class as usize];
            if *place == NONE {
                *place = held_classes.len() as u32;
                held_classes.push(class);
            }
            place_of.push(*place);
        }
        for class in &held_classes {
            places[*class as usize] = NONE;
        }
        let ends = Vec::with_capacity(rows.len());
        let credit = Credit { rows, ends, claims: Vec::with_capacity(held), ..Credit::default() };
        Self {
            sources,
            cluster,
            supply,
            judged: vec![(NONE, false); held_classes.len()],
            held_classes,
            place_of,
            unclaimed: Bits::full(held),
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

    /// Whether the machine at a position counts for the need the walk stands before.
    #[inline]
    fn counts(&mut self, position: u32, demand: &Demand) -> bool {
        let row = self.credit.ends.len() as u32;
        let place = self.place_of[position as usize] as usize;
        let (judged_for, counts) = self.judged[place];
        if judged_for == row {
            return counts;
        }
        let Sources { classes, sets, .. } = self.sources;
        let class = self.held_classes[place];
        let counts =
            sets.admits(demand.requirements).contains(class) && classes.covers(class, &demand.min_unit);
        self.judged[place] = (row, counts);
        counts
    }

    /// Our own machines being created for this need that count and are not yet claimed.
    fn own_creating(&self, demand: &Demand) -> Vec<Held> {
        let Sources { inventory, index, classes, sets, .. } = self.sources;
        let held = |machine: &u32| Held { machine: *machine, kind: inventory.row(*machine).kind };
        let counts = |held: &Held| {
            let class = classes.of_kind(held.kind);
            sets.admits(demand.requirements).contains(class)
                && classes.covers(class, &demand.min_unit)
                && !self.claimed_creating.contains(&held.machine)
        };
        index.holdings.creating(demand.key).iter().map(held).filter(counts).collect()
    }

    fn credit_plain(&mut self, demand: &Demand) {
        let mut missing = Amounts::from_slice(&demand.aggregate);
        let mut covered = is_zero(&missing);
        let mut word = 0;
        while !covered && word < self.unclaimed.words().len() {
            let mut bits = self.unclaimed.words()[word];
            while bits != 0 && !covered {
                let position = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if !self.counts(position, demand) {
                    continue;
                }
                let held = self.held(position);
                let provides = self.sources.classes.provides_kind(held.kind);
                if contributes(provides, &missing) {
                    self.unclaimed.remove(position);
                    self.credit.claims.push(held.machine);
                    covered = subtract(&mut missing, provides);
                }
            }
            word += 1;
        }
        if !covered {
            for held in self.own_creating(demand) {
                let provides = self.sources.classes.provides_kind(held.kind);
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
        let unclaimed: Vec<u32> = self.unclaimed.iter().collect();
        let counting: Vec<u32> =
            unclaimed.into_iter().filter(|position| self.counts(*position, demand)).collect();
        let mut tallies: Vec<Tally> = Vec::new();
        let bound = counting.into_iter().map(|position| (Some(position), self.held(position)));
        let creating = self.own_creating(demand).into_iter().map(|held| (None, held));
        for (position, held) in bound.chain(creating) {
            let row = inventory.row(held.machine);
            let value = classes.domain_of_kind(domain, row.kind);
            let at = tallies.iter().position(|tally| tally.value == value).unwrap_or_else(|| {
                tallies.push(Tally::new(value, demand));
                tallies.len() - 1
            });
            let own = row.key == demand.key;
            tallies[at].add(position, held, own, classes.provides_kind(held.kind));
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
            let provides = self.sources.classes.provides_kind(member.held.kind);
            if covered || !contributes(provides, &missing) {
                continue;
            }
            match member.position {
                Some(position) => self.unclaimed.remove(position),
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
        let excess = configured.filter(|(position, _)| self.unclaimed.contains(*position));
        self.credit.excess = excess.map(|(_, held)| held.machine).collect();
    }
}
