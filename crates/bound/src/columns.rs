//! Wants and offers as numbers near one, which both solvers work on.

use bigfleet_model::cost::effective_cost;
use bigfleet_model::resource::ResourceName;

use crate::problem::{BoundError, Offer, Problem, Want};

/// One want with the offers it may use. Each dimension is measured in units of the largest offer, so that coefficients are
/// between 0 and 1 and the demand is a number of machines.
pub(crate) struct Columns {
    /// How much is wanted, by dimension.
    pub(crate) demand: Vec<f64>,
    /// The offers that help, at a finite cost and in stock.
    pub(crate) offers: Vec<u32>,
    /// Their effective cost.
    pub(crate) costs: Vec<f64>,
    /// What each gives, dimension by dimension, offer after offer.
    pub(crate) gives: Vec<f64>,
}

impl Columns {
    /// How many dimensions are wanted.
    pub(crate) fn dimensions(&self) -> usize {
        self.demand.len()
    }

    /// What the offer at this place gives.
    pub(crate) fn gives(&self, place: usize) -> &[f64] {
        &self.gives[place * self.dimensions()..][..self.dimensions()]
    }
}

/// All wants as columns. Fails if a want cannot be covered even alone.
pub(crate) fn columns(problem: &Problem) -> Result<Vec<Columns>, BoundError> {
    for (offer, Offer { price_usd_per_hour, interruption_probability, .. }) in
        problem.offers.iter().enumerate()
    {
        let (price, probability) = (*price_usd_per_hour, *interruption_probability);
        if !(price.is_finite() && price >= 0.0 && (0.0..=1.0).contains(&probability)) {
            return Err(BoundError::Offer { offer, price, probability });
        }
    }
    problem.wants().map(|want| of_want(problem, want)).collect()
}

fn of_want(problem: &Problem, want: &Want) -> Result<Columns, BoundError> {
    let cost = |offer: &Offer| {
        effective_cost(offer.price_usd_per_hour, offer.interruption_probability, want.interruption)
    };
    let usable: Vec<(u32, &Offer, f64)> = problem.sets[want.set.0 as usize]
        .iter()
        .map(|id| (id.0, &problem.offers[id.0 as usize]))
        .map(|(id, offer)| (id, offer, cost(offer)))
        .filter(|(_, offer, cost)| {
            cost.is_finite() && offer.stock > 0 && offer.provides.contributes(&want.lot)
        })
        .collect();
    let names: Vec<(&ResourceName, u64)> = want.lot.iter().collect();
    let mut demand = Vec::with_capacity(names.len());
    let mut units = Vec::with_capacity(names.len());
    for (name, each) in &names {
        let wanted = u128::from(*each) * want.lots;
        let have = usable.iter().fold(0_u128, |have, (_, offer, _)| {
            have.saturating_add(u128::from(offer.provides.get(name)) * u128::from(offer.stock))
        });
        if have < wanted {
            return Err(BoundError::Uncoverable { want: want.number, resource: (*name).clone() });
        }
        let unit = usable.iter().map(|(_, offer, _)| offer.provides.get(name)).max().unwrap_or(1) as f64;
        demand.push(wanted as f64 / unit);
        units.push(unit);
    }
    let gives = usable
        .iter()
        .flat_map(|(_, offer, _)| {
            names.iter().zip(&units).map(|((name, _), unit)| offer.provides.get(name) as f64 / unit)
        })
        .collect();
    Ok(Columns {
        demand,
        offers: usable.iter().map(|(id, ..)| *id).collect(),
        costs: usable.iter().map(|(.., cost)| *cost).collect(),
        gives,
    })
}
