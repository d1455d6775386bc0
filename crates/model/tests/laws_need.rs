//! Laws of needs: how rows merge, and the two orders.

use std::cmp::{Ordering, Reverse};

use bigfleet_model::need::{Need, NeedKey, aggregate};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::{MAX_AMOUNT, ResourceName, ResourceVec};
use proptest::prelude::*;

fn amounts() -> impl Strategy<Value = ResourceVec> {
    let amount = || prop_oneof![4 => 0..5_u64, 1 => MAX_AMOUNT - 2..=MAX_AMOUNT];
    (amount(), amount(), amount()).prop_map(|(cpu, memory, foreign)| {
        let names = [ResourceName::CPU, ResourceName::MEMORY, ResourceName::new("example.org/x").unwrap()];
        ResourceVec::new(names.into_iter().zip([cpu, memory, foreign])).unwrap()
    })
}

/// Few clusters, profiles and groups, so that rows meet.
fn need() -> impl Strategy<Value = Need> {
    let profile = (-1..2_i32, 0..3_i32, 0..3_i32, 0..2_usize).prop_map(
        |(priority, interruption, reclamation, gang)| {
            let bucket = |number| PenaltyBucket::from_wire(number * 13).unwrap();
            let requirements = vec![Requirement::same("rack"); gang];
            Profile::new(requirements, vec![], priority, bucket(interruption), bucket(reclamation))
        },
    );
    let names =
        (proptest::sample::select(vec!["a", "b", "B"]), proptest::sample::select(vec!["", "g", "g\0"]));
    (names, profile, amounts(), amounts(), 0..4_i64, any::<bool>()).prop_map(
        |((cluster, group), profile, aggregate, min_unit, first_seen_unix_nanos, parked)| Need {
            cluster: cluster.into(),
            profile: profile.into(),
            group: group.into(),
            aggregate,
            min_unit,
            first_seen_unix_nanos,
            parked,
        },
    )
}

fn rows() -> impl Strategy<Value = Vec<Need>> {
    proptest::collection::vec(need(), 0..24)
}

fn demand_tuple(need: &Need) -> impl Ord + use<> {
    let NeedKey { cluster, fingerprint, group } = need.key();
    let bytes = |text: std::sync::Arc<str>| text.as_bytes().to_vec();
    let priority = Reverse(need.profile.priority());
    (priority, need.first_seen_unix_nanos, bytes(cluster), bytes(fingerprint), bytes(group))
}

fn precedence_tuple(need: &Need) -> impl Ord + use<> {
    let profile = &need.profile;
    let rank = (profile.priority(), profile.interruption().to_wire(), profile.reclamation().to_wire());
    (Reverse(rank), demand_tuple(need))
}

/// Antisymmetric, transitive, and equal exactly for rows of one identity and one first-seen time.
fn is_total_order(needs: [&Need; 3], order: fn(&Need, &Need) -> Ordering) -> bool {
    let [a, b, c] = needs;
    let mirrored = order(a, b) == order(b, a).reverse() && order(a, a).is_eq();
    let transitive = !(order(a, b).is_le() && order(b, c).is_le()) || order(a, c).is_le();
    let identity = |need: &Need| (need.key(), need.first_seen_unix_nanos);
    mirrored && transitive && order(a, b).is_eq() == (identity(a) == identity(b))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn rows_merge_by_identity_and_nothing_else(rows in rows()) {
        let merged = aggregate(rows.clone());
        let mut keys: Vec<NeedKey> = rows.iter().map(Need::key).collect();
        keys.sort();
        keys.dedup();
        prop_assert_eq!(merged.iter().map(Need::key).collect::<Vec<_>>(), keys);
        for need in &merged {
            let own: Vec<&Need> = rows.iter().filter(|row| row.key() == need.key()).collect();
            let sum = own.iter().fold(ResourceVec::ZERO, |sum, row| sum.add(&row.aggregate));
            let max = own.iter().fold(ResourceVec::ZERO, |max, row| max.max(&row.min_unit));
            prop_assert_eq!(&need.aggregate, &sum);
            prop_assert_eq!(&need.min_unit, &max);
            let stamps = own.iter().map(|row| row.first_seen_unix_nanos).filter(|stamp| *stamp != 0);
            prop_assert_eq!(need.first_seen_unix_nanos, stamps.min().unwrap_or(0));
            prop_assert_eq!(need.parked, own.iter().all(|row| row.parked));
        }
    }

    #[test]
    fn the_order_of_rows_does_not_count((rows, shuffled) in rows().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle()))) {
        prop_assert_eq!(aggregate(rows), aggregate(shuffled));
    }

    #[test]
    fn merging_in_parts_is_merging_at_once(rows in rows(), at in 0..24_usize) {
        let at = at.min(rows.len());
        let parts = [aggregate(rows[..at].to_vec()), aggregate(rows[at..].to_vec())];
        prop_assert_eq!(aggregate(parts.into_iter().flatten()), aggregate(rows));
    }

    #[test]
    fn merged_rows_stay_as_they_are(rows in rows()) {
        let merged = aggregate(rows);
        prop_assert_eq!(aggregate(merged.clone()), merged);
    }

    #[test]
    fn a_unit_many_times_is_many_units(need in need(), unit in amounts(), count in 1..9_u64) {
        let unit = Need::of_unit(need.cluster, need.profile, unit);
        let many = aggregate((0..count).map(|_| unit.clone()));
        prop_assert_eq!(many, vec![unit.times(count)]);
    }

    #[test]
    fn demand_order_is_that_of_its_tuple(a in need(), b in need(), c in need()) {
        prop_assert_eq!(a.cmp_demand(&b), demand_tuple(&a).cmp(&demand_tuple(&b)));
        prop_assert!(is_total_order([&a, &b, &c], Need::cmp_demand));
    }

    #[test]
    fn precedence_order_is_that_of_its_tuple(a in need(), b in need(), c in need()) {
        prop_assert_eq!(a.cmp_precedence(&b), precedence_tuple(&a).cmp(&precedence_tuple(&b)));
        prop_assert!(is_total_order([&a, &b, &c], Need::cmp_precedence));
    }

    #[test]
    fn a_machine_fits_if_it_covers_the_floor(need in need(), machine in amounts()) {
        prop_assert_eq!(need.fits_on(&machine), machine.covers(&need.min_unit));
    }
}
