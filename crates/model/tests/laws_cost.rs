//! Laws of the locked formulas and of the release policy.

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::cost::{VictimWeights, drain_grace_secs, effective_cost, priority_gap, victim_score};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::release::ReleasePolicy;
use proptest::prelude::*;

fn bucket() -> impl Strategy<Value = PenaltyBucket> {
    (0..28_i32).prop_map(|number| PenaltyBucket::from_wire(number).unwrap())
}

fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), Just(f64::MIN_POSITIVE), 0.0..=1.0_f64]
}

fn price() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(f64::MAX), 0.0..100.0_f64]
}

/// Dollars of a stamp: what the border lets in.
fn penalty() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(f64::INFINITY), 0.0..1.0_f64, 0.0..1e7_f64]
}

fn capacity() -> impl Strategy<Value = CapacityType> {
    proptest::sample::select(CapacityType::ALL.to_vec())
}

fn nanos() -> impl Strategy<Value = i64> {
    prop_oneof![-100..100_i64, i64::MIN..i64::MIN + 100, i64::MAX - 100..=i64::MAX, any::<i64>()]
}

fn hold() -> impl Strategy<Value = u64> {
    prop_oneof![0..200_u64, u64::MAX - 200..=u64::MAX, any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn effective_cost_is_a_number_not_below_the_price(price in price(), probability in probability(), bucket in bucket()) {
        let cost = effective_cost(price, probability, bucket);
        prop_assert!(!cost.is_nan());
        prop_assert!(cost >= price);
        prop_assert_eq!(cost == f64::INFINITY, bucket == PenaltyBucket::PINNED && probability > 0.0);
        prop_assert_eq!(effective_cost(price, 0.0, bucket), price);
    }

    #[test]
    fn effective_cost_grows_with_price_risk_and_penalty(
        prices in (price(), price()), probabilities in (probability(), probability()), buckets in (bucket(), bucket()),
    ) {
        let ((p, q), (x, y), (b, c)) = (prices, probabilities, buckets);
        prop_assert!(effective_cost(p.min(q), x, b) <= effective_cost(p.max(q), x, b));
        prop_assert!(effective_cost(p, x.min(y), b) <= effective_cost(p, x.max(y), b));
        prop_assert!(effective_cost(p, x, b.min(c)) <= effective_cost(p, x, b.max(c)));
    }

    #[test]
    fn victim_score_is_the_formula(gap in any::<i32>(), drain in 0.0..900.0_f64, interruption in penalty(), reclamation in penalty()) {
        let w = VictimWeights { priority: 0.7, drain_speed: 0.3, interruption: 0.11, reclamation: 0.13 };
        let score = victim_score(&w, i64::from(gap), drain, interruption, reclamation);
        let floor = |value: f64, least: f64| if value > least { value } else { least };
        let mut expected = f64::from(gap) * w.priority;
        expected += (1.0 / floor(drain, 1.0)) * w.drain_speed;
        expected += (1.0 / floor(interruption, 0.01)) * w.interruption;
        expected += (1.0 / floor(reclamation, 0.01)) * w.reclamation;
        prop_assert_eq!(score.to_bits(), expected.to_bits());
        prop_assert!(score.is_finite());
    }

    #[test]
    fn a_cheaper_faster_lower_machine_is_no_worse_a_victim(
        gaps in (any::<i32>(), any::<i32>()), drains in (0.0..900.0_f64, 0.0..900.0_f64), dollars in (penalty(), penalty()),
    ) {
        let score = |gap: i32, drain, interruption, reclamation| {
            victim_score(&VictimWeights::default(), i64::from(gap), drain, interruption, reclamation)
        };
        let ((g, h), (s, t), (a, b)) = (gaps, drains, dollars);
        prop_assert!(score(g.min(h), s, a, b) <= score(g.max(h), s, a, b));
        prop_assert!(score(g, s.max(t), a, b) <= score(g, s.min(t), a, b));
        prop_assert!(score(g, s, a.max(b), a) <= score(g, s, a.min(b), a));
        prop_assert!(score(g, s, a, a.max(b)) <= score(g, s, a, a.min(b)));
    }

    #[test]
    fn gaps_never_wrap(a in any::<i32>(), b in any::<i32>()) {
        prop_assert_eq!(i128::from(priority_gap(a, b)), i128::from(a) - i128::from(b));
        prop_assert_eq!(priority_gap(a, b) > 0, a > b);
    }

    #[test]
    fn a_wider_gap_never_gives_more_time(a in any::<i64>(), b in -1_000_000..1_000_000_i64, c in -1_000_000..1_000_000_i64) {
        for (x, y) in [(a, b), (b, c)] {
            prop_assert!(drain_grace_secs(x.max(y)) <= drain_grace_secs(x.min(y)));
        }
    }

    #[test]
    fn fixed_capacity_is_never_due(on_demand in hold(), spot in hold(), kind in capacity(), since in nanos()) {
        let policy = ReleasePolicy::from_nanos(on_demand, spot);
        let rented = matches!(kind, CapacityType::OnDemand | CapacityType::Spot);
        prop_assert!(rented || policy.hold_nanos(kind).is_none());
        prop_assert!(rented || policy.due_unix_nanos(kind, since).is_none());
        prop_assert_eq!(ReleasePolicy::NEVER.due_unix_nanos(kind, since), None);
    }

    #[test]
    fn rented_capacity_is_due_exactly_when_its_hold_is_over(hold in hold(), since in nanos(), now in nanos(), spot in any::<bool>()) {
        let (policy, kind) = if spot {
            (ReleasePolicy::from_nanos(0, hold), CapacityType::Spot)
        } else {
            (ReleasePolicy::from_nanos(hold, 0), CapacityType::OnDemand)
        };
        let held_long_enough = hold > 0 && i128::from(now) - i128::from(since) >= i128::from(hold);
        let due = policy.due_unix_nanos(kind, since).is_some_and(|due| due <= now);
        prop_assert_eq!(due, held_long_enough);
    }
}
