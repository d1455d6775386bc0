//! Machines that go from one shard to another. The giver lets go, then the getter takes: at no step may two act.
//!
//! What a shard was told about a machine is above what its domains say. So whoever gets a domain is told first which of its
//! machines are somebody else's ([`exclude`]), and forgets that again when it lets go of the domain. A shard may refuse to
//! give what it holds; it cannot refuse to leave alone what it does not, nor to take what nobody else is left to have.
//!
//! Why nothing is ever in two hands: a transfer names one owner at every step, and an entry only changes its owner on that
//! owner's own word, or when that owner was removed, which is to say stopped. Whoever has the domain of a machine with an entry
//! was told to leave it alone before it was told to take the domain, and its orders come in order. A domain neither comes
//! to a shard nor is free of it before that shard has answered about each machine that it was asked to give. An entry is taken away only when nobody but the
//! domain's holder may think the machine his.

use std::collections::BTreeMap;

use crate::entry::{Entry, Order, Step, Tenure, Transfer};
use crate::error::Refusal;
use crate::fleet::{Fleet, Writes};
use crate::key::Key;
use crate::limits;
use crate::orders::{self, Outcome};

const NANOS_PER_SEC: i64 = 1_000_000_000;

/// A machine that a giver offers, with its value of the fleet's domain key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Which.
    pub machine: Box<str>,
    /// In which domain; empty if it has no such label.
    pub domain: Box<str>,
}

/// A giver offers machines of its own choice to a getter. All of them or none: one transaction.
pub fn transfer(
    fleet: &Fleet,
    offered: &[Offered],
    (from, to): (&str, &str),
    reason: &str,
    rest_secs: i64,
    now: i64,
) -> Result<Writes, Refusal> {
    let (field, count, most) = ("machine_ids", offered.len(), limits::MACHINES_PER_OFFER);
    if count > most {
        return Err(Refusal::TooMany { field, count, most });
    }
    if from == to {
        return Err(Refusal::Wrong { field: "to_shard_id", problem: "is the giver itself" });
    }
    for shard in [from, to] {
        match fleet.shard(shard) {
            None => {
                let remedy = "`bigfleet get shards` lists those there are";
                return Err(Refusal::Unknown { what: "shard", name: shard.into(), remedy });
            }
            Some(there) if there.is_leaving => return Err(Refusal::Leaving { shard: shard.into() }),
            Some(_) => {}
        }
    }
    limits::room("transfers", fleet.transfers().len() + count, limits::TRANSFERS)?;
    let (mut writes, mut machines) = (Writes::default(), Vec::with_capacity(count));
    for Offered { machine, domain } in offered {
        let (machine, mut domain) = (limits::name(field, machine)?, limits::name_or_any("domain", domain)?);
        let mut was_given = false;
        if let Some(earlier) = fleet.transfer(&machine) {
            let ago_secs = now.saturating_sub(earlier.since_unix_nanos) / NANOS_PER_SEC;
            match earlier.step {
                Step::Leaving | Step::Arriving => return Err(Refusal::Moving { machine }),
                Step::Arrived if *earlier.to != *from => {
                    return Err(Refusal::Wrong {
                        field,
                        problem: "names a machine that the giver has given away",
                    });
                }
                // What has just arrived stays: otherwise two short shards would push one machine to and fro.
                Step::Arrived if ago_secs < rest_secs => {
                    return Err(Refusal::Rests { machine, ago_secs, rest_secs });
                }
                // The giver need not own its domain, and then does not know it.
                Step::Arrived => (was_given, domain) = (true, earlier.domain.clone()),
            }
        }
        // Who is told to leave a machine alone is settled when its domain changes hands: not meanwhile.
        match fleet.tenure_of_value(&domain) {
            None | Some(Tenure::Held { .. }) => {}
            Some(Tenure::Arriving { .. } | Tenure::Leaving { .. }) => {
                return Err(Refusal::Moving { machine });
            }
        }
        let holder = fleet.holder_of_value(&domain);
        if !was_given && holder.is_some_and(|holder| *holder != *from) {
            return Err(Refusal::Wrong { field, problem: "names a machine in a domain of another shard" });
        }
        machines.push(machine.clone());
        writes.put(Entry::Transfer(Transfer {
            machine,
            domain,
            from: from.into(),
            to: to.into(),
            step: Step::Leaving,
            was_given,
            since_unix_nanos: now,
            reason: reason.into(),
        }));
    }
    tell(fleet, from, machines, (from, to), &mut writes);
    Ok(writes)
}

/// Tells a shard about machines: to let go of them, or to take them.
fn tell(fleet: &Fleet, whom: &str, machines: Vec<Box<str>>, (from, to): (&str, &str), writes: &mut Writes) {
    if !machines.is_empty() {
        orders::order(fleet, whom, Order::Transfer { machines, from: from.into(), to: to.into() }, writes);
    }
}

/// A shard has answered an order about machines.
pub(crate) fn answered(
    fleet: &Fleet,
    machines: &[Box<str>],
    (from, to): (&str, &str),
    (shard, outcome): (&str, Outcome),
    now: i64,
    writes: &mut Writes,
) {
    let mut onward = Vec::new();
    for machine in machines {
        let present = fleet.transfer(machine).filter(|present| *present.from == *from && *present.to == *to);
        let Some(present) = present else { continue };
        let put = |step, from: &str, to: &str| {
            let (from, to) = (from.into(), to.into());
            Entry::Transfer(Transfer { step, from, to, since_unix_nanos: now, ..present.clone() })
        };
        match (present.step, outcome) {
            (Step::Leaving, Outcome::Accepted) if shard == from => {
                writes.put(put(Step::Arriving, from, to));
                onward.push(machine.clone());
            }
            // The giver needs it after all, or has lost it: as if nothing had been said.
            (Step::Leaving, Outcome::Refused) if shard == from => {
                if present.was_given {
                    writes.put(put(Step::Arrived, from, from));
                } else {
                    fall_back(fleet, present, now, writes);
                }
            }
            (Step::Arriving, Outcome::Accepted) if shard == to => writes.put(put(Step::Arrived, from, to)),
            // Nobody else is left to have it: `retry` tells the getter again.
            _ => {}
        }
    }
    tell(fleet, to, onward, (from, to), writes);
}

/// A machine that was not given stays with whoever has its domain. If that is not the giver any more, the new holder was told
/// to leave it alone, and is told to take it.
fn fall_back(fleet: &Fleet, transfer: &Transfer, now: i64, writes: &mut Writes) {
    match fleet.holder_of_value(&transfer.domain) {
        Some(holder) if *holder != *transfer.from => own(fleet, transfer, holder, now, writes),
        _ => writes.delete(Key::Transfer(transfer.machine.clone())),
    }
}

/// A machine that nobody acts on is a shard's from now on: given by itself to itself, so that nothing names anybody else.
fn own(fleet: &Fleet, transfer: &Transfer, shard: &str, now: i64, writes: &mut Writes) {
    let (from, to, step) = (shard.into(), shard.into(), Step::Arriving);
    let own = Transfer { from, to, step, since_unix_nanos: now, ..transfer.clone() };
    writes.put(Entry::Transfer(own));
    tell(fleet, shard, vec![transfer.machine.clone()], (shard, shard), writes);
}

/// Tells the shards that were to answer and have refused: what nobody holds must be taken by somebody.
pub(crate) fn retry(fleet: &Fleet, writes: &mut Writes) {
    let mut waiting: BTreeMap<(&str, &str, &str), Vec<Box<str>>> = BTreeMap::new();
    for transfer in fleet.transfers() {
        let whom = match transfer.step {
            Step::Leaving => &transfer.from,
            Step::Arriving => &transfer.to,
            Step::Arrived => continue,
        };
        let is_told = |machines: &[Box<str>], from: &str, to: &str| {
            *from == *transfer.from && *to == *transfer.to && machines.contains(&transfer.machine)
        };
        let is_ordered = fleet.instructions_of(whom).any(|pending| {
            matches!(&pending.order, Order::Transfer { machines, from, to } if is_told(machines, from, to))
        });
        if !is_ordered && fleet.shard(whom).is_some_and(|shard| !shard.is_leaving) {
            waiting.entry((whom, &transfer.from, &transfer.to)).or_default().push(transfer.machine.clone());
        }
    }
    for ((whom, from, to), machines) in waiting {
        for machines in machines.chunks(limits::MACHINES_PER_ORDER) {
            if !writes.have_room(2) {
                return;
            }
            tell(fleet, whom, machines.to_vec(), (from, to), writes);
        }
    }
}

/// A machine of a domain about which a shard has not answered yet whether it gives it. While there is one, the shard neither
/// gets the domain nor is free of it: with the domain it forgets what it gave, or takes what it gave for its own.
pub(crate) fn asked_of<'a>(fleet: &'a Fleet, domain: &str, shard: &str) -> Option<&'a Transfer> {
    let is_asked = |transfer: &&Transfer| {
        transfer.step == Step::Leaving && *transfer.domain == *domain && *transfer.from == *shard
    };
    fleet.transfers().find(is_asked)
}

/// A shard gets a domain: it is told first which machines in it are somebody else's.
pub(crate) fn exclude(fleet: &Fleet, domain: &str, shard: &str, writes: &mut Writes) {
    let mut others: BTreeMap<&str, Vec<Box<str>>> = BTreeMap::new();
    for transfer in fleet.transfers().filter(|transfer| *transfer.domain == *domain) {
        let holder = if transfer.step == Step::Leaving { &transfer.from } else { &transfer.to };
        if **holder != *shard {
            others.entry(holder).or_default().push(transfer.machine.clone());
        }
    }
    for (holder, machines) in others {
        for machines in machines.chunks(limits::MACHINES_PER_ORDER) {
            tell(fleet, shard, machines.to_vec(), (shard, holder), writes);
        }
    }
}

/// One of a transfer's two shards was removed. What that shard had falls to the holder of its domain; what nobody has just now
/// goes to the one of the two that is left; what the other has stays its own. From then on nothing names the removed shard.
pub(crate) fn orphan(fleet: &Fleet, transfer: &Transfer, gone: &str, now: i64, writes: &mut Writes) {
    let is_there = |shard: &str| *shard != *gone && fleet.shard(shard).is_some_and(|shard| !shard.is_leaving);
    let left = [&transfer.from, &transfer.to].into_iter().find(|shard| is_there(shard));
    let had = if transfer.step == Step::Leaving { &transfer.from } else { &transfer.to };
    let heir = match (transfer.step, left) {
        (Step::Arrived, Some(left)) if left == had => {
            let (from, to) = (left.clone(), left.clone());
            writes.put(Entry::Transfer(Transfer { from, to, ..transfer.clone() }));
            return;
        }
        (Step::Arriving, Some(left)) => Some(&**left),
        (Step::Leaving, Some(left)) if left == had => Some(&**left),
        _ => fleet.holder_of_value(&transfer.domain).filter(|holder| is_there(holder)),
    };
    match heir {
        Some(heir) => own(fleet, transfer, heir, now, writes),
        // Nobody's, until its domain is somebody's.
        None => writes.delete(Key::Transfer(transfer.machine.clone())),
    }
}
