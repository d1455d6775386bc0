//! How much simulated work there is at a time: days, deployments, jobs and bursts, all from the seed.
//!
//! A number is a function of the seed, the work and the moment alone, so that a restart goes on where it was.

use bigfleet_sim::{Curve as SimCurve, Pods, Random};

const MINUTE: i64 = 60 * 1_000_000_000;
const HOUR: i64 = 60 * MINUTE;

/// How many pods, or gangs, a kind of work wants over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    /// Always the same.
    Always(u64),
    /// Up and down once a day.
    Day { low: u64, high: u64 },
    /// The same, and a quarter more for some minutes while a new version is rolled out.
    Deployed { low: u64, high: u64 },
    /// A critical burst now and then.
    Bursts { usual: u64, peak: u64 },
    /// Jobs beside the usual, one every hour.
    Jobs { usual: u64, most: u64 },
    /// A long run, and a pause before the next.
    Runs { gangs: u64 },
}

/// Something that happens once in every slot of time.
struct Episode {
    slot: i64,
    /// Earliest and latest start within the slot.
    start: (i64, i64),
    lasts: (i64, i64),
}

const DEPLOYMENT: Episode =
    Episode { slot: 3 * HOUR, start: (45 * MINUTE, 150 * MINUTE), lasts: (6 * MINUTE, 12 * MINUTE) };
const BURST: Episode =
    Episode { slot: 2 * HOUR, start: (35 * MINUTE, 80 * MINUTE), lasts: (12 * MINUTE, 25 * MINUTE) };
const JOB: Episode =
    Episode { slot: HOUR, start: (12 * MINUTE, 20 * MINUTE), lasts: (20 * MINUTE, 35 * MINUTE) };
const RUN: Episode = Episode { slot: 6 * HOUR, start: (0, 0), lasts: (320 * MINUTE, 340 * MINUTE) };

impl Episode {
    /// The dice of the episode that is on at this time after the beginning, if one is.
    fn on(&self, since: i64, dice: &Random) -> Option<Random> {
        let slot = since.div_euclid(self.slot);
        let mut dice = dice.fork(&slot.to_string());
        let draw = |dice: &mut Random, (low, high): (i64, i64)| {
            low + dice.below((high - low + 1).unsigned_abs()).cast_signed()
        };
        let start = slot * self.slot + draw(&mut dice, self.start);
        let end = start + draw(&mut dice, self.lasts);
        (start..end).contains(&since).then_some(dice)
    }
}

impl Curve {
    /// How many are wanted now, in a world that began at `begun_unix_nanos`.
    pub(crate) fn at(&self, now_unix_nanos: i64, begun_unix_nanos: i64, dice: &Random) -> u64 {
        let since = now_unix_nanos.saturating_sub(begun_unix_nanos);
        match *self {
            Self::Always(count) => count,
            Self::Day { low, high } => day(low, high, now_unix_nanos),
            Self::Deployed { low, high } => {
                let usual = day(low, high, now_unix_nanos);
                if DEPLOYMENT.on(since, dice).is_some() { usual + usual.div_ceil(4) } else { usual }
            }
            Self::Bursts { usual, peak } => {
                let more = peak.saturating_sub(usual);
                BURST.on(since, dice).map_or(usual, |mut dice| usual + dice.between(more.div_ceil(2), more))
            }
            Self::Jobs { usual, most } => {
                usual + JOB.on(since, dice).map_or(0, |mut dice| dice.between(most.div_ceil(2), most))
            }
            Self::Runs { gangs } => RUN.on(since, dice).map_or(0, |_| gangs),
        }
    }

    /// What people are told.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Always(count) => format!("always {count}"),
            Self::Day { low, high } => format!("{low} at midnight, {high} at noon"),
            Self::Deployed { low, high } => {
                format!("{low} at midnight, {high} at noon, more during deployments")
            }
            Self::Bursts { usual, peak } => format!("{usual}, in bursts up to {peak}"),
            Self::Jobs { usual, most } => format!("{usual}, and hourly jobs of up to {most}"),
            Self::Runs { gangs } => format!("{gangs} for five hours and a half, then a pause"),
        }
    }
}

/// Between `low` at midnight and `high` at noon, UTC.
fn day(low: u64, high: u64, unix_nanos: i64) -> u64 {
    let every = bigfleet_provider_sim::Span::from_secs(60);
    Pods::Curve(SimCurve::Day { low, high, every }).at(unix_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(curve: Curve, seed: u64) -> Vec<u64> {
        let dice = Random::new(seed).fork("shop/web");
        (0..24 * 60).map(|minute| curve.at(minute * MINUTE, 0, &dice)).collect()
    }

    #[test]
    fn a_day_is_the_same_for_the_same_seed_and_another_for_another() {
        let curve = Curve::Bursts { usual: 2, peak: 14 };
        assert_eq!(numbers(curve, 42), numbers(curve, 42));
        assert_ne!(numbers(curve, 42), numbers(curve, 43));
    }

    #[test]
    fn bursts_and_jobs_come_and_go_within_their_bounds() {
        for (curve, low, high) in [
            (Curve::Bursts { usual: 2, peak: 14 }, 2, 14),
            (Curve::Jobs { usual: 40, most: 50 }, 40, 90),
            (Curve::Deployed { low: 40, high: 40 }, 40, 50),
            (Curve::Runs { gangs: 1 }, 0, 1),
        ] {
            let numbers = numbers(curve, 42);
            let usual = numbers.iter().filter(|number| **number == low).count();
            assert!(numbers.iter().all(|number| (low..=high).contains(number)), "{curve:?}");
            assert!(usual > 0 && usual < numbers.len(), "{curve:?}: neither always nor never");
        }
    }

    #[test]
    fn the_first_minutes_are_calm() {
        for curve in [
            Curve::Bursts { usual: 2, peak: 14 },
            Curve::Jobs { usual: 40, most: 50 },
            Curve::Deployed { low: 40, high: 40 },
            Curve::Runs { gangs: 1 },
        ] {
            for seed in 0..50 {
                let first = &numbers(curve, seed)[..12];
                assert!(first.iter().all(|number| number == &first[0]), "{curve:?} with seed {seed}");
            }
        }
    }

    #[test]
    fn noon_is_the_peak() {
        let day = numbers(Curve::Day { low: 10, high: 70 }, 1);
        assert_eq!((day[0], day[6 * 60], day[12 * 60], day[18 * 60]), (10, 40, 70, 40));
    }
}
