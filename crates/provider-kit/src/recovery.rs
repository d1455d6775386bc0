//! The start: read what is stored, settle what a crash cut short, take in what is offered.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_proto::v1alpha1::Machine;
use thiserror::Error;

use crate::backend::{Backend, Failure, Recovery};
use crate::fence::MarkMove;
use crate::fleet::{Fleet, Operations, Row};
use crate::journal::{Change, RowChange};
use crate::offering::refreshed;
use crate::operation::{self, OperationKind, state_of};
use crate::record::{self, RecordError};
use crate::shared::Shared;
use crate::store::{Loaded, StoreError};

/// How many offerings one transaction takes in.
const CHUNK: usize = 4096;

/// Why a provider could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// State could not be read or written.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The provider did not say what it offers.
    #[error("the provider's offerings could not be read: {0}")]
    Offerings(Failure),
    /// An offering is no good.
    #[error("an offering is refused: {0}")]
    Offering(#[from] RecordError),
    /// Two offerings of one name.
    #[error("slot {0:?} is offered twice; every slot needs an id of its own")]
    Twice(String),
}

/// The fleet as it was stored. An empty one starts at a revision no cursor of an earlier store can exceed.
pub(crate) fn fleet_of(loaded: Loaded, now_unix_nanos: i64) -> Fleet {
    let mut fleet =
        Fleet::starting_at(if loaded.rows.is_empty() { now_unix_nanos.unsigned_abs() / 1000 } else { 0 });
    for row in loaded.rows {
        fleet.put(row);
    }
    let mut marks = loaded.marks;
    marks.sort_unstable_by_key(|(.., moved)| *moved);
    for (machine_id, shard_id, mark, _) in marks {
        let known = fleet.get(&machine_id).is_some();
        fleet.marks.put(&MarkMove { machine_id, shard_id, mark }, known);
    }
    fleet
}

/// Every move that was under way when the process died.
pub(crate) fn interrupted(shared: &Shared) -> Vec<(Row, OperationKind)> {
    let fleet = shared.fleet();
    let rows = fleet.rows_from(0);
    rows.filter_map(|(_, row)| Some((row.clone(), OperationKind::under_way_in(state_of(&row.machine))?)))
        .collect()
}

/// Settles every move that was under way when the process died. None is left in between.
pub(crate) async fn settle_interrupted<B: Backend>(backend: &B, shared: &Shared) -> Result<(), StoreError> {
    let mut rows = Vec::new();
    for (row, kind) in interrupted(shared) {
        let recovery = backend.recover(&row.machine, kind).await;
        tracing::warn!(machine = row.machine.id, %kind, ?recovery, "a move was cut short by a restart");
        let machine = settled(&shared.provider_name, &row.machine, kind, recovery);
        rows.push(RowChange { machine: machine.into(), operations: row.operations });
    }
    commit_in_chunks(shared, rows).await
}

/// The record after a move that was cut short, by what has become of it.
pub(crate) fn settled(provider: &str, machine: &Machine, kind: OperationKind, recovery: Recovery) -> Machine {
    match recovery {
        Recovery::Failed(reason) => operation::failed(machine, &reason),
        Recovery::Undone => operation::undone(machine, kind),
        Recovery::Ended(reference) if kind == OperationKind::Create => {
            if reference.is_empty() {
                return operation::failed(machine, "the provider restarted and has no name for the hardware");
            }
            operation::created(machine, provider, reference)
        }
        Recovery::Ended(_) => operation::ended(machine, kind),
    }
}

/// Takes in what is offered: new slots as they are, known ones with what else changed.
pub(crate) async fn take_offerings<B: Backend>(backend: &B, shared: &Shared) -> Result<(), StartError> {
    let mut seen = BTreeSet::new();
    let mut rows = Vec::new();
    for offering in backend.offerings().await.map_err(StartError::Offerings)? {
        let offered = offering.into_machine(&shared.provider_name);
        record::check(&offered)?;
        if !seen.insert(offered.id.clone()) {
            return Err(StartError::Twice(offered.id));
        }
        match shared.fleet().get(&offered.id) {
            None => rows.push(RowChange { machine: Arc::new(offered), operations: Operations::default() }),
            Some(_) if !backend.renews_offerings() => {}
            Some(row) => {
                let machine = refreshed(&row.machine, &offered);
                if machine != *row.machine {
                    rows.push(RowChange { machine: Arc::new(machine), operations: row.operations });
                }
            }
        }
    }
    Ok(commit_in_chunks(shared, rows).await?)
}

async fn commit_in_chunks(shared: &Shared, rows: Vec<RowChange>) -> Result<(), StoreError> {
    for chunk in rows.chunks(CHUNK) {
        shared.journal.commit(Change { mark: None, rows: chunk.to_vec() }).await?;
    }
    Ok(())
}
