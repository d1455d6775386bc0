//! Spot prices: a slow random walk below the on-demand price, per type and zone.
//!
//! The walk is drawn back to its mean, and each step is a sum over the last draws with fading weight. So the
//! price at any moment is a function of the seed, and two processes agree on it without talking.

use serde::{Deserialize, Serialize};

use crate::random::Dice;
use crate::span::Span;

/// Draws that still count. What is older weighs less than half a percent.
const MEMORY: i64 = 96;
/// How much of a step is left in the next one.
const FADE: f64 = 0.945;
/// Spot never costs less than this share of on demand, nor more than [`CEILING`].
const FLOOR: f64 = 0.10;
const CEILING: f64 = 0.95;

/// Spot prices as a share of the on-demand price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// Whether they move.
    pub on: bool,
    /// How often they may.
    pub every: Span,
    /// The share they move around.
    pub mean: f64,
    /// How far they usually stray from it, as a share of it.
    pub spread: f64,
}

impl Default for Prices {
    fn default() -> Self {
        Self { on: true, every: Span::from_secs(300), mean: 0.35, spread: 0.25 }
    }
}

impl Prices {
    /// The number of the step a moment falls into.
    pub(crate) fn step(&self, unix_nanos: i64) -> i64 {
        unix_nanos.div_euclid(self.every.nanos().max(1))
    }

    /// What spot costs as a share of on demand, in this step.
    pub(crate) fn share(&self, dice: Dice, pool: &str, step: i64) -> f64 {
        let walk: f64 = (0..MEMORY)
            .map(|age| FADE.powi(age as i32) * dice.normal("price", pool, (step - age).cast_unsigned()))
            .sum();
        let deviation = (1.0 / (1.0 - FADE * FADE)).sqrt();
        (self.mean * (1.0 + self.spread * walk / deviation)).clamp(FLOOR, CEILING)
    }
}

/// Prices have four digits after the point, like on a price list.
pub(crate) fn rounded(usd: f64) -> f64 {
    (usd * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(pool: &str) -> Vec<f64> {
        (0..5000).map(|step| Prices::default().share(Dice::new(5), pool, step)).collect()
    }

    #[test]
    fn prices_stay_below_on_demand_and_around_their_mean() {
        let shares = walk("std-8/zone-a");
        assert!(shares.iter().all(|share| (FLOOR..=CEILING).contains(share)));
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean - 0.35).abs() < 0.02, "{mean}");
        let spread = (shares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / shares.len() as f64).sqrt();
        assert!((0.06..0.11).contains(&spread), "{spread}");
    }

    #[test]
    fn prices_move_slowly() {
        let shares = walk("std-8/zone-a");
        let steps = shares.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let mean_step = steps.sum::<f64>() / (shares.len() - 1) as f64;
        assert!((0.005..0.035).contains(&mean_step), "{mean_step}");
    }

    #[test]
    fn every_pool_walks_on_its_own() {
        let (here, there) = (walk("std-8/zone-a"), walk("std-8/zone-b"));
        let product: f64 = here.iter().zip(&there).map(|(a, b)| (a - 0.35) * (b - 0.35)).sum();
        let squares: f64 = here.iter().map(|a| (a - 0.35).powi(2)).sum();
        assert!((product / squares).abs() < 0.25, "{}", product / squares);
    }
}
