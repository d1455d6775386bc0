//! What each need of a cluster keeps of its own machines, settled before the walk.

use std::sync::Arc;

use crate::amounts::{contributes, is_zero, subtract};
use crate::bits::Bits;
use crate::holdings::Held;
use crate::intern::NONE;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::sources::Sources;
use super::trim::trim;

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
        self.class.clear();
        self.class.extend(held.iter().map(|held| sources.classes.of_kind(held.kind)));
        self.find_own(held, rows, slots);
        refill(&mut self.keeper, held.len(), NONE);
        refill(&mut self.spans, rows.len(), (0, 0));
        self.claimed.reset(held.len());
        self.positions.clear();
        for (turn, row) in (0..).zip(turns.iter().copied()) {
            self.keep(row, turn, &rows[row as usize], sources, configured);
        }
        self.loose.reset(bound as usize);
        for (position, _) in (0..bound).zip(&self.keeper).filter(|(_, keeper)| **keeper == NONE) {
            self.loose.insert(position);
        }
    }

    /// Settles what one need keeps.
    fn keep(&mut self, row: u32, turn: u32, demand: &Demand, sources: Sources<'_>, configured: u32) {
        let mut picked = std::mem::take(&mut self.picked);
        picked.clear();
        let mut missing = Amounts::from_slice(&demand.aggregate);
        let mut covered = demand.same.is_none() && is_zero(&missing);
        let provides = |position: u32| sources.classes.provides(self.class[position as usize]);
        for position in self.own_of(row).iter().copied() {
            if covered {
                break;
            }
            let at = position as usize;
            if self.keeper[at] != NONE || !sources.counts(self.class[at], demand) {
                continue;
            }
            if demand.same.is_some() {
                // A gang keeps all its own.
                picked.push(position);
            } else if contributes(provides(position), &missing) {
                picked.push(position);
                covered = subtract(&mut missing, provides(position));
            }
        }
        if covered && demand.spread.is_none() && picked.iter().all(|position| *position < configured) {
            trim(&mut picked, &demand.aggregate, provides, |_| {});
        }
        self.disturbed[row as usize] = !covered;
        let start = self.positions.len() as u32;
        self.positions.extend_from_slice(&picked);
        self.spans[row as usize] = (start, self.positions.len() as u32);
        for position in &picked {
            self.keeper[*position as usize] = turn;
        }
        self.picked = picked;
    }

    /// Finds out which machines are whose own.
    fn find_own(&mut self, held: &[Held], rows: &[Arc<Demand>], slots: &mut [u32]) {
        refill(&mut self.disturbed, rows.len(), false);
        self.shared_own.clear();
        self.sharers.clear();
        let mut sharing: Vec<u32> = Vec::new();
        for (row, demand) in (0..).zip(rows) {
            for key in demand.own_keys() {
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
        for key in rows.iter().flat_map(|demand| demand.own_keys()) {
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

    /// The rows that share an identity with others.
    pub(super) fn sharing(&self) -> impl Iterator<Item = u32> + '_ {
        self.sharers.iter().copied().chain(self.shared_own.iter().map(|(row, _)| *row))
    }

    /// Claims a machine for a row. True if it is not the row's own; then its owners cannot simply claim what they keep.
    pub(super) fn claim(&mut self, position: u32, row: u32) -> bool {
        self.claimed.insert(position);
        self.loose.remove(position);
        let owner = self.owner[position as usize];
        if self.shared_own.is_empty() {
            if owner != row && owner != NONE {
                self.disturbed[owner as usize] = true;
            }
            return owner != row;
        }
        if owner != NONE {
            // It may be the own machine of several, and kept by another of them.
            self.disturbed[owner as usize] = true;
            let sharing = self.sharers.iter().chain(self.shared_own.iter().map(|(row, _)| row));
            sharing.for_each(|row| self.disturbed[*row as usize] = true);
        }
        !self.is_own(position, row)
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
    pub(super) fn release(&mut self, row: u32, bound: u32) {
        let (start, end) = self.spans[row as usize];
        for position in &self.positions[start as usize..end as usize] {
            if *position < bound && !self.claimed.contains(*position) {
                self.loose.insert(*position);
            }
        }
    }
}

fn refill<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    list.clear();
    list.resize(len, value);
}
