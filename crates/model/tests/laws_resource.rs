//! Laws of resource vectors, against a plain map from name to amount.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use bigfleet_model::resource::{MAX_AMOUNT, ResourceName, ResourceVec};
use proptest::prelude::*;

/// Common names, and foreign ones that sort before, between and after them.
const NAMES: [&str; 11] = [
    "Z",
    "amd.com/gpu",
    "cpu",
    "cpus",
    "ephemeral-storage",
    "hugepages-2Mi",
    "memory",
    "nvidia.com/gpu",
    "nvidia.com/mig-1g.5gb",
    "pods",
    "zone.org/x",
];

/// What a vector means, without any cleverness.
type Model = BTreeMap<&'static str, u64>;

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0..4_u64,
        2 => any::<u32>().prop_map(u64::from),
        1 => MAX_AMOUNT - 3..=MAX_AMOUNT,
        1 => 0..=MAX_AMOUNT,
    ]
}

/// Few names or many; zeros included.
fn model() -> impl Strategy<Value = Model> {
    let names = |sizes| proptest::sample::subsequence(NAMES.to_vec(), sizes);
    let amounts = proptest::collection::vec(amount(), NAMES.len());
    (prop_oneof![2 => names(0..=4), 1 => names(0..=NAMES.len())], amounts)
        .prop_map(|(names, amounts)| names.into_iter().zip(amounts).collect())
}

/// A map, and the same amounts in another order with zeros for every other name.
fn shuffled() -> impl Strategy<Value = (Model, Vec<(&'static str, u64)>)> {
    model().prop_flat_map(|model| {
        let amounts = NAMES.map(|text| (text, model.get(text).copied().unwrap_or(0)));
        (Just(model), Just(amounts.to_vec()).prop_shuffle())
    })
}

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).unwrap()
}

fn vector(model: &Model) -> ResourceVec {
    ResourceVec::new(model.iter().map(|(text, amount)| (name(text), *amount))).unwrap()
}

/// The model of `combine` applied to every name there is.
fn combined(a: &Model, b: &Model, combine: impl Fn(u128, u128) -> u128) -> Model {
    let amount = |model: &Model, text| u128::from(model.get(text).copied().unwrap_or(0));
    let most = u128::from(MAX_AMOUNT);
    NAMES.into_iter().map(|text| (text, combine(amount(a, text), amount(b, text)).min(most) as u64)).collect()
}

/// The smaller amount of each name, from the operations there are.
fn min(a: &ResourceVec, b: &ResourceVec) -> ResourceVec {
    a.saturating_sub(&a.saturating_sub(b))
}

fn hash(vector: &ResourceVec) -> u64 {
    BuildHasherDefault::<DefaultHasher>::new().hash_one(vector)
}

/// Dimension by dimension in name order, over every name there is.
fn naive_order(a: &Model, b: &Model) -> Ordering {
    let amounts = |model: &Model| NAMES.map(|text| model.get(text).copied().unwrap_or(0));
    amounts(a).cmp(&amounts(b))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_vector_is_its_map(model in model()) {
        let vector = vector(&model);
        let positive: Vec<(ResourceName, u64)> =
            model.iter().filter(|(_, amount)| **amount > 0).map(|(text, amount)| (name(text), *amount)).collect();
        prop_assert_eq!(vector.len(), positive.len());
        prop_assert_eq!(vector.iter().len(), positive.len());
        prop_assert_eq!(vector.is_zero(), positive.is_empty());
        prop_assert_eq!(vector.is_empty(), positive.is_empty());
        prop_assert!(vector.iter().eq(positive.iter().map(|(name, amount)| (name, *amount))));
        for text in NAMES {
            prop_assert_eq!(vector.get(&name(text)), model.get(text).copied().unwrap_or(0));
        }
    }

    #[test]
    fn equal_amounts_are_equal_values((model, shuffled) in shuffled()) {
        let amounts = shuffled.into_iter().map(|(text, amount)| (name(text), amount));
        let shuffled = ResourceVec::new(amounts).unwrap();
        prop_assert_eq!(&shuffled, &vector(&model));
        prop_assert_eq!(hash(&shuffled), hash(&vector(&model)));
    }

    #[test]
    fn equal_quantities_are_equal_values(model in model()) {
        let bare = |text: &str| if text == "cpu" { "m" } else { "" };
        let exponent = |text: &str| if text == "cpu" { "e-3" } else { "e0" };
        let written = |spell: &dyn Fn(&str, u64) -> String| {
            ResourceVec::parse(model.iter().map(|(text, amount)| (text, spell(text, *amount)))).unwrap()
        };
        prop_assert_eq!(written(&|text, amount| format!("{amount}{}", bare(text))), vector(&model));
        prop_assert_eq!(written(&|text, amount| format!("+00{amount}.000{}", bare(text))), vector(&model));
        prop_assert_eq!(written(&|text, amount| format!("{amount}{}", exponent(text))), vector(&model));
    }

    #[test]
    fn different_amounts_are_different_values(a in model(), b in model()) {
        let same = naive_order(&a, &b).is_eq();
        prop_assert_eq!(vector(&a) == vector(&b), same);
    }

    #[test]
    fn operations_are_those_of_the_map(a in model(), b in model(), times in prop_oneof![0..5_u64, any::<u64>()]) {
        let (x, y) = (vector(&a), vector(&b));
        prop_assert_eq!(x.add(&y), vector(&combined(&a, &b, |a, b| a + b)));
        prop_assert_eq!(x.max(&y), vector(&combined(&a, &b, u128::max)));
        prop_assert_eq!(x.saturating_sub(&y), vector(&combined(&a, &b, u128::saturating_sub)));
        prop_assert_eq!(x.scale(times), vector(&combined(&a, &b, |a, _| a * u128::from(times))));
        prop_assert_eq!(min(&x, &y), vector(&combined(&a, &b, u128::min)));
    }

    #[test]
    fn addition_is_a_saturating_monoid(a in model(), b in model(), c in model()) {
        let (a, b, c) = (vector(&a), vector(&b), vector(&c));
        prop_assert_eq!(a.add(&b), b.add(&a));
        prop_assert_eq!(a.add(&b).add(&c), a.add(&b.add(&c)));
        prop_assert_eq!(a.add(&ResourceVec::ZERO), a.clone());
        prop_assert!(a.add(&b).covers(&a));
    }

    #[test]
    fn maximum_is_a_lattice_with_minimum(a in model(), b in model(), c in model()) {
        let (a, b, c) = (vector(&a), vector(&b), vector(&c));
        prop_assert_eq!(a.max(&a), a.clone());
        prop_assert_eq!(a.max(&b), b.max(&a));
        prop_assert_eq!(a.max(&b).max(&c), a.max(&b.max(&c)));
        prop_assert_eq!(a.max(&ResourceVec::ZERO), a.clone());
        prop_assert_eq!(a.max(&min(&a, &b)), a.clone());
        prop_assert_eq!(min(&a, &a.max(&b)), a.clone());
        // The least of all that cover both.
        prop_assert!(a.max(&b).covers(&a) && a.max(&b).covers(&b));
        prop_assert_eq!(c.covers(&a) && c.covers(&b), c.covers(&a.max(&b)));
    }

    #[test]
    fn subtraction_never_falls_below_zero_and_splits_what_is_there(a in model(), b in model()) {
        let (a, b) = (vector(&a), vector(&b));
        prop_assert!(a.saturating_sub(&a).is_zero());
        prop_assert!(ResourceVec::ZERO.saturating_sub(&a).is_zero());
        prop_assert_eq!(a.saturating_sub(&ResourceVec::ZERO), a.clone());
        prop_assert_eq!(a.saturating_sub(&b).add(&min(&a, &b)), a.clone());
        prop_assert_eq!(a.saturating_sub(&b).add(&b), a.max(&b));
        prop_assert!(a.covers(&a.saturating_sub(&b)));
    }

    #[test]
    fn taking_twice_is_taking_the_sum(a in model(), b in model(), c in model()) {
        let (a, b, c) = (vector(&a), vector(&b), vector(&c));
        prop_assert_eq!(a.saturating_sub(&b).saturating_sub(&c), a.saturating_sub(&b.add(&c)));
    }

    #[test]
    fn covering_is_a_partial_order(a in model(), b in model(), c in model()) {
        let (a, b, c) = (vector(&a), vector(&b), vector(&c));
        prop_assert!(a.covers(&a) && a.covers(&ResourceVec::ZERO));
        prop_assert_eq!(a.covers(&b), b.saturating_sub(&a).is_zero());
        prop_assert_eq!(a.covers(&b), a.max(&b) == a);
        prop_assert_eq!(a.covers(&b) && b.covers(&a), a == b);
        prop_assert!(!(a.covers(&b) && b.covers(&c)) || a.covers(&c));
        // A chain that is there by construction, so that the law is not empty.
        let (middle, top) = (a.max(&b), a.max(&b).max(&c));
        prop_assert!(top.covers(&middle) && middle.covers(&a) && top.covers(&a));
        // More supply or less demand never hurts.
        prop_assert!(!a.covers(&b) || a.add(&c).covers(&b));
        prop_assert!(!a.covers(&b) || a.covers(&b.saturating_sub(&c)));
        prop_assert!(!a.covers(&b) || a.add(&c).covers(&b.add(&c)));
    }

    #[test]
    fn contributing_is_having_some_of_what_is_missing(a in model(), b in model()) {
        let some = NAMES.into_iter().any(|text| {
            [&a, &b].into_iter().all(|model| model.get(text).is_some_and(|amount| *amount > 0))
        });
        let (a, b) = (vector(&a), vector(&b));
        prop_assert_eq!(a.contributes(&b), some);
        prop_assert_eq!(b.contributes(&a), some);
        // It contributes exactly if something is missing less afterwards.
        prop_assert_eq!(a.contributes(&b), b.saturating_sub(&a) != b);
    }

    #[test]
    fn scaling_is_repeated_addition(a in model(), times in 0..9_u64, more in 0..9_u64) {
        let a = vector(&a);
        let repeated = (0..times).fold(ResourceVec::ZERO, |sum, _| sum.add(&a));
        prop_assert_eq!(a.scale(times), repeated);
        prop_assert_eq!(a.scale(times).add(&a.scale(more)), a.scale(times + more));
        prop_assert_eq!(a.scale(times).scale(more), a.scale(times * more));
        prop_assert!(a.scale(u64::MAX).iter().all(|(_, amount)| amount == MAX_AMOUNT));
    }

    #[test]
    fn order_by_name_is_total_and_that_of_the_map(a in model(), b in model(), c in model()) {
        let (x, y, z) = (vector(&a), vector(&b), vector(&c));
        prop_assert_eq!(x.cmp_by_name(&y), naive_order(&a, &b));
        prop_assert_eq!(x.cmp_by_name(&y), y.cmp_by_name(&x).reverse());
        prop_assert_eq!(x.cmp_by_name(&y).is_eq(), x == y);
        prop_assert!(!(x.cmp_by_name(&y).is_le() && y.cmp_by_name(&z).is_le()) || x.cmp_by_name(&z).is_le());
        prop_assert!(!x.covers(&y) || x.cmp_by_name(&y).is_ge());
    }

    #[test]
    fn a_name_twice_is_refused(model in model(), again in proptest::sample::select(&NAMES[..]), amount in amount()) {
        let amounts = model.iter().map(|(text, amount)| (name(text), *amount)).chain([(name(again), amount)]);
        prop_assert_eq!(ResourceVec::new(amounts).is_err(), model.contains_key(again));
    }

    #[test]
    fn names_order_as_their_texts(a in "[a-z./-]{1,8}", b in "[a-z./-]{1,8}", known in proptest::sample::select(&NAMES[..])) {
        let texts = BTreeSet::from([a.as_str(), b.as_str(), known]);
        let names: BTreeSet<ResourceName> = texts.iter().map(|text| name(text)).collect();
        prop_assert!(names.iter().map(ResourceName::as_str).eq(texts));
    }
}
