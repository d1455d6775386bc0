//! Where the time of a cycle went.

use bigfleet_net::Clock;

/// Times between the ends of phases.
pub(crate) struct Laps<'c> {
    clock: &'c dyn Clock,
    last_unix_nanos: i64,
    ended: Vec<(&'static str, i64, i64)>,
}

impl<'c> Laps<'c> {
    pub(crate) fn new(clock: &'c dyn Clock, begun_unix_nanos: i64) -> Self {
        Self { clock, last_unix_nanos: begun_unix_nanos, ended: Vec::new() }
    }

    /// The phase that was under way has ended.
    pub(crate) fn end_of(&mut self, phase: &'static str) {
        let now = self.clock.now_unix_nanos();
        self.ended.push((phase, self.last_unix_nanos, now));
        self.last_unix_nanos = now;
    }

    /// Phases with when they began and ended.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, i64, i64)> {
        self.ended.iter().copied()
    }
}
