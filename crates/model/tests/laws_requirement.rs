//! Laws of labels, facts, requirements and matching, over random texts, over a saved corpus, and over
//! mutations of that corpus.

use std::path::Path;

use bigfleet_model::label::{Facts, INSTANCE_TYPE, Labels, ZONE};
use bigfleet_model::requirement::{Operator, Requirement};
use proptest::prelude::*;

#[path = "laws_requirement/check.rs"]
mod check;

fn operator() -> impl Strategy<Value = Operator> {
    proptest::sample::select(Operator::ALL.to_vec())
}

/// Values from a small set, so that they repeat and meet.
fn values() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[ab]{0,2}", 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn any_bytes_obey_the_laws(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        check::check(&bytes);
    }

    #[test]
    fn small_worlds_obey_the_laws(bytes in proptest::collection::vec(0..16_u8, 0..80)) {
        check::check(&bytes);
    }

    #[test]
    fn order_and_repetition_of_values_do_not_count(operator in operator(), values in values(), turn in 0..6_usize) {
        let mut other = values.clone();
        other.extend(values.first().cloned());
        other.reverse();
        let len = other.len().max(1);
        other.rotate_left(turn % len);
        let (a, b) = (Requirement::new("k", operator, values.clone()), Requirement::new("k", operator, other));
        prop_assert_eq!(&a, &b);
        prop_assert!(a.values().is_sorted_by(|x, y| x < y));
        for value in ["", "a", "b", "aa", "ab", "ba", "bb", "c"] {
            prop_assert_eq!(a.lists(value), values.iter().any(|v| v == value));
        }
    }

    #[test]
    fn not_in_is_the_opposite_of_in_also_without_the_key(values in values(), value in proptest::option::of("[ab]{0,2}")) {
        let admits = |operator| Requirement::new("k", operator, values.clone()).admits(value.as_deref());
        prop_assert_eq!(admits(Operator::In), !admits(Operator::NotIn));
        prop_assert_eq!(admits(Operator::Exists), !admits(Operator::DoesNotExist));
        prop_assert_eq!(admits(Operator::Same), admits(Operator::Exists) && (values.is_empty() || admits(Operator::In)));
        prop_assert!(!admits(Operator::Unspecified));
        prop_assert!(!values.is_empty() || (!admits(Operator::In) && admits(Operator::NotIn)));
        prop_assert!(value.is_some() || (admits(Operator::NotIn) && admits(Operator::DoesNotExist)));
    }

    #[test]
    fn fields_go_before_labels(field in "[ab]?", label in proptest::option::of("[ab]?"), zone in any::<bool>()) {
        let key = if zone { ZONE } else { INSTANCE_TYPE };
        let labels = Labels::new(label.iter().map(|value| (key, value.as_str()))).unwrap();
        let facts = if zone {
            Facts { instance_type: "other", zone: &field, labels: &labels }
        } else {
            Facts { instance_type: &field, zone: "other", labels: &labels }
        };
        let expected = if field.is_empty() { label.as_deref() } else { Some(field.as_str()) };
        prop_assert_eq!(facts.value(key), expected);
    }

    #[test]
    fn labels_do_not_depend_on_order(map in proptest::collection::btree_map(".{1,3}", ".{0,3}", 0..6), turn in 0..6_usize) {
        let mut pairs: Vec<(&str, &str)> = map.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let labels = Labels::new(pairs.clone()).unwrap();
        let len = pairs.len().max(1);
        pairs.rotate_left(turn % len);
        prop_assert_eq!(&Labels::new(pairs).unwrap(), &labels);
        for (key, value) in &map {
            prop_assert_eq!(labels.get(key), Some(value.as_str()));
        }
        prop_assert_eq!(labels.len(), map.len());
    }
}

/// The saved inputs, in the order of their names.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/requirement");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn the_saved_corpus_obeys_the_laws() {
    let corpus = corpus();
    assert!(corpus.len() >= 40, "only {} saved inputs", corpus.len());
    let accepted = corpus.iter().filter(|bytes| check::check(bytes)).count();
    assert!((10..corpus.len() - 5).contains(&accepted), "{accepted} of {} accepted", corpus.len());
}

/// A small fuzzer without coverage: the same inputs on every machine and in every run.
#[test]
fn mutations_of_the_saved_corpus_obey_the_laws() {
    const ROUNDS: usize = 150_000;
    let corpus = corpus();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let mut bytes = corpus[below(corpus.len())].clone();
        for _ in 0..=below(4) {
            let at = below(bytes.len() + 1);
            match below(4) {
                0 => bytes.insert(at, below(256) as u8),
                1 if at < bytes.len() => bytes[at] = below(20) as u8,
                2 if at < bytes.len() => {
                    bytes.remove(at);
                }
                3 => bytes.extend_from_slice(&corpus[below(corpus.len())]),
                _ => {}
            }
            bytes.truncate(256);
        }
        accepted += usize::from(check::check(&bytes));
    }
    assert!(accepted > ROUNDS / 10, "only {accepted} of {ROUNDS} mutations were profiles we take");
}
