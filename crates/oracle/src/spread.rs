//! Strict spread: no domain may run ahead of the emptiest one by more than the skew.

use std::collections::BTreeMap;

use crate::cycle::Cycle;
use crate::matching::{Strict, value};

/// How many machines of one need lie in each domain.
pub(crate) struct Tally<'a> {
    strict: Strict<'a>,
    counts: BTreeMap<String, i64>,
}

impl<'a> Tally<'a> {
    /// Counts these machines; the domains are theirs and those of the `others`.
    pub(crate) fn new(
        cycle: &Cycle<'_>,
        strict: Strict<'a>,
        counted: impl IntoIterator<Item = usize>,
        others: impl IntoIterator<Item = usize>,
    ) -> Self {
        let mut tally = Self { strict, counts: BTreeMap::new() };
        for machine in others {
            tally.count(cycle, machine, 0);
        }
        for machine in counted {
            tally.count(cycle, machine, 1);
        }
        tally
    }

    /// Whether one more machine may lie where this one does. Without the key it lies nowhere.
    pub(crate) fn admits(&self, cycle: &Cycle<'_>, machine: usize) -> bool {
        let Some(domain) = value(&cycle.machines[machine], self.strict.key) else { return false };
        let emptiest = self.counts.values().min().copied().unwrap_or(0);
        self.counts.get(domain).copied().unwrap_or(0) < emptiest + self.strict.max_skew
    }

    /// Counts a machine that was taken.
    pub(crate) fn take(&mut self, cycle: &Cycle<'_>, machine: usize) {
        self.count(cycle, machine, 1);
    }

    fn count(&mut self, cycle: &Cycle<'_>, machine: usize, more: i64) {
        if let Some(domain) = value(&cycle.machines[machine], self.strict.key) {
            *self.counts.entry(domain.to_owned()).or_insert(0) += more;
        }
    }
}
