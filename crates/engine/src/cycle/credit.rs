//! What came of a cluster's needs as far as its own machines go.

use std::sync::Arc;

use crate::amounts::is_zero;
use crate::bits::Bits;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::choice::Chosen;
use super::loose::Loose;

/// A cluster's needs after their turns, as far as the cluster's own machines go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credit {
    /// The cluster's needs in demand order, after folding.
    pub(crate) rows: Arc<[Arc<Demand>]>,
    /// The rows in precedence order.
    pub(crate) turns: Arc<[u32]>,
    /// The bound machines claimed, need by need; what was taken over comes last of a need's.
    pub(super) claims: Vec<u32>,
    /// By row, where its machines begin and end in `claims`.
    pub(super) spans: Vec<(u32, u32)>,
    /// The needs its own cluster's machines left short, by turn, and what they missed before acquiring.
    pub(crate) short: Vec<(u32, Amounts)>,
    /// The domains of the gangs, by turn.
    pub(crate) domains: Vec<(u32, Option<Chosen>)>,
    /// Configured machines no need took, in keep order.
    pub(crate) excess: Vec<u32>,
    /// Whether some turn depended on more than this cluster.
    pub(crate) shared: bool,
    /// The bound machines their owners did not simply claim, in the order needs look at them.
    pub(super) loose: Vec<Loose>,
    /// The needs that did not simply claim what they keep, by turn: they look at what is loose.
    pub(super) borrowing: Vec<Borrower>,
    /// The turns of needs that keep less than they would take if nobody trimmed.
    pub(super) trimming: Bits,
    /// Whether some rows share an identity.
    pub(super) sharing: bool,
}

/// A need that looks at what is loose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Borrower {
    pub(super) turn: u32,
    pub(super) requirements: u32,
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

    /// Gives a need other machines than it had.
    pub(super) fn set_claims(&mut self, row: u32, machines: &[u32]) {
        let (start, end) = self.spans[row as usize];
        let start = if machines.len() <= (end - start) as usize {
            self.claims[start as usize..][..machines.len()].copy_from_slice(machines);
            start
        } else {
            if self.claims.len()
                > 2 * self.spans.iter().map(|(start, end)| (end - start) as usize).sum::<usize>() + 64
            {
                self.close_gaps();
            }
            let start = self.claims.len() as u32;
            self.claims.extend_from_slice(machines);
            start
        };
        self.spans[row as usize] = (start, start + machines.len() as u32);
    }

    /// Puts all claims side by side again.
    fn close_gaps(&mut self) {
        let mut claims = Vec::with_capacity(self.claims.len());
        for span in &mut self.spans {
            let start = claims.len() as u32;
            claims.extend_from_slice(&self.claims[span.0 as usize..span.1 as usize]);
            *span = (start, claims.len() as u32);
        }
        self.claims = claims;
    }

    /// Notes what credit leaves the need of a turn missing.
    pub(super) fn set_missing(&mut self, row: u32, missing: Amounts, turn_of: impl Fn(u32) -> u32) {
        let turn = turn_of(row);
        let at = self.short.partition_point(|(other, _)| turn_of(*other) < turn);
        let is_there = self.short.get(at).is_some_and(|(other, _)| *other == row);
        match (is_there, is_zero(&missing)) {
            (true, true) => drop(self.short.remove(at)),
            (true, false) => self.short[at].1 = missing,
            (false, true) => {}
            (false, false) => self.short.insert(at, (row, missing)),
        }
    }

    /// The bound machines no need claims, in order.
    pub(super) fn unclaimed(&self) -> impl Iterator<Item = u32> + '_ {
        self.loose.iter().filter(|one| one.is_unclaimed()).map(|one| one.machine)
    }

    /// Lists the Configured machines no need claims.
    pub(super) fn list_excess(&mut self) {
        let excess = self.loose.iter().filter(|one| one.is_unclaimed() && one.configured);
        self.excess = excess.map(|one| one.machine).collect();
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
