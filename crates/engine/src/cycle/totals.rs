//! What some machines come to, domain by domain: kept while a cycle goes on, and corrected as machines come and go.

use bigfleet_model::resource::MAX_AMOUNT;

use crate::intern::NONE;
use crate::needs::Demand;

use super::choice::Totals;

/// The machines of one set of classes by domain.
pub(crate) struct DomainTotals {
    /// The domains that had a machine when the table was made, and the place of every domain among them or
    /// [`NONE`]: there are thousands of racks, and few have what a set asks for.
    values: Vec<u32>,
    place_of: Vec<u32>,
    /// By place, how many machines are left.
    counts: Vec<u32>,
    /// By place, `dims` totals; wide, because machines are taken off again.
    totals: Vec<u128>,
    /// How much of what happened since it has heard of.
    pub(crate) heard: usize,
}

impl DomainTotals {
    pub(crate) fn new(domains: usize, heard: usize) -> Self {
        let place_of = vec![NONE; domains];
        Self { values: Vec::new(), place_of, counts: Vec::new(), totals: Vec::new(), heard }
    }

    /// Adds some machines that provide the same.
    pub(crate) fn add(&mut self, value: u32, count: u32, provides: &[u64]) {
        let dims = provides.len();
        let place = &mut self.place_of[value as usize];
        if *place == NONE {
            *place = self.values.len() as u32;
            self.values.push(value);
            self.counts.push(0);
            self.totals.resize(self.totals.len() + dims, 0);
        }
        let at = *place as usize;
        self.counts[at] += count;
        let totals = &mut self.totals[at * dims..][..dims];
        totals
            .iter_mut()
            .zip(provides)
            .for_each(|(total, one)| *total += u128::from(*one) * u128::from(count));
    }

    /// Takes one machine off.
    pub(crate) fn take(&mut self, value: u32, provides: &[u64]) {
        let (at, dims) = (self.place_of[value as usize] as usize, provides.len());
        self.counts[at] -= 1;
        let totals = &mut self.totals[at * dims..][..dims];
        totals.iter_mut().zip(provides).for_each(|(total, one)| *total -= u128::from(*one));
    }

    /// The domains with machines.
    pub(crate) fn values(&self) -> impl Iterator<Item = u32> + '_ {
        self.values.iter().zip(&self.counts).filter(|(_, count)| **count > 0).map(|(value, _)| *value)
    }

    /// How many machines there are in a domain, and what they provide by demanded dimension.
    pub(crate) fn of(&self, value: u32, demand: &Demand, dims: usize) -> (usize, Totals) {
        let place = self.place_of[value as usize] as usize;
        let Some(count) = self.counts.get(place) else {
            return (0, Totals::from_elem(0, demand.aggregate.len()));
        };
        let totals = &self.totals[place * dims..][..dims];
        let saturated = |total: u128| u64::try_from(total).map_or(MAX_AMOUNT, |total| total.min(MAX_AMOUNT));
        (*count as usize, demand.aggregate.iter().map(|(dim, _)| saturated(totals[*dim as usize])).collect())
    }
}
