//! How long each hop took.

use bigfleet_net::{Clock as _, SystemClock};

/// Reports hops as they are reached.
pub(crate) struct Hops {
    clock: SystemClock,
    last: i64,
}

impl Hops {
    /// Counts from now on.
    pub(crate) fn start() -> Self {
        let clock = SystemClock::start();
        Self { last: clock.now_unix_nanos(), clock }
    }

    /// Says what was reached and how long it took since the one before.
    pub(crate) fn reached(&mut self, what: &str) {
        let now = self.clock.now_unix_nanos();
        eprintln!("  {:6.2} s  {what}", (now - self.last) as f64 / 1e9);
        self.last = now;
    }
}
