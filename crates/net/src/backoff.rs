//! Backoff with jitter: waiting before something that failed is tried again, and not all at once.

use std::time::Duration;

use bigfleet_model::splitmix::mix;

use crate::nanos;

/// Waits that double up to a limit, each shortened by up to half so that many who failed together do not try together.
/// The shortening is taken from a number of the caller's, not from chance, so that a run can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait, at most.
    pub first: Duration,
    /// The longest wait.
    pub limit: Duration,
}

impl Backoff {
    /// The wait after `failures` in a row, one or more. `who` should differ between those who wait.
    pub fn wait(&self, failures: u32, who: u64) -> Duration {
        let full = bigfleet_model::backoff::Backoff { first: nanos(self.first), limit: nanos(self.limit) };
        let full = Duration::from_nanos(full.after(failures).unsigned_abs());
        let mixed = mix(who ^ mix(failures.into()));
        let less = full / 2 * (mixed % 1024) as u32 / 1024;
        full.saturating_sub(less)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { first: Duration::from_millis(100), limit: Duration::from_secs(30) };

    #[test]
    fn waits_double_up_to_the_limit_and_are_shortened_by_at_most_half() {
        for who in 0..50 {
            for (failures, full) in
                [(0, 100), (1, 100), (2, 200), (3, 400), (9, 25_600), (10, 30_000), (u32::MAX, 30_000)]
            {
                let (wait, full) = (BACKOFF.wait(failures, who), Duration::from_millis(full));
                assert!(wait <= full && wait >= full / 2, "{failures} {who}: {wait:?}");
                assert_eq!(wait, BACKOFF.wait(failures, who), "the same again");
            }
        }
    }

    #[test]
    fn those_who_failed_together_do_not_try_together() {
        let waits: std::collections::BTreeSet<Duration> = (0..100).map(|who| BACKOFF.wait(5, who)).collect();
        assert!(waits.len() > 80, "{waits:?}");
    }
}
