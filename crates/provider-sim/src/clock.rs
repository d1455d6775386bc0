//! Faster clocks: simulated hours in real minutes.
//!
//! Real time comes from the kit's [`SystemClock`]; here it is only stretched.

use std::time::Duration;

use bigfleet_provider_kit::{Clock, Sleep, SystemClock};

/// Real time, so many times as fast.
#[derive(Debug)]
pub struct FastClock {
    real: SystemClock,
    /// What real time was at the start.
    real_unix_nanos: i64,
    /// What this clock showed then.
    started_unix_nanos: i64,
    speed: u32,
}

impl FastClock {
    /// The fastest a clock may run.
    pub const SPEED_LIMIT: u32 = 1000;

    /// A clock that starts now; `speed` is cut to 1 ..= [`Self::SPEED_LIMIT`].
    pub fn start(speed: u32) -> Self {
        let real = SystemClock::start();
        let now = real.now_unix_nanos();
        Self::of(real, now, speed)
    }

    /// A clock that shows `unix_nanos` now, for a world with a time of its own.
    pub fn start_at(unix_nanos: i64, speed: u32) -> Self {
        Self::of(SystemClock::start(), unix_nanos, speed)
    }

    fn of(real: SystemClock, started_unix_nanos: i64, speed: u32) -> Self {
        let real_unix_nanos = real.now_unix_nanos();
        Self { real, real_unix_nanos, started_unix_nanos, speed: speed.clamp(1, Self::SPEED_LIMIT) }
    }
}

impl Clock for FastClock {
    fn now_unix_nanos(&self) -> i64 {
        let passed = self.real.now_unix_nanos().saturating_sub(self.real_unix_nanos);
        self.started_unix_nanos.saturating_add(passed.saturating_mul(self.speed.into()))
    }

    fn sleep_until(&self, unix_nanos: i64) -> Sleep {
        let wait = unix_nanos.saturating_sub(self.now_unix_nanos()).max(0).unsigned_abs();
        // Rounded up, so that the wait never ends before its time.
        self.real.sleep(Duration::from_nanos(wait.div_ceil(self.speed.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fast_clock_reaches_the_hour_in_seconds() {
        let clock = FastClock::start(5000);
        let start = clock.now_unix_nanos();
        clock.sleep_until(start + 60_000_000_000).await;
        let passed = clock.now_unix_nanos() - start;
        assert!(passed >= 60_000_000_000, "{passed}");
    }

    #[test]
    fn a_clock_of_another_time_starts_there() {
        let clock = FastClock::start_at(1_000, 1000);
        let now = clock.now_unix_nanos();
        assert!((1_000..3_600_000_000_000).contains(&now), "{now}");
    }
}
