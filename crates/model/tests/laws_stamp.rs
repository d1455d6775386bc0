//! Laws of assignment stamps: what is written comes back, and damage stays where it is.

use std::collections::BTreeMap;

use bigfleet_model::cost::canonical;
use bigfleet_model::stamp::{
    Assignment, FINGERPRINT_KEY, GROUP_KEY, INTERRUPTION_KEY, PRIORITY_KEY, RECLAMATION_KEY,
};
use proptest::prelude::*;

const KEYS: [&str; 5] = [PRIORITY_KEY, INTERRUPTION_KEY, RECLAMATION_KEY, FINGERPRINT_KEY, GROUP_KEY];

/// Every amount a stamp may hold, subnormal and huge ones included.
fn dollars() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(0.5),
        Just(f64::INFINITY),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE / 2.0),
        0.0..1e9_f64,
        any::<f64>().prop_filter("an amount of dollars", |dollars| *dollars >= 0.0).prop_map(canonical),
    ]
}

fn assignment() -> impl Strategy<Value = Assignment> {
    (any::<i32>(), dollars(), dollars(), any::<String>(), any::<String>()).prop_map(
        |(priority, interruption_penalty_usd, reclamation_penalty_usd, fingerprint, group)| Assignment {
            cluster: "c".into(),
            priority,
            interruption_penalty_usd,
            reclamation_penalty_usd,
            fingerprint: fingerprint.into(),
            group: group.into(),
        },
    )
}

fn pairs(metadata: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

/// The field of a key, as text.
fn field(assigned: &Assignment, key: &str) -> String {
    match key {
        PRIORITY_KEY => assigned.priority.to_string(),
        INTERRUPTION_KEY => assigned.interruption_penalty_usd.to_bits().to_string(),
        RECLAMATION_KEY => assigned.reclamation_penalty_usd.to_bits().to_string(),
        FINGERPRINT_KEY => assigned.fingerprint.to_string(),
        _ => assigned.group.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn what_is_written_comes_back(assigned in assignment()) {
        let mut again = Assignment { cluster: "c".into(), ..Assignment::default() };
        prop_assert_eq!(again.decode(pairs(&assigned.encode())), vec![]);
        prop_assert_eq!(&again, &assigned);
        prop_assert_eq!(again.encode(), assigned.encode());
    }

    #[test]
    fn each_key_is_read_alone(assigned in assignment(), before in assignment(), keep in 0..32_usize) {
        // Any subset of the keys sets exactly its fields and leaves the others alone.
        let kept = |key: &str| KEYS.iter().position(|k| *k == key).is_some_and(|at| keep >> at & 1 == 1);
        let written = assigned.encode();
        let mut read = before.clone();
        prop_assert_eq!(read.decode(pairs(&written).filter(|(key, _)| kept(key))), vec![]);
        for key in KEYS {
            let source = if kept(key) && written.contains_key(key) { &assigned } else { &before };
            prop_assert_eq!(field(&read, key), field(source, key), "{}", key);
        }
        prop_assert_eq!(&read.cluster, &before.cluster);
    }

    #[test]
    fn one_damaged_key_spares_the_others(assigned in assignment(), at in 0..3_usize, damage in "[x$ ].{0,5}") {
        let (damaged, mut metadata) = (KEYS[at], assigned.encode());
        metadata.insert(damaged.into(), damage.clone());
        let mut read = Assignment::default();
        let problems = read.decode(pairs(&metadata));
        prop_assert_eq!(problems.len(), 1);
        prop_assert_eq!((problems[0].key, problems[0].value.as_str()), (damaged, damage.as_str()));
        for key in KEYS {
            let source = if key == damaged { &Assignment::default() } else { &assigned };
            prop_assert_eq!(field(&read, key), field(source, key), "{}", key);
        }
    }

    #[test]
    fn unknown_keys_are_ignored(assigned in assignment(), key in ".{0,8}", value in any::<String>()) {
        let mut metadata = assigned.encode();
        metadata.insert(key.clone(), value.clone());
        metadata.insert(format!("bigfleet.lucy.sh/{key}"), value);
        let mut read = Assignment { cluster: "c".into(), ..Assignment::default() };
        prop_assert_eq!(read.decode(pairs(&metadata)), vec![]);
        prop_assert_eq!(read, assigned);
    }

    #[test]
    fn any_text_is_read_or_reported_and_leaves_sound_numbers(values in proptest::array::uniform5(any::<String>())) {
        let mut read = Assignment::default();
        let problems = read.decode(KEYS.into_iter().zip(values.iter().map(String::as_str)));
        prop_assert!(problems.len() <= 3);
        prop_assert!(read.interruption_penalty_usd >= 0.0 && read.reclamation_penalty_usd >= 0.0);
        for problem in problems {
            let message = problem.to_string();
            prop_assert!(message.len() < 1_200 && !message.contains(char::is_control), "{message:?}");
        }
    }

    #[test]
    fn numbers_in_any_spelling_are_read_as_numbers(text in "[+-]?([0-9]{0,4}(\\.[0-9]{0,3})?([eE][+-]?[0-9]{1,3})?|[iI]nf|NaN)") {
        let mut read = Assignment::default();
        let problems = read.decode([(INTERRUPTION_KEY, text.as_str())]);
        let expected = text.parse::<f64>().ok().filter(|dollars| *dollars >= 0.0);
        prop_assert_eq!(problems.is_empty(), expected.is_some());
        prop_assert_eq!(read.interruption_penalty_usd, expected.unwrap_or(0.0));
    }
}
