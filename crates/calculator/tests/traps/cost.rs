//! Prices and scores at the edges of their numbers.

use bigfleet_model::machine::Machine;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;

use super::build::{actions, assigned, configured, decided, need, of_profile, priced, speculative};

#[test]
fn zero_times_infinity_in_cost() {
    // A pinned need makes any risk infinitely dear; no risk costs nothing, and must not become no number.
    let pinned = Profile::new(vec![], vec![], 10, PenaltyBucket::PINNED, PenaltyBucket::ZERO);
    let risky =
        |id, price, risk| Machine { interruption_probability: risk, ..priced(speculative(id, "8"), price) };
    let machines =
        [risky("cheap-risky", 1.0, 0.1), risky("dear-safe", 5.0, 0.0), risky("fair-safe", 4.0, -0.0)];
    let wanted = |total| of_profile("shop", pinned.clone(), total, "1");
    assert_eq!(actions(&decided(machines.clone(), [wanted("8")])), ["Provision fair-safe shop need 0"]);
    let two = ["Provision dear-safe shop need 0", "Provision fair-safe shop need 0"];
    assert_eq!(actions(&decided(machines.clone(), [wanted("16")])), two);
    // Infinitely dear is not the same as impossible.
    assert_eq!(actions(&decided(machines, [wanted("24")])).len(), 3);
}

#[test]
fn priority_gap_overflows_32_bits() {
    // From the lowest to the highest priority is more than 2³¹: the best victim and the least grace.
    let lowest = assigned(configured("z", "8", "bank"), i32::MIN);
    let middle = assigned(configured("a", "8", "bank"), 0);
    let high = need("shop", i32::MAX, "8", "1");
    let keep = need("bank", i32::MIN, "16", "1");
    let answer = decided([lowest, middle], [high, keep]);
    assert_eq!(actions(&answer), ["Preempt z bank need 0 in 10s"]);
}

#[test]
fn grace_follows_the_gap() {
    for (priority, grace) in [(100_000, 600), (100_001, 120), (500_001, 30), (900_001, 10), (i32::MAX, 10)] {
        let answer = decided([configured("m", "8", "bank")], [need("shop", priority, "8", "1")]);
        assert_eq!(actions(&answer), [format!("Preempt m bank need 0 in {grace}s")]);
    }
}
