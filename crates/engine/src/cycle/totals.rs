//! What some machines come to, domain by domain, corrected as machines come and go.

use bigfleet_model::resource::MAX_AMOUNT;

use crate::intern::NONE;
use crate::needs::Demand;

use super::choice::Totals;

/// The machines of one set of classes by domain.
#[derive(Clone)]
pub(crate) struct DomainTotals {
    /// The domains that had a machine when the table was made, and the place of every domain among them or
    /// [`NONE`]: there are thousands of racks, and few have what a set asks for.
    values: Vec<u32>,
    place_of: Vec<u32>,
    /// By place, how many machines are left.
    counts: Vec<u32>,
    /// By place, one total a dimension; wide, because machines are taken off again.
    totals: Vec<u128>,
    /// By dimension and place, the totals as they are compared: capped.
    capped: Vec<Vec<u64>>,
    /// How much of what happened since it has heard of.
    pub(crate) heard: usize,
}

fn cap(total: u128) -> u64 {
    u64::try_from(total).map_or(MAX_AMOUNT, |total| total.min(MAX_AMOUNT))
}

impl DomainTotals {
    pub(crate) fn new(domains: usize, dims: usize, heard: usize) -> Self {
        let (place_of, capped) = (vec![NONE; domains], vec![Vec::new(); dims]);
        Self { values: Vec::new(), place_of, counts: Vec::new(), totals: Vec::new(), capped, heard }
    }

    /// How many domains there were when it was made.
    pub(crate) fn domain_len(&self) -> usize {
        self.place_of.len()
    }

    /// Adds some machines that provide the same.
    pub(crate) fn add(&mut self, value: u32, count: u32, provides: &[u64]) {
        let place = &mut self.place_of[value as usize];
        if *place == NONE {
            *place = self.values.len() as u32;
            self.values.push(value);
            self.counts.push(0);
            self.totals.resize(self.totals.len() + provides.len(), 0);
            self.capped.iter_mut().for_each(|column| column.push(0));
        }
        let at = *place as usize;
        self.counts[at] += count;
        self.change(at, provides, |total, one| total + u128::from(one) * u128::from(count));
    }

    /// Takes one machine off.
    pub(crate) fn take(&mut self, value: u32, provides: &[u64]) {
        let at = self.place_of[value as usize] as usize;
        self.counts[at] -= 1;
        self.change(at, provides, |total, one| total - u128::from(one));
    }

    fn change(&mut self, at: usize, provides: &[u64], change: impl Fn(u128, u64) -> u128) {
        let totals = &mut self.totals[at * provides.len()..][..provides.len()];
        for ((total, column), one) in totals.iter_mut().zip(&mut self.capped).zip(provides) {
            *total = change(*total, *one);
            column[at] = cap(*total);
        }
    }

    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.values.len()).filter(|place| self.counts[*place] > 0)
    }

    /// The domains with machines.
    pub(crate) fn values(&self) -> impl Iterator<Item = u32> + '_ {
        self.places().map(|place| self.values[place])
    }

    /// The domains whose machines together cover a demand.
    pub(crate) fn covering(&self, demand: &Demand) -> impl Iterator<Item = u32> + '_ {
        let wanted: Vec<(&[u64], u64)> =
            demand.aggregate.iter().map(|(dim, amount)| (&*self.capped[*dim as usize], *amount)).collect();
        let covers = move |place: &usize| wanted.iter().all(|(column, amount)| column[*place] >= *amount);
        self.places().filter(covers).map(|place| self.values[place])
    }

    /// Calls `visit` with every domain that has machines, how many, and what they provide by demanded dimension.
    pub(crate) fn each(&self, demand: &Demand, visit: &mut dyn FnMut(u32, usize, &[u64])) {
        let mut totals = Totals::from_elem(0, demand.aggregate.len());
        for place in self.places() {
            for (total, (dim, _)) in totals.iter_mut().zip(&demand.aggregate) {
                *total = self.capped[*dim as usize][place];
            }
            visit(self.values[place], self.counts[place] as usize, &totals);
        }
    }

    /// How many machines there are in a domain, and what they provide by demanded dimension.
    pub(crate) fn of(&self, value: u32, demand: &Demand) -> (usize, Totals) {
        let place = self.place_of[value as usize] as usize;
        let Some(count) = self.counts.get(place) else {
            return (0, Totals::from_elem(0, demand.aggregate.len()));
        };
        (*count as usize, demand.aggregate.iter().map(|(dim, _)| self.capped[*dim as usize][place]).collect())
    }
}
