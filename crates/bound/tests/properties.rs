//! What must hold of every bound, on random problems.

use bigfleet_bound::{BoundError, Offer, OfferId, Problem};
use bigfleet_model::cost::effective_cost;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use proptest::prelude::*;

/// Offers, and wants with the offers they may use.
#[derive(Clone, Debug)]
struct Case {
    offers: Vec<Offer>,
    wants: Vec<(ResourceVec, PenaltyBucket, Vec<usize>)>,
}

fn amounts() -> impl Strategy<Value = ResourceVec> {
    (1_u64..64, 0_u64..8, 0_u64..2).prop_map(|(cpu, memory, gpus)| {
        let gpu = ResourceName::new("nvidia.com/gpu").unwrap();
        let list = [(ResourceName::CPU, cpu * 1_000), (ResourceName::MEMORY, memory << 32), (gpu, gpus)];
        ResourceVec::new(list).unwrap()
    })
}

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let offer =
        (amounts(), 0_u32..500, 0_u32..4, 1_u64..20).prop_map(|(provides, cents, risk, stock)| Offer {
            provides,
            price_usd_per_hour: f64::from(cents) / 100.0,
            interruption_probability: f64::from(risk) / 100.0,
            stock,
        });
    prop::collection::vec(offer, 2..8)
}

fn cases() -> impl Strategy<Value = Case> {
    offers().prop_flat_map(|offers| {
        let allowed = prop::sample::subsequence((0..offers.len()).collect::<Vec<_>>(), 1..=offers.len());
        let penalty = (0_i32..12).prop_map(|number| PenaltyBucket::from_wire(number).unwrap());
        let wants = prop::collection::vec((amounts(), penalty, allowed), 1..5);
        (Just(offers), wants).prop_map(|(offers, wants)| Case { offers, wants })
    })
}

fn problem(case: &Case) -> Problem {
    let mut problem = Problem::default();
    let ids: Vec<OfferId> = case.offers.iter().map(|offer| problem.offer(offer.clone())).collect();
    for (aggregate, penalty, allowed) in &case.wants {
        let set = problem.set(allowed.iter().map(|at| ids[*at]).collect());
        problem.want(aggregate, *penalty, set);
    }
    problem
}

fn exact(case: &Case) -> Option<f64> {
    match problem(case).exact() {
        Ok(bound) => Some(bound.usd_per_hour),
        Err(BoundError::Infeasible | BoundError::Uncoverable { .. }) => None,
        Err(error) => panic!("{error} in {case:?}"),
    }
}

/// A cover in whole machines, want after want, each time the first machine that helps, in an order given by `turn`; with what it costs.
fn some_cover(case: &Case, turn: usize) -> Option<f64> {
    let mut stock: Vec<u64> = case.offers.iter().map(|offer| offer.stock).collect();
    let mut cost = 0.0;
    for (aggregate, penalty, allowed) in &case.wants {
        let mut missing = aggregate.clone();
        for step in 0..allowed.len() {
            let at = allowed[(step + turn) % allowed.len()];
            let offer = &case.offers[at];
            while stock[at] > 0 && offer.provides.contributes(&missing) {
                stock[at] -= 1;
                missing = missing.saturating_sub(&offer.provides);
                cost += effective_cost(offer.price_usd_per_hour, offer.interruption_probability, *penalty);
            }
        }
        if !missing.is_zero() {
            return None;
        }
    }
    Some(cost)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_whole_cover_is_cheaper(case in cases()) {
        for turn in 0..4 {
            if let Some(cost) = some_cover(&case, turn) {
                let bound = exact(&case).expect("a cover exists");
                prop_assert!(bound <= cost * (1.0 + 1e-6) + 1e-6, "{bound} > {cost}");
            }
        }
    }

    #[test]
    fn a_coarser_problem_costs_no_more(case in cases(), step in prop::sample::select(vec![0.0, 0.1, 1.0, 10.0])) {
        let Some(exact) = exact(&case) else { return Ok(()) };
        let coarse = problem(&case).coarser(step).exact().expect("what can be covered can be covered").usd_per_hour;
        prop_assert!(coarse <= exact * (1.0 + 1e-6) + 1e-6, "{coarse} > {exact}");
    }

    #[test]
    fn more_demand_costs_no_less(case in cases(), more in amounts(), which in any::<prop::sample::Index>()) {
        let before = exact(&case);
        let mut larger = case.clone();
        let want = which.get_mut(&mut larger.wants);
        want.0 = want.0.add(&more);
        match (before, exact(&larger)) {
            (None, after) => prop_assert_eq!(after, None, "what cannot be covered cannot be covered and more"),
            (Some(before), Some(after)) => prop_assert!(after >= before - 1e-6 * (1.0 + before), "{after} < {before}"),
            (Some(_), None) => {}
        }
    }

    #[test]
    fn more_supply_costs_no_more(case in cases(), which in any::<prop::sample::Index>()) {
        let Some(before) = exact(&case) else { return Ok(()) };
        let mut larger = case.clone();
        which.get_mut(&mut larger.offers).stock += 3;
        let after = exact(&larger).expect("more can be covered with more");
        prop_assert!(after <= before + 1e-6 * (1.0 + before), "{after} > {before}");
    }

    #[test]
    fn only_proportions_matter(case in cases(), times in 2_u64..1_000) {
        let mut scaled = case.clone();
        scaled.offers.iter_mut().for_each(|offer| offer.provides = offer.provides.scale(times));
        scaled.wants.iter_mut().for_each(|want| want.0 = want.0.scale(times));
        let mut dearer = case.clone();
        for offer in &mut dearer.offers {
            offer.price_usd_per_hour *= times as f64;
            offer.interruption_probability = 0.0;
        }
        let mut safe = case.clone();
        safe.offers.iter_mut().for_each(|offer| offer.interruption_probability = 0.0);
        match (exact(&case), exact(&scaled)) {
            (Some(one), Some(other)) => prop_assert!(near(one, other), "amounts: {one} and {other}"),
            (one, other) => prop_assert_eq!(one.is_some(), other.is_some()),
        }
        match (exact(&safe), exact(&dearer)) {
            (Some(one), Some(other)) => prop_assert!(near(one * times as f64, other), "prices: {one} and {other}"),
            (one, other) => prop_assert_eq!(one.is_some(), other.is_some()),
        }
    }
}
