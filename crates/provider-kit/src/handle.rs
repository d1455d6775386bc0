//! The provider's own voice: machines change without anybody asking. A spot machine is taken back, a price
//! moves, a host dies, hardware is bought.
//!
//! A [`Handle`] is independent of the author's code, so that the code may hold one. What it changes goes
//! through the same journal and turn as calls do: durable first, then visible, with a new revision.

use std::sync::Arc;

use bigfleet_model::text::Quoted;
use bigfleet_proto::v1alpha1::Machine;
use thiserror::Error;
use tokio::sync::OwnedMutexGuard;

use crate::fleet::Operations;
use crate::journal::Change;
use crate::offering::{Offering, refreshed};
use crate::operation::{self, OperationKind};
use crate::record::{self, RecordError};
use crate::shared::Shared;
use crate::store::StoreError;
use bigfleet_net::Clock;

/// Why a provider's own change was refused. Nothing was changed.
#[derive(Debug, Clone, Error)]
pub enum UpdateError {
    /// There is no such machine.
    #[error("machine {} is unknown; insert it first", Quoted(.0))]
    Unknown(String),
    /// There is such a machine already.
    #[error("machine {} exists already; update it instead", Quoted(.0))]
    Exists(String),
    /// The new record is no good.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// The disk refused.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Reads and changes machines from inside the provider.
#[derive(Clone)]
pub struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// One machine as it is now.
    pub fn get(&self, id: &str) -> Option<Arc<Machine>> {
        self.0.fleet().get(id).map(|row| row.machine.clone())
    }

    /// All machines as they are now, in the order in which they came in.
    pub fn machines(&self) -> Vec<Arc<Machine>> {
        self.0.fleet().rows_from(0).map(|(_, row)| row.machine.clone()).collect()
    }

    /// The revision of the newest change.
    pub fn revision(&self) -> u64 {
        self.0.fleet().revision()
    }

    /// Ends when a machine is as `wanted`, and returns it; at once if it is so already.
    ///
    /// A machine that nobody has inserted yet is waited for as well. Without end if it never comes to be so.
    pub async fn wait_for(&self, id: &str, wanted: impl Fn(&Machine) -> bool) -> Arc<Machine> {
        let mut changes = self.0.changes.clone();
        loop {
            changes.borrow_and_update();
            if let Some(machine) = self.get(id).filter(|machine| wanted(machine)) {
                return machine;
            }
            if changes.changed().await.is_err() {
                // The store is closed: nothing will change any more.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The clock the provider runs on.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.0.options.clock.clone()
    }

    /// Changes a machine and returns it as it is now.
    ///
    /// What its state does not allow is cleared: a host before Idle, a binding while unbound, an error while
    /// it is not Failed. A move that was under way loses the machine if the state is changed: its outcome
    /// will be dropped. Without a difference nothing is written and the revision stays.
    pub async fn update(
        &self,
        id: &str,
        change: impl FnOnce(&mut Machine),
    ) -> Result<Arc<Machine>, UpdateError> {
        let turn = self.0.turns.take(id).await;
        let row = self.0.fleet().get(id).cloned().ok_or_else(|| UpdateError::Unknown(id.into()))?;
        let mut machine = Machine::clone(&row.machine);
        change(&mut machine);
        operation::settle(&mut machine);
        if machine.id != id {
            return Err(RecordError::Renamed { id: id.into(), other: machine.id }.into());
        }
        record::check(&machine)?;
        if machine == *row.machine {
            return Ok(row.machine);
        }
        let machine = Arc::new(machine);
        self.commit(turn, Change::of(machine.clone(), row.operations)).await?;
        Ok(machine)
    }

    /// The id of the newest operation of this kind on a machine, as its caller was told. It stays the same
    /// over a restart, so a backend can use it to do a thing once.
    pub fn operation_id(&self, id: &str, kind: OperationKind) -> Option<String> {
        let number = self.0.fleet().get(id)?.operations.get(kind)?;
        Some(self.0.operation_id(number))
    }

    /// Takes in an offering, as a start does: a new slot as it is, a known one with what else changed.
    pub async fn offer(&self, offering: Offering) -> Result<Arc<Machine>, UpdateError> {
        if self.get(&offering.id).is_none() {
            match self.insert(offering.clone()).await {
                Err(UpdateError::Exists(_)) => {}
                inserted => return inserted,
            }
        }
        let id = offering.id.clone();
        let offered = offering.into_machine(&self.0.provider_name);
        self.update(&id, |machine| *machine = refreshed(machine, &offered)).await
    }

    /// Adds a slot.
    pub async fn insert(&self, offering: Offering) -> Result<Arc<Machine>, UpdateError> {
        let machine = Arc::new(offering.into_machine(&self.0.provider_name));
        record::check(&machine)?;
        let turn = self.0.turns.take(&machine.id).await;
        if self.0.fleet().get(&machine.id).is_some() {
            return Err(UpdateError::Exists(machine.id.clone()));
        }
        self.commit(turn, Change::of(machine.clone(), Operations::default())).await?;
        Ok(machine)
    }

    /// Commits in a task of its own, so that the turn lasts as long as the commit even if the caller does not.
    async fn commit(&self, turn: OwnedMutexGuard<()>, change: Change) -> Result<(), StoreError> {
        let shared = self.0.clone();
        let task = tokio::spawn(async move {
            let outcome = shared.journal.commit(change).await;
            drop(turn);
            outcome
        });
        task.await.unwrap_or(Err(StoreError::Closed))
    }

    /// How the provider is doing, as text for Prometheus.
    pub fn scrape(&self) -> String {
        self.0.metrics.scrape(&self.0.fleet(), self.0.under_way.count())
    }

    /// Takes no more moves, waits for those under way for as long as `grace`, and lets go of the store.
    ///
    /// Moves that take longer are settled at the next start, like after a crash.
    pub async fn stop(&self, grace: std::time::Duration) {
        self.0.stopping.store(true, std::sync::atomic::Ordering::SeqCst);
        tokio::select! {
            biased;
            () = self.0.under_way.none() => {}
            () = self.0.options.clock.sleep(grace) => {
                tracing::warn!(moves = self.0.under_way.count(), "stopping with moves under way");
            }
        }
        self.0.journal.close();
    }
}
