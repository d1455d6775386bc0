//! How long answers took. Reported, never judged: the suite does not know the machine it runs on.

use std::time::Duration;

/// Percentiles over the calls of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// What was measured.
    pub what: String,
    /// How many calls.
    pub count: usize,
    /// Half of them were faster.
    pub p50: Duration,
    /// Nine of ten were faster.
    pub p90: Duration,
    /// All but one in a hundred were faster.
    pub p99: Duration,
    /// The slowest.
    pub max: Duration,
}

impl Latency {
    /// Sorts the samples out. Without any there is nothing to say.
    pub fn of(what: impl Into<String>, samples: &[Duration]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let max = *sorted.last()?;
        // The nearest rank: the smallest sample that so many per cent do not exceed.
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        Some(Self {
            what: what.into(),
            count: sorted.len(),
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let samples: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        let latency = Latency::of("x", &samples).expect("samples");
        let millis = [latency.p50, latency.p90, latency.p99, latency.max].map(|span| span.as_millis());
        assert_eq!(millis, [100, 180, 198, 200]);
        let single = Latency::of("x", &samples[..1]).expect("a sample");
        assert_eq!(single.p50, single.max);
        assert_eq!(Latency::of("x", &[]), None);
    }
}
