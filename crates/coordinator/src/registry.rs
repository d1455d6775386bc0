//! Which shards there are. The first report of a shard registers it; an admin removes it.

use crate::entry::{Entry, Shard};
use crate::error::Refusal;
use crate::fleet::{Fleet, Writes};
use crate::key::Key;
use crate::limits;

/// A shard reports: if nobody knows it, it is registered with the address it says. A known shard keeps its address (wire).
pub fn register(fleet: &Fleet, id: &str, address: &str, now: i64) -> Result<Writes, Refusal> {
    let id = limits::name("shard_id", id)?;
    let mut writes = Writes::default();
    match fleet.shard(&id) {
        Some(shard) if shard.is_leaving => return Err(Refusal::Leaving { shard: id }),
        Some(_) => {}
        None => {
            limits::room("shards", fleet.shards().len(), limits::SHARDS)?;
            // A shard that nobody dials may be without an address.
            let address =
                if address.is_empty() { "".into() } else { limits::address("shard_address", address)? };
            writes.put(Entry::Shard(Shard { id, address, registered_unix_nanos: now, is_leaving: false }));
        }
    }
    Ok(writes)
}

/// An admin says that a shard is gone for good: what it owned is nobody's from now on.
///
/// Only a shard that has stopped may be removed: one that lives would go on acting on its domains until it hears of it.
/// A hundred thousand domains do not fit into one transaction, so the shard is marked first, which is all that others look
/// at, and [`sweep`] does the rest.
pub fn remove(fleet: &Fleet, id: &str) -> Result<Writes, Refusal> {
    let id = limits::name("shard_id", id)?;
    let Some(shard) = fleet.shard(&id) else {
        let remedy = "`bigfleet get shards` lists those there are";
        return Err(Refusal::Unknown { what: "shard", name: id, remedy });
    };
    let mut writes = Writes::default();
    if !shard.is_leaving {
        writes.put(Entry::Shard(Shard { is_leaving: true, ..shard.clone() }));
    }
    Ok(writes)
}

/// Clears up behind removed shards, a transaction at a time; empty when there is nothing left.
pub fn sweep(fleet: &Fleet, now: i64) -> Writes {
    let mut writes = Writes::default();
    for shard in fleet.shards().filter(|shard| shard.is_leaving) {
        // Machines first: whom they fall to depends on who holds their domains, and those must not change meanwhile.
        for transfer in
            fleet.transfers().filter(|transfer| transfer.from == shard.id || transfer.to == shard.id)
        {
            if !writes.have_room(4) {
                return writes;
            }
            crate::transfers::orphan(fleet, transfer, &shard.id, now, &mut writes);
        }
        if !writes.is_empty() {
            return writes;
        }
        for domain in fleet.domains_of(&shard.id) {
            // Taking over from a holder that is gone takes two writes, an order and its number.
            if !writes.have_room(4) {
                return writes;
            }
            crate::domains::let_go(fleet, domain, now, &mut writes);
        }
        let orders =
            fleet.instructions_of(&shard.id).map(|order| Key::Instruction(shard.id.clone(), order.number));
        let quotas = fleet.quotas_of(&shard.id).map(crate::entry::Quota::key);
        let clusters = fleet.clusters_of(&shard.id).map(|cluster| Key::Cluster(cluster.into()));
        for key in orders.chain(quotas).chain(clusters) {
            if !writes.have_room(1) {
                return writes;
            }
            writes.delete(key);
        }
        // Nothing is left that names it. Had something been left for the next round, we would have returned.
        if writes.is_empty() {
            writes.delete(Key::Shard(shard.id.clone()));
            return writes;
        }
    }
    writes
}
