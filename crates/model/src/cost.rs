//! The locked formulas: what a machine costs, who is the best victim, how long it may take to leave.
//!
//! They are fixed by the design, down to the order of operations: weights are options, the formulas are not.
//! Inputs were checked where they entered, so nothing here can fail, and nothing here makes a NaN.

use crate::penalty::PenaltyBucket;

/// Seconds of grace a voluntary reclaim gives: nobody is waiting for the machine.
pub const RECLAIM_GRACE_SECS: u32 = 600;

/// A price, probability or penalty as it is stored: a negative zero is a zero. Orders are total, and would tell
/// the two apart.
///
/// ```
/// assert_eq!(bigfleet_model::cost::canonical(-0.0).to_bits(), 0);
/// ```
pub fn canonical(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

/// What a machine really costs an hour: its price plus the risk of losing it times what that loss costs.
///
/// A pinned need makes any risk infinitely dear, and no risk at all costs nothing: 0 × ∞ is 0 here, not NaN.
///
/// ```
/// use bigfleet_model::{cost::effective_cost, penalty::PenaltyBucket};
/// assert_eq!(effective_cost(0.10, 0.05, PenaltyBucket::from_wire(6).unwrap()), 0.5);
/// assert_eq!(effective_cost(0.10, 0.0, PenaltyBucket::PINNED), 0.10);
/// ```
pub fn effective_cost(price_usd_per_hour: f64, interruption_probability: f64, penalty: PenaltyBucket) -> f64 {
    let risk = if interruption_probability == 0.0 {
        0.0
    } else {
        interruption_probability * penalty.upper_bound_dollars()
    };
    price_usd_per_hour + risk
}

/// What a free machine asks an hour of a need with this penalty: its effective cost, and half of that for a rented
/// machine that is already there (`idle_and_elastic`), because using it saves the wait, not the bill.
///
/// ```
/// use bigfleet_model::{cost::asking_price, penalty::PenaltyBucket};
/// assert_eq!(asking_price(0.50, 0.0, PenaltyBucket::ZERO, false), 0.50);
/// assert_eq!(asking_price(0.50, 0.0, PenaltyBucket::ZERO, true), 0.25);
/// ```
pub fn asking_price(
    price_usd_per_hour: f64,
    interruption_probability: f64,
    penalty: PenaltyBucket,
    idle_and_elastic: bool,
) -> f64 {
    let cost = effective_cost(price_usd_per_hour, interruption_probability, penalty);
    if idle_and_elastic { cost / 2.0 } else { cost }
}

/// How much each part of the victim score weighs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VictimWeights {
    /// Of the priority gap.
    pub priority: f64,
    /// Of how quickly the machine drains.
    pub drain_speed: f64,
    /// Of how little an interruption costs.
    pub interruption: f64,
    /// Of how little losing this machine costs.
    pub reclamation: f64,
}

impl Default for VictimWeights {
    fn default() -> Self {
        Self { priority: 1.0, drain_speed: 0.1, interruption: 0.1, reclamation: 0.1 }
    }
}

/// How good a victim a bound machine is; higher is better.
///
/// Each reciprocal is taken first, then weighted, then summed from left to right: the exact order of
/// operations decides ties between machines, so it is part of the definition. Drain times below a second
/// count as one second, penalties below a cent as one cent.
///
/// ```
/// use bigfleet_model::cost::{VictimWeights, priority_gap, victim_score};
/// let weights = VictimWeights::default();
/// let gap = priority_gap(1_000, 0);
/// assert_eq!(victim_score(&weights, gap, 30.0, 0.0, 0.5), 1_000.0 + (1.0 / 30.0) * 0.1 + 10.0 + 0.2);
/// ```
pub fn victim_score(
    weights: &VictimWeights,
    priority_gap: i64,
    drain_secs: f64,
    interruption_penalty_usd: f64,
    reclamation_penalty_usd: f64,
) -> f64 {
    let by_gap = priority_gap as f64 * weights.priority;
    let by_drain = (1.0 / drain_secs.max(1.0)) * weights.drain_speed;
    let by_interruption = (1.0 / interruption_penalty_usd.max(0.01)) * weights.interruption;
    let by_reclamation = (1.0 / reclamation_penalty_usd.max(0.01)) * weights.reclamation;
    by_gap + by_drain + by_interruption + by_reclamation
}

/// How far a preemptor stands above its victim, in 64 bits: two 32-bit priorities may be 2³² apart.
pub fn priority_gap(preemptor: i32, victim: i32) -> i64 {
    i64::from(preemptor) - i64::from(victim)
}

/// Seconds a victim gets to drain, by the priority gap: the wider the gap, the less it may take.
///
/// | gap | seconds |
/// |---|---|
/// | above 900,000 | 10 |
/// | above 500,000 | 30 |
/// | above 100,000 | 120 |
/// | any other | 600 |
pub fn drain_grace_secs(priority_gap: i64) -> u32 {
    match priority_gap {
        gap if gap > 900_000 => 10,
        gap if gap > 500_000 => 30,
        gap if gap > 100_000 => 120,
        _ => RECLAIM_GRACE_SECS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(number: i32) -> PenaltyBucket {
        PenaltyBucket::from_wire(number).unwrap()
    }

    #[test]
    fn effective_cost_is_price_plus_risk_times_penalty() {
        for (price, probability, number, expected) in [
            (0.10, 0.05, 6, 0.10 + 0.05 * 8.0),
            (0.10, 0.05, 0, 0.10),
            (0.10, 0.05, 1, 0.10),
            (0.0, 1.0, 26, 8_388_608.0),
            (3.0, 0.0, 27, 3.0),
            (3.0, -0.0, 27, 3.0),
            (3.0, f64::MIN_POSITIVE, 27, f64::INFINITY),
        ] {
            assert_eq!(effective_cost(price, probability, bucket(number)), expected, "{number}");
        }
    }

    #[test]
    fn the_order_of_operations_decides_the_last_bit() {
        let weights = VictimWeights::default();
        // 0.1 / 5 and (1 / 5) × 0.1 are different numbers, and so are sums from the left and from the right.
        assert_ne!((1.0_f64 / 5.0) * 0.1, 0.1 / 5.0);
        assert_eq!(victim_score(&weights, 0, 5.0, f64::INFINITY, f64::INFINITY), (1.0 / 5.0) * 0.1);
        let [gap, drain, interruption, reclamation] = [1.0, (1.0 / 30.0) * 0.1, (1.0 / 0.5) * 0.1, 0.1];
        let from_the_left = ((gap + drain) + interruption) + reclamation;
        assert_ne!(from_the_left, gap + ((drain + interruption) + reclamation));
        assert_eq!(victim_score(&weights, 1, 30.0, 0.5, 1.0), from_the_left);
    }

    #[test]
    fn small_denominators_are_floored() {
        let weights = VictimWeights { priority: 0.0, drain_speed: 1.0, interruption: 1.0, reclamation: 1.0 };
        let by_drain = |secs| victim_score(&weights, 0, secs, f64::INFINITY, f64::INFINITY);
        assert_eq!([0.0, 0.5, 1.0, 2.0].map(by_drain), [1.0, 1.0, 1.0, 0.5]);
        let by_interruption = |dollars| victim_score(&weights, 0, f64::INFINITY, dollars, f64::INFINITY);
        let by_reclamation = |dollars| victim_score(&weights, 0, f64::INFINITY, f64::INFINITY, dollars);
        assert_eq!([0.0, 0.009, 0.01, 0.5, 4.0].map(by_interruption), [100.0, 100.0, 100.0, 2.0, 0.25]);
        assert_eq!([0.0, 0.009, 0.01, 0.5, 4.0].map(by_reclamation), [100.0, 100.0, 100.0, 2.0, 0.25]);
    }

    #[test]
    fn weights_weigh_their_own_part() {
        let weights = VictimWeights { priority: 2.0, drain_speed: 3.0, interruption: 5.0, reclamation: 7.0 };
        assert_eq!(victim_score(&weights, 10, 2.0, 4.0, 8.0), 20.0 + 1.5 + 1.25 + 0.875);
        let default = VictimWeights::default();
        let listed = [default.priority, default.drain_speed, default.interruption, default.reclamation];
        assert_eq!(listed, [1.0, 0.1, 0.1, 0.1]);
    }

    #[test]
    fn gaps_need_more_than_32_bits() {
        assert_eq!(priority_gap(i32::MAX, i32::MIN), (1_i64 << 32) - 1);
        assert_eq!(priority_gap(i32::MIN, i32::MAX), 1 - (1_i64 << 32));
        assert_eq!(priority_gap(5, 5), 0);
    }

    #[test]
    fn grace_changes_exactly_above_the_limits() {
        for (gap, secs) in [
            (i64::MIN, 600),
            (-1, 600),
            (0, 600),
            (99_999, 600),
            (100_000, 600),
            (100_001, 120),
            (499_999, 120),
            (500_000, 120),
            (500_001, 30),
            (899_999, 30),
            (900_000, 30),
            (900_001, 10),
            (priority_gap(i32::MAX, i32::MIN), 10),
            (i64::MAX, 10),
        ] {
            assert_eq!(drain_grace_secs(gap), secs, "gap {gap}");
        }
        assert_eq!(RECLAIM_GRACE_SECS, 600);
    }
}
