//! Every decision vector, at several thread counts.

use bigfleet_calculator::decide;
use bigfleet_engine::Parallelism;
use bigfleet_scenario::answer::difference;
use bigfleet_scenario::vectors;

#[test]
fn every_vector_is_answered_exactly() {
    let vectors = vectors::all().expect("the vectors can be read");
    assert!(vectors.len() >= 351, "{} vectors found", vectors.len());
    let mut failures = Vec::new();
    for vector in &vectors {
        for threads in [1, 2, 3, 8] {
            let got = decide(&vector.scenario, Parallelism { threads, from_clusters: 0 })
                .expect("a vector's input is valid");
            if let Some(difference) = difference(&vector.expect, &got) {
                failures.push(format!("{} with {threads} threads: {difference}", vector.name));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
