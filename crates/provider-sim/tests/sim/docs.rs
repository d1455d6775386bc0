//! The page that documents the simulated cloud says what the code says.

use bigfleet_provider_sim::scenario::{CODES, Scenario};
use bigfleet_provider_sim::{catalogue, fault, models};

const PAGE: &str = include_str!("../../../../docs/simulated-cloud.md");

#[test]
fn the_tables_are_those_of_the_code() {
    assert!(PAGE.contains(&catalogue::markdown()), "the catalogue should read\n{}", catalogue::markdown());
    assert!(PAGE.contains(catalogue::AS_OF), "prices are dated");
    assert!(PAGE.contains(&fault::markdown()), "the faults should read\n{}", fault::markdown());
    for (name, value) in models::Models::default().settings() {
        assert!(PAGE.contains(&format!("| `{name}` | {value} |")), "the setting {name} = {value} is missing");
    }
    for (code, meaning) in CODES {
        assert!(PAGE.contains(&format!("| `{code}` | {meaning} |")), "{code} is missing");
    }
}

#[test]
fn the_example_scenario_is_a_good_one() {
    let example =
        PAGE.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let scenario = Scenario::from_json(example).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(!scenario.load.is_empty() && scenario.faults.len() > 1);
}
