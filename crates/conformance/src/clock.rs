//! The only place that reads a clock or waits: the suite examines programs that live in real time.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime};

/// A moment, to measure from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(Instant);

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "this is the module that owns the clock")]
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the module that owns the clock")]
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Nanoseconds since 1970: names runs apart, and is the seed when none was given.
#[expect(clippy::disallowed_methods, reason = "this is the module that owns the clock")]
pub(crate) fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "this is the module that owns the clock")]
pub(crate) async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

/// What the future gave, or nothing if it took longer than `span`.
#[expect(clippy::disallowed_methods, reason = "this is the module that owns the clock")]
pub(crate) async fn within<T>(span: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(span, work).await.ok()
}

/// Waits between two looks at something that is under way: short at first, then longer, up to a cap.
#[derive(Debug)]
pub(crate) struct Patience {
    started: Moment,
    deadline: Duration,
    step: Duration,
    cap: Duration,
}

impl Patience {
    pub(crate) fn new(deadline: Duration, cap: Duration) -> Self {
        Self { started: Moment::now(), deadline, step: Duration::from_millis(2), cap }
    }

    /// Waits a little, or says that it has been long enough.
    pub(crate) async fn wait(&mut self) -> bool {
        if self.started.elapsed() >= self.deadline {
            return false;
        }
        pause(self.step).await;
        self.step = (self.step * 3 / 2).min(self.cap);
        true
    }
}
