//! The oracle answers every decision vector as expected.

use bigfleet_oracle::decide;
use bigfleet_scenario::answer::difference;
use bigfleet_scenario::vectors;

#[test]
fn every_vector_is_answered_as_expected() {
    let vectors = vectors::all().expect("the vectors are in the checkout");
    assert!(vectors.len() >= 351, "only {} vectors", vectors.len());
    let mut failures = Vec::new();
    for vector in &vectors {
        if let Some(difference) = difference(&vector.expect, &decide(&vector.scenario)) {
            failures.push(format!("{} ({})\n  {difference}", vector.name, vector.what));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), vectors.len(), failures.join("\n"));
}
