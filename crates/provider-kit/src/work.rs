//! The work behind a move: the author's function, its time-out, and the end of the move.
//!
//! The end is written only if the machine is still in the very operation that began it. Whatever moved it
//! meanwhile, a time-out or news from the provider, has won; what comes late is counted and dropped.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_proto::v1alpha1::Machine;

use crate::backend::{Backend, Failure, Recovery};
use crate::journal::Change;
use crate::operation::{self, OperationKind, state_of};
use crate::provider::Provider;
use crate::recovery::settled;
use crate::shared::Shared;
use crate::steps::Order;
use bigfleet_net::nanos;

/// How long to wait before the end of a move is written again after the disk refused it: at first, at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Does the work of one operation and ends it. The author's code runs in a task of its own: if it panics, the
/// machine has failed, and nothing else.
pub(crate) async fn carry_out<B: Backend>(
    provider: Provider<B>,
    machine: Arc<Machine>,
    number: u64,
    order: Order,
) {
    let kind = order.kind();
    let task = {
        let (backend, shared, machine) = (provider.backend.clone(), provider.shared.clone(), machine.clone());
        tokio::spawn(async move { within_time(&*backend, &shared, &machine, &order).await })
    };
    let outcome = match task.await {
        Ok(Ok(reference)) if kind == OperationKind::Create && reference.is_empty() => {
            Err(Failure::from("the provider made a machine without a name for its hardware"))
        }
        Ok(outcome) => outcome,
        // The runtime is shutting down: like a crash, to be settled at the next start.
        Err(error) if error.is_cancelled() => return,
        Err(error) => Err(Failure(format!("the provider's own code has failed during {kind}: {error}"))),
    };
    end(&provider.shared, &machine.id, kind, Some(number), Outcome::Performed(outcome)).await;
}

/// Finds out what has become of a move that a restart cut short, and ends it. The provider serves meanwhile.
pub(crate) async fn recover<B: Backend>(
    provider: Provider<B>,
    machine: Arc<Machine>,
    kind: OperationKind,
    number: Option<u64>,
) {
    let task = {
        let (backend, shared, machine) = (provider.backend.clone(), provider.shared.clone(), machine.clone());
        tokio::spawn(async move {
            let limit = shared.options.timeouts.of(kind);
            tokio::select! {
                biased;
                recovery = backend.recover(&machine, kind) => recovery,
                () = shared.options.clock.sleep(limit) => Recovery::Failed(format!(
                    "the provider restarted during {kind} of machine {}, and what became of it was not known within {} s",
                    machine.id, limit.as_secs_f64()
                )),
            }
        })
    };
    let recovery = match task.await {
        Ok(recovery) => recovery,
        Err(error) if error.is_cancelled() => return,
        Err(error) => {
            Recovery::Failed(format!("the provider's own code has failed while it recovered {kind}: {error}"))
        }
    };
    tracing::warn!(machine = machine.id, %kind, ?recovery, "a move was cut short by a restart");
    end(&provider.shared, &machine.id, kind, number, Outcome::Recovered(recovery)).await;
}

/// How a move came to its end.
enum Outcome {
    /// The author's function returned, or its time was over.
    Performed(Result<String, Failure>),
    /// A restart cut it short, and this has become of it.
    Recovered(Recovery),
}

impl Outcome {
    /// The record it leaves behind.
    fn applied(&self, shared: &Shared, machine: &Machine, kind: OperationKind) -> Machine {
        match self {
            Self::Performed(Ok(reference)) if kind == OperationKind::Create => {
                operation::created(machine, &shared.provider_name, reference.clone())
            }
            Self::Performed(Ok(_)) => operation::ended(machine, kind),
            Self::Performed(Err(failure)) => operation::failed(machine, &failure.0),
            Self::Recovered(recovery) => settled(&shared.provider_name, machine, kind, recovery.clone()),
        }
    }

    fn failure(&self) -> Option<&str> {
        match self {
            Self::Performed(Err(Failure(reason))) | Self::Recovered(Recovery::Failed(reason)) => Some(reason),
            Self::Performed(Ok(_)) | Self::Recovered(_) => None,
        }
    }
}

/// The author's function against the clock. At the time-out it is dropped.
async fn within_time<B: Backend>(
    backend: &B,
    shared: &Shared,
    machine: &Machine,
    order: &Order,
) -> Result<String, Failure> {
    let mut limit = shared.options.timeouts.of(order.kind());
    if let Order::Drain { grace } = order {
        limit = limit.saturating_add(*grace);
    }
    let clock = &shared.options.clock;
    let deadline = clock.now_unix_nanos().saturating_add(nanos(limit));
    tokio::select! {
        biased;
        outcome = perform(backend, shared, machine, order) => outcome,
        () = clock.sleep_until(deadline) => {
            Err(Failure(format!("{} took longer than {} s", order.kind(), limit.as_secs_f64())))
        }
    }
}

async fn perform<B: Backend>(
    backend: &B,
    shared: &Shared,
    machine: &Machine,
    order: &Order,
) -> Result<String, Failure> {
    match order {
        Order::Create => return backend.create(machine).await,
        Order::Configure { bootstrap, .. } => {
            backend.configure(machine, bootstrap).await?;
            while !backend.confirm_ready(machine).await? {
                shared.options.clock.sleep(shared.options.ready_poll).await;
            }
        }
        Order::Drain { grace } => backend.drain(machine, *grace).await?,
        Order::Delete => backend.delete(machine).await?,
    }
    Ok(String::new())
}

/// Writes the end of an operation, as often as it takes: a machine must not stay in between.
async fn end(shared: &Shared, id: &str, kind: OperationKind, number: Option<u64>, outcome: Outcome) {
    let mut wait = RETRY.0;
    loop {
        let turn = shared.turns.take(id).await;
        let Some(row) = shared.fleet().get(id).cloned() else { return };
        if state_of(&row.machine) != kind.during() || row.operations.get(kind) != number {
            shared.metrics.ended(kind, "late");
            tracing::info!(machine = id, %kind, "an outcome came too late and is dropped");
            return;
        }
        let machine = outcome.applied(shared, &row.machine, kind);
        let Err(error) = shared.journal.commit(Change::of(machine.into(), row.operations)).await else {
            shared.metrics.ended(kind, if outcome.failure().is_none() { "ok" } else { "failed" });
            if let Some(reason) = outcome.failure() {
                tracing::warn!(machine = id, %kind, reason, "a machine has failed");
            }
            return;
        };
        drop(turn);
        if matches!(error, crate::store::StoreError::Closed | crate::store::StoreError::Diverged(_)) {
            return;
        }
        tracing::error!(machine = id, %kind, %error, "the end of a move could not be written; trying again");
        shared.options.clock.sleep(wait).await;
        wait = (wait * 2).min(RETRY.1);
    }
}
