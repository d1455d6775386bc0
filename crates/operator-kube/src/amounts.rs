//! What pods take and nodes offer, as vectors.

use std::collections::BTreeMap;

use bigfleet_kube_common::{Unread, pod_requests};
use bigfleet_model::resource::{ResourceName, ResourceVec};
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The amounts that can be read. The API server has checked them; one that makes no sense to us counts as none.
pub(crate) fn lenient(amounts: &BTreeMap<String, Quantity>) -> ResourceVec {
    let read = amounts.iter().filter_map(|(name, amount)| {
        let name = ResourceName::new(name).ok()?;
        let amount = name.parse_amount(&amount.0).ok()?;
        Some((name, amount))
    });
    ResourceVec::new(read).unwrap_or_default()
}

/// What a pod takes of its node.
pub(crate) fn pod_request(spec: &PodSpec) -> ResourceVec {
    let amounts = pod_requests(spec, &mut Unread::new());
    let read = amounts.iter().filter_map(|(name, amount)| {
        let name = ResourceName::new(name).ok()?;
        let amount = name.parse_amount(&amount.to_string()).ok()?;
        Some((name, amount))
    });
    ResourceVec::new(read).unwrap_or_default()
}

/// A vector as Kubernetes writes it.
pub(crate) fn quantities(amounts: &ResourceVec) -> BTreeMap<String, String> {
    bigfleet_proto::convert::resources::to_map(amounts).into_iter().collect()
}
