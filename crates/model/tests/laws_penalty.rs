//! Laws of penalty buckets.

use bigfleet_model::penalty::{PenaltyBucket, PenaltyError};
use proptest::prelude::*;

/// Dollars on, just below and just above every rung, and anywhere.
fn dollars() -> impl Strategy<Value = f64> {
    let rung = (0..28_i32).prop_map(|number| PenaltyBucket::from_wire(number).unwrap().upper_bound_dollars());
    prop_oneof![
        rung.clone(),
        rung.clone().prop_map(f64::next_up),
        rung.prop_map(|bound| bound.next_down().max(0.0)),
        0.0..20_000_000.0_f64,
        0.0..2.0_f64,
        any::<f64>().prop_filter("an amount of dollars", |dollars| *dollars >= 0.0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn dollars_go_to_the_lowest_rung_that_holds_them(dollars in dollars()) {
        let bucket = PenaltyBucket::for_dollars(dollars).unwrap();
        prop_assert!(dollars <= bucket.upper_bound_dollars());
        prop_assert_ne!(bucket, PenaltyBucket::UNSPECIFIED, "declared dollars are never unspecified");
        for lower in PenaltyBucket::all().filter(|lower| *lower < bucket && *lower != PenaltyBucket::UNSPECIFIED) {
            prop_assert!(dollars > lower.upper_bound_dollars());
        }
    }

    #[test]
    fn more_dollars_never_go_to_a_lower_rung(a in dollars(), b in dollars()) {
        let bucket = |dollars| PenaltyBucket::for_dollars(dollars).unwrap();
        prop_assert!(a > b || bucket(a) <= bucket(b));
        prop_assert!(bucket(a) > bucket(b) || bucket(a).upper_bound_dollars() <= bucket(b).upper_bound_dollars());
    }

    #[test]
    fn every_number_is_a_bucket_or_refused(number in prop_oneof![-5..40_i32, any::<i32>()]) {
        match PenaltyBucket::from_wire(number) {
            Ok(bucket) => {
                prop_assert!((0..28).contains(&number));
                prop_assert_eq!(bucket.to_wire(), number);
                prop_assert_eq!(bucket.ordinal(), number as usize);
            }
            Err(error) => {
                prop_assert!(!(0..28).contains(&number));
                prop_assert_eq!(error, PenaltyError::UnknownBucket(number));
            }
        }
    }

    #[test]
    fn every_float_is_dollars_or_refused(bits in any::<u64>()) {
        let dollars = f64::from_bits(bits);
        prop_assert_eq!(PenaltyBucket::for_dollars(dollars).is_ok(), dollars >= 0.0);
    }
}

#[test]
fn the_bound_of_a_bucket_is_in_the_bucket() {
    for bucket in PenaltyBucket::all().skip(1) {
        assert_eq!(PenaltyBucket::for_dollars(bucket.upper_bound_dollars()), Ok(bucket));
    }
}
