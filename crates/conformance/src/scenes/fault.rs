//! A slot made to break, and its neighbours.

use bigfleet_proto::v1alpha1::Machine;

use crate::context::Context;
use crate::moves::{Kind, Shard, State, state_of};
use crate::supply::FAULT_LABEL;
use crate::verdict::{Ended, skipped};

/// How many machines beside the broken one are compared.
const NEIGHBOURS: usize = 50;

/// A Create that was meant to fail.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) id: String,
    /// The caller that asked for it; its last token was (1, 1).
    pub(crate) shard: Shard,
    /// Where it came to rest.
    pub(crate) machine: Machine,
    /// Settled machines beside it, before and after.
    pub(crate) neighbours: Vec<(Machine, Machine)>,
}

/// Creates a machine in a slot that is labelled to fail.
pub(crate) async fn play(context: &Context) -> Result<Fault, Ended> {
    let listed = context.list_all().await?.machines;
    let made_to_break =
        |machine: &&Machine| machine.labels.get(FAULT_LABEL).is_some_and(|value| value == "error");
    let slots: Vec<&Machine> = listed.iter().filter(made_to_break).collect();
    let Some(slot) = slots.iter().find(|slot| state_of(slot) == State::Speculative) else {
        return skipped(format!(
            "needs a SPECULATIVE slot with the label {FAULT_LABEL}=error; {} slots have it, none is SPECULATIVE",
            slots.len()
        ));
    };
    // Other checks may be using machines of their own: only those under nobody's hands can be compared.
    let mut leases = Vec::new();
    while leases.len() < NEIGHBOURS
        && let Some(lease) = context.run.supply.try_take_as_is(context).await?
    {
        leases.push(lease);
    }
    let shard = context.shard();
    context.plain(Kind::Create, &slot.id, &shard.next()).await?.accepted()?;
    let machine = context.settle(&slot.id).await?;
    let mut neighbours = Vec::new();
    for lease in leases {
        neighbours.push((lease.machine.clone(), context.get(&lease.id).await?));
    }
    Ok(Fault { id: slot.id.clone(), shard, machine, neighbours })
}
