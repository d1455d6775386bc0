//! Machines that go from one shard to another. The giver lets go, then the getter takes: at no step may two act.
//!
//! What a shard was told about a machine is above what its domains say. So whoever gets a domain is told first which of its
//! machines are somebody else's ([`exclude`]), and forgets that again when it lets go of the domain. A shard may refuse to
//! give what it holds; it cannot refuse to leave alone what it does not.

use std::collections::BTreeMap;

use crate::entry::{Entry, Order, Step, Transfer};
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
        let (machine, domain) = (limits::name(field, machine)?, limits::name_or_any("domain", domain)?);
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
                Step::Arrived => was_given = true,
            }
        }
        machines.push(machine.clone());
        writes.put(Entry::Transfer(Transfer {
            machine,
            domain,
            from: from.into(),
            to: to.into(),
            step: Step::Leaving,
            was_given,
            is_return: false,
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
    let (mut onward, mut back) = (Vec::new(), Vec::new());
    for machine in machines {
        let present = fleet.transfer(machine).filter(|present| *present.from == *from && *present.to == *to);
        let Some(present) = present else { continue };
        let put = |step, from: &str, to: &str| {
            let (from, to) = (from.into(), to.into());
            Entry::Transfer(Transfer { step, from, to, since_unix_nanos: now, ..present.clone() })
        };
        match (present.step, outcome) {
            // Told to keep it.
            (Step::Leaving, Outcome::Accepted) if from == to => writes.put(put(Step::Arrived, from, to)),
            (Step::Leaving, Outcome::Accepted) if shard == from => {
                writes.put(put(Step::Arriving, from, to));
                onward.push(machine.clone());
            }
            // The giver needs it after all, or has lost it: as if nothing had been said.
            (Step::Leaving, Outcome::Refused) if shard == from && from != to => {
                if present.was_given {
                    writes.put(put(Step::Arrived, from, from));
                } else {
                    fall_back(fleet, present, now, writes);
                }
            }
            (Step::Arriving, Outcome::Accepted) if shard == to => writes.put(put(Step::Arrived, from, to)),
            // It was its own, and it has noted that it is not: `retry` tells it again.
            (Step::Arriving, Outcome::Refused) if present.is_return => {}
            // The getter cannot use it as a gift, and has its domain by now: then it is its own without one. To give it back
            // would be to take what the getter may act on.
            (Step::Arriving, Outcome::Refused)
                if shard == to && fleet.holder_of_value(&present.domain) == Some(to) =>
            {
                own(fleet, present, to, now, writes);
            }
            // The getter cannot use it. It goes back; the giver is told until it takes what was its own.
            (Step::Arriving, Outcome::Refused) if shard == to && from != to => {
                let (from, to) = (to.into(), from.into());
                let back_to =
                    Transfer { from, to, is_return: true, since_unix_nanos: now, ..present.clone() };
                writes.put(Entry::Transfer(back_to));
                back.push(machine.clone());
            }
            _ => {}
        }
    }
    tell(fleet, to, onward, (from, to), writes);
    tell(fleet, from, back, (to, from), writes);
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
    let own = Transfer { from, to, step, is_return: true, since_unix_nanos: now, ..transfer.clone() };
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

/// One of a transfer's two shards was removed. What that shard had falls back to the owner of its domain; what the other
/// has stays its own.
pub(crate) fn orphan(fleet: &Fleet, transfer: &Transfer, gone: &str, now: i64, writes: &mut Writes) {
    let is_there = |shard: &&str| fleet.shard(shard).is_some_and(|shard| !shard.is_leaving);
    let other = if *transfer.from == *gone { &*transfer.to } else { &*transfer.from };
    let keeps = match transfer.step {
        Step::Leaving => *transfer.from != *gone,
        Step::Arrived => *transfer.to != *gone,
        // Nobody's just now: the one that lives gets it.
        Step::Arriving => true,
    };
    // One that was given by itself to itself has no other.
    let keeps = keeps && *other != *gone;
    let heir = if keeps { Some(other) } else { fleet.holder_of_value(&transfer.domain) };
    let Some(heir) = heir.filter(is_there) else {
        // Nobody's, until its domain is somebody's.
        writes.delete(Key::Transfer(transfer.machine.clone()));
        return;
    };
    // Given by itself to itself: nothing names the removed shard any more, and an heir that has let go already is told to
    // take back, after whatever it was told before.
    let has_it = keeps && transfer.step == Step::Arrived;
    let step = match transfer.step {
        Step::Arrived if !keeps => Step::Arriving,
        step => step,
    };
    let (from, to) = (heir.into(), heir.into());
    let heirs = Transfer { from, to, step, is_return: true, since_unix_nanos: now, ..transfer.clone() };
    writes.put(Entry::Transfer(heirs));
    if !has_it {
        tell(fleet, heir, vec![transfer.machine.clone()], (heir, heir), writes);
    }
}
