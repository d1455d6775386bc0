//! What the shard tells about machines and free capacity, as objects in the cluster.

use bigfleet_crds::NodePhase;
use bigfleet_kube_common::time;
use bigfleet_proto::v1alpha1::available_capacity_update::Confidence;
use bigfleet_proto::v1alpha1::{
    AvailableCapacityUpdate, MachineState, NodeSelectorRequirement, NodeStateUpdate,
};
use bigfleet_view::v1;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::seen::MACHINE;
use bigfleet_proto::v1alpha1::node_selector_requirement::Operator;

/// The longest name an object may have, and room for a hash in it.
const NAME_BYTES: usize = 253;
const HASH_BYTES: usize = 17;

/// The name of a machine's object: its id if that is a name, else what can be kept of it and a hash of the rest.
pub(crate) fn name_of(machine: &str) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = machine.len() <= NAME_BYTES
        && !machine.is_empty()
        && machine.split('.').all(|part| part.starts_with(is_end) && part.ends_with(is_end))
        && machine.chars().all(allowed);
    if is_name {
        return machine.to_owned();
    }
    let kept: String = machine
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if is_end(c) { c } else { '-' })
        .take(NAME_BYTES - HASH_BYTES - 1)
        .collect();
    let kept = kept.trim_matches('-');
    let kept = if kept.is_empty() { "machine" } else { kept };
    format!("{kept}-{:016x}", xxh3_64(machine.as_bytes()))
}

/// The name of the object for one kind of free capacity.
pub(crate) fn available_name(supersedes_key: &str) -> String {
    format!("avc-{:016x}", xxh3_64(supersedes_key.as_bytes()))
}

/// The phase of a machine's object; nothing where it must go.
pub(crate) fn phase(state: MachineState, was_draining: bool) -> Option<NodePhase> {
    Some(match state {
        MachineState::Unspecified
        | MachineState::Speculative
        | MachineState::Creating
        | MachineState::Deleting => NodePhase::Provisioning,
        MachineState::Idle if was_draining => return None,
        MachineState::Idle => NodePhase::Launched,
        MachineState::Configuring => NodePhase::Registered,
        MachineState::Configured => NodePhase::Ready,
        MachineState::Draining => NodePhase::Draining,
        MachineState::Failed => NodePhase::Failed,
    })
}

/// The object of a machine: what is applied, and the status applied after it.
pub(crate) fn object(
    update: &NodeStateUpdate,
    phase: NodePhase,
    node: Option<&str>,
    started: i64,
    expected: Option<v1::Expected>,
) -> (Value, Value) {
    let head = json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "UpcomingNode",
        "metadata": {"name": name_of(&update.machine_id)},
    });
    let taints: Vec<Value> = update
        .taints
        .iter()
        .map(|taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect}))
        .collect();
    let resources = update.resources.as_ref().map(|resources| &resources.resources);
    let mut object = head.clone();
    object["metadata"]["annotations"] = json!({MACHINE: update.machine_id});
    object["spec"] = json!({"labels": update.labels, "resources": resources.cloned().unwrap_or_default(), "taints": taints});
    let mut status = head;
    status["status"] = json!({"phase": phase, "provisioningStartTime": time(started)});
    if let Some(expected) = expected {
        status["status"]["expectedReadyTime"] = json!(time(expected.to_unix_nanos));
        status["status"]["earliestReadyTime"] = json!(time(expected.from_unix_nanos));
    }
    if !update.provider_id.is_empty() {
        status["status"]["providerID"] = update.provider_id.clone().into();
    }
    if !update.last_error.is_empty() {
        let cut = update.last_error.floor_char_boundary(1024);
        status["status"]["lastError"] = update.last_error[..cut].into();
    }
    if let Some(node) = node {
        status["status"]["nodeRef"] = json!({"apiVersion": "v1", "kind": "Node", "name": node});
    }
    (object, status)
}

/// The object for one kind of free capacity.
pub(crate) fn available(update: &AvailableCapacityUpdate) -> Value {
    let availability = match update.confidence() {
        Confidence::High => "High",
        Confidence::Medium => "Medium",
        Confidence::Low => "Low",
        Confidence::None | Confidence::Unspecified => "None",
    };
    let resources =
        update.resources.as_ref().map(|resources| resources.resources.clone()).unwrap_or_default();
    json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "AvailableCapacity",
        "metadata": {"name": available_name(&update.supersedes_key)},
        "spec": {
            "availability": availability,
            "availableCount": update.available_count,
            "cost": dollars(update.cost_per_hour),
            "requirements": update.requirements.iter().filter_map(requirement).collect::<Vec<_>>(),
            "resources": resources,
        },
    })
}

/// Dollars as a quantity, to a millionth.
fn dollars(usd: f64) -> String {
    if usd.is_finite() && usd > 0.0 { format!("{}u", (usd * 1e6).round()) } else { "0".into() }
}

fn requirement(requirement: &NodeSelectorRequirement) -> Option<Value> {
    let operator = match requirement.operator() {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists | Operator::Same => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::Unspecified => return None,
    };
    Some(json!({"key": requirement.key, "operator": operator, "values": requirement.values}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_where_they_are_names() {
        assert_eq!(name_of("aws-0031.zone"), "aws-0031.zone");
        for bad in ["AWS/31", "", "-a", "a.", "ä", &"x".repeat(300)] {
            let name = name_of(bad);
            assert!(name.len() <= 253 && name_of(&name) == name, "{bad}: {name} is a name");
        }
        assert_ne!(name_of("A"), name_of("a/"), "different machines have different names");
    }

    #[test]
    fn states_become_the_phases_of_the_wire() {
        use MachineState as S;
        for (state, expected) in [
            (S::Speculative, NodePhase::Provisioning),
            (S::Creating, NodePhase::Provisioning),
            (S::Deleting, NodePhase::Provisioning),
            (S::Idle, NodePhase::Launched),
            (S::Configuring, NodePhase::Registered),
            (S::Configured, NodePhase::Ready),
            (S::Draining, NodePhase::Draining),
            (S::Failed, NodePhase::Failed),
        ] {
            assert_eq!(phase(state, false), Some(expected));
        }
        assert_eq!(phase(S::Idle, true), None, "a drained machine's object goes");
    }

    #[test]
    fn prices_are_quantities() {
        for (usd, text) in [(0.121, "121000u"), (0.0, "0"), (f64::NAN, "0"), (12.0, "12000000u")] {
            assert_eq!(dollars(usd), text);
            bigfleet_model::quantity::Quantity::parse(text).unwrap();
        }
    }
}
