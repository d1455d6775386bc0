//! What will be due when.
//!
//! Timers are not cancelled one by one: whoever set one checks, when it goes off, whether it still means anything. Watchdogs lie an
//! hour ahead, and a machine that comes and goes with every listing leaves one behind each time; so once there are many, those
//! that mean nothing any more are dropped together.

use std::collections::BTreeMap;

use crate::event::{ProviderId, WireId};
use crate::table::Slot;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// List a provider; valid if this is still when it is to be listed.
    List(ProviderId, i64),
    /// A bootstrap blob has not come.
    Blob(Slot, WireId),
    /// The grace of a drain is over.
    LetGo(Slot, WireId),
    /// A call may be tried again; valid for this flight only.
    Retry(Slot, u64),
    /// A machine may have been in transition for too long; valid for the state it entered then.
    Watch(Slot, i64),
    /// Ask about a machine that failed or is overdue.
    Ask(Slot, i64),
    /// A machine may be used again.
    Cooled(Slot, i64),
    /// Pauses may have ended.
    Pauses,
    /// Look for clusters that are gone.
    Forget,
    /// Nothing but a reason to wake up: a cluster may be tried again.
    Wake,
}

/// All timers, by time and then by when they were set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    due: BTreeMap<(i64, u64), Timer>,
    set: u64,
    /// How many were left when they were last looked through.
    kept: usize,
}

/// So many more than twice those that meant something are kept without looking.
const SPARE: usize = 256;

impl Timers {
    pub(crate) fn set(&mut self, at_unix_nanos: i64, timer: Timer) {
        self.set += 1;
        self.due.insert((at_unix_nanos, self.set), timer);
    }

    /// The first timer that is due by now.
    pub(crate) fn take_due(&mut self, now: i64) -> Option<Timer> {
        let first = self.due.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    pub(crate) fn next(&self) -> Option<i64> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// Whether a timer is set.
    pub(crate) fn has(&self, at_unix_nanos: i64, timer: Timer) -> bool {
        let then = self.due.range((at_unix_nanos, 0)..=(at_unix_nanos, u64::MAX));
        then.into_iter().any(|(_, set)| *set == timer)
    }

    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }

    /// Drops those that mean nothing any more, if there are many. At least half as many were set since the last look as are looked
    /// at now, so that a timer costs the same however many there are.
    pub(crate) fn thin(&mut self, means_something: impl Fn(Timer) -> bool) {
        if self.due.len() > 2 * self.kept + SPARE {
            self.due.retain(|_, timer| means_something(*timer));
            self.kept = self.due.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_mean_nothing_are_dropped_once_there_are_many() {
        let mut timers = Timers::default();
        let mut most = 0;
        // One in a hundred means something.
        for at in 0..10_000 {
            timers.set(at, Timer::List(ProviderId(0), at));
            timers.thin(|timer| matches!(timer, Timer::List(_, at) if at % 100 == 0));
            most = most.max(timers.len());
        }
        assert!(most <= 2 * 100 + SPARE + 1, "{most} at once");
        for at in (0..10_000).step_by(100) {
            assert!(timers.has(at, Timer::List(ProviderId(0), at)), "the one at {at} is there");
        }
    }
}
