//! Waiting times: log-normal, like most things that usually take a while and sometimes much longer.

use serde::{Deserialize, Serialize};

use crate::random::Dice;
use crate::span::Span;

/// The standard normal distribution has 99 % of its mass below this.
const Z99: f64 = 2.326_347_874_040_841;

/// A waiting time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Half of all waits are shorter.
    pub median: Span,
    /// One wait in a hundred is longer.
    pub p99: Span,
    /// No wait is shorter.
    #[serde(default)]
    pub least: Span,
}

impl Latency {
    pub(crate) fn draw(&self, dice: Dice, purpose: &str, key: &str, number: u64) -> Span {
        let deviation = (self.p99.secs() / self.median.secs()).ln() / Z99;
        let secs = self.median.secs() * (deviation * dice.normal(purpose, key, number)).exp();
        Span::from_nanos((secs * 1e9) as i64).max(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Models;

    /// Median and 99th percentile of many draws, in seconds.
    fn seen(latency: Latency) -> (f64, f64) {
        let dice = Dice::new(11);
        let mut draws: Vec<f64> = (0..20_000).map(|n| latency.draw(dice, "t", "m", n).secs()).collect();
        draws.sort_unstable_by(f64::total_cmp);
        (draws[10_000], draws[19_800])
    }

    #[test]
    fn creates_take_45_seconds_and_one_in_a_hundred_three_minutes() {
        let (median, p99) = seen(Models::default().latency.create);
        assert!((43.5..46.5).contains(&median) && (165.0..195.0).contains(&p99), "{median} {p99}");
    }

    #[test]
    fn metal_takes_ten_minutes_and_joining_twenty_seconds() {
        let latency = Models::default().latency;
        assert!((580.0..620.0).contains(&seen(latency.create_metal).0));
        assert!((19.3..20.7).contains(&seen(latency.configure).0));
    }

    #[test]
    fn no_wait_is_shorter_than_the_least() {
        let quick = Models::for_test_suites().latency.create;
        let shortest = (0..5000).map(|n| quick.draw(Dice::new(1), "t", "m", n)).min();
        assert_eq!(shortest, Some(Span::from_millis(40)));
    }
}
