//! FIELD: the shape of a machine's record, in the whole inventory and through one life.

use std::collections::BTreeMap;

use bigfleet_model::quantity::Quantity;
use bigfleet_proto::v1alpha1::{CapacityType, Machine, Resources};

use crate::behaviour::checks;
use crate::context::Context;
use crate::moves::{State, has_host, state_name, state_of};
use crate::verdict::{Verdict, ensure, failed, skipped};

/// Says what is wrong with a record, if anything.
pub(super) type Rule = fn(&Machine) -> Option<String>;

checks! { Field:
    "FIELD-001" Core Beside "every machine has an id" => every(id): "no id is empty", "the machine cannot be named", "2 Machine.id";
    "FIELD-002" Core Beside "every state is a known one" => every(known_state):
        "no state is UNSPECIFIED or above FAILED", "the shard refuses the record", "2, 2.3";
    "FIELD-003" Core Beside "instance_type is set" => every(instance_type):
        "no instance_type is empty", "requirements on the instance type never match", "2 Machine.instance_type, 8";
    "FIELD-004" Core Beside "capacity_type is set" => every(capacity_type):
        "every capacity_type is one of the four", "spot and on-demand cannot be told apart", "2 Machine.capacity_type";
    "FIELD-005" Core Beside "zone is set wherever a host is" => every(zone):
        "a record with a host has a zone", "requirements on the zone never match", "9 edge 4";
    "FIELD-006" Core Beside "no host while SPECULATIVE" => every(no_host_speculative):
        "a SPECULATIVE record has no host", "the shard refuses the record", "2 Machine.host, 2.3";
    "FIELD-007" Core Beside "no host while CREATING" => every(no_host_creating):
        "a CREATING record has no host", "the shard refuses the record", "2 Machine.host, 2.3";
    "FIELD-008" Core Beside "a host from IDLE on" => every(host_set):
        "IDLE, CONFIGURING, CONFIGURED, DRAINING and DELETING records have a host",
        "the shard refuses the record", "2.1 details, 2.3";
    "FIELD-009" Core Beside "cluster is set while bound" => every(cluster_set):
        "CONFIGURING, CONFIGURED and DRAINING records have a cluster",
        "the shard refuses the record, or takes it for free", "2 Machine.cluster, 2.3";
    "FIELD-010" Core Beside "cluster is empty while not bound" => every(cluster_empty):
        "SPECULATIVE, CREATING, IDLE and DELETING records have no cluster",
        "a free machine looks bound", "2 Machine.cluster, 2.3";
    "FIELD-011" Core Beside "metadata lives as long as the cluster" => every(metadata_lifetime):
        "a record without a cluster has no metadata", "notes outlive what they are about", "2 Machine.shard_metadata";
    "FIELD-012" Core Beside "no label repeats a field" => every(labels):
        "none of the nine forbidden spellings of instance type, zone and capacity type is a label",
        "two truths about one machine", "8";
    "FIELD-013" Core Beside "resources are quantities" => every(resources):
        "every amount is a Kubernetes quantity and not negative", "the machine counts as having nothing", "2 Machine.resources";
    "FIELD-014" Core Beside "resources are given" => every(some_resources):
        "every record has at least one resource", "no need ever fits on the machine", "2 Machine.resources";
    "FIELD-015" Optional Beside "allocatable is quantities, no more than resources" => allocatable():
        "where allocatable is given, each amount is a quantity and not above the resource",
        "pods are promised what is not there", "2 Machine.allocatable";
    "FIELD-016" Core Beside "FAILED has a reason" => every(reason):
        "a FAILED record has a last_error", "operators search in the dark", "2 Machine.last_error, 2.3";
    "FIELD-017" Core Beside "the host stays the same while it lives" => host_stays():
        "from IDLE until it is deleted a machine has one host",
        "a node changes its hardware under its pods", "2.1 details";
    "FIELD-018" Core Beside "what a machine is stays the same" => kind_stays():
        "instance type, capacity type, resources and a zone once set do not change during a life",
        "a machine was chosen for what it no longer is", "2 Machine";
    "FIELD-019" Optional Beside "the host goes with Delete" => host_goes():
        "after Delete the slot has no host", "hardware that is gone looks alive", "2.1 details";
    "FIELD-020" Core Beside "no label has an empty key" => every(label_keys):
        "no label key is empty", "requirements on that label cannot be written", "2 Machine.labels";
    "FIELD-021" Core Beside "a host can be found" => every(host_parts):
        "a host has a reference, not only a provider", "nobody can find the hardware", "2 HostRef";
}

/// Holds every record of the inventory and of a life against a rule.
pub(super) async fn every(c: Context, rule: Rule) -> Verdict {
    for seen in c.life().await?.everything() {
        if let Some(wrong) = rule(&seen.machine) {
            let machine = &seen.machine;
            let record = format!(
                "machine {:?}, {}, seen in {}",
                machine.id,
                state_name(state_of(machine)),
                seen.place
            );
            return failed(format!("{record}: as the contract says"), wrong);
        }
    }
    Ok(())
}

fn wrong_if(wrong: bool, what: impl FnOnce() -> String) -> Option<String> {
    wrong.then(what)
}

fn id(m: &Machine) -> Option<String> {
    wrong_if(m.id.is_empty(), || "an empty id".into())
}

fn known_state(m: &Machine) -> Option<String> {
    wrong_if(state_of(m) == State::Unspecified, || format!("state {}", m.state))
}

fn instance_type(m: &Machine) -> Option<String> {
    wrong_if(m.instance_type.is_empty(), || "no instance_type".into())
}

fn capacity_type(m: &Machine) -> Option<String> {
    let known = CapacityType::try_from(m.capacity_type).is_ok_and(|known| known != CapacityType::Unspecified);
    wrong_if(!known, || format!("capacity_type {}", m.capacity_type))
}

fn zone(m: &Machine) -> Option<String> {
    wrong_if(has_host(m) && m.zone.is_empty(), || format!("a host, {:?}, and no zone", m.host))
}

fn no_host_speculative(m: &Machine) -> Option<String> {
    wrong_if(state_of(m) == State::Speculative && has_host(m), || format!("host {:?}", m.host))
}

fn no_host_creating(m: &Machine) -> Option<String> {
    wrong_if(state_of(m) == State::Creating && has_host(m), || format!("host {:?}", m.host))
}

fn host_set(m: &Machine) -> Option<String> {
    let needs = [State::Idle, State::Configuring, State::Configured, State::Draining, State::Deleting];
    wrong_if(needs.contains(&state_of(m)) && !has_host(m), || "no host".into())
}

fn cluster_set(m: &Machine) -> Option<String> {
    let bound = [State::Configuring, State::Configured, State::Draining].contains(&state_of(m));
    wrong_if(bound && m.cluster.is_empty(), || "no cluster".into())
}

fn cluster_empty(m: &Machine) -> Option<String> {
    let free = [State::Speculative, State::Creating, State::Idle, State::Deleting].contains(&state_of(m));
    wrong_if(free && !m.cluster.is_empty(), || format!("cluster {:?}", m.cluster))
}

fn metadata_lifetime(m: &Machine) -> Option<String> {
    wrong_if(m.cluster.is_empty() && !m.shard_metadata.is_empty(), || {
        format!("metadata {:?}", m.shard_metadata)
    })
}

fn labels(m: &Machine) -> Option<String> {
    const FORBIDDEN: [&str; 9] = [
        "instance-type",
        "instance_type",
        "instanceType",
        "zone",
        "availability-zone",
        "availability_zone",
        "capacity-type",
        "capacity_type",
        "capacityType",
    ];
    FORBIDDEN.into_iter().find(|key| m.labels.contains_key(*key)).map(|key| format!("label {key:?}"))
}

fn label_keys(m: &Machine) -> Option<String> {
    wrong_if(m.labels.contains_key(""), || "a label with an empty key".into())
}

fn host_parts(m: &Machine) -> Option<String> {
    let nameless = m.host.as_ref().is_some_and(|host| !host.provider.is_empty() && host.r#ref.is_empty());
    wrong_if(nameless, || format!("{:?}", m.host))
}

fn amounts(resources: Option<&Resources>) -> Result<BTreeMap<&str, f64>, String> {
    let mut amounts = BTreeMap::new();
    for (name, text) in resources.iter().flat_map(|resources| &resources.resources) {
        let amount = Quantity::parse(text).map_err(|error| format!("{name}: {text:?}: {error}"))?.to_f64();
        if name.is_empty() || amount < 0.0 {
            return Err(format!("{name:?}: {text:?}"));
        }
        amounts.insert(name.as_str(), amount);
    }
    Ok(amounts)
}

fn resources(m: &Machine) -> Option<String> {
    amounts(m.resources.as_ref()).err()
}

fn some_resources(m: &Machine) -> Option<String> {
    let none = m.resources.as_ref().is_none_or(|resources| resources.resources.is_empty());
    wrong_if(none, || "no resources".into())
}

fn reason(m: &Machine) -> Option<String> {
    wrong_if(state_of(m) == State::Failed && m.last_error.is_empty(), || "no last_error".into())
}

fn fits(m: &Machine) -> Option<String> {
    let allocatable = m.allocatable.as_ref()?;
    match (amounts(Some(allocatable)), amounts(m.resources.as_ref())) {
        (Ok(usable), Ok(whole)) => {
            let above =
                usable.iter().find(|(name, amount)| whole.get(*name).is_some_and(|whole| *amount > whole));
            above.map(|(name, amount)| format!("allocatable {name} {amount} above the resource"))
        }
        (Err(wrong), _) | (_, Err(wrong)) => Some(wrong),
    }
}

async fn allocatable(c: Context) -> Verdict {
    if !c.life().await?.everything().any(|seen| seen.machine.allocatable.is_some()) {
        return skipped("no machine has allocatable");
    }
    every(c, fits).await
}

async fn host_stays(c: Context) -> Verdict {
    let life = c.life().await?;
    let mut host = None;
    for seen in &life.seen {
        if !has_host(&seen.machine) {
            host = None;
            continue;
        }
        let first = host.get_or_insert_with(|| seen.machine.host.clone());
        ensure(*first == seen.machine.host, format!("{first:?}"), || {
            format!("{:?} in {}", seen.machine.host, seen.place)
        })?;
    }
    Ok(())
}

async fn kind_stays(c: Context) -> Verdict {
    let life = c.life().await?;
    let what = |m: &Machine| (m.instance_type.clone(), m.capacity_type, m.resources.clone());
    let first = what(&life.seen[0].machine);
    let mut zone = String::new();
    for seen in &life.seen {
        let now = what(&seen.machine);
        ensure(now == first, format!("{first:?}"), || format!("{now:?} in {}", seen.place))?;
        let moved = !zone.is_empty() && !seen.machine.zone.is_empty() && seen.machine.zone != zone;
        // A slot may be filled in another zone the next time.
        if moved && has_host(&seen.machine) {
            return failed(format!("zone {zone:?}"), format!("{:?} in {}", seen.machine.zone, seen.place));
        }
        zone = if has_host(&seen.machine) { seen.machine.zone.clone() } else { String::new() };
    }
    Ok(())
}

async fn host_goes(c: Context) -> Verdict {
    c.needs_delete().await?;
    let life = c.life().await?;
    let deleted =
        life.seen.iter().rfind(|s| s.place.contains("Delete") && state_of(&s.machine) == State::Speculative);
    let Some(seen) = deleted else { return failed("SPECULATIVE after Delete", "never seen") };
    ensure(!has_host(&seen.machine), "no host after Delete", || format!("{:?}", seen.machine.host))
}
