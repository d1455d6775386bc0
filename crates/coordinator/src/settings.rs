//! What admins set: quotas, providers, bindings of clusters. Repeating a call changes nothing.

use crate::entry::{Cluster, Entry, Provider, Quota};
use crate::error::Refusal;
use crate::fleet::{Fleet, Writes};
use crate::key::Key;
use crate::limits;

/// The capacity types that a quota can name.
const CAPACITY_TYPES: [&str; 4] = ["bare_metal", "reserved", "on_demand", "spot"];

/// Bounds how many machines of a kind a shard may hold; without a number the bound is lifted.
///
/// A supply quota, not a tenant's: it divides a provider's stock among shards. The shard need not have reported yet, so
/// that a fleet can be laid out before it runs.
pub fn set_quota(fleet: &Fleet, kind: &Quota, machines: Option<u32>) -> Result<Writes, Refusal> {
    let quota = Quota {
        shard: limits::name("shard_id", &kind.shard)?,
        provider: limits::name("provider", &kind.provider)?,
        instance_type: limits::name_or_any("instance_type", &kind.instance_type)?,
        zone: limits::name_or_any("zone", &kind.zone)?,
        capacity_type: limits::name_or_any("capacity_type", &kind.capacity_type)?,
        machines: machines.unwrap_or_default(),
    };
    if !quota.capacity_type.is_empty() && !CAPACITY_TYPES.contains(&&*quota.capacity_type) {
        let problem = "is none of bare_metal, reserved, on_demand, spot";
        return Err(Refusal::Wrong { field: "capacity_type", problem });
    }
    let (key, mut writes) = (quota.key(), Writes::default());
    let present = fleet.quota(&key);
    match machines {
        None if present.is_some() => writes.delete(key),
        Some(_) if present != Some(&quota) => {
            if present.is_none() {
                limits::room("quotas", fleet.quotas().len(), limits::QUOTAS)?;
            }
            writes.put(Entry::Quota(quota));
        }
        _ => {}
    }
    Ok(writes)
}

/// Adds a provider, or changes where it serves and who uses it.
pub fn set_provider(
    fleet: &Fleet,
    name: &str,
    address: &str,
    shards: &[Box<str>],
) -> Result<Writes, Refusal> {
    let mut checked = Vec::with_capacity(shards.len());
    for shard in shards {
        checked.push(limits::name("shard_ids", shard)?);
    }
    if checked.len() > limits::SHARDS {
        return Err(Refusal::TooMany { field: "shard_ids", count: checked.len(), most: limits::SHARDS });
    }
    checked.sort_unstable();
    checked.dedup();
    let provider = Provider {
        name: limits::name("provider", name)?,
        address: limits::address("address", address)?,
        shards: checked,
    };
    let mut writes = Writes::default();
    let present = fleet.provider(&provider.name);
    if present.is_none() {
        limits::room("providers", fleet.providers().len(), limits::PROVIDERS)?;
    }
    if present != Some(&provider) {
        writes.put(Entry::Provider(provider));
    }
    Ok(writes)
}

/// Removes a provider. One that is not there is fine.
pub fn remove_provider(fleet: &Fleet, name: &str) -> Result<Writes, Refusal> {
    let name = limits::name("provider", name)?;
    let mut writes = Writes::default();
    if fleet.provider(&name).is_some() {
        writes.delete(Key::Provider(name));
    }
    Ok(writes)
}

/// Binds a cluster to a shard: every other shard refuses it and names this one's address.
pub fn bind_cluster(fleet: &Fleet, id: &str, shard: &str) -> Result<Writes, Refusal> {
    let (id, shard) = (limits::name("cluster_id", id)?, limits::name("shard_id", shard)?);
    let mut writes = Writes::default();
    if fleet.shard(&shard).is_none_or(|shard| shard.is_leaving) {
        let remedy = "a shard is known from its first report on; `bigfleet get shards` lists them";
        return Err(Refusal::Unknown { what: "shard", name: shard, remedy });
    }
    let (present, wanted) = (fleet.cluster(&id), Cluster { id: id.clone(), shard });
    if present.is_none() {
        limits::room("clusters", fleet.clusters().len(), limits::CLUSTERS)?;
    }
    if present != Some(&wanted) {
        writes.put(Entry::Cluster(wanted));
    }
    Ok(writes)
}

/// Any shard may serve a cluster again. One that is not bound is fine.
pub fn unbind_cluster(fleet: &Fleet, id: &str) -> Result<Writes, Refusal> {
    let id = limits::name("cluster_id", id)?;
    let mut writes = Writes::default();
    if fleet.cluster(&id).is_some() {
        writes.delete(Key::Cluster(id));
    }
    Ok(writes)
}
