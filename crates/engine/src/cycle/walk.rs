//! Phase 1 inside one cluster: what each need is credited with at its turn.
//!
//! Clusters do not share bound machines, so each is walked alone. Before the walk every need settles what it *keeps* of
//! its own machines, those stamped for it ([`super::keep`]). Then the needs take their turns in precedence order. A need
//! is credited with its own machines, then with what no need keeps any more. For most needs the two steps are one: what it keeps
//! covers it, nobody else may touch that, and its turn depends on nothing else in the fleet.
//!
//! Where a turn does depend on more than the cluster, the walk stops: at a gang that is not at home, whose domain
//! depends on free machines; and at a need that stays short, if what it gets elsewhere decides what it takes over here
//! from needs after it. [`super::turns`] goes on from there, cluster by cluster in precedence order. A first walk does
//! not stop at short needs: it assumes that they find what they miss among free machines. If one does not, its
//! cluster is walked again up to that need; what came before it cannot have changed.

use std::sync::Arc;

use crate::amounts::is_zero;
use crate::bits::ones;
use crate::holdings::Held;
use crate::intern::NONE;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::choice::{Chosen, Tallies, home_of};
use super::credit::{Borrower, Credit};
use super::keep::Kept;
use super::pick::{pick, trim_credit};
use super::sources::Sources;

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

/// Room a walk works in, used again for the next one.
#[derive(Default)]
pub(crate) struct Room {
    /// By identity, the row whose it is; all [`NONE`] between two walks.
    pub(crate) slots: Vec<u32>,
    kept: Kept,
}

impl Room {
    /// Room for a fleet that knows so many identities.
    pub(crate) fn new(keys: usize) -> Self {
        Self { slots: vec![NONE; keys], kept: Kept::default() }
    }
}

/// A walk over one cluster's needs. Machines are known by their position: Configured ones in keep order, then
/// Configuring ones in keep order, then those being created, by id. That is the order needs look at them.
pub(crate) struct Walk<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) cluster: u32,
    held: &'a [Held],
    /// Positions below are Configured, and bound.
    configured: u32,
    bound: u32,
    kept: Kept,
    turn: u32,
    /// In the turn of a short need: what it misses.
    pub(crate) missing: Amounts,
    pub(crate) credit: Credit,
}

impl<'a> Walk<'a> {
    /// Starts a walk, in room that an earlier one left.
    pub(crate) fn new(
        sources: Sources<'a>,
        cluster: u32,
        rows: Arc<[Arc<Demand>]>,
        turns: Arc<[u32]>,
        room: &mut Room,
    ) -> Self {
        let supply = sources.index.holdings.supply(cluster);
        let (held, configured, bound) = (supply.all(), supply.configured(), supply.bound());
        let mut kept = std::mem::take(&mut room.kept);
        kept.settle(sources, held, (configured, bound), &rows, &turns, &mut room.slots);
        let (spans, claims) = (vec![(0, 0); rows.len()], Vec::with_capacity(held.len()));
        let credit = Credit { rows, turns, claims, spans, ..Credit::default() };
        Self { sources, cluster, held, configured, bound, kept, turn: 0, missing: Amounts::new(), credit }
    }

    /// What came of it; its room goes to the next.
    pub(crate) fn into_credit(self, room: &mut Room) -> Credit {
        room.kept = self.kept;
        self.credit
    }

    fn own_of(&self, row: u32) -> &[u32] {
        self.kept.own_of(row)
    }

    fn is_claimed(&self, position: u32) -> bool {
        self.kept.claimed.contains(position)
    }

    fn counts(&self, position: u32, demand: &Demand) -> bool {
        self.sources.counts(self.class(position), demand)
    }

    fn class(&self, position: u32) -> u32 {
        self.kept.class[position as usize]
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
            if self.kept.disturbed[row as usize] {
                let (turn, requirements) = (self.turn, demand.requirements);
                self.credit.borrowing.push(Borrower { turn, requirements });
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
        // What it kept and did not take is there for the needs after it.
        self.kept.release(row, self.turn, self.bound);
        self.turn += 1;
    }

    fn begin_claims(&mut self, row: u32) {
        let start = self.credit.claims.len() as u32;
        self.credit.spans[row as usize] = (start, start);
    }

    fn claim(&mut self, position: u32, row: u32) {
        self.credit.claims.push(self.held[position as usize].machine);
        self.kept.claim(position, row, self.turn);
    }

    /// The turn of a need that what it keeps covers, and whose own machines nobody else has touched.
    fn claim_kept(&mut self, row: u32) {
        self.begin_claims(row);
        let Self { kept, credit, held, .. } = self;
        credit.claims.extend(kept.claim_all(row).iter().map(|position| held[*position as usize].machine));
        self.missing.clear();
    }

    /// What a row may be credited with: its own machines, then what no need keeps. Its own may be claimed.
    fn creditable(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        let unkept = self.kept.loose.iter().filter(move |p| !self.kept.is_own(*p, row));
        self.own_of(row).iter().copied().chain(unkept)
    }

    /// Credits a need: its own machines, then what no need keeps.
    fn credit_plain(&mut self, row: u32, demand: &Demand) {
        self.begin_claims(row);
        let unclaimed = self.creditable(row).filter(|position| !self.is_claimed(*position));
        let credited = self.credited(unclaimed, demand);
        self.take_credit(row, credited);
    }

    /// What a need is credited with of some machines, and what it still misses.
    fn credited(&self, there: impl Iterator<Item = u32>, demand: &Demand) -> (Vec<u32>, Amounts) {
        let mut picked: Vec<u32> = Vec::new();
        let missing = pick(there, |position| self.class(position), demand, self.sources, &mut picked);
        if is_zero(&missing) {
            let is_configured = |position| position < self.configured;
            trim_credit(&mut picked, |position| self.class(position), is_configured, demand, self.sources);
        }
        (picked, missing)
    }

    /// Claims what credit picked for a row, and notes what it still misses.
    fn take_credit(&mut self, row: u32, (picked, missing): (Vec<u32>, Amounts)) {
        for position in picked {
            self.claim(position, row);
        }
        if !is_zero(&missing) {
            self.credit.short.push((row, missing.clone()));
        }
        self.missing = missing;
    }

    /// The domain a gang's own machines settle, whatever else there is: one that they cover.
    fn home_of(&self, row: u32, demand: &Demand) -> Option<Chosen> {
        let own = self.own_of(row).iter().copied();
        let own = own.filter(|p| !self.is_claimed(*p) && self.counts(*p, demand));
        home_of(demand, self.sources, own.map(|position| self.held[position as usize].kind))
    }

    /// What a gang could be credited with, by domain: its own machines and what no need keeps, and apart from these
    /// what needs after it keep.
    pub(crate) fn tally(&self, demand: &Demand) -> Tallies {
        let row = self.row();
        let domain = self.sources.classes.domain(demand.same.expect("only gangs are tallied"));
        let mut tallies = Tallies::new(demand, domain);
        let unclaimed = |position: &u32| !self.is_claimed(*position) && self.counts(*position, demand);
        for position in self.own_of(row).iter().copied().filter(unclaimed) {
            tallies.own(self.sources.classes, self.held[position as usize].kind);
        }
        for position in self.unclaimed().filter(|p| self.counts(*p, demand) && !self.kept.is_own(*p, row)) {
            let kind = self.held[position as usize].kind;
            if self.kept.loose.contains(position) {
                tallies.unkept(self.sources.classes, kind);
            } else {
                tallies.kept_by_others(self.sources.classes, kind);
            }
        }
        tallies
    }

    /// The bound machines nobody has claimed yet.
    fn unclaimed(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.kept.claimed.words();
        (0..self.bound.div_ceil(64)).flat_map(move |at| {
            let left = self.bound - at * 64;
            let all = if left < 64 { (1 << left) - 1 } else { u64::MAX };
            ones(!words.get(at as usize).copied().unwrap_or(0) & all).map(move |bit| at * 64 + bit)
        })
    }

    /// Credits the gang whose turn it is inside its domain: its own machines, then what no need keeps.
    pub(crate) fn credit_gang(&mut self, chosen: Option<Chosen>) {
        let row = self.row();
        let demand = self.demand().clone();
        self.begin_claims(row);
        self.credit.domains.push((row, chosen));
        let credited = if let Some(chosen) = chosen {
            let domain = self.sources.classes.domain(demand.same.expect("only gangs have a domain"));
            let lies_there = |position: u32| {
                let kind = self.held[position as usize].kind;
                self.sources.classes.domain_of_kind(domain, kind) == chosen.value
            };
            let unclaimed = self.creditable(row).filter(|position| !self.is_claimed(*position));
            self.credited(unclaimed.filter(|position| lies_there(*position)), &demand)
        } else {
            (Vec::new(), Amounts::from_slice(&demand.aggregate))
        };
        self.take_credit(row, credited);
    }

    /// The machines needs after the present one keep and that count for it, in order: what it may take over.
    pub(crate) fn to_take_over<'b>(
        &'b self,
        demand: &'b Demand,
        chosen: Option<Chosen>,
    ) -> impl Iterator<Item = u32> + 'b {
        let domain = demand.same.map(|key| self.sources.classes.domain(key));
        let in_domain = move |position: u32| match (domain, chosen) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(domain), Some(chosen)) => {
                let kind = self.held[position as usize].kind;
                self.sources.classes.domain_of_kind(domain, kind) == chosen.value
            }
        };
        self.unclaimed().filter(move |position| {
            !self.kept.loose.contains(*position)
                && self.kept.keeper[*position as usize] != self.turn
                && self.counts(*position, demand)
                && in_domain(*position)
        })
    }

    /// The machine at a position, and its class.
    pub(crate) fn machine(&self, position: u32) -> (u32, u32) {
        (self.held[position as usize].machine, self.class(position))
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
        self.credit.loose = self.kept.all_loose(self.held, self.configured);
        self.credit.list_excess();
        self.credit.trimming = std::mem::take(&mut self.kept.trims);
        self.credit.sharing = self.kept.is_sharing();
        debug_assert!(
            self.unclaimed().eq(self.credit.unclaimed().map(|machine| self.position_of(machine))),
            "what nobody claims, nobody keeps"
        );
    }

    fn position_of(&self, machine: u32) -> u32 {
        self.held.iter().position(|held| held.machine == machine).expect("it is held") as u32
    }
}
