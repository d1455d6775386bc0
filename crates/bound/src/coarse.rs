//! A smaller problem that costs no more: offers of one size at about one price become one offer.

use std::collections::BTreeMap;

use bigfleet_model::resource::ResourceName;

use crate::problem::{Offer, OfferId, Problem, SetId};

/// What offers must share to be merged: what they provide, and the rungs their price and risk stand on.
type Rung = (Vec<(ResourceName, u64)>, i64, i64);

impl Problem {
    /// The same problem with fewer offers: those that provide the same, and whose prices and risks are on one rung of a ladder whose
    /// rungs are a factor of 1 + `step` apart, become one at the lowest price and risk among them; a want that admits one of them
    /// admits all. With a step of 0, prices and risks must be equal.
    ///
    /// Whoever has a cover of the finer problem has one of the coarser, at the same cost or less. So the bound of the coarser problem is
    /// a bound of the finer one, though a lower one.
    #[must_use]
    pub fn coarser(&self, step: f64) -> Self {
        let mut coarser = Self::default();
        let mut rungs: BTreeMap<Rung, OfferId> = BTreeMap::new();
        let mut merged: Vec<OfferId> = Vec::with_capacity(self.offers.len());
        for offer in &self.offers {
            let provides = offer.provides.iter().map(|(name, amount)| (name.clone(), amount)).collect();
            let risk = rung(offer.interruption_probability, step);
            let id = *rungs
                .entry((provides, rung(offer.price_usd_per_hour, step), risk))
                .or_insert_with(|| coarser.offer(Offer { stock: 0, ..offer.clone() }));
            let all = &mut coarser.offers[id.0 as usize];
            all.stock = all.stock.saturating_add(offer.stock);
            all.price_usd_per_hour = all.price_usd_per_hour.min(offer.price_usd_per_hour);
            all.interruption_probability = all.interruption_probability.min(offer.interruption_probability);
            merged.push(id);
        }
        let sets: Vec<SetId> = self
            .sets
            .iter()
            .map(|set| coarser.set(set.iter().map(|offer| merged[offer.0 as usize]).collect()))
            .collect();
        for want in self.wants() {
            coarser.add(want.number, &want.lot, want.lots, want.interruption, sets[want.set.0 as usize]);
        }
        coarser
    }
}

/// Which rung of the ladder an amount stands on; what is not positive has one of its own.
fn rung(amount: f64, step: f64) -> i64 {
    if step > 0.0 && amount > 0.0 {
        (amount.ln() / step.ln_1p()).floor() as i64
    } else {
        amount.to_bits().cast_signed()
    }
}
