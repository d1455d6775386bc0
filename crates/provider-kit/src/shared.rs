//! What all parts of a running provider share, apart from the author's own code.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard};

use tokio::sync::{Mutex, Notify, OwnedMutexGuard, watch};

use crate::fleet::Fleet;
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::options::Options;
use bigfleet_model::splitmix::mix;

/// How many machines may have their turn at once. Two machines may share a turn and then wait for each
/// other, which is harmless; ids of machines that do not exist cost nothing.
const TURNS: usize = 4096;

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) provider_name: String,
    pub(crate) fleet: Arc<RwLock<Fleet>>,
    pub(crate) journal: Journal,
    /// The revision of the newest change, to be waited on.
    pub(crate) changes: watch::Receiver<u64>,
    pub(crate) metrics: Metrics,
    /// Names the store; part of operation ids.
    pub(crate) instance: u64,
    pub(crate) next_operation: AtomicU64,
    /// Where the next listing starts.
    pub(crate) rotation: AtomicUsize,
    pub(crate) stopping: AtomicBool,
    pub(crate) under_way: UnderWay,
    pub(crate) turns: Turns,
}

impl Shared {
    /// The fleet as readers see it. Never held across an `await`.
    pub(crate) fn fleet(&self) -> RwLockReadGuard<'_, Fleet> {
        self.fleet.read().expect("no holder panics")
    }

    /// A number no operation had before, also not before a restart: the journal stores the highest.
    pub(crate) fn mint_operation(&self) -> u64 {
        self.next_operation.fetch_add(1, Ordering::Relaxed)
    }

    /// The id of an operation as callers see it. Unique across stores, so that an emptied one repeats none.
    pub(crate) fn operation_id(&self, number: u64) -> String {
        format!("op-{:016x}-{number}", self.instance)
    }
}

/// One turn at a time per machine: fence, decision and commit are one step.
pub(crate) struct Turns(Vec<Arc<Mutex<()>>>);

impl Turns {
    pub(crate) fn new() -> Self {
        Self((0..TURNS).map(|_| Arc::default()).collect())
    }

    /// Waits for the machine's turn.
    pub(crate) async fn take(&self, machine_id: &str) -> OwnedMutexGuard<()> {
        let mixed = machine_id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| mix(hash ^ u64::from(byte)));
        self.0[mixed as usize % TURNS].clone().lock_owned().await
    }
}

/// Counts moves under way, and says when there are none left.
#[derive(Default)]
pub(crate) struct UnderWay {
    count: AtomicUsize,
    ended: Notify,
}

impl UnderWay {
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(crate) fn begin(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        self.ended.notify_waiters();
    }

    /// Ends when nothing is under way.
    pub(crate) async fn none(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }
}
