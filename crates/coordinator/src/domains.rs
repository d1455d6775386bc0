//! Who owns which topology domain, and how one changes hands.
//!
//! A domain is held by one shard at most at any instant. To move it, its holder is told to let go; it answers when it has
//! stopped acting there and nothing of its own is under way; only then is the next one told to take it. A holder that
//! cannot be reached keeps its domain: nobody knows whether it still acts. An admin who knows removes the shard.
//!
//! All domains of a fleet have one key. A rack inside a zone that belongs to somebody else would make every shard depend
//! on the assignments of all others; with one key, a machine's label value names its owner.

use crate::entry::{Domain, Entry, Order, Shard, Tenure};
use crate::error::Refusal;
use crate::fleet::{Fleet, Writes};
use crate::key::Key;
use crate::limits;
use crate::{orders, transfers};

/// An admin gives a domain to a shard.
///
/// A domain that its holder is about to let go is promised: it moves when the holder says so. Giving it back to a holder
/// that was told to let go is letting go first: the order is out.
pub fn assign(fleet: &Fleet, key: &str, value: &str, shard: &str, now: i64) -> Result<Writes, Refusal> {
    let key = limits::name("topology_key", key)?;
    let value = limits::name("topology_value", value)?;
    let shard = limits::name("shard_id", shard)?;
    match fleet.shard(&shard) {
        None => {
            let remedy = "a shard is known from its first report on; `bigfleet get shards` lists them";
            return Err(Refusal::Unknown { what: "shard", name: shard, remedy });
        }
        Some(there) if there.is_leaving => return Err(Refusal::Leaving { shard }),
        Some(_) => {}
    }
    if let Some(other) = fleet.domains().next().filter(|other| other.key != key) {
        return Err(Refusal::OtherKey { key, in_use: other.key.clone() });
    }
    let mut writes = Writes::default();
    match fleet.domain(&key, &value) {
        None => {
            limits::room("domains", fleet.domains().len(), limits::DOMAINS)?;
            if let Some(asked) = transfers::asked_of(fleet, &value, &shard) {
                return Err(Refusal::Moving { machine: asked.machine.clone() });
            }
            hand(fleet, &key, &value, &shard, now, &mut writes);
        }
        Some(domain) => match &domain.tenure {
            Tenure::Arriving { by } | Tenure::Held { by } if *by == shard => {}
            Tenure::Arriving { by } | Tenure::Held { by } => {
                return Err(Refusal::Owned { key, value, owner: by.clone() });
            }
            Tenure::Leaving { next: Some(next), .. } if *next != shard => {
                return Err(Refusal::Owned { key, value, owner: next.clone() });
            }
            Tenure::Leaving { by, .. } => {
                let tenure = Tenure::Leaving { by: by.clone(), next: Some(shard) };
                writes.put(Entry::Domain(Domain { tenure, ..domain.clone() }));
            }
        },
    }
    Ok(writes)
}

/// An admin takes a domain from its shard. One that nobody holds is fine as it is.
pub fn unassign(fleet: &Fleet, key: &str, value: &str, now: i64) -> Result<Writes, Refusal> {
    let key = limits::name("topology_key", key)?;
    let value = limits::name("topology_value", value)?;
    let mut writes = Writes::default();
    let Some(domain) = fleet.domain(&key, &value) else { return Ok(writes) };
    let by: Box<str> = domain.tenure.holder().into();
    let is_told = matches!(domain.tenure, Tenure::Leaving { .. });
    let tenure = Tenure::Leaving { by: by.clone(), next: None };
    if domain.tenure != tenure {
        writes.put(Entry::Domain(Domain { tenure, since_unix_nanos: now, ..domain.clone() }));
    }
    if !is_told {
        orders::cancel(
            fleet,
            &by,
            &Order::AssignDomain { key: key.clone(), value: value.clone() },
            &mut writes,
        );
        orders::order(fleet, &by, Order::UnassignDomain { key, value }, &mut writes);
    }
    Ok(writes)
}

/// The holder of a domain has let go of it, or is gone: the next one has it, or nobody.
pub(crate) fn let_go(fleet: &Fleet, domain: &Domain, now: i64, writes: &mut Writes) {
    let next = match &domain.tenure {
        Tenure::Arriving { .. } | Tenure::Held { .. } => None,
        Tenure::Leaving { next, .. } => next.as_deref(),
    };
    // A next one that is just giving one of its machines away gets it when an admin says so again.
    let is_clear =
        |next: &&Shard| !next.is_leaving && transfers::asked_of(fleet, &domain.value, &next.id).is_none();
    match next.and_then(|next| fleet.shard(next)).filter(is_clear) {
        Some(next) => hand(fleet, &domain.key, &domain.value, &next.id, now, writes),
        None => writes.delete(Key::Domain(domain.key.clone(), domain.value.clone())),
    }
}

/// A shard says that it has taken a domain, which it may have been told to leave again since.
pub(crate) fn taken(domain: &Domain, shard: &str, now: i64, writes: &mut Writes) {
    if domain.tenure == (Tenure::Arriving { by: shard.into() }) {
        let tenure = Tenure::Held { by: shard.into() };
        writes.put(Entry::Domain(Domain { tenure, since_unix_nanos: now, ..domain.clone() }));
    }
}

/// A free domain is given to a shard.
fn hand(fleet: &Fleet, key: &str, value: &str, shard: &str, now: i64, writes: &mut Writes) {
    let tenure = Tenure::Arriving { by: shard.into() };
    let domain = Domain { key: key.into(), value: value.into(), tenure, since_unix_nanos: now };
    writes.put(Entry::Domain(domain));
    transfers::exclude(fleet, value, shard, writes);
    orders::order(fleet, shard, Order::AssignDomain { key: key.into(), value: value.into() }, writes);
}
