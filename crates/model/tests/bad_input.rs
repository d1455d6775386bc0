//! Whatever comes in is taken or refused with a bounded, printable message; nothing panics.

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::MachineState;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::{MAX_AMOUNT, ResourceName, ResourceVec};
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_model::text::{Quoted, SHOWN_CHARS};
use proptest::prelude::*;

/// Two quoted pieces of at most 80 characters, each at most ten when escaped, and our own words.
const LONGEST_MESSAGE: usize = 2_000;

/// Short texts, long ones, and those that hurt terminals.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<String>(),
        2 => "[,;:|a]{0,4}",
        1 => "[\\x00-\\x1f\\x7f\u{200b}\u{202e}]{0,200}",
        1 => (0..5_000_usize).prop_map(|length| "é".repeat(length)),
    ]
}

fn is_fit_for_a_log(error: &impl std::fmt::Display) -> bool {
    let message = error.to_string();
    message.len() < LONGEST_MESSAGE && !message.contains(char::is_control)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn any_names_and_quantities(pairs in proptest::collection::vec((hostile(), hostile()), 0..4)) {
        match ResourceVec::parse(pairs.iter().map(|(name, text)| (name, text))) {
            Ok(vector) => prop_assert!(vector.iter().all(|(_, amount)| (1..=MAX_AMOUNT).contains(&amount))),
            Err(error) => prop_assert!(is_fit_for_a_log(&error), "{error}"),
        }
    }

    #[test]
    fn any_amounts(pairs in proptest::collection::vec((hostile(), any::<u64>()), 0..4)) {
        let named = pairs.iter().filter_map(|(name, amount)| Some((ResourceName::new(name).ok()?, *amount)));
        match ResourceVec::new(named.collect::<Vec<_>>()) {
            Ok(vector) => prop_assert!(vector.iter().all(|(_, amount)| (1..=MAX_AMOUNT).contains(&amount))),
            Err(error) => prop_assert!(is_fit_for_a_log(&error), "{error}"),
        }
        prop_assert!(pairs.iter().all(|(name, _)| ResourceName::new(name).is_err() == name.is_empty()));
    }

    #[test]
    fn any_labels(pairs in proptest::collection::vec((hostile(), hostile()), 0..4)) {
        if let Err(error) = Labels::new(pairs) {
            prop_assert!(is_fit_for_a_log(&error), "{error}");
        }
    }

    #[test]
    fn any_requirement_and_spread(key in hostile(), values in proptest::collection::vec(hostile(), 0..3), number in any::<i32>()) {
        for operator in Operator::ALL {
            if let Err(error) = Requirement::new(key.as_str(), operator, values.iter().map(String::as_str)).validate() {
                prop_assert!(is_fit_for_a_log(&error), "{error}");
            }
        }
        let spread = TopologySpread::new(key, number, WhenUnsatisfiable::from_wire(number));
        prop_assert!(spread.headroom() < 1 << 31);
        if let Err(error) = spread.validate() {
            prop_assert!(is_fit_for_a_log(&error), "{error}");
        }
    }

    #[test]
    fn any_wire_number(number in any::<i32>()) {
        if let Err(error) = Operator::from_wire(number) {
            prop_assert!(is_fit_for_a_log(&error));
        }
        if let Err(error) = PenaltyBucket::from_wire(number) {
            prop_assert!(is_fit_for_a_log(&error));
        }
        prop_assert_eq!(MachineState::from_wire(number).is_some(), (1..=8).contains(&number));
        prop_assert_eq!(CapacityType::from_wire(number).is_some(), (0..=4).contains(&number));
    }

    #[test]
    fn any_dollars(dollars in any::<f64>()) {
        if let Err(error) = PenaltyBucket::for_dollars(dollars) {
            prop_assert!(is_fit_for_a_log(&error));
        }
    }

    #[test]
    fn any_text_is_shown_whole_or_cut_and_never_raw(text in hostile()) {
        let shown = Quoted(&text).to_string();
        prop_assert!(is_fit_for_a_log(&shown));
        prop_assert!(shown.starts_with('"'));
        prop_assert_eq!(shown.ends_with(" bytes)"), text.chars().count() > SHOWN_CHARS);
    }
}
