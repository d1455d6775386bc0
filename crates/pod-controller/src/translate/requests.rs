//! What a pod requests in all, as a request carries it.

use std::collections::BTreeMap;

use bigfleet_crds::Quantity as Text;
use bigfleet_kube_common::{Unread, pod_requests};
use bigfleet_model::quantity::Quantity;
use k8s_openapi::api::core::v1::PodSpec;

use super::loss::{Effect, Loss};

const FIELD: &str = "spec.containers.resources";
/// How many kinds of resources a request may have.
const KINDS: usize = 64;

/// The pod's request. A resource whose amount cannot be read stands there as it was written.
pub(super) fn requests(spec: &PodSpec, losses: &mut Vec<Loss>) -> BTreeMap<String, Text> {
    let mut unread = Unread::new();
    let amounts = pod_requests(spec, &mut unread);
    let mut texts: BTreeMap<String, Text> = amounts
        .into_iter()
        .filter(|(_, amount)| !amount.is_zero())
        .map(|(name, amount)| (name, Text(amount.to_string())))
        .collect();
    for (name, text) in unread {
        let reason = match Quantity::parse(&text) {
            Err(error) => error.to_string(),
            Ok(_) => "it is negative".into(),
        };
        losses.push(Loss::new(Effect::Refused, FIELD, format!("{reason}; nothing is asked for")));
        texts.insert(name, Text(text.chars().take(64).collect()));
    }
    if texts.len() > KINDS {
        let count = texts.len();
        losses.push(Loss::new(
            Effect::Widened,
            FIELD,
            format!("the pod requests {count} kinds of resources; the first {KINDS} by name are carried"),
        ));
        texts = texts.into_iter().take(KINDS).collect();
    }
    if texts.is_empty() {
        losses.push(Loss::new(
            Effect::Crowded,
            FIELD,
            "the pod requests nothing, so no machine is asked for",
        ));
    }
    texts
}
