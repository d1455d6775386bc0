//! Roll-ups of one session on their way to the shard: at most one in work and one waiting, and the newer replaces the one
//! that waits.

use std::sync::{Arc, Mutex};

use bigfleet_border::session::Rollups;
use bigfleet_net::{Lease, OverBudget, Purse};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tracing::Instrument;

use super::Sessions;
use crate::core::{Core, Gone};
use crate::metrics::Metrics;

/// From this size on a roll-up is read on a thread of its own: smaller ones take less time than finding one.
const LARGE_BYTES: usize = 64 << 10;
/// From this size on one roll-up is read at a time, whoever sent it: what it says takes several times the room of its bytes.
const HUGE_BYTES: usize = 4 << 20;

/// The roll-ups of one session.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Inner>);

struct Inner {
    core: Core,
    metrics: Metrics,
    purse: Option<Purse>,
    huge: Arc<Semaphore>,
    state: Mutex<State>,
}

struct State {
    rollups: Rollups,
    in_work: bool,
    waiting: Option<Arrived>,
}

/// A roll-up that nobody has read yet.
struct Arrived {
    bytes: Bytes,
    at: i64,
    /// Held until it is read.
    _lease: Option<Lease>,
}

impl Desk {
    pub(crate) fn new(rollups: Rollups, purse: Option<Purse>, sessions: &Sessions) -> Self {
        let super::Inner { core, metrics, huge, .. } = &*sessions.0;
        let (core, metrics, huge) = (core.clone(), metrics.clone(), huge.clone());
        let state = Mutex::new(State { rollups, in_work: false, waiting: None });
        Self(Arc::new(Inner { core, metrics, purse, huge, state }))
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.state.lock().expect("no holder panics"))
    }

    /// Takes a roll-up that arrived just now. Returns at once.
    pub(crate) fn take(&self, bytes: Bytes, at: i64) -> Result<(), OverBudget> {
        // The one that waits makes room first: this one replaces it.
        let was_waiting = self.with(|state| state.waiting.take()).is_some();
        let mut lease = self.0.purse.as_ref().map(Purse::lease);
        if let Some(lease) = &mut lease {
            lease.grow(bytes.len())?;
        }
        let was_in_work = self.with(|state| {
            state.waiting = Some(Arrived { bytes, at, _lease: lease });
            std::mem::replace(&mut state.in_work, true)
        });
        if was_waiting {
            self.0.metrics.rollup_skipped();
        }
        if !was_in_work {
            tokio::spawn(self.clone().work());
        }
        Ok(())
    }

    async fn work(self) {
        loop {
            let next = self.with(|state| {
                state.in_work = state.waiting.is_some();
                state.waiting.take().map(|waiting| (state.rollups.clone(), waiting))
            });
            let Some((rollups, Arrived { bytes, at, _lease })) = next else { return };
            let span = tracing::info_span!("rollup", cluster = &**rollups.cluster(), bytes = bytes.len());
            if self.pass_on(rollups, bytes, at).instrument(span).await.is_err() {
                return;
            }
        }
    }

    async fn pass_on(&self, rollups: Rollups, bytes: Bytes, arrived: i64) -> Result<(), Gone> {
        let Inner { core, metrics, .. } = &*self.0;
        let session = rollups.session();
        let (said, again) = rollups.recognise(&bytes);
        let taken = if let Some(again) = again {
            metrics.rollup_again();
            core.tell_rollup(session, again, None).await?
        } else {
            let event = if bytes.len() < LARGE_BYTES {
                rollups.read(&bytes)
            } else {
                let alone = (bytes.len() >= HUGE_BYTES).then(|| self.0.huge.acquire());
                let _alone = match alone {
                    Some(alone) => alone.await.ok(),
                    None => None,
                };
                let reader = rollups.clone();
                let read = tokio::task::spawn_blocking(move || reader.read(&bytes)).await;
                read.unwrap_or_else(|error| rollups.unread(format!("the roll-up could not be read: {error}")))
            };
            core.tell_rollup(session, event, Some(arrived)).await?
        };
        self.with(|state| state.rollups.judged(said, taken));
        Ok(())
    }
}
