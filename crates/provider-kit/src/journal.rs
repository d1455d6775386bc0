//! The journal: the only way to change the fleet, and the place where "durable before the answer" is kept.
//!
//! Callers hand in a change and wait. One thread takes what has gathered meanwhile, gives each changed
//! machine the next revision, writes all of it in one transaction with one sync of the disk, shows it to
//! readers, and only then wakes the callers. So the sync is shared by everybody who waits, and readers never
//! see what a crash could take back.
//!
//! On a memory store there is nothing to wait for: the change is made in the caller's thread.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;

use bigfleet_proto::v1alpha1::Machine;
use tokio::sync::{oneshot, watch};

use crate::fence::{MarkKey, MarkMove};
use crate::fleet::{Fleet, Operations, Row};
use crate::metrics::Metrics;
use crate::store::{Batch, Disk, StoreError};
use bigfleet_net::Clock;

/// How many changes may wait.
const QUEUE: usize = 65_536;
/// How many changes one transaction takes.
const GROUP: usize = 4096;

/// What one call changes, all of it or nothing.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) mark: Option<MarkMove>,
    pub(crate) rows: Vec<RowChange>,
}

/// The next record of a machine.
#[derive(Debug, Clone)]
pub(crate) struct RowChange {
    pub(crate) machine: Arc<Machine>,
    pub(crate) operations: Operations,
}

impl Change {
    /// A change of one machine.
    pub(crate) fn of(machine: Arc<Machine>, operations: Operations) -> Self {
        Self { mark: None, rows: vec![RowChange { machine, operations }] }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mark.is_none() && self.rows.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct Journal(Way);

enum Way {
    /// To the writing thread; the sender is taken out to end it.
    Thread(Mutex<Option<(SyncSender<Request>, JoinHandle<()>)>>),
    Inline(Mutex<Option<Committer>>),
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Thread(_) => "Thread",
            Self::Inline(_) => "Inline",
        })
    }
}

struct Request {
    change: Change,
    done: oneshot::Sender<Result<(), StoreError>>,
}

impl Journal {
    /// A journal that writes from a thread of its own.
    pub(crate) fn threaded(committer: Committer) -> Self {
        let (sender, receiver) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("provider-store".into())
            .spawn(move || write_groups(committer, &receiver))
            .expect("the system can start a thread");
        Self(Way::Thread(Mutex::new(Some((sender, thread)))))
    }

    /// A journal that writes in the caller's thread.
    pub(crate) fn inline(committer: Committer) -> Self {
        Self(Way::Inline(Mutex::new(Some(committer))))
    }

    /// Makes a change. When this returns it is durable and readers see it; on an error nothing is changed.
    pub(crate) async fn commit(&self, change: Change) -> Result<(), StoreError> {
        if change.is_empty() {
            return Ok(());
        }
        let done = match &self.0 {
            Way::Inline(committer) => {
                let mut committer = committer.lock().expect("no holder panics");
                return committer.as_mut().ok_or(StoreError::Closed)?.commit(std::slice::from_ref(&change));
            }
            Way::Thread(thread) => {
                let (done, wait) = oneshot::channel();
                let thread = thread.lock().expect("no holder panics");
                let (sender, _) = thread.as_ref().ok_or(StoreError::Closed)?;
                match sender.try_send(Request { change, done }) {
                    Ok(()) => wait,
                    Err(TrySendError::Full(_)) => return Err(StoreError::QueueFull),
                    Err(TrySendError::Disconnected(_)) => return Err(StoreError::Closed),
                }
            }
        };
        done.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Writes what waits, then lets go of the store.
    pub(crate) fn close(&self) {
        match &self.0 {
            Way::Inline(committer) => drop(committer.lock().expect("no holder panics").take()),
            Way::Thread(thread) => {
                let taken = thread.lock().expect("no holder panics").take();
                if let Some((sender, thread)) = taken {
                    drop(sender);
                    if thread.join().is_err() {
                        tracing::error!("the thread of the store has panicked");
                    }
                }
            }
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

fn write_groups(mut committer: Committer, receiver: &Receiver<Request>) {
    while let Ok(first) = receiver.recv() {
        let group: Vec<Request> = std::iter::once(first).chain(receiver.try_iter().take(GROUP - 1)).collect();
        let (changes, waiting): (Vec<_>, Vec<_>) = group.into_iter().map(|r| (r.change, r.done)).unzip();
        let outcome = committer.commit(&changes);
        for done in waiting {
            // A caller that has gone away does not change what was written.
            let _ = done.send(outcome.clone());
        }
    }
}

/// Turns changes into one transaction, and the transaction into what readers see.
pub(crate) struct Committer {
    pub(crate) disk: Box<dyn Disk>,
    pub(crate) fleet: Arc<RwLock<Fleet>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    /// The number of the next operation, as it is on disk.
    pub(crate) next_operation: u64,
    /// Tells whoever waits for a change that there is one.
    pub(crate) changes: watch::Sender<u64>,
    /// Marks dropped from memory by the last transaction, to be dropped from disk by the next.
    pub(crate) forgotten: Vec<MarkKey>,
}

impl Committer {
    pub(crate) fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let began = self.clock.now_unix_nanos();
        let batch = self.plan(changes);
        let written = self.disk.write(&batch);
        self.metrics.committed(changes.len(), self.clock.now_unix_nanos() - began, written.is_ok());
        if let Err(error) = written {
            tracing::error!(%error, changes = changes.len(), "a commit has failed");
            self.forgotten = batch.forgotten_marks;
            return Err(error);
        }
        self.show(changes, batch);
        Ok(())
    }

    fn plan(&mut self, changes: &[Change]) -> Batch {
        let fleet = self.fleet.read().expect("no holder panics");
        let mut batch = Batch { forgotten_marks: std::mem::take(&mut self.forgotten), ..Batch::default() };
        let (mut revision, mut moved) = (fleet.revision(), fleet.marks.moves());
        for change in changes {
            if let Some(step) = &change.mark {
                moved += 1;
                batch.marks.push((step.machine_id.clone(), step.shard_id.clone(), step.mark, moved));
            }
            for row in &change.rows {
                revision += 1;
                let (machine, operations) = (row.machine.clone(), row.operations);
                batch.rows.push(Row { machine, revision, operations });
            }
        }
        let newest = batch.rows.iter().filter_map(|row| row.operations.newest()).max();
        batch.next_operation = newest.map(|number| number + 1).filter(|next| *next > self.next_operation);
        batch
    }

    fn show(&mut self, changes: &[Change], batch: Batch) {
        self.next_operation = batch.next_operation.unwrap_or(self.next_operation);
        let mut fleet = self.fleet.write().expect("no holder panics");
        for row in batch.rows {
            fleet.put(row);
        }
        for step in changes.iter().filter_map(|change| change.mark.as_ref()) {
            let known = fleet.get(&step.machine_id).is_some();
            let forgotten = fleet.marks.put(step, known);
            self.forgotten.extend(forgotten);
        }
        let revision = fleet.revision();
        drop(fleet);
        self.changes.send_replace(revision);
    }
}
