//! The one place in this crate that reads a clock, and only to say how long something took.

use std::time::Instant;

/// Measures laps.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "timings are what this module is for; no decision reads them"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since the start.
    #[expect(
        clippy::disallowed_methods,
        reason = "timings are what this module is for; no decision reads them"
    )]
    pub(crate) fn nanos(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
