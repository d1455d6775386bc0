//! Requirement sets: terms put into a region, and the offers that meet them.

use bigfleet_model::requirement::Requirement;
use bigfleet_scenario::seed::Seed;

use crate::amount::Amount;
use crate::archetype::Archetype;
use crate::offer::{OFFERS, Offer};
use crate::place::REGIONS;
use crate::terms::Terms;

/// One requirement set.
#[derive(Clone, Debug)]
pub(crate) struct RequirementSet {
    pub(crate) terms: Terms,
    pub(crate) requirements: Vec<Requirement>,
    /// The offers that match and hold one piece, by number.
    pub(crate) offers: Vec<u16>,
    member: Vec<bool>,
    /// The largest machine among them.
    pub(crate) largest: Amount,
}

impl RequirementSet {
    pub(crate) fn has(&self, offer: u16) -> bool {
        self.member[offer as usize]
    }
}

/// All requirement sets of a fleet.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    pub(crate) all: Vec<RequirementSet>,
    /// By archetype and region, the most used first.
    used: Vec<[Vec<u32>; REGIONS.len()]>,
}

impl Sets {
    pub(crate) fn draw(offers: &[Offer], seed: &mut Seed) -> Self {
        let mut sets = Self { all: Vec::new(), used: Vec::new() };
        for archetype in Archetype::ALL {
            let mut used: [Vec<u32>; REGIONS.len()] = Default::default();
            for rank in 0..archetype.sets() {
                let terms = Terms::draw(archetype, rank, seed);
                let mut shared = None;
                for (region, list) in used.iter_mut().enumerate() {
                    let number = *shared.get_or_insert_with(|| {
                        sets.all.push(put(&terms, region, offers));
                        sets.all.len() as u32 - 1
                    });
                    list.push(number);
                    if !terms.anywhere {
                        shared = None;
                    }
                }
            }
            sets.used.push(used);
        }
        sets
    }

    /// A set for a need of this archetype in this region: the nearer the front of the list, the likelier.
    pub(crate) fn pick(&self, archetype: Archetype, region: usize, seed: &mut Seed) -> u32 {
        let list = &self.used[archetype as usize][region];
        let unit = seed.unit();
        list[(unit * unit * list.len() as f64) as usize]
    }
}

fn put(terms: &Terms, region: usize, offers: &[Offer]) -> RequirementSet {
    let requirements = terms.requirements(region);
    let mut member = vec![false; OFFERS];
    let mut matching = Vec::new();
    let mut largest = Amount::default();
    for (number, offer) in offers.iter().enumerate() {
        let in_reach = terms.anywhere || offer.region() == region;
        if !in_reach || !offer.allocatable.covers(terms.unit) {
            continue;
        }
        if requirements.iter().all(|requirement| requirement.matches(offer.facts())) {
            member[number] = true;
            matching.push(number as u16);
            if offer.allocatable.units(terms.unit) > largest.units(terms.unit) {
                largest = offer.allocatable;
            }
        }
    }
    RequirementSet { terms: terms.clone(), requirements, offers: matching, member, largest }
}
