//! One machine through its whole life, every record on the way kept.

use bigfleet_proto::v1alpha1::Machine;

use crate::calls::Ack;
use crate::context::Context;
use crate::moves::{CLUSTER, Kind, Order, State, metadata, state_name};
use crate::verdict::{Ended, failed};

/// A record and where it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) place: String,
    pub(crate) machine: Machine,
}

/// What a life looked like from outside.
#[derive(Debug)]
pub(crate) struct Life {
    /// All machines as listed before it began.
    pub(crate) inventory: Vec<Machine>,
    /// The records of the machine that lived, oldest first.
    pub(crate) seen: Vec<Seen>,
}

impl Life {
    /// The inventory and the life together.
    pub(crate) fn everything(&self) -> impl Iterator<Item = Seen> {
        let listed =
            self.inventory.iter().map(|machine| Seen { place: "List".into(), machine: machine.clone() });
        listed.chain(self.seen.iter().cloned())
    }
}

/// Create, Configure, Drain, Delete and Create again; without Delete, a second Configure and Drain instead.
pub(crate) async fn play(context: &Context) -> Result<Life, Ended> {
    let inventory = context.list_all().await?.machines;
    let deletes = context.deletes().await?;
    let lease = match context.take(State::Speculative).await {
        Ok(lease) => lease,
        Err(Ended::Skipped(_)) => context.take(State::Idle).await?,
        Err(error) => return Err(error),
    };
    let mut life =
        Life { inventory, seen: vec![Seen { place: "Get before".into(), machine: lease.machine.clone() }] };
    let notes = metadata([("note", "kept while bound")]);
    let bind = Order::noted(CLUSTER, notes);
    let plain = Order::plain;
    let mut orders = vec![bind.clone(), plain(Kind::Drain)];
    if lease.machine.state == State::Speculative as i32 {
        orders.insert(0, Order::Create);
    }
    orders.extend(if deletes { vec![Order::Delete, Order::Create] } else { vec![bind, plain(Kind::Drain)] });
    for order in orders {
        move_on(context, &mut life, &lease.id, &order).await?;
    }
    Ok(life)
}

async fn move_on(context: &Context, life: &mut Life, id: &str, order: &Order) -> Result<(), Ended> {
    let kind = order.kind();
    let Ack { machine, .. } = context.act(order, id, &context.token()).await?.accepted()?;
    life.seen.push(Seen { place: format!("ack of {kind}"), machine });
    let seen = |machine: &Machine| {
        life.seen.push(Seen { place: format!("Get after {kind}"), machine: machine.clone() });
    };
    let machine = context.settle_watched(id, seen).await?;
    if machine.state == kind.to() as i32 {
        return Ok(());
    }
    failed(format!("{kind} of {id:?} ends {}", state_name(kind.to())), format!("state {}", machine.state))
}
