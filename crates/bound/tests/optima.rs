//! Programs small enough to solve on paper.

use bigfleet_bound::{Bound, BoundError, MAX_VARIABLES, Method, Offer, OfferId, Problem};
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::{ResourceName, ResourceVec};

fn amounts(list: &[(&str, &str)]) -> ResourceVec {
    ResourceVec::parse(list.iter().copied()).unwrap()
}

fn offer(provides: &[(&str, &str)], price_usd_per_hour: f64, stock: u64) -> Offer {
    Offer { provides: amounts(provides), price_usd_per_hour, interruption_probability: 0.0, stock }
}

fn close(bound: Result<Bound, BoundError>, expected: f64, slack: f64) {
    let bound = bound.unwrap().usd_per_hour;
    assert!(
        bound <= expected * (1.0 + 1e-9) && bound >= expected * (1.0 - slack) - 1e-9,
        "{bound} is not {expected}"
    );
}

fn exactly(problem: &Problem, expected: f64) {
    close(problem.exact(), expected, 1e-9);
    assert_eq!(problem.bound(), problem.exact(), "a small problem is solved as it is");
}

#[test]
fn the_cheapest_per_unit_first_then_the_next() {
    let mut problem = Problem::default();
    // 5 cents a cpu, 4 cents a cpu but two of them only, 10 cents a cpu.
    let offers = [(("2"), 0.10, 9), ("16", 0.64, 2), ("4", 0.40, 9)];
    let offers: Vec<OfferId> =
        offers.map(|(cpu, price, stock)| problem.offer(offer(&[("cpu", cpu)], price, stock))).into();
    let set = problem.set(offers);
    problem.want(&amounts(&[("cpu", "40")]), PenaltyBucket::ZERO, set);
    // 32 cpus at 4 cents, 8 at 5.
    exactly(&problem, 1.28 + 0.40);
}

#[test]
fn two_dimensions_are_met_by_a_mix() {
    let mut problem = Problem::default();
    let lean = problem.offer(offer(&[("cpu", "4"), ("memory", "4Gi")], 1.0, 100));
    let fat = problem.offer(offer(&[("cpu", "4"), ("memory", "32Gi")], 2.0, 100));
    let set = problem.set(vec![lean, fat]);
    problem.want(&amounts(&[("cpu", "40"), ("memory", "180Gi")]), PenaltyBucket::ZERO, set);
    // x + y = 10 and 4x + 32y = 180: y = 5, x = 5.
    exactly(&problem, 5.0 + 10.0);
}

#[test]
fn risk_costs_what_an_interruption_costs() {
    let spot = Offer { interruption_probability: 0.05, ..offer(&[("cpu", "1")], 0.1, 100) };
    for (dollars, expected) in [(0.0, 1.0), (1.0, 1.5), (8.0, 3.0), (f64::INFINITY, 3.0)] {
        let mut problem = Problem::default();
        let offers = vec![problem.offer(spot.clone()), problem.offer(offer(&[("cpu", "1")], 0.3, 100))];
        let set = problem.set(offers);
        problem.want(&amounts(&[("cpu", "10")]), PenaltyBucket::for_dollars(dollars).unwrap(), set);
        exactly(&problem, expected);
    }
}

#[test]
fn wants_share_the_stock() {
    let mut problem = Problem::default();
    let cheap = problem.offer(offer(&[("cpu", "1")], 1.0, 10));
    let dear = problem.offer(offer(&[("cpu", "1")], 3.0, 100));
    let dearest = problem.offer(offer(&[("cpu", "1")], 9.0, 100));
    let (first, second) = (problem.set(vec![cheap, dear]), problem.set(vec![cheap, dearest]));
    problem.want(&amounts(&[("cpu", "8")]), PenaltyBucket::ZERO, first);
    problem.want(&amounts(&[("cpu", "8")]), PenaltyBucket::ZERO, second);
    // The second has the dearer way out, so it gets all it wants of the cheap ones: 8, 2 and 6.
    exactly(&problem, 8.0 + 2.0 + 18.0);
}

#[test]
fn wants_in_proportion_become_one() {
    let mut problem = Problem::default();
    let offer = problem.offer(offer(&[("cpu", "4"), ("memory", "16Gi")], 1.0, 1_000));
    let set = problem.set(vec![offer]);
    for count in 1..=10 {
        let unit = amounts(&[("cpu", "500m"), ("memory", "1Gi")]);
        problem.want(&unit.scale(count), PenaltyBucket::ZERO, set);
    }
    problem.want(&ResourceVec::ZERO, PenaltyBucket::ZERO, set);
    assert_eq!((problem.want_count(), problem.variable_count(), problem.offer_count()), (1, 1, 1));
    exactly(&problem, 55.0 * 0.5 / 4.0);
    // A penalty nobody declared costs what a penalty of nothing costs.
    problem.want(&amounts(&[("cpu", "1"), ("memory", "2Gi")]), PenaltyBucket::UNSPECIFIED, set);
    assert_eq!(problem.want_count(), 1);
}

#[test]
fn what_cannot_be_covered_is_said() {
    let mut problem = Problem::default();
    let cpu = problem.offer(offer(&[("cpu", "4")], 1.0, 2));
    let set = problem.set(vec![cpu]);
    problem.want(&amounts(&[("cpu", "3")]), PenaltyBucket::ZERO, set);
    problem.want(&amounts(&[("cpu", "1"), ("memory", "1Gi")]), PenaltyBucket::ZERO, set);
    let expected = BoundError::Uncoverable { want: 1, resource: ResourceName::MEMORY };
    assert_eq!((problem.exact(), problem.bound()), (Err(expected.clone()), Err(expected)));

    let mut problem = Problem::default();
    let offers = [0, 1, 2].map(|_| problem.offer(offer(&[("cpu", "4")], 1.0, 2)));
    let (left, right) = (problem.set(offers[..2].into()), problem.set(offers[1..].into()));
    problem.want(&amounts(&[("cpu", "13")]), PenaltyBucket::ZERO, left);
    problem.want(&amounts(&[("cpu", "13")]), PenaltyBucket::ZERO, right);
    assert_eq!(problem.exact(), Err(BoundError::Infeasible), "26 of 24");
    assert_eq!(problem.bound(), Err(BoundError::Infeasible));
}

#[test]
fn a_price_that_is_none_is_refused() {
    for (price, probability) in
        [(f64::NAN, 0.0), (-1.0, 0.0), (f64::INFINITY, 0.0), (1.0, 1.5), (1.0, f64::NAN)]
    {
        let mut problem = Problem::default();
        let odd = Offer { interruption_probability: probability, ..offer(&[("cpu", "4")], price, 2) };
        problem.offer(odd);
        assert!(matches!(problem.bound(), Err(BoundError::Offer { offer: 0, .. })), "{price} {probability}");
    }
}

#[test]
fn what_costs_nothing_is_used_first() {
    let mut problem = Problem::default();
    let owned = problem.offer(offer(&[("cpu", "4"), ("memory", "8Gi")], 0.0, 3));
    let rented = problem.offer(offer(&[("cpu", "4"), ("memory", "16Gi")], 1.0, 100));
    let set = problem.set(vec![owned, rented]);
    problem.want(&amounts(&[("cpu", "20"), ("memory", "40Gi")]), PenaltyBucket::ZERO, set);
    exactly(&problem, 2.0);
}

#[test]
fn a_coarser_problem_takes_the_lowest_price() {
    let mut problem = Problem::default();
    let offers = [(1.0, 2), (1.1, 2), (3.0, 9)];
    let [cheap, near, dear] =
        offers.map(|(price, stock)| problem.offer(offer(&[("cpu", "4")], price, stock)));
    let (left, right) = (problem.set(vec![cheap, dear]), problem.set(vec![near, dear]));
    problem.want(&amounts(&[("cpu", "12")]), PenaltyBucket::ZERO, left);
    problem.want(&amounts(&[("cpu", "4")]), PenaltyBucket::ZERO, right);
    // Two at 1.0 and one at 3.0; one at 1.1.
    exactly(&problem, 2.0 + 3.0 + 1.1);
    let coarser = problem.coarser(0.5);
    assert_eq!((coarser.offer_count(), coarser.want_count()), (2, 1));
    // Four at 1.0: the first want may use what only the second could.
    exactly(&coarser, 4.0);
    // With a step of 0 nothing here is alike.
    exactly(&problem.coarser(0.0), 6.1);
}

#[test]
fn a_large_problem_is_made_coarser() {
    let mut large = Problem::default();
    // A thousand offers of a machine each, all of one kind; wants in a hundred and one proportions that may use all but one of them.
    let offers: Vec<OfferId> =
        (0..1_000).map(|_| large.offer(offer(&[("cpu", "4"), ("memory", "8Gi")], 1.0, 1))).collect();
    let variables = |wants: usize| wants * 999;
    for memory in 1..=101 {
        let mut members = offers.clone();
        members.swap_remove(memory);
        let set = large.set(members);
        let want =
            ResourceVec::new([(ResourceName::CPU, 1_000), (ResourceName::MEMORY, memory as u64)]).unwrap();
        large.want(&want, PenaltyBucket::ZERO, set);
    }
    assert_eq!(large.variable_count(), variables(101));
    let refused = BoundError::TooLarge { variables: variables(101), limit: MAX_VARIABLES };
    assert_eq!(large.exact(), Err(refused));
    let bound = large.bound();
    assert_eq!(bound.as_ref().unwrap().method, Method::Coarse { step: 0.0 });
    close(bound, 101.0 / 4.0, 1e-9);
    let refused = BoundError::TooLarge { variables: 101, limit: 100 };
    assert_eq!(large.bound_within(100), Err(refused), "one offer, and still a hundred and one wants");
}

#[test]
fn machines_no_need_can_tell_apart_are_one_offer() {
    let mut machines = Vec::new();
    for number in 0..12 {
        let mut machine = Machine::new(format!("m-{number}"), MachineState::Idle);
        let pool = if number % 2 == 0 { "blue" } else { "red" };
        let labels = [("pool", pool), ("rack", &*format!("r{number}")), ("host", &*format!("h{number}"))];
        machine.labels = Labels::new(labels).unwrap();
        machine.resources = amounts(&[("cpu", if number < 8 { "4" } else { "1" })]);
        machine.price_usd_per_hour = if pool == "blue" { 1.0 } else { 2.0 };
        machines.push(machine);
    }
    (machines[0].state, machines[2].state) = (MachineState::Failed, MachineState::Deleting);
    let need = |requirements, unit, total| {
        let profile = Profile::new(requirements, vec![], 0, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
        let mut need = Need::of_unit("shop", profile.into(), amounts(&[("cpu", unit)]));
        need.aggregate = amounts(&[("cpu", total)]);
        need
    };
    let blue = need(vec![Requirement::is_in("pool", ["blue"])], "2", "6");
    let gang = need(vec![Requirement::same("rack")], "500m", "9");
    let problem = Problem::of_fleet(&machines, [&blue, &gang]);
    // Blue and red, large and small; the rack is asked for, but not which.
    assert_eq!((problem.offer_count(), problem.want_count()), (4, 2));
    // Blue: two machines of 4 are left; 6 of their 8 cpus go to the need that fits on no other. The gang takes the other 2
    // cpus, for half a dollar, and pays half a dollar a cpu for four machines' worth of red ones.
    exactly(&problem, 1.5 + 0.5 + 7.0 * 0.5);
}
