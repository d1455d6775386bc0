//! Anything may be typed or sent: it is read or refused, and what is read prints as what it is.

use bigfleet_provider_sim::Span;
use bigfleet_provider_sim::fault::{KINDS, Line};
use bigfleet_provider_sim::models::Models;
use bigfleet_provider_sim::scenario::Scenario;
use proptest::prelude::*;

/// Something like a fault, often one.
fn nearly_a_line() -> impl Strategy<Value = String> {
    let kind = proptest::sample::select(KINDS.iter().map(|info| info.name).collect::<Vec<_>>());
    let word = prop_oneof![
        "[a-z0-9-]{1,8}",
        "(zone|type|rack|machine|p|factor|by|count|secs|keep|move)=[a-z0-9.*-]{0,6}",
        "(zone|machine)=\\PC{0,5}",
        "--(for|after)=?[0-9]{0,4}(ms|s|m|h|x)?",
        "[0-9]{1,3}(\\.[0-9])?",
    ];
    (kind, proptest::collection::vec(word, 0..5))
        .prop_map(|(kind, words)| format!("{kind} {}", words.join(" ")))
}

proptest! {
    #[test]
    fn lines_are_read_or_refused(text in prop_oneof![nearly_a_line(), "\\PC{0,60}"]) {
        if let Ok(line) = text.parse::<Line>() {
            prop_assert_eq!(line.to_string().parse::<Line>(), Ok(line));
        }
    }

    #[test]
    fn spans_are_read_or_refused(text in "[0-9.dhmsun ]{0,12}", nanos in 0..i64::MAX / 2) {
        if let Ok(span) = text.parse::<Span>() {
            prop_assert_eq!(span.to_string().parse::<Span>().map(|again| again.to_string()), Ok(span.to_string()));
        }
        // Whole seconds come back exactly.
        let span = Span::from_nanos(nanos / 1_000_000_000_000 * 1_000_000_000);
        prop_assert_eq!(span.to_string().parse::<Span>(), Ok(span));
    }

    #[test]
    fn settings_and_files_are_read_or_refused(name in "[a-z_.]{0,20}", value in "\\PC{0,10}", text in "\\PC{0,80}") {
        let mut models = Models::default();
        let before = models.clone();
        if models.set(&format!("{name}={value}")).is_err() {
            prop_assert_eq!(models, before);
        }
        let _ = Models::from_json(&text);
        prop_assert!(Scenario::from_json(&text).is_err());
    }

    #[test]
    fn scenarios_with_one_odd_value_are_read_or_refused(odd in "(-?[0-9]{1,20}(\\.[0-9])?|\"[a-z0-9]{0,6}\"|null|true|\\[\\]|\\{\\})", place in 0..9) {
        let mut values = ["\"n\"", "1", "\"1h\"", "[]", "\"c\"", "\"4\"", "0", "\"0s\"", "3"].map(String::from);
        values[usize::try_from(place).expect("small")] = odd;
        let [name, seed, lasts, faults, cluster, cpu, priority, at, units] = values;
        let text = format!(
            r#"{{"name": {name}, "seed": {seed}, "lasts": {lasts}, "faults": {faults}, "load": [{{"cluster": {cluster},
            "unit": {{"cpu": {cpu}}}, "priority": {priority}, "points": [{{"at": {at}, "units": {units}}}]}}]}}"#
        );
        match Scenario::from_json(&text) {
            Ok(scenario) => prop_assert_eq!(Scenario::from_json(&scenario.to_json()), Ok(scenario)),
            Err(problems) => prop_assert!(!problems.0.is_empty()),
        }
    }
}
