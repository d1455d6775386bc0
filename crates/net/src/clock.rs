//! The clock, passed in: the only module that servers and clients read or wait for real time through.
//!
//! Time-outs, polling and metrics ask a [`Clock`]. A server in production gives the [`SystemClock`]; tests
//! and the simulator give a [`VirtualClock`], under which an hour passes when they say so.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

/// A wait that ends when the clock says so.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where time is taken from. It must never run backwards.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Now, in Unix nanoseconds.
    fn now_unix_nanos(&self) -> i64;

    /// What the wall clock of this machine shows. It may jump, so it is only for what another process, or another life of
    /// this one, will compare with its own.
    fn wall_unix_nanos(&self) -> i64 {
        self.now_unix_nanos()
    }

    /// Ends when [`Self::now_unix_nanos`] has reached `unix_nanos`.
    fn sleep_until(&self, unix_nanos: i64) -> Sleep;

    /// Ends when `wait` has passed from now on.
    fn sleep(&self, wait: Duration) -> Sleep {
        self.sleep_until(self.now_unix_nanos().saturating_add(nanos(wait)))
    }
}

/// A span as nanoseconds, at most what 63 bits hold.
pub fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// Real time. The wall clock is read once; from there on only the monotonic clock counts, so that a jump of
/// the wall clock neither expires nor prolongs anything.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    started_unix_nanos: i64,
}

impl SystemClock {
    /// A clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the module that owns the clock")]
    pub fn start() -> Self {
        Self { started: Instant::now(), started_unix_nanos: wall() }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the module that owns the clock")]
fn wall() -> i64 {
    nanos(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

impl Clock for SystemClock {
    fn wall_unix_nanos(&self) -> i64 {
        wall()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the module that owns the clock")]
    fn now_unix_nanos(&self) -> i64 {
        self.started_unix_nanos.saturating_add(nanos(self.started.elapsed()))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the module that owns the clock")]
    fn sleep_until(&self, unix_nanos: i64) -> Sleep {
        let wait = unix_nanos.saturating_sub(self.now_unix_nanos()).max(0);
        Box::pin(tokio::time::sleep(Duration::from_nanos(wait.unsigned_abs())))
    }
}

/// Time that stands still until it is moved.
#[derive(Debug)]
pub struct VirtualClock(Mutex<VirtualTime>);

#[derive(Debug)]
struct VirtualTime {
    now_unix_nanos: i64,
    /// By the time they wait for, then by arrival: waits end in the same order in every run.
    sleepers: BTreeMap<(i64, u64), oneshot::Sender<()>>,
    arrivals: u64,
}

impl VirtualClock {
    /// A clock that shows `unix_nanos`.
    pub fn at(unix_nanos: i64) -> Self {
        Self(Mutex::new(VirtualTime { now_unix_nanos: unix_nanos, sleepers: BTreeMap::new(), arrivals: 0 }))
    }

    /// Moves time on and ends every wait that falls into the span, earliest first.
    pub fn advance(&self, span: Duration) {
        let mut time = self.0.lock().expect("no holder panics");
        time.now_unix_nanos = time.now_unix_nanos.saturating_add(nanos(span));
        while let Some(first) = time.sleepers.first_entry() {
            if first.key().0 > time.now_unix_nanos {
                break;
            }
            // A wait that was given up has dropped its end; nothing to tell it.
            let _ = time.sleepers.pop_first().map(|(_, waiting)| waiting.send(()));
        }
    }

    /// When the next wait ends, in Unix nanoseconds, if anybody waits.
    pub fn next_wake_unix_nanos(&self) -> Option<i64> {
        let mut time = self.0.lock().expect("no holder panics");
        time.sleepers.retain(|_, waiting| !waiting.is_closed());
        time.sleepers.keys().next().map(|(at, _)| *at)
    }
}

impl Clock for VirtualClock {
    fn now_unix_nanos(&self) -> i64 {
        self.0.lock().expect("no holder panics").now_unix_nanos
    }

    fn sleep_until(&self, unix_nanos: i64) -> Sleep {
        let mut time = self.0.lock().expect("no holder panics");
        if unix_nanos <= time.now_unix_nanos {
            return Box::pin(std::future::ready(()));
        }
        let (wake, woken) = oneshot::channel();
        time.arrivals += 1;
        let arrival = time.arrivals;
        time.sleepers.insert((unix_nanos, arrival), wake);
        Box::pin(async move {
            // The sender goes away only with the clock itself; then nobody is left to wait for.
            let _ = woken.await;
        })
    }
}
