//! A strict spread: how far one domain may be ahead of the others.

use std::collections::BTreeMap;

use crate::intern::NONE;

use super::sources::Sources;

/// How many machines a need has in each domain that plays a part, while it takes more.
pub(crate) struct Spread {
    pub(crate) domain: usize,
    headroom: u64,
    counts: BTreeMap<u32, u64>,
}

impl Spread {
    /// A spread over a domain key, counting what the need holds.
    pub(crate) fn new(
        sources: Sources<'_>,
        domain: usize,
        headroom: u64,
        held: impl Iterator<Item = u32>,
    ) -> Self {
        let mut spread = Self { domain, headroom, counts: BTreeMap::new() };
        for machine in held {
            spread.add(sources.domain_of(domain, machine));
        }
        spread
    }

    /// A domain in which there is something to take.
    pub(crate) fn open(&mut self, value: u32) {
        if value != NONE {
            self.counts.entry(value).or_default();
        }
    }

    /// Counts a machine in a domain.
    pub(crate) fn add(&mut self, value: u32) {
        if value != NONE {
            *self.counts.entry(value).or_default() += 1;
        }
    }

    /// The most machines a domain may have to take another.
    pub(crate) fn limit(&self) -> u64 {
        self.counts.values().min().copied().unwrap_or(0) + self.headroom
    }

    /// Whether a domain may take another machine, given the present limit.
    pub(crate) fn permits(&self, value: u32, limit: u64) -> bool {
        self.counts.get(&value).is_some_and(|count| *count <= limit)
    }
}
