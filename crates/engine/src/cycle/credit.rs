//! What came of a cluster's needs as far as its own machines go.

use std::sync::Arc;

use crate::needs::Demand;
use crate::vocab::Amounts;

use super::choice::Chosen;

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
    /// Configuring machines no need took.
    pub(super) loose: Vec<u32>,
    /// Whether some turn depended on more than this cluster.
    pub(crate) shared: bool,
    /// Whether some need claims a machine that is not its own.
    pub(super) mixed: bool,
    /// The rows that share an identity with others.
    pub(super) sharing: Vec<u32>,
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

    /// Notes what credit leaves a need missing; nothing if that is empty.
    pub(super) fn set_missing(&mut self, row: u32, missing: Amounts) {
        self.short.retain(|(short, _)| *short != row);
        if missing.is_empty() {
            return;
        }
        let turn = |row: u32| self.turns.iter().position(|one| *one == row);
        let at = self.short.partition_point(|(short, _)| turn(*short) < turn(row));
        self.short.insert(at, (row, missing));
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
