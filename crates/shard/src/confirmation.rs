//! The one guard for what is not believed at once: roll-ups that erase demand, listings that lose machines, losses that
//! would be expensive to replace.
//!
//! Whatever it is, it is believed when enough reports agree that lie apart in time. A report that says something else
//! starts the count over. What "agree" means differs: a roll-up must come over the same connection, listings must miss
//! nearly the same machines.

use std::collections::BTreeSet;

/// How often something was confirmed, and since when it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// When the first report like it came.
    pub first_unix_nanos: i64,
    /// When the last confirmation that counted came.
    pub last_unix_nanos: i64,
    /// How many reports agree so far.
    pub seen: u32,
}

impl Confirmation {
    /// The first report.
    pub(crate) fn begin(now: i64) -> Self {
        Self { first_unix_nanos: now, last_unix_nanos: now, seen: 1 }
    }

    /// Counts one more report. Those closer together than `spacing` count once; one that does not agree begins anew, and it
    /// is still known since when something is held.
    #[must_use]
    pub(crate) fn after(before: Option<&Self>, agrees: bool, spacing: i64, now: i64) -> Self {
        let Some(before) = before else { return Self::begin(now) };
        if !agrees {
            return Self { first_unix_nanos: before.first_unix_nanos, ..Self::begin(now) };
        }
        // A clock that was set back must not hold it for ever, nor confirm it.
        let passed = now.saturating_sub(before.last_unix_nanos);
        if (0..spacing).contains(&passed) {
            return *before;
        }
        Self { last_unix_nanos: now, seen: before.seen + u32::from(passed >= 0), ..*before }
    }
}

/// Whether two reports miss nearly the same: what only one of them misses is at most this share of what one of them misses.
pub(crate) fn agree<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>, tolerance: f64) -> bool {
    let differ = one.symmetric_difference(other).count();
    differ as f64 <= tolerance * one.len().max(other.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SECOND;

    #[test]
    fn reports_that_lie_apart_and_agree_are_counted() {
        let spacing = 5 * SECOND;
        let after =
            |before: &Confirmation, agrees, now| Confirmation::after(Some(before), agrees, spacing, now);
        let first = Confirmation::after(None, false, spacing, 0);
        assert_eq!(first.seen, 1);
        assert_eq!(after(&first, true, SECOND).seen, 1, "too soon to count");
        let second = after(&first, true, 6 * SECOND);
        assert_eq!((second.seen, second.first_unix_nanos), (2, 0));
        let other = after(&second, false, 7 * SECOND);
        assert_eq!((other.seen, other.first_unix_nanos), (1, 0), "held since the first, confirmed by none");
        assert_eq!(after(&second, true, -SECOND).seen, 2, "a clock set back confirms nothing");
        assert_eq!(after(&after(&second, true, -SECOND), true, 5 * SECOND).seen, 3, "and holds nothing up");
    }

    #[test]
    fn listings_agree_that_miss_nearly_the_same() {
        let set = |range: std::ops::Range<u32>| range.collect::<BTreeSet<u32>>();
        assert!(agree(&set(0..50), &set(0..50), 0.0));
        assert!(agree(&set(0..50), &set(2..50), 0.2), "one comes back while we look");
        assert!(!agree(&set(0..50), &set(25..75), 0.2), "another half each time");
        assert!(!agree(&set(0..0), &set(0..1), 0.2) && agree(&set(0..0), &set(0..0), 0.2));
    }
}
