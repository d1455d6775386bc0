//! Roll-ups of one session on their way to the shard: at most one in work and one waiting, and the newer replaces the one
//! that waits.

use std::sync::{Arc, Mutex};

use bigfleet_border::session::Rollups;
use bytes::Bytes;
use tracing::Instrument;

use crate::core::{Core, Gone};
use crate::metrics::Metrics;

/// From this size on a roll-up is read on a thread of its own: smaller ones take less time than finding one.
const LARGE_BYTES: usize = 64 << 10;

/// The roll-ups of one session.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Inner>);

struct Inner {
    core: Core,
    metrics: Metrics,
    state: Mutex<State>,
}

struct State {
    rollups: Rollups,
    in_work: bool,
    waiting: Option<(Bytes, i64)>,
}

impl Desk {
    pub(crate) fn new(rollups: Rollups, core: Core, metrics: Metrics) -> Self {
        let state = Mutex::new(State { rollups, in_work: false, waiting: None });
        Self(Arc::new(Inner { core, metrics, state }))
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.state.lock().expect("no holder panics"))
    }

    /// Takes a roll-up that arrived just now. Returns at once.
    pub(crate) fn take(&self, bytes: Bytes, arrived: i64) {
        let (was_waiting, was_in_work) = self.with(|state| {
            (state.waiting.replace((bytes, arrived)).is_some(), std::mem::replace(&mut state.in_work, true))
        });
        if was_waiting {
            self.0.metrics.rollup_skipped();
        }
        if !was_in_work {
            tokio::spawn(self.clone().work());
        }
    }

    async fn work(self) {
        loop {
            let next = self.with(|state| {
                state.in_work = state.waiting.is_some();
                state.waiting.take().map(|waiting| (state.rollups.clone(), waiting))
            });
            let Some((rollups, (bytes, arrived))) = next else { return };
            let span = tracing::info_span!("rollup", cluster = &**rollups.cluster(), bytes = bytes.len());
            if self.pass_on(rollups, bytes, arrived).instrument(span).await.is_err() {
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
