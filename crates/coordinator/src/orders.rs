//! Instructions: given once, told with every answer until the shard has said what became of them.

use crate::entry::{Domain, Entry, Instruction, Order, Sequence, Tenure};
use crate::fleet::{Fleet, Write, Writes};
use crate::key::Key;
use crate::limits;
use crate::{domains, transfers};

/// What became of an instruction. Any answer ends its being told (wire); what it was for may then need another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Accepted,
    /// It was not.
    Refused,
}

/// What a shard is told with the answer to its report, oldest first.
pub fn pending<'a>(fleet: &'a Fleet, shard: &'a str) -> impl Iterator<Item = &'a Instruction> {
    fleet.instructions_of(shard).take(limits::INSTRUCTIONS_PER_ANSWER)
}

/// A shard says what became of an instruction. One that is not pending was answered before, or never given.
pub fn acknowledge(fleet: &Fleet, shard: &str, id: &str, outcome: Outcome, now: i64) -> Writes {
    let mut writes = Writes::default();
    let number = id.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
    let pending = number.and_then(|number| fleet.instruction(shard, number));
    let Some(instruction) = pending.filter(|pending| pending.id() == id) else { return writes };
    writes.delete(Key::Instruction(instruction.shard.clone(), instruction.number));
    match (&instruction.order, outcome) {
        (Order::UnassignDomain { key, value }, Outcome::Accepted) => {
            // Only the holder's word frees a domain, and only if it still is the holder.
            let domain = fleet.domain(key, value);
            let left = domain
                .filter(|domain| matches!(&domain.tenure, Tenure::Leaving { by, .. } if **by == *shard));
            // Nor while an answer about one of its machines is missing: `retry` asks again.
            let is_clear = |domain: &&Domain| {
                let next = match &domain.tenure {
                    Tenure::Leaving { next, .. } => next.as_deref(),
                    Tenure::Arriving { .. } | Tenure::Held { .. } => None,
                };
                let whom = [Some(shard), next];
                whom.iter().flatten().all(|shard| transfers::asked_of(fleet, &domain.value, shard).is_none())
            };
            if let Some(domain) = left.filter(is_clear) {
                domains::let_go(fleet, domain, now, &mut writes);
            }
        }
        (Order::AssignDomain { key, value }, Outcome::Accepted) => {
            if let Some(domain) = fleet.domain(key, value) {
                domains::taken(domain, shard, now, &mut writes);
            }
        }
        (Order::Transfer { machines, from, to }, outcome) => {
            // The same may have been ordered again since, of a later transfer: then this answer is about the earlier one.
            let is_asked_again = |machine: &str| {
                fleet.instructions_of(shard).any(|later| {
                    later.number > instruction.number
                        && matches!(&later.order, Order::Transfer { machines, from: giver, to: getter }
                            if giver == from && getter == to && machines.iter().any(|one| **one == *machine))
                })
            };
            let machines: Vec<_> =
                machines.iter().filter(|machine| !is_asked_again(machine)).cloned().collect();
            transfers::answered(fleet, &machines, (from, to), (shard, outcome), now, &mut writes);
        }
        // A shard that would not take or leave a domain is asked again by `retry`.
        (Order::AssignDomain { .. } | Order::UnassignDomain { .. }, Outcome::Refused) => {}
    }
    writes
}

/// Orders again what a shard has refused: a domain or a machine it should take or let go. Called now and then, so a shard
/// that refuses is not asked more often than that. Returns what was ordered, a transaction at most.
pub fn retry(fleet: &Fleet) -> Writes {
    let mut writes = Writes::default();
    for domain in fleet.domains() {
        if !writes.have_room(2) {
            break;
        }
        let (key, value) = (domain.key.clone(), domain.value.clone());
        let (by, again) = match &domain.tenure {
            Tenure::Arriving { by } => (by, Order::AssignDomain { key, value }),
            Tenure::Leaving { by, .. } => (by, Order::UnassignDomain { key, value }),
            Tenure::Held { .. } => continue,
        };
        if fleet.shard(by).is_some_and(|shard| !shard.is_leaving) && !fleet.is_ordered(by, &again) {
            order(fleet, by, again, &mut writes);
        }
    }
    transfers::retry(fleet, &mut writes);
    writes
}

/// Gives an order, with the next number.
pub(crate) fn order(fleet: &Fleet, shard: &str, order: Order, writes: &mut Writes) {
    let earlier = writes.as_slice().iter().find_map(|write| match write {
        Write::Put(Entry::Sequence(sequence)) => Some(sequence.last),
        _ => None,
    });
    let number = earlier.unwrap_or(fleet.sequence()) + 1;
    let instruction = Instruction { shard: shard.into(), number, term: fleet.term(), order };
    writes.put(Entry::Sequence(Sequence { last: number }));
    writes.put(Entry::Instruction(instruction));
}

/// Takes an order back that the shard may or may not have heard.
pub(crate) fn cancel(fleet: &Fleet, shard: &str, order: &Order, writes: &mut Writes) {
    for pending in fleet.instructions_of(shard).filter(|pending| pending.order == *order) {
        writes.delete(Key::Instruction(pending.shard.clone(), pending.number));
    }
}
