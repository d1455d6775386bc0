//! Makes a failing scenario small.
//!
//! A random fleet that fails says nothing to a reader until everything that plays no part is gone. Each step
//! here proposes a simpler scenario, keeps it if it still fails, and starts over until no proposal is kept.

mod fewer;
mod simpler;

use bigfleet_scenario::answer::difference;
use bigfleet_scenario::{Answer, Scenario, input};

use crate::decide;

/// The smallest scenario the steps can reach that still fails. The one given must fail.
pub fn shrink(scenario: Scenario, mut still_fails: impl FnMut(&Scenario) -> bool) -> Scenario {
    assert!(still_fails(&scenario), "only what fails can be shrunk");
    let mut smallest = scenario;
    loop {
        let before = smallest.clone();
        smallest = fewer::fewer(smallest, &mut still_fails);
        smallest = simpler::simpler(smallest, &mut still_fails);
        if smallest == before {
            return smallest;
        }
    }
}

/// A scenario as a vector file, with the answer the oracle gives.
pub fn as_vector(name: &str, what: &str, scenario: &Scenario) -> String {
    let mut text = Vec::new();
    input::write_vector(&mut text, name, what, scenario, &decide(scenario)).expect("writing to memory");
    String::from_utf8(text).expect("JSON is text")
}

/// Asks another engine for its opinion. If it differs from the oracle's, the scenario is made small and
/// returned as a vector file, headed by where the two part.
pub fn disagreement(scenario: &Scenario, other: impl Fn(&Scenario) -> Answer) -> Option<String> {
    let differs = |scenario: &Scenario| difference(&decide(scenario), &other(scenario));
    differs(scenario)?;
    let small = shrink(scenario.clone(), |candidate| differs(candidate).is_some());
    let difference = differs(&small)?;
    Some(format!("{difference}\n{}", as_vector("found/disagreement", "A random fleet, made small.", &small)))
}
