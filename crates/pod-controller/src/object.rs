//! The objects that the controller writes, and what it reads of them.

use bigfleet_crds::{
    CapacityRequest, CapacityRequestSpec, Condition, ConditionStatus, OWNED_BY_POD, condition_type,
};
use bigfleet_kube_common::time;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::translate::{BadPenalty, ClassDefaults, Wanted};

/// How long a condition's sentence may be.
const MESSAGE_BYTES: usize = 2000;

/// The conditions that are ours to say.
const OURS: [&str; 2] = [condition_type::CARRIED, condition_type::PENALTIES_READ];

/// The name of a pod's request.
pub fn request_name(pod_uid: &str) -> String {
    format!("pod-{pod_uid}")
}

/// A pod, as far as a request must name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodName {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
}

/// A request as it is applied.
pub(crate) fn request(pod: &PodName, spec: &CapacityRequestSpec) -> Value {
    json!({
        "apiVersion": format!("{}/{}", bigfleet_crds::GROUP, bigfleet_crds::VERSION),
        "kind": "CapacityRequest",
        "metadata": {
            "name": request_name(&pod.uid),
            "namespace": pod.namespace,
            "labels": {OWNED_BY_POD: pod.uid},
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": true,
            }],
        },
        "spec": spec,
    })
}

/// What a request says, as a number. Equal for equal requests.
pub(crate) fn fingerprint(spec: &CapacityRequestSpec) -> u64 {
    xxh3_64(&serde_json::to_vec(spec).expect("a request is plain data"))
}

/// Whether a request belongs to its pod as it should.
pub(crate) fn is_owned(request: &CapacityRequest, pod_uid: &str) -> bool {
    let owners = request.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.uid == pod_uid && owner.kind == "Pod")
}

/// Our conditions of a request.
pub(crate) fn our_conditions(request: &CapacityRequest) -> Vec<Condition> {
    let conditions = request.status.iter().flat_map(|status| &status.conditions);
    conditions.filter(|condition| OURS.contains(&condition.type_.as_str())).cloned().collect()
}

/// The change that makes our conditions of a request these, and leaves those of others alone. It names the version that it
/// was made from, so that the server refuses it if somebody was quicker.
pub(crate) fn status(found: &CapacityRequest, ours: &[Condition]) -> Value {
    let mut status = found.status.clone().unwrap_or_default();
    status.conditions.retain(|condition| !OURS.contains(&condition.type_.as_str()));
    status.conditions.extend(ours.iter().cloned());
    let mut patch =
        json!({"metadata": {"resourceVersion": found.metadata.resource_version}, "status": status});
    // Said even if it is empty: a merge leaves out what is not said.
    patch["status"]["conditions"] = json!(status.conditions);
    patch
}

/// The conditions that a pod's request should have from us. Those that say the same as before keep their time.
pub(crate) fn conditions(
    wanted: &Wanted,
    class: Option<&ClassDefaults>,
    present: &[Condition],
    now_unix_nanos: i64,
) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let mut say = |type_: &str, reason: &str, sentences: Vec<String>| {
        let before = present
            .iter()
            .find(|condition| condition.type_ == type_ && condition.status == ConditionStatus::False);
        let since = before.map(|condition| condition.last_transition_time.clone());
        let message = sentences.join("; ");
        conditions.push(Condition {
            type_: type_.into(),
            status: ConditionStatus::False,
            reason: reason.into(),
            message: message[..message.floor_char_boundary(MESSAGE_BYTES)].into(),
            last_transition_time: since.unwrap_or_else(|| time(now_unix_nanos)),
            observed_generation: None,
            expected_time: None,
            earliest_time: None,
            need_id: None,
        });
    };
    if let Some(worst) = wanted.losses.first() {
        let sentences = wanted.losses.iter().map(ToString::to_string).collect();
        say(condition_type::CARRIED, worst.effect.name(), sentences);
    }
    let bad = bad_penalties(wanted, class);
    if !bad.is_empty() {
        say(
            condition_type::PENALTIES_READ,
            "BadAnnotation",
            bad.into_iter().map(|(_, sentence)| sentence).collect(),
        );
    }
    conditions
}

/// The penalties that could not be read, with a sentence each.
pub(crate) fn bad_penalties(wanted: &Wanted, class: Option<&ClassDefaults>) -> Vec<(&'static str, String)> {
    let sentence = |whose: &str, bad: &BadPenalty| {
        (
            bad.annotation,
            format!("annotation {} of {whose}: {}; it counts as not there", bad.annotation, bad.reason),
        )
    };
    let own = wanted.penalties.bad.iter().map(|bad| sentence("the pod", bad));
    let name = wanted.class.as_deref().unwrap_or("");
    let whose = format!("priority class {name}");
    let inherited = class.into_iter().flat_map(|class| &class.penalties.bad).map(|bad| sentence(&whose, bad));
    own.chain(inherited).collect()
}
