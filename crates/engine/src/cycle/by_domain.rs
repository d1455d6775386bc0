//! What is free for one gang, domain by domain, and what completing it there would cost.

use crate::amounts::is_zero;
use crate::needs::Demand;
use crate::vocab::{Amounts, Dim};

use super::choice::{Free, Totals};
use super::market::Market;
use super::prices::{Asking, Tier};
use super::sources::Sources;
use super::totals::DomainTotals;
use super::trim::trim;

/// What is free for one gang, by domain.
pub(crate) struct FreeByDomain<'b, 'a> {
    market: &'b mut Market<'a>,
    demand: &'b Demand,
    domain: usize,
    set: u32,
    /// What the domain just looked at has to offer: price, how many, and their class.
    offer: Vec<(u64, usize, u32)>,
}

impl<'b, 'a> FreeByDomain<'b, 'a> {
    /// The table of the set must be up to date, and the stock of the bucket open.
    pub(super) fn new(market: &'b mut Market<'a>, demand: &'b Demand, domain: usize, set: u32) -> Self {
        Self { market, demand, domain, set, offer: Vec::new() }
    }

    /// The domains with free machines.
    pub(crate) fn values(&self) -> Vec<u32> {
        self.table().values().collect()
    }

    fn table(&self) -> &DomainTotals {
        self.market.table(self.set, self.domain)
    }

    /// What completing the gang adds to the bill where all machines that count are of one shape: then it takes as many
    /// as it takes, cheapest first, and none of them is superfluous. `None` if there are several shapes, or prices so
    /// close that their order may depend on ids.
    fn money_of_one_shape(&mut self, value: u32, missing: &[(Dim, u64)]) -> Option<f64> {
        let Sources { index, classes, .. } = self.market.sources;
        let cells = &index.free.domains[self.domain];
        let members = &self.market.sets.get(self.set).members;
        let book = self.market.book(self.demand.need.profile.interruption());
        self.offer.clear();
        let mut shape = None;
        for cell in cells.of_value(value) {
            let lot = &index.free.lots[cells.cells[*cell as usize].lot as usize];
            if !members.contains(lot.class) {
                continue;
            }
            let left = cells.machines(*cell).iter().filter(|one| !self.market.taken.contains(one.machine));
            let left = left.count();
            if left == 0 {
                continue;
            }
            let (key, colour) = book.of(lot.rank);
            let of_class = classes.shape(lot.class);
            if colour != 0 || *shape.get_or_insert(of_class) != of_class {
                return None;
            }
            self.offer.push((key, left, lot.class));
        }
        let provides = classes.provides(self.offer.first()?.2);
        let wanted = missing.iter().filter(|(dim, _)| provides[*dim as usize] > 0);
        let wanted = wanted.map(|(dim, left)| left.div_ceil(provides[*dim as usize])).max().unwrap_or(0);
        self.offer.sort_unstable();
        let (mut money, mut wanted) = (0.0, usize::try_from(wanted).unwrap_or(usize::MAX));
        for (key, left, _) in &self.offer {
            let (tier, asking) = Asking::of_key(*key);
            for _ in 0..wanted.min(*left) {
                money += if matches!(tier, Tier::Fixed | Tier::FixedPinned) { 0.0 } else { asking };
            }
            wanted = wanted.saturating_sub(*left);
        }
        Some(money)
    }
}

impl Free for FreeByDomain<'_, '_> {
    fn covering(&self) -> Vec<u32> {
        self.table().covering(self.demand).collect()
    }

    fn each(&self, visit: &mut dyn FnMut(u32, usize, &[u64])) {
        self.table().each(self.demand, visit);
    }

    fn free(&self, value: u32) -> (usize, Totals) {
        self.table().of(value, self.demand)
    }

    fn new_money(&mut self, value: u32, mut missing: Amounts) -> f64 {
        if let Some(money) = self.money_of_one_shape(value, &missing) {
            return money;
        }
        let wanted = missing.clone();
        let mut picked = self.market.would_take_in_domain(self.demand, self.domain, value, &mut missing);
        if is_zero(&missing) {
            let classes = self.market.sources.classes;
            trim(&mut picked, &wanted, |pick| classes.provides(pick.class), |_| {});
        }
        picked.iter().fold(0.0, |sum, pick| sum + pick.new_money())
    }
}
