//! What each need of a cluster keeps of its own machines, settled before the walk.

use std::sync::Arc;

use crate::bits::Bits;
use crate::holdings::Held;
use crate::intern::NONE;
use crate::needs::{Demand, touch_all};

use super::loose::Loose;
use super::pick::keep;
use super::sources::Sources;

/// Whose a cluster's machines are, who keeps them, and which are claimed. Machines are known by their position.
#[derive(Default)]
pub(super) struct Kept {
    /// By position, the class of the machine.
    pub(super) class: Vec<u32>,
    /// The positions of each row's own machines, row after row, and where they end.
    own: Vec<u32>,
    own_ends: Vec<u32>,
    /// Rows that share an identity with one before them have their own lists; the one before is in `sharers` too.
    shared_own: Vec<(u32, Vec<u32>)>,
    sharers: Vec<u32>,
    /// By position, the row whose own machine it is.
    owner: Vec<u32>,
    /// By position, the turn of the need that keeps it, or [`NONE`].
    pub(super) keeper: Vec<u32>,
    /// What each row keeps, row after row, and where that begins and ends.
    positions: Vec<u32>,
    spans: Vec<(u32, u32)>,
    /// By row, whether its turn cannot simply claim what it keeps.
    pub(super) disturbed: Vec<bool>,
    pub(super) claimed: Bits,
    /// The bound machines that nobody keeps any more and nobody has claimed.
    pub(super) loose: Bits,
    /// Those that nobody keeps from the beginning, and those given up later, with the turn after which.
    unkept: Bits,
    given_up: Vec<(u32, u32)>,
    /// By position, the turn in which a machine was claimed that its claimant did not simply keep.
    claimed_in: Vec<u32>,
    /// The turns of needs that keep less than they would take if nobody trimmed.
    pub(super) trims: Bits,
    picked: Vec<u32>,
}

impl Kept {
    /// Finds out for all rows what is theirs and what they keep of it. Positions below `configured` are Configured, those below
    /// `bound` are bound. `slots` is scratch space, one entry an identity, all [`NONE`].
    pub(super) fn settle(
        &mut self,
        sources: Sources<'_>,
        held: &[Held],
        (configured, bound): (u32, u32),
        rows: &[Arc<Demand>],
        turns: &[u32],
        slots: &mut [u32],
    ) {
        touch_all(rows);
        self.class.clear();
        self.class.extend(held.iter().map(|held| sources.classes.of_kind(held.kind)));
        self.find_own(held, rows, turns, slots);
        refill(&mut self.keeper, held.len(), NONE);
        refill(&mut self.claimed_in, held.len(), NONE);
        refill(&mut self.spans, rows.len(), (0, 0));
        self.claimed.reset(held.len());
        self.trims.reset(turns.len());
        self.positions.clear();
        self.given_up.clear();
        for (turn, row) in (0..).zip(turns.iter().copied()) {
            self.keep(row, turn, &rows[row as usize], sources, configured);
        }
        self.loose.reset(bound as usize);
        for (position, _) in (0..bound).zip(&self.keeper).filter(|(_, keeper)| **keeper == NONE) {
            self.loose.insert(position);
        }
        self.unkept.clone_from(&self.loose);
    }

    /// Settles what one need keeps.
    fn keep(&mut self, row: u32, turn: u32, demand: &Demand, sources: Sources<'_>, configured: u32) {
        let mut picked = std::mem::take(&mut self.picked);
        picked.clear();
        let own = self.own_of(row).iter().copied().filter(|position| self.keeper[*position as usize] == NONE);
        let class = |position: u32| self.class[position as usize];
        let kept = keep(own, class, |position| position < configured, demand, sources, &mut picked);
        self.disturbed[row as usize] = !kept.covers;
        if kept.trimmed {
            self.trims.insert(turn);
        }
        let start = self.positions.len() as u32;
        self.positions.extend_from_slice(&picked);
        self.spans[row as usize] = (start, self.positions.len() as u32);
        for position in &picked {
            self.keeper[*position as usize] = turn;
        }
        self.picked = picked;
    }

    /// Finds out which machines are whose own, of the rows that take turns.
    fn find_own(&mut self, held: &[Held], rows: &[Arc<Demand>], turns: &[u32], slots: &mut [u32]) {
        refill(&mut self.disturbed, rows.len(), false);
        self.shared_own.clear();
        self.sharers.clear();
        let mut sharing: Vec<u32> = Vec::new();
        for row in turns.iter().copied() {
            for key in rows[row as usize].own_keys() {
                let slot = &mut slots[key as usize];
                if *slot == NONE {
                    *slot = row;
                } else {
                    // Folding gave two rows one identity.
                    self.sharers.push(*slot);
                    sharing.push(row);
                }
            }
        }
        let row_of = |key: u32| if key == NONE { NONE } else { slots[key as usize] };
        self.owner.clear();
        self.owner.extend(held.iter().map(|held| row_of(held.key)));
        let ends = &mut self.own_ends;
        refill(ends, rows.len() + 1, 0);
        for row in self.owner.iter().filter(|row| **row != NONE) {
            ends[*row as usize + 1] += 1;
        }
        for row in 0..rows.len() {
            ends[row + 1] += ends[row];
        }
        refill(&mut self.own, ends[rows.len()] as usize, 0);
        for (position, row) in (0..).zip(&self.owner) {
            if *row != NONE {
                let next = &mut ends[*row as usize];
                self.own[*next as usize] = position;
                *next += 1;
            }
        }
        // Filling moved each start to its end.
        sharing.dedup();
        for row in sharing {
            let demand = &rows[row as usize];
            let own = (0..).zip(held).filter(|(_, held)| demand.own_keys().any(|key| key == held.key));
            self.shared_own.push((row, own.map(|(position, _)| position).collect()));
        }
        for key in turns.iter().flat_map(|row| rows[*row as usize].own_keys()) {
            slots[key as usize] = NONE;
        }
    }

    /// The positions of a row's own machines.
    pub(super) fn own_of(&self, row: u32) -> &[u32] {
        if let Some((_, own)) = self.shared_own.iter().find(|(sharing, _)| *sharing == row) {
            return own;
        }
        let start = if row == 0 { 0 } else { self.own_ends[row as usize - 1] };
        &self.own[start as usize..self.own_ends[row as usize] as usize]
    }

    /// Whether a machine is a row's own.
    pub(super) fn is_own(&self, position: u32, row: u32) -> bool {
        if self.shared_own.is_empty() {
            return self.owner[position as usize] == row;
        }
        self.own_of(row).binary_search(&position).is_ok()
    }

    /// Whether some rows share an identity.
    pub(super) fn is_sharing(&self) -> bool {
        !self.shared_own.is_empty()
    }

    /// Claims a machine for a row in its turn. If it is not the row's own, its owners cannot simply claim what they keep.
    pub(super) fn claim(&mut self, position: u32, row: u32, turn: u32) {
        self.claimed.insert(position);
        self.claimed_in[position as usize] = turn;
        self.loose.remove(position);
        let owner = self.owner[position as usize];
        if self.shared_own.is_empty() {
            if owner != row && owner != NONE {
                self.disturbed[owner as usize] = true;
            }
            return;
        }
        if owner != NONE {
            // It may be the own machine of several, and kept by another of them.
            self.disturbed[owner as usize] = true;
            let sharing = self.sharers.iter().chain(self.shared_own.iter().map(|(row, _)| row));
            sharing.for_each(|row| self.disturbed[*row as usize] = true);
        }
    }

    /// Claims all that a row keeps for it.
    pub(super) fn claim_all(&mut self, row: u32) -> &[u32] {
        let (start, end) = self.spans[row as usize];
        let kept = &self.positions[start as usize..end as usize];
        for position in kept {
            self.claimed.insert(*position);
        }
        kept
    }

    /// Ends the turn of a row: what it keeps and has not claimed is kept no longer.
    pub(super) fn release(&mut self, row: u32, turn: u32, bound: u32) {
        let (start, end) = self.spans[row as usize];
        for position in &self.positions[start as usize..end as usize] {
            if *position < bound && !self.claimed.contains(*position) {
                self.loose.insert(*position);
                self.given_up.push((*position, turn));
            }
        }
    }

    /// When all turns are over: the bound machines that somebody else than their owner could have been credited with.
    pub(super) fn all_loose(&mut self, held: &[Held], configured: u32) -> Vec<Loose> {
        let one = |position: u32, from: u32| {
            let Held { machine, key, .. } = held[position as usize];
            let (class, claimed_in) = (self.class[position as usize], self.claimed_in[position as usize]);
            let owner = self.owner[position as usize];
            Loose { machine, class, key, owner, from, claimed_in, configured: position < configured }
        };
        if self.given_up.is_empty() {
            return self.unkept.iter().map(|position| one(position, 0)).collect();
        }
        self.given_up.iter_mut().for_each(|(_, turn)| *turn += 1);
        self.given_up.extend(self.unkept.iter().map(|position| (position, 0)));
        self.given_up.sort_unstable();
        self.given_up.iter().map(|(position, from)| one(*position, *from)).collect()
    }
}

fn refill<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    list.clear();
    list.resize(len, value);
}
