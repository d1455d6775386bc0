//! Offers, wants, and the bound of what they cost.

use std::collections::BTreeMap;

use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use thiserror::Error;

use crate::columns::columns;
use crate::exact;

/// The most pairs of want and offer that are solved unless somebody asks for more: some seconds of work.
pub const MAX_VARIABLES: usize = 100_000;

/// How coarse [`Problem::bound`] becomes, step by step, until a problem is small enough.
const STEPS: [f64; 5] = [0.0, 0.02, 0.1, 0.5, 2.0];

/// So many machines alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// What workloads may use of one.
    pub provides: ResourceVec,
    /// Its price.
    pub price_usd_per_hour: f64,
    /// The chance that the provider takes it away within an hour.
    pub interruption_probability: f64,
    /// How many there are.
    pub stock: u64,
}

/// An offer of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferId(pub(crate) u32);

/// A list of offers of a problem that wants may be served from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetId(pub(crate) u32);

/// How a bound was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// The linear program was solved.
    Exact,
    /// The linear program of [`Problem::coarser`] was solved, with this step: the finer one costs as much or more.
    Coarse {
        /// How far apart prices may be that count as one.
        step: f64,
    },
}

/// What all wants together cost at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Effective cost of all machines.
    pub usd_per_hour: f64,
    /// How it was found.
    pub method: Method,
}

/// Why there is no bound.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum BoundError {
    /// Some want asks for more than all its offers provide at a finite cost. There is no cover, at any price.
    #[error("want {want} asks for more {resource} than its offers have; leave it out or add supply")]
    Uncoverable {
        /// The number of the want, in the order wants were added.
        want: usize,
        /// What there is too little of.
        resource: ResourceName,
    },
    /// Each want could be covered, but not all at once.
    #[error("the offers cannot cover all wants at once; leave out what is short or add supply")]
    Infeasible,
    /// More variables than the solver is given.
    #[error("{variables} pairs of want and offer are more than {limit}; make it coarser or allow more")]
    TooLarge {
        /// How many there are.
        variables: usize,
        /// How many there may be.
        limit: usize,
    },
    /// An offer whose price or probability is not a number the model takes.
    #[error(
        "offer {offer} has price {price} and interruption probability {probability}; the record must be corrected"
    )]
    Offer {
        /// The number of the offer, in the order offers were added.
        offer: usize,
        /// Its price.
        price: f64,
        /// Its interruption probability.
        probability: f64,
    },
    /// The solver gave up.
    #[error("the solver gave up: {0}; a coarser problem may do")]
    Solver(String),
}

/// A demand for so much.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    /// The number of the first want it was merged from.
    pub(crate) number: usize,
    pub(crate) interruption: PenaltyBucket,
    pub(crate) set: SetId,
    /// What is asked for in lots of: amounts without a common divisor.
    pub(crate) lot: ResourceVec,
    /// How many lots.
    pub(crate) lots: u128,
}

/// What wants must share to be merged: the offers, the penalty, and the proportions.
type Terms = (SetId, PenaltyBucket, Vec<(ResourceName, u64)>);

/// Offers and the wants that share them.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    pub(crate) offers: Vec<Offer>,
    pub(crate) sets: Vec<Vec<OfferId>>,
    known_sets: BTreeMap<Vec<OfferId>, SetId>,
    wanted: usize,
    /// Wants that ask for the same things in the same proportions from the same offers are one want: any cover of their sum can be split
    /// between them in proportion, so the optimum is the same.
    merged: BTreeMap<Terms, Want>,
}

impl Problem {
    /// Adds an offer.
    pub fn offer(&mut self, offer: Offer) -> OfferId {
        self.offers.push(offer);
        OfferId(self.offers.len() as u32 - 1)
    }

    /// Adds a list of offers that wants may be served from; each offer counts once, and equal lists are one.
    ///
    /// # Panics
    ///
    /// If an offer is of another problem and not of this one.
    pub fn set(&mut self, mut offers: Vec<OfferId>) -> SetId {
        offers.sort_unstable();
        offers.dedup();
        assert!(offers.last().is_none_or(|last| (last.0 as usize) < self.offers.len()), "an unknown offer");
        let Self { sets, known_sets, .. } = self;
        *known_sets.entry(offers).or_insert_with_key(|offers| {
            sets.push(offers.clone());
            SetId(sets.len() as u32 - 1)
        })
    }

    /// Adds a want; one that asks for nothing costs nothing.
    ///
    /// # Panics
    ///
    /// If the set is of another problem and not of this one.
    pub fn want(&mut self, aggregate: &ResourceVec, interruption: PenaltyBucket, set: SetId) {
        assert!((set.0 as usize) < self.sets.len(), "an unknown set");
        let number = self.wanted;
        self.wanted += 1;
        let divisor = aggregate.iter().fold(0, |a, (_, amount)| gcd(a, amount));
        if divisor > 0 {
            let lot = aggregate.iter().map(|(name, amount)| (name.clone(), amount / divisor));
            let lot = ResourceVec::new(lot).expect("part of a vector is a vector");
            // Both cost nothing, so they are one.
            let interruption = interruption.max(PenaltyBucket::ZERO);
            self.add(number, &lot, divisor.into(), interruption, set);
        }
    }

    /// Adds so many lots to the want with these terms.
    pub(crate) fn add(
        &mut self,
        number: usize,
        lot: &ResourceVec,
        lots: u128,
        interruption: PenaltyBucket,
        set: SetId,
    ) {
        let proportions = lot.iter().map(|(name, amount)| (name.clone(), amount)).collect();
        let want = self.merged.entry((set, interruption, proportions)).or_insert_with(|| Want {
            number,
            interruption,
            set,
            lot: lot.clone(),
            lots: 0,
        });
        want.lots += lots;
    }

    /// How many offers there are.
    pub fn offer_count(&self) -> usize {
        self.offers.len()
    }

    /// How many wants there are after merging those that ask for the same things in the same proportions.
    pub fn want_count(&self) -> usize {
        self.merged.len()
    }

    /// How many pairs of merged want and offer there are, the most variables the program can have.
    pub fn variable_count(&self) -> usize {
        self.merged.values().map(|want| self.sets[want.set.0 as usize].len()).sum()
    }

    /// The wants, merged.
    pub(crate) fn wants(&self) -> impl Iterator<Item = &Want> {
        self.merged.values()
    }

    /// The optimum of the program, within the solver's tolerance of 10⁻⁷ of the amounts; refused above [`MAX_VARIABLES`].
    pub fn exact(&self) -> Result<Bound, BoundError> {
        self.exact_within(MAX_VARIABLES)
    }

    /// The exact bound if the problem is small enough; else that of a coarser problem, as fine as can be solved.
    pub fn bound(&self) -> Result<Bound, BoundError> {
        self.bound_within(MAX_VARIABLES)
    }

    /// The same with another limit. The time depends on how scarce offers are: 55,000 pairs take about a second, 280,000 up to two minutes.
    pub fn bound_within(&self, limit: usize) -> Result<Bound, BoundError> {
        let mut refused = match self.exact_within(limit) {
            Err(refused @ BoundError::TooLarge { .. }) => refused,
            other => return other,
        };
        for step in STEPS {
            match self.coarser(step).exact_within(limit) {
                Err(error @ BoundError::TooLarge { .. }) => refused = error,
                Ok(bound) => return Ok(Bound { method: Method::Coarse { step }, ..bound }),
                Err(other) => return Err(other),
            }
        }
        Err(refused)
    }

    fn exact_within(&self, limit: usize) -> Result<Bound, BoundError> {
        let columns = columns(self)?;
        let variables = columns.iter().map(|want| want.offers.len()).sum();
        if variables > limit {
            return Err(BoundError::TooLarge { variables, limit });
        }
        let usd_per_hour = exact::solve(self, &columns)?;
        Ok(Bound { usd_per_hour, method: Method::Exact })
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
