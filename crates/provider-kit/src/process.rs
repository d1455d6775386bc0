//! A provider as a process: told to stop by a signal, started again right after it was killed.

use std::time::Duration;

use bigfleet_net::{Clock as _, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A process that was just killed may hold its file and its address for a moment longer; waiting a little makes
/// `kill` and start again work. Real time, whatever clock the provider runs on.
pub struct Patience {
    clock: SystemClock,
    until_unix_nanos: i64,
}

impl Patience {
    const LIMIT_NANOS: i64 = 1_500_000_000;
    const PAUSE: Duration = Duration::from_millis(25);

    /// Starts waiting.
    pub fn start() -> Self {
        let clock = SystemClock::start();
        let until_unix_nanos = clock.now_unix_nanos().saturating_add(Self::LIMIT_NANOS);
        Self { clock, until_unix_nanos }
    }

    /// Waits a little, or says that it has been long enough.
    pub async fn wait(&mut self) -> bool {
        let has_time = self.clock.now_unix_nanos() < self.until_unix_nanos;
        if has_time {
            self.clock.sleep(Self::PAUSE).await;
        }
        has_time
    }
}

/// Becomes true at SIGTERM or ctrl-c.
pub fn stop_signals() -> Result<watch::Receiver<bool>, std::io::Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let _ = stop.send(true);
        std::future::pending::<()>().await;
    });
    Ok(stopped)
}
