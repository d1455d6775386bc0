//! Objects of the API server, read down to what the operator keeps of them.
//!
//! A pod is some kilobytes; what matters of it here is a hundred bytes. Watches hand out nothing but these.

use bigfleet_crds::{
    CapacityRequest, CapacityRequestSpec, Condition, OWNED_BY_POD, RequestPhase, UpcomingNode, condition_type,
};
use bigfleet_model::resource::ResourceVec;
use bigfleet_operator::ask::{Asked, CoLocation, Expression};
use bigfleet_operator::drain::{Carried, Mark};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt as _;
use kube::core::DeserializeGuard;
use xxhash_rust::xxh3::xxh3_64;

use crate::amounts::{lenient, pod_request};
use crate::status::{OURS, shown};

/// The annotation on a node that is being drained: instruction, machine and deadline.
pub(crate) const DRAIN: &str = "bigfleet.lucy.sh/drain";
/// The annotation on a node that is not the fleet's, and whose pods the fleet shall have machines for.
pub(crate) const ADOPT: &str = "bigfleet.lucy.sh/adopt";
/// The annotation on an `UpcomingNode`, and on its node, that says which machine it is.
pub(crate) const MACHINE: &str = "bigfleet.lucy.sh/machine-id";

fn is_adopted(node: &Node) -> bool {
    node.annotations().get(ADOPT).is_some_and(|word| word == "true")
}

/// Whether pods on a node count as demand, as far as the node itself says: it is one of the fleet's machines, or somebody wants the
/// fleet to stand in for it.
pub fn counts_as_demand(node: &Node) -> bool {
    node.annotations().contains_key(MACHINE) || is_adopted(node)
}

/// What a watch says.
#[derive(Debug)]
pub(crate) enum Listed<T> {
    /// A new list begins.
    Begin,
    /// It holds this, by key.
    Holds(String, T),
    /// It ends: what it did not hold is gone.
    End,
    /// Something is new or changed.
    Put(String, T),
    /// Something is gone.
    Gone(String),
}

/// A `CapacityRequest`; its key is `namespace/name`.
#[derive(Debug)]
pub(crate) struct RequestSeen {
    /// What it asks for, or why it cannot even be read.
    pub(crate) asked: Result<Asked, String>,
    /// The pod it speaks for; empty if it does not say.
    pub(crate) pod_uid: Box<str>,
    /// When it was first part of a roll-up; 0 if it says nothing of the kind.
    pub(crate) acknowledged_unix_nanos: i64,
    /// Our conditions as they stand: type, whether true, since when.
    pub(crate) conditions: Vec<(&'static str, String, i64)>,
    /// The conditions of others, which stay when we write ours.
    pub(crate) others: Box<[Condition]>,
    /// The version of the object.
    pub(crate) version: Box<str>,
    /// The digest of what it shows, if that can be read.
    pub(crate) shown: Option<u64>,
}

/// What more machines could do for the pod of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// One with a hole for it.
    Hole,
    /// One that has none of its like yet: what keeps it away is not the amounts.
    Another,
    /// Nothing: the request does not say what the pod needs.
    None,
}

impl Help {
    /// As the pod controller says it.
    pub(crate) fn read(others: &[Condition]) -> Self {
        let carried = others.iter().find(|one| one.type_ == condition_type::CARRIED);
        match carried.map(|carried| carried.reason.as_str()) {
            Some("Crowded") => Self::Another,
            Some("Refused" | "Widened") => Self::None,
            _ => Self::Hole,
        }
    }
}

impl RequestSeen {
    pub(crate) fn read(guarded: &DeserializeGuard<CapacityRequest>) -> Self {
        let request = match &guarded.0 {
            Ok(request) => request,
            Err(invalid) => {
                let labels = invalid.metadata.labels.as_ref();
                let pod = labels.and_then(|labels| labels.get(OWNED_BY_POD)).map_or("", |uid| uid);
                return Self {
                    asked: Err(format!("it cannot be read: {}", invalid.error)),
                    pod_uid: pod.into(),
                    acknowledged_unix_nanos: 0,
                    conditions: Vec::new(),
                    others: Box::default(),
                    version: invalid.metadata.resource_version.as_deref().unwrap_or_default().into(),
                    shown: None,
                };
            }
        };
        let status = request.status.as_ref();
        let conditions = status.map_or(&[][..], |status| &status.conditions);
        Self {
            asked: Ok(asked(&request.namespace().unwrap_or_default(), &request.spec)),
            pod_uid: request.labels().get(OWNED_BY_POD).map_or("", |uid| uid).into(),
            acknowledged_unix_nanos: status
                .filter(|status| status.phase == RequestPhase::Acknowledged)
                .and_then(|status| status.acknowledged_at.as_ref())
                .map_or(0, bigfleet_kube_common::unix_nanos),
            conditions: OURS
                .into_iter()
                .filter_map(|type_| {
                    let found = conditions.iter().find(|condition| condition.type_ == type_)?;
                    let since = bigfleet_kube_common::unix_nanos(&found.last_transition_time);
                    Some((type_, format!("{:?}", found.status), since))
                })
                .collect(),
            others: conditions.iter().filter(|one| !OURS.contains(&one.type_.as_str())).cloned().collect(),
            version: request.resource_version().unwrap_or_default().into(),
            shown: Some(status.map_or(0, shown)),
        }
    }
}

/// What a request asks for, in the operator's words.
pub fn asked(namespace: &str, spec: &CapacityRequestSpec) -> Asked {
    let expression = |key: &str, operator: &str, values: &[String]| Expression {
        key: key.into(),
        operator: operator.into(),
        values: values.to_vec(),
    };
    let text = |quantity: &bigfleet_crds::Quantity| quantity.as_str().to_owned();
    Asked {
        namespace: namespace.into(),
        requirements: spec.requirements.iter().map(|r| expression(&r.key, &r.operator, &r.values)).collect(),
        resources: spec.resources.iter().map(|(name, amount)| (name.clone(), text(amount))).collect(),
        priority: spec.priority,
        interruption_penalty: spec.interruption_penalty.as_ref().map(text),
        reclamation_penalty: spec.reclamation_penalty.as_ref().map(text),
        spread: spec
            .topology_spread
            .iter()
            .map(|s| (s.topology_key.clone(), s.max_skew, s.when_unsatisfiable.clone()))
            .collect(),
        co_location: spec.co_location.as_ref().map(|gang| {
            let LabelSelector { match_labels, match_expressions } =
                gang.label_selector.clone().unwrap_or_default();
            let expressions = match_expressions.unwrap_or_default();
            CoLocation {
                topology_key: gang.topology_key.clone(),
                match_labels: match_labels.unwrap_or_default().into_iter().collect(),
                match_expressions: expressions
                    .iter()
                    .map(|e| expression(&e.key, &e.operator, e.values.as_deref().unwrap_or_default()))
                    .collect(),
            }
        }),
    }
}

/// A node; its key is its name.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the node")]
pub(crate) struct NodeSeen {
    pub(crate) uid: String,
    pub(crate) provider_id: String,
    pub(crate) is_ready: bool,
    pub(crate) is_cordoned: bool,
    pub(crate) mark: Option<Mark>,
    pub(crate) allocatable: ResourceVec,
    /// Somebody wants the fleet to stand in for this node: its pods are asked for.
    pub(crate) is_adopted: bool,
    /// When it was made; 0 if it does not say.
    pub(crate) created_unix_nanos: i64,
    /// It says which machine it is.
    pub(crate) says_machine: bool,
}

impl NodeSeen {
    pub(crate) fn read(node: &Node) -> Self {
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let amounts = status.and_then(|status| status.allocatable.as_ref());
        Self {
            uid: node.uid().unwrap_or_default(),
            provider_id: spec.and_then(|spec| spec.provider_id.clone()).unwrap_or_default(),
            is_ready: conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True"),
            is_cordoned: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
            mark: node.annotations().get(DRAIN).and_then(|text| read_mark(text)),
            allocatable: amounts.map(lenient).unwrap_or_default(),
            is_adopted: is_adopted(node),
            created_unix_nanos: node
                .creation_timestamp()
                .as_ref()
                .map_or(0, bigfleet_kube_common::unix_nanos),
            says_machine: node.annotations().contains_key(MACHINE),
        }
    }
}

/// The mark on a node as text.
pub(crate) fn write_mark(mark: &Mark) -> String {
    format!("{} {} {}", mark.instruction, mark.until_unix_nanos, mark.machine)
}

fn read_mark(text: &str) -> Option<Mark> {
    let mut words = text.splitn(3, ' ');
    let (instruction, until, machine) = (words.next()?, words.next()?, words.next()?);
    let until_unix_nanos = until.parse().ok()?;
    (!instruction.is_empty() && !machine.is_empty()).then(|| Mark {
        instruction: instruction.into(),
        machine: machine.into(),
        until_unix_nanos,
    })
}

/// A pod that has not ended; its key is its uid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodSeen {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    /// Empty while it has no node.
    pub(crate) node: Box<str>,
    pub(crate) request: ResourceVec,
    pub(crate) carried: Carried,
    pub(crate) is_terminating: bool,
    pub(crate) grace_secs: i64,
    /// The scheduler found no place for it.
    pub(crate) is_stuck: bool,
    /// Whose it is, as a number: pods of one owner are alike.
    pub(crate) owner: u64,
}

impl PodSeen {
    /// Nothing of a pod that has ended.
    pub(crate) fn read(pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed") {
            return None;
        }
        let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
        let by = |kind: &str| owners.iter().any(|owner| owner.controller == Some(true) && owner.kind == kind);
        let carried = if pod.annotations().contains_key("kubernetes.io/config.mirror") || by("Node") {
            Carried::ByNode
        } else if by("DaemonSet") {
            Carried::ByDaemonSet
        } else {
            Carried::ByItself
        };
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let is_unschedulable = conditions.iter().any(|one| {
            one.type_ == "PodScheduled"
                && one.status == "False"
                && one.reason.as_deref() == Some("Unschedulable")
        });
        let node: Box<str> = spec.node_name.as_deref().unwrap_or_default().into();
        Some(Self {
            namespace: pod.namespace().unwrap_or_default().into(),
            name: pod.name_any().into(),
            is_stuck: is_unschedulable && node.is_empty(),
            node,
            request: pod_request(spec),
            carried,
            is_terminating: pod.metadata.deletion_timestamp.is_some(),
            grace_secs: spec.termination_grace_period_seconds.unwrap_or(30),
            owner: owners
                .iter()
                .find(|owner| owner.controller == Some(true))
                .map(|owner| owner.uid.as_str())
                .or(pod.metadata.uid.as_deref())
                .map_or(0, |uid| xxh3_64(uid.as_bytes())),
        })
    }
}

/// An `UpcomingNode` of ours; its key is its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpcomingSeen {
    pub(crate) machine: String,
    pub(crate) provider_id: String,
    pub(crate) node: String,
    /// When it was first heard of; 0 if it does not say.
    pub(crate) started_unix_nanos: i64,
}

impl UpcomingSeen {
    pub(crate) fn read(upcoming: &UpcomingNode) -> Option<Self> {
        let machine = upcoming.annotations().get(MACHINE)?.clone();
        let status = upcoming.status.as_ref();
        let node = status.and_then(|status| status.node_ref.as_ref()).and_then(|node| node.name.clone());
        Some(Self {
            machine,
            provider_id: status.and_then(|status| status.provider_id.clone()).unwrap_or_default(),
            node: node.unwrap_or_default(),
            started_unix_nanos: status
                .and_then(|status| status.provisioning_start_time.as_ref())
                .map_or(0, bigfleet_kube_common::unix_nanos),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_nothing_else() {
        let mark =
            Mark { instruction: "00ab".into(), machine: "metal 7/a".into(), until_unix_nanos: 1_700_000_000 };
        assert_eq!(read_mark(&write_mark(&mark)), Some(mark));
        for text in ["", "a", "a b c", "a 5", " 5 m", "a 5 "] {
            assert_eq!(read_mark(text), None, "{text:?}");
        }
    }
}
