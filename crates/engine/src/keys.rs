//! Costs and scores as numbers that order like they do.

/// A non-negative cost as a number that orders alike.
pub(crate) fn cost_key(cost: f64) -> u64 {
    debug_assert!(cost >= 0.0, "costs are not negative");
    // A negative zero is not below zero, and in the total order it comes first.
    if cost.is_sign_negative() { 0 } else { cost.to_bits() + 1 }
}

/// A score, where higher is better, as a number that orders best first.
pub(crate) fn score_key(score: f64) -> u64 {
    let bits = score.to_bits();
    if bits >> 63 == 1 { bits } else { !(bits | 1 << 63) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_like_the_numbers_behind_them() {
        let costs = [-0.0, 0.0, 1e-300, 0.5, 1.0, 2.0, 1e300, f64::INFINITY];
        assert!(costs.windows(2).all(|pair| cost_key(pair[0]) < cost_key(pair[1])));
        let scores = [f64::NEG_INFINITY, -3.0, -0.1, 0.0, 0.1, 20.0, f64::INFINITY];
        assert!(scores.windows(2).all(|pair| score_key(pair[0]) > score_key(pair[1])));
    }
}
