//! Phase 1 inside one cluster: what each need keeps, and what it is credited with at its turn.
//!
//! Clusters do not share bound machines, so each is walked alone. Before the walk every need settles what it *keeps* of
//! its own machines, those stamped for it. Then the needs take their turns in precedence order. A need is credited with
//! its own machines, then with what no need keeps any more. For most needs the two steps are one: what it keeps
//! covers it, nobody else may touch that, and its turn depends on nothing else in the fleet.
//!
//! Where a turn does depend on more than the cluster, the walk stops: at a gang that is not at home, whose domain
//! depends on free machines; and at a need that stays short, if what it gets elsewhere decides what it takes over here
//! from needs after it. [`super::turns`] goes on from there, cluster by cluster in precedence order. A first walk does
//! not stop at short needs: it assumes that they find what they miss among free machines. If one does not, its
//! cluster is walked again up to that need; what came before it cannot have changed.

use std::sync::Arc;

use crate::amounts::{contributes, is_zero, subtract};
use crate::bits::Bits;
use crate::classes::{Classes, RequirementSets};
use crate::holdings::Held;
use crate::index::Index;
use crate::intern::NONE;
use crate::inventory::Inventory;
use crate::needs::Demand;
use crate::vocab::{Amounts, Vocabulary};

use super::choice::{Chosen, Tallies, home_of};
use super::trim::trim;

/// What every step of a cycle reads.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) vocab: &'a Vocabulary,
    pub(crate) inventory: &'a Inventory,
    pub(crate) index: &'a Index,
    pub(crate) classes: &'a Classes,
    pub(crate) sets: &'a RequirementSets,
}

impl Sources<'_> {
    /// Whether machines of a class count for a need.
    #[inline]
    pub(crate) fn counts(&self, class: u32, demand: &Demand) -> bool {
        self.sets.admits(demand.requirements).contains(class) && self.classes.covers(class, &demand.min_unit)
    }

    /// The machines draining on behalf of a need that count for it, by id.
    pub(crate) fn draining_for(&self, demand: &Demand) -> Vec<u32> {
        if !self.index.holdings.is_any_draining() {
            return Vec::new();
        }
        let lists = demand.own_keys().flat_map(|key| self.index.holdings.draining(key)).copied();
        let counting = lists.filter(|m| self.counts(self.class_of(*m), demand));
        let mut draining: Vec<u32> = counting.collect();
        if !demand.members.is_empty() {
            draining.sort_unstable_by_key(|machine| self.inventory.row(*machine).order);
        }
        draining
    }

    #[inline]
    pub(crate) fn class_of(&self, machine: u32) -> u32 {
        self.classes.of_kind(self.inventory.row(machine).kind)
    }

    /// The domain a machine lies in, or [`NONE`].
    #[inline]
    pub(crate) fn domain_of(&self, domain: usize, machine: u32) -> u32 {
        self.classes.domain_of_kind(domain, self.inventory.row(machine).kind)
    }
}

/// A cluster's needs after their turns, as far as the cluster's own machines go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credit {
    /// The cluster's needs in demand order, after folding.
    pub(crate) rows: Arc<[Arc<Demand>]>,
    /// The rows in precedence order.
    pub(crate) turns: Arc<[u32]>,
    /// The bound machines claimed, turn after turn; what was taken over comes last within a turn.
    claims: Vec<u32>,
    /// By row, where its machines begin and end in `claims`.
    spans: Vec<(u32, u32)>,
    /// The needs its own cluster's machines left short, by turn, and what they missed before acquiring.
    pub(crate) short: Vec<(u32, Amounts)>,
    /// The domains of the gangs, by turn.
    pub(crate) domains: Vec<(u32, Option<Chosen>)>,
    /// Configured machines no need took, in keep order.
    pub(crate) excess: Vec<u32>,
    /// Whether some turn depended on more than this cluster.
    pub(crate) shared: bool,
}

impl Credit {
    /// The bound machines a need claims.
    pub(crate) fn claims_of(&self, row: usize) -> &[u32] {
        let (start, end) = self.spans[row];
        &self.claims[start as usize..end as usize]
    }

    /// All machines claimed, with the need that claims them.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        (0..self.spans.len()).flat_map(|row| self.claims_of(row).iter().map(move |machine| (row, *machine)))
    }

    /// What credit left a need missing.
    pub(crate) fn missing_of(&self, row: u32) -> Amounts {
        let short = self.short.iter().find(|(short, _)| *short == row);
        short.map_or_else(Amounts::new, |(_, missing)| missing.clone())
    }

    /// The domain of a gang, if it got one.
    pub(crate) fn domain_of(&self, row: u32) -> Option<Chosen> {
        self.domains.iter().find(|(gang, _)| *gang == row).and_then(|(_, chosen)| *chosen)
    }
}

/// Why a walk stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// All turns are over.
    End,
    /// Before the turn of a gang whose own machines do not settle its domain.
    Gang,
    /// In the turn of a need that credit left short.
    Short,
}

/// How far a walk goes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To the end, taking it that short needs take over nothing.
    Ahead,
    /// The same, up to the short need of this turn.
    Until(u32),
    /// To the next short need.
    Live,
}

/// A walk over one cluster's needs. Machines are known by their position: Configured ones in keep order, then
/// Configuring ones in keep order, then those being created, by id. That is the order needs look at them.
pub(crate) struct Walk<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) cluster: u32,
    held: Vec<Held>,
    class: Vec<u32>,
    /// Positions below are Configured, and bound.
    configured: u32,
    bound: u32,
    /// The positions of each row's own machines, row after row, and where they end.
    own: Vec<u32>,
    own_ends: Vec<u32>,
    /// Rows that share an identity with one before them have their own lists.
    shared_own: Vec<(u32, Vec<u32>)>,
    /// By position, the row whose own machine it is.
    owner: Vec<u32>,
    /// By position, the turn of the need that keeps it, or [`NONE`].
    keeper: Vec<u32>,
    /// By row, where what it keeps begins and ends in `kept`; empty unless that covers it.
    kept: Vec<u32>,
    kept_spans: Vec<(u32, u32)>,
    /// By row, whether its turn cannot simply claim what it keeps.
    disturbed: Vec<bool>,
    claimed: Bits,
    turn: u32,
    /// In the turn of a short need: what it misses.
    pub(crate) missing: Amounts,
    pub(crate) credit: Credit,
}

impl<'a> Walk<'a> {
    /// Starts a walk. `slots` is scratch space, one entry an identity, all [`NONE`].
    pub(crate) fn new(
        sources: Sources<'a>,
        cluster: u32,
        rows: Arc<[Arc<Demand>]>,
        turns: Arc<[u32]>,
        slots: &mut [u32],
    ) -> Self {
        let supply = sources.index.holdings.supply(cluster);
        let held: Vec<Held> = supply.all().copied().collect();
        let class = held.iter().map(|held| sources.classes.of_kind(held.kind)).collect();
        let (spans, claims) = (vec![(0, 0); rows.len()], Vec::with_capacity(held.len()));
        let credit = Credit { rows, turns, claims, spans, ..Credit::default() };
        let mut walk = Self {
            sources,
            cluster,
            class,
            configured: supply.configured.len() as u32,
            bound: (supply.configured.len() + supply.configuring.len()) as u32,
            own: Vec::new(),
            own_ends: Vec::new(),
            shared_own: Vec::new(),
            owner: Vec::new(),
            keeper: vec![NONE; held.len()],
            kept: Vec::with_capacity(held.len()),
            kept_spans: vec![(0, 0); credit.rows.len()],
            disturbed: vec![false; credit.rows.len()],
            claimed: Bits::with_bound(held.len()),
            turn: 0,
            missing: Amounts::new(),
            held,
            credit,
        };
        walk.find_own(slots);
        walk.settle_kept();
        walk
    }

    /// Finds out which machines are whose own.
    fn find_own(&mut self, slots: &mut [u32]) {
        let rows = &self.credit.rows;
        let mut sharing: Vec<u32> = Vec::new();
        for (row, demand) in (0..).zip(rows.iter()) {
            for key in demand.own_keys() {
                let slot = &mut slots[key as usize];
                if *slot == NONE {
                    *slot = row;
                } else {
                    // Folding gave two rows one identity.
                    self.disturbed[*slot as usize] = true;
                    self.disturbed[row as usize] = true;
                    sharing.push(row);
                }
            }
        }
        let row_of = |key: u32| if key == NONE { NONE } else { slots[key as usize] };
        self.owner = self.held.iter().map(|held| row_of(held.key)).collect();
        let mut starts = vec![0_u32; rows.len() + 1];
        for row in self.owner.iter().filter(|row| **row != NONE) {
            starts[*row as usize + 1] += 1;
        }
        for row in 0..rows.len() {
            starts[row + 1] += starts[row];
        }
        self.own = vec![0; starts[rows.len()] as usize];
        for (position, row) in (0..).zip(&self.owner) {
            if *row != NONE {
                let next = &mut starts[*row as usize];
                self.own[*next as usize] = position;
                *next += 1;
            }
        }
        // Filling moved each start to its end.
        starts.truncate(rows.len());
        self.own_ends = starts;
        sharing.dedup();
        for row in sharing {
            let demand = &rows[row as usize];
            let own = (0..).zip(&self.held).filter(|(_, held)| demand.own_keys().any(|key| key == held.key));
            self.shared_own.push((row, own.map(|(position, _)| position).collect()));
        }
        for key in rows.iter().flat_map(|demand| demand.own_keys()) {
            slots[key as usize] = NONE;
        }
    }

    /// The positions of a row's own machines.
    fn own_of(&self, row: u32) -> &[u32] {
        if let Some((_, own)) = self.shared_own.iter().find(|(sharing, _)| *sharing == row) {
            return own;
        }
        let start = if row == 0 { 0 } else { self.own_ends[row as usize - 1] };
        &self.own[start as usize..self.own_ends[row as usize] as usize]
    }

    fn counts(&self, position: u32, demand: &Demand) -> bool {
        self.sources.counts(self.class[position as usize], demand)
    }

    fn provides(&self, position: u32) -> &'a [u64] {
        self.sources.classes.provides(self.class[position as usize])
    }

    /// Settles what every need keeps of its own machines, in precedence order.
    fn settle_kept(&mut self) {
        let (rows, turns) = (self.credit.rows.clone(), self.credit.turns.clone());
        let mut picked: Vec<u32> = Vec::new();
        for (turn, row) in (0..).zip(turns.iter().copied()) {
            let demand = &*rows[row as usize];
            picked.clear();
            let mut missing = Amounts::from_slice(&demand.aggregate);
            let mut covered = demand.same.is_none() && is_zero(&missing);
            for position in self.own_of(row).iter().copied() {
                if covered {
                    break;
                }
                if self.keeper[position as usize] != NONE || !self.counts(position, demand) {
                    continue;
                }
                if demand.same.is_some() {
                    // A gang keeps all its own.
                    picked.push(position);
                } else if contributes(self.provides(position), &missing) {
                    picked.push(position);
                    covered = subtract(&mut missing, self.provides(position));
                }
            }
            if covered {
                self.trim_credit(&mut picked, demand);
                let start = self.kept.len() as u32;
                self.kept.extend_from_slice(&picked);
                self.kept_spans[row as usize] = (start, self.kept.len() as u32);
            } else if demand.same.is_none() {
                self.disturbed[row as usize] = true;
            }
            for position in &picked {
                self.keeper[*position as usize] = turn;
            }
        }
    }

    /// Trims what is credited, unless part of it is still on its way or lies under a strict spread.
    fn trim_credit(&self, picked: &mut Vec<u32>, demand: &Demand) {
        if demand.spread.is_none() && picked.iter().all(|position| *position < self.configured) {
            trim(picked, &demand.aggregate, |position| self.provides(position), |_| {});
        }
    }

    /// The row whose turn it is.
    pub(crate) fn row(&self) -> u32 {
        self.credit.turns[self.turn as usize]
    }

    /// The number of the present turn.
    pub(crate) fn turn(&self) -> u32 {
        self.turn
    }

    /// The need whose turn it is.
    pub(crate) fn demand(&self) -> &Arc<Demand> {
        &self.credit.rows[self.row() as usize]
    }

    /// Walks on by itself as far as it can.
    pub(crate) fn advance(&mut self, mode: Mode) -> Stop {
        let (rows, turns) = (self.credit.rows.clone(), self.credit.turns.clone());
        while let Some(row) = turns.get(self.turn as usize).copied() {
            let demand = &*rows[row as usize];
            if demand.same.is_some() {
                let Some(chosen) = self.home_of(row, demand) else { return Stop::Gang };
                self.credit_gang(Some(chosen));
                debug_assert!(is_zero(&self.missing), "a gang at home is covered there");
                self.end_turn();
                continue;
            }
            if self.disturbed[row as usize] {
                self.credit_plain(row, demand);
            } else {
                self.claim_kept(row);
            }
            if !is_zero(&self.missing) {
                let stays = match mode {
                    Mode::Ahead => false,
                    Mode::Until(turn) => turn == self.turn,
                    Mode::Live => true,
                };
                // Under a strict spread, what could be taken over matters even if nothing is.
                if stays || demand.spread.is_some() {
                    return Stop::Short;
                }
            }
            self.end_turn();
        }
        self.finish();
        Stop::End
    }

    /// Whether a walk that did not stop at short needs stands still although it has passed some.
    pub(crate) fn passed_short_needs(&self, stop: Stop) -> bool {
        match stop {
            Stop::End => false,
            Stop::Gang => !self.credit.short.is_empty(),
            // The last one is the one it stands at.
            Stop::Short => self.credit.short.len() > 1,
        }
    }

    /// Ends the present turn and goes on to the next.
    pub(crate) fn end_turn(&mut self) {
        let row = self.row();
        self.credit.spans[row as usize].1 = self.credit.claims.len() as u32;
        self.turn += 1;
    }

    fn begin_claims(&mut self, row: u32) {
        let start = self.credit.claims.len() as u32;
        self.credit.spans[row as usize] = (start, start);
    }

    fn claim(&mut self, position: u32, row: u32) {
        self.claimed.insert(position);
        self.credit.claims.push(self.held[position as usize].machine);
        let owner = self.owner[position as usize];
        if owner != row && owner != NONE {
            self.disturbed[owner as usize] = true;
        }
    }

    /// The turn of a need that what it keeps covers, and whose own machines nobody else has touched.
    fn claim_kept(&mut self, row: u32) {
        self.begin_claims(row);
        let (start, end) = self.kept_spans[row as usize];
        for at in start..end {
            let position = self.kept[at as usize];
            self.claimed.insert(position);
            self.credit.claims.push(self.held[position as usize].machine);
        }
        self.missing.clear();
    }

    /// Whether no need keeps a machine any more, now that it is this turn.
    fn is_unkept(&self, position: u32) -> bool {
        let keeper = self.keeper[position as usize];
        keeper == NONE || keeper < self.turn
    }

    /// Whether a machine is a row's own.
    fn is_own(&self, position: u32, row: u32) -> bool {
        if self.shared_own.is_empty() {
            return self.owner[position as usize] == row;
        }
        self.own_of(row).binary_search(&position).is_ok()
    }

    /// What a row may be credited with, claimed or not: its own machines, then what no need keeps.
    fn creditable(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        let unkept = (0..self.bound).filter(move |p| self.is_unkept(*p) && !self.is_own(*p, row));
        self.own_of(row).iter().copied().chain(unkept)
    }

    /// Credits a need: its own machines, then what no need keeps.
    fn credit_plain(&mut self, row: u32, demand: &Demand) {
        self.begin_claims(row);
        let mut missing = Amounts::from_slice(&demand.aggregate);
        let mut picked: Vec<u32> = Vec::new();
        let mut covered = is_zero(&missing);
        for position in self.creditable(row) {
            if covered {
                break;
            }
            let takes = !self.claimed.contains(position)
                && self.counts(position, demand)
                && contributes(self.provides(position), &missing);
            if takes {
                picked.push(position);
                covered = subtract(&mut missing, self.provides(position));
            }
        }
        if covered {
            self.trim_credit(&mut picked, demand);
        }
        self.take_credit(row, &picked, missing);
    }

    /// Claims what credit picked for a row, and notes what it still misses.
    fn take_credit(&mut self, row: u32, picked: &[u32], missing: Amounts) {
        for position in picked {
            self.claim(*position, row);
        }
        if !is_zero(&missing) {
            self.credit.short.push((row, missing.clone()));
        }
        self.missing = missing;
    }

    /// The domain a gang's own machines settle, whatever else there is: one that they cover.
    fn home_of(&self, row: u32, demand: &Demand) -> Option<Chosen> {
        let own = self.own_of(row).iter().copied();
        let own = own.filter(|p| !self.claimed.contains(*p) && self.counts(*p, demand));
        home_of(demand, self.sources, own.map(|position| self.held[position as usize].kind))
    }

    /// What a gang could be credited with, by domain: its own machines and what no need keeps, and apart from these
    /// what needs after it keep.
    pub(crate) fn tally(&self, demand: &Demand) -> Tallies {
        let row = self.row();
        let domain = self.sources.classes.domain(demand.same.expect("only gangs are tallied"));
        let mut tallies = Tallies::new(demand, domain);
        let unclaimed = |position: &u32| !self.claimed.contains(*position) && self.counts(*position, demand);
        for position in self.own_of(row).iter().copied().filter(unclaimed) {
            tallies.own(self.sources.classes, self.held[position as usize].kind);
        }
        for position in (0..self.bound).filter(|p| unclaimed(p) && !self.is_own(*p, row)) {
            let kind = self.held[position as usize].kind;
            if self.is_unkept(position) {
                tallies.unkept(self.sources.classes, kind);
            } else {
                tallies.kept_by_others(self.sources.classes, kind);
            }
        }
        tallies
    }

    /// Credits the gang whose turn it is inside its domain: its own machines, then what no need keeps.
    pub(crate) fn credit_gang(&mut self, chosen: Option<Chosen>) {
        let row = self.row();
        let demand = self.demand().clone();
        self.begin_claims(row);
        self.credit.domains.push((row, chosen));
        let mut missing = Amounts::from_slice(&demand.aggregate);
        let mut covered = is_zero(&missing);
        let mut picked: Vec<u32> = Vec::new();
        if let Some(chosen) = chosen {
            let domain = self.sources.classes.domain(demand.same.expect("only gangs have a domain"));
            for position in self.creditable(row) {
                if covered {
                    break;
                }
                let kind = self.held[position as usize].kind;
                let takes = self.sources.classes.domain_of_kind(domain, kind) == chosen.value
                    && !self.claimed.contains(position)
                    && self.counts(position, &demand)
                    && contributes(self.provides(position), &missing);
                if takes {
                    picked.push(position);
                    covered = subtract(&mut missing, self.provides(position));
                }
            }
        }
        if covered {
            self.trim_credit(&mut picked, &demand);
        }
        self.take_credit(row, &picked, missing);
    }

    /// The machines needs after the present one keep and that count for it, in order: what it may take over.
    pub(crate) fn to_take_over(&self, demand: &Demand, chosen: Option<Chosen>) -> Vec<u32> {
        let domain = demand.same.map(|key| self.sources.classes.domain(key));
        let in_domain = |position: u32| match (domain, chosen) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(domain), Some(chosen)) => {
                let kind = self.held[position as usize].kind;
                self.sources.classes.domain_of_kind(domain, kind) == chosen.value
            }
        };
        let positions = (0..self.bound).filter(|position| {
            !self.claimed.contains(*position)
                && !self.is_unkept(*position)
                && self.keeper[*position as usize] != self.turn
                && self.counts(*position, demand)
                && in_domain(*position)
        });
        positions.collect()
    }

    /// The machine at a position, and its class.
    pub(crate) fn machine(&self, position: u32) -> (u32, u32) {
        (self.held[position as usize].machine, self.class[position as usize])
    }

    /// Claims a machine that a later need keeps.
    pub(crate) fn take_over(&mut self, position: u32) {
        let row = self.row();
        self.claim(position, row);
        self.credit.spans[row as usize].1 = self.credit.claims.len() as u32;
    }

    /// The bound machines the need whose turn it is claims so far.
    pub(crate) fn claimed_now(&self) -> &[u32] {
        let start = self.credit.spans[self.row() as usize].0;
        &self.credit.claims[start as usize..]
    }

    fn finish(&mut self) {
        let unclaimed = (0..self.configured).filter(|position| !self.claimed.contains(*position));
        self.credit.excess = unclaimed.map(|position| self.held[position as usize].machine).collect();
    }
}
