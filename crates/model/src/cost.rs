//! The locked formulas. Weights are options; the formulas are not.

use crate::penalty::PenaltyBucket;

/// Seconds of grace a voluntary reclaim gives: nobody is waiting for the machine.
pub const RECLAIM_GRACE_SECS: u32 = 600;

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
    if interruption_probability == 0.0 {
        return price_usd_per_hour;
    }
    price_usd_per_hour + interruption_probability * penalty.upper_bound_dollars()
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
/// operations decides ties between machines, so it is part of the definition.
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
pub fn drain_grace_secs(priority_gap: i64) -> u32 {
    match priority_gap {
        gap if gap > 900_000 => 10,
        gap if gap > 500_000 => 30,
        gap if gap > 100_000 => 120,
        _ => RECLAIM_GRACE_SECS,
    }
}
