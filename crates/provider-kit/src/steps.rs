//! The seven steps every move goes through, in the order the wire fixes:
//!
//! 1. the call names a machine;
//! 2. the provider can do this at all;
//! 3. the fence lets the caller pass, and its mark moves, whatever happens next;
//! 4. the machine exists;
//! 5. if this very move was made or is under way, the first answer is given again;
//! 6. the machine stands where the move may start;
//! 7. the move begins: a new operation, the transitional state, on disk, and only then the answer.
//!
//! From 3 on the machine has its turn: sixteen equal calls at once are one operation and fifteen repeats.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_proto::v1alpha1::{Machine, TransitionAck};

use crate::fence::{MarkMove, Token};
use crate::fleet::Row;
use crate::journal::{Change, RowChange};
use crate::operation::{self, OperationKind, state_of};
use crate::record::ID_LIMIT_BYTES;
use crate::refusal::{METADATA_LIMIT_BYTES, Refusal};
use crate::shared::Shared;

/// One of the four calls, whichever message it came in.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) machine_id: String,
    pub(crate) token: Option<Token>,
    pub(crate) order: Order,
}

/// What is to be done, with what it needs.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    Create,
    Configure { cluster_id: String, metadata: std::collections::BTreeMap<String, String>, bootstrap: Vec<u8> },
    Drain { grace: Duration },
    Delete,
}

impl Order {
    pub(crate) fn kind(&self) -> OperationKind {
        match self {
            Self::Create => OperationKind::Create,
            Self::Configure { .. } => OperationKind::Configure,
            Self::Drain { .. } => OperationKind::Drain,
            Self::Delete => OperationKind::Delete,
        }
    }
}

/// How a call was answered.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// The answer to the first such call, again.
    Repeated(TransitionAck),
    /// A move has begun and its work must now be done.
    Begun { ack: TransitionAck, machine: Arc<Machine>, number: u64 },
}

/// Takes a call through the steps.
pub(crate) async fn run(shared: &Shared, supports_delete: bool, call: &Call) -> Result<Accepted, Refusal> {
    names_a_machine(call)?;
    is_supported(call, supports_delete)?;
    let _turn = shared.turns.take(&call.machine_id).await;
    let mark = passes_the_fence(shared, call)?;
    let row = shared.fleet().get(&call.machine_id).cloned();
    let decided = exists(row, call).and_then(|row| decide(shared, call, &row));
    let rows = match &decided {
        Ok(Decision::Begin { change, .. }) => vec![change.clone()],
        Ok(Decision::Repeat(_)) | Err(_) => Vec::new(),
    };
    shared.journal.commit(Change { mark, rows }).await?;
    Ok(match decided? {
        Decision::Repeat(ack) => Accepted::Repeated(*ack),
        Decision::Begin { change, number } => {
            let ack = acknowledge(shared, number, &change.machine);
            Accepted::Begun { ack, machine: change.machine, number }
        }
    })
}

/// Step 1. Texts too long to be kept are refused here as well, before they leave a trace.
fn names_a_machine(call: &Call) -> Result<(), Refusal> {
    if call.machine_id.is_empty() {
        return Err(Refusal::NoMachineId);
    }
    let shard_id = call.token.as_ref().map_or("", |token| &token.shard_id);
    let cluster_id = if let Order::Configure { cluster_id, .. } = &call.order { cluster_id } else { "" };
    let texts =
        [("machine id", call.machine_id.as_str()), ("shard id", shard_id), ("cluster id", cluster_id)];
    if let Some((field, text)) = texts.into_iter().find(|(_, text)| text.len() > ID_LIMIT_BYTES) {
        return Err(Refusal::IdTooLong { field, bytes: text.len() });
    }
    if let Order::Configure { metadata, .. } = &call.order {
        let bytes = metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > METADATA_LIMIT_BYTES {
            return Err(Refusal::MetadataTooLarge { bytes });
        }
    }
    Ok(())
}

/// Step 2.
fn is_supported(call: &Call, supports_delete: bool) -> Result<(), Refusal> {
    if call.order.kind() == OperationKind::Delete && !supports_delete {
        return Err(Refusal::DeleteUnsupported);
    }
    Ok(())
}

/// Step 3. The move of the mark is part of whatever is committed for this call, also of a refusal.
fn passes_the_fence(shared: &Shared, call: &Call) -> Result<Option<MarkMove>, Refusal> {
    let Some(token) = &call.token else { return Ok(None) };
    let mark = shared.fleet().mark(&call.machine_id, &token.shard_id);
    match mark {
        Some(mark) if !token.passes(Some(mark)) => Err(Refusal::Fenced {
            shard_id: token.shard_id.clone(),
            machine_id: call.machine_id.clone(),
            token: token.mark,
            mark,
        }),
        _ => Ok(Some(MarkMove {
            machine_id: call.machine_id.clone(),
            shard_id: token.shard_id.clone(),
            mark: token.mark,
        })),
    }
}

/// Step 4, after the fence: a superseded caller learns nothing, not even what exists.
fn exists(row: Option<Row>, call: &Call) -> Result<Row, Refusal> {
    row.ok_or_else(|| Refusal::UnknownMachine(call.machine_id.clone()))
}

#[derive(Debug)]
enum Decision {
    Repeat(Box<TransitionAck>),
    Begin { change: RowChange, number: u64 },
}

fn decide(shared: &Shared, call: &Call, row: &Row) -> Result<Decision, Refusal> {
    if let Some(ack) = was_done(shared, call, row) {
        return Ok(Decision::Repeat(Box::new(ack)));
    }
    stands_right(call, row)?;
    begin(shared, call, row)
}

/// Step 5. The kind is the key, not the state it leads to: Create and Drain both lead to Idle. What else
/// the two calls asked for is not compared; the caller sees in the answer what holds.
fn was_done(shared: &Shared, call: &Call, row: &Row) -> Option<TransitionAck> {
    let kind = call.order.kind();
    let number = row.operations.get(kind)?;
    let state = state_of(&row.machine);
    (state == kind.during() || state == kind.to()).then(|| acknowledge(shared, number, &row.machine))
}

/// Step 6. Never answered with the code that means fenced.
fn stands_right(call: &Call, row: &Row) -> Result<(), Refusal> {
    let (kind, state) = (call.order.kind(), state_of(&row.machine));
    if state != kind.from() {
        return Err(Refusal::WrongPosition { id: call.machine_id.clone(), kind, state });
    }
    Ok(())
}

/// Step 7, up to the commit.
fn begin(shared: &Shared, call: &Call, row: &Row) -> Result<Decision, Refusal> {
    let limit = shared.options.max_transitions;
    if shared.stopping.load(std::sync::atomic::Ordering::SeqCst) {
        return Err(Refusal::Stopping);
    }
    if shared.under_way.count() >= limit {
        return Err(Refusal::TooBusy(limit));
    }
    let machine = match &call.order {
        Order::Configure { cluster_id, .. } if cluster_id.is_empty() => {
            return Err(Refusal::NoCluster(call.machine_id.clone()));
        }
        Order::Configure { cluster_id, metadata, .. } => operation::bound(&row.machine, cluster_id, metadata),
        Order::Create | Order::Drain { .. } | Order::Delete => {
            operation::begun(&row.machine, call.order.kind())
        }
    };
    let number = shared.mint_operation();
    let operations = row.operations.with(call.order.kind(), Some(number));
    Ok(Decision::Begin { change: RowChange { machine: machine.into(), operations }, number })
}

fn acknowledge(shared: &Shared, number: u64, machine: &Machine) -> TransitionAck {
    TransitionAck { operation_id: shared.operation_id(number), machine: Some(machine.clone()) }
}
