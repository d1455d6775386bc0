//! A crash in the middle of work: everything worth remembering is put in place, four moves are started, and
//! the provider is restarted.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::Machine;
use tokio::task::JoinSet;

use crate::calls::Ack;
use crate::context::Context;
use crate::moves::{CLUSTER, Kind, Order, Shard, State, metadata};
use crate::verdict::{Ended, skipped};

/// A machine at rest before the crash, with the operation that brought it there.
#[derive(Debug)]
pub(crate) struct Rested {
    pub(crate) id: String,
    pub(crate) operation_id: String,
    pub(crate) before: Machine,
    /// The caller that moved it; its last token on the machine was (3, 7).
    pub(crate) shard: Shard,
}

/// What was known before the crash, and the inventory after it.
#[derive(Debug)]
pub(crate) struct Crash {
    pub(crate) created: Rested,
    pub(crate) bound: Rested,
    pub(crate) drained: Rested,
    /// A caller whose token (5, 5) was let through to a move that was then refused, on `bound`.
    pub(crate) refused: Shard,
    /// A caller whose token (5, 5) named a machine that does not exist.
    pub(crate) nowhere: (Shard, String),
    /// Callers whose moves were acknowledged just before the crash with token (1, 1).
    pub(crate) in_flight: BTreeMap<Kind, (String, Shard)>,
    pub(crate) operations: Vec<String>,
    pub(crate) before: BTreeMap<String, Machine>,
    pub(crate) cursor: Vec<u8>,
    pub(crate) after: BTreeMap<String, Machine>,
}

/// Sets everything up, crashes the provider and looks around.
pub(crate) async fn play(context: &Context) -> Result<Crash, Ended> {
    if !context.run.config.restart.is_possible() {
        return skipped("no restart command was given (--restart-command)");
    }
    let deletes = context.deletes().await?;
    let mut operations = Vec::new();
    let created = rest(context, Kind::Create, &mut operations).await?;
    let bound = rest(context, Kind::Configure, &mut operations).await?;
    let drained = rest(context, Kind::Drain, &mut operations).await?;
    let refused = context.shard();
    let _ = context.plain(Kind::Create, &bound.id, &refused.at(5, 5)).await?;
    let nowhere = (context.shard(), context.unheard("machine"));
    let _ = context.plain(Kind::Create, &nowhere.1, &nowhere.0.at(5, 5)).await?;

    let mut in_flight = BTreeMap::new();
    for kind in Kind::ALL.into_iter().filter(|kind| deletes || *kind != Kind::Delete) {
        let id = context.take(kind.from()).await?.keep();
        in_flight.insert(kind, (id, context.shard()));
    }
    let listed = context.list_all().await?;
    // All at once: the first should still be under way when the last is acknowledged.
    let mut moves = JoinSet::new();
    for (kind, (id, shard)) in &in_flight {
        let (context, kind, id, token) = (context.clone(), *kind, id.clone(), shard.next());
        moves.spawn(async move { context.plain(kind, &id, &token).await?.accepted() });
    }
    while let Some(joined) = moves.join_next().await {
        operations.push(joined.expect("a call does not panic")?.operation_id);
    }
    context.restart().await?;
    let after = by_id(context.list_all().await?.machines);
    let (before, cursor) = (by_id(listed.machines), listed.revision);
    Ok(Crash { created, bound, drained, refused, nowhere, in_flight, operations, before, cursor, after })
}

/// A machine that has made this move and stands still.
async fn rest(context: &Context, kind: Kind, operations: &mut Vec<String>) -> Result<Rested, Ended> {
    let start = match context.take(kind.from()).await {
        // Without free slots there is still the machine that others have created.
        Err(Ended::Skipped(reason)) => return skipped(reason),
        other => other?,
    };
    let shard = context.shard();
    let order = match kind {
        Kind::Configure => {
            Order::noted(CLUSTER, metadata([("nul", "a\0b"), ("empty", ""), ("note", "kept")]))
        }
        other => Order::plain(other),
    };
    let Ack { operation_id, .. } = context.act(&order, &start.id, &shard.at(3, 7)).await?.accepted()?;
    operations.push(operation_id.clone());
    let before = context.reach(&start.id, kind.to()).await?;
    Ok(Rested { id: start.keep(), operation_id, before, shard })
}

fn by_id(machines: Vec<Machine>) -> BTreeMap<String, Machine> {
    machines.into_iter().map(|machine| (machine.id.clone(), machine)).collect()
}

/// States in which a move that was cut off may come to rest.
pub(crate) fn rests(kind: Kind) -> [State; 3] {
    [kind.from(), kind.to(), State::Failed]
}
