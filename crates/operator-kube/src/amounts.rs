//! What pods take and nodes offer, as vectors.

use std::collections::BTreeMap;

use bigfleet_model::resource::{ResourceName, ResourceVec};
use k8s_openapi::api::core::v1::{Container, PodSpec};
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

/// What a pod takes of its node: containers and sidecars together, or the largest moment of its start if that is more,
/// and its overhead. What is said for the pod as a whole counts instead of what its containers say.
pub(crate) fn pod_request(spec: &PodSpec) -> ResourceVec {
    let of = |container: &Container| {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        requests.map(lenient).unwrap_or_default()
    };
    let mut running =
        spec.containers.iter().fold(ResourceVec::ZERO, |sum, container| sum.add(&of(container)));
    let (mut sidecars, mut starting) = (ResourceVec::ZERO, ResourceVec::ZERO);
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = sidecars.add(&of(container));
            starting = starting.max(&sidecars);
        } else {
            starting = starting.max(&sidecars.add(&of(container)));
        }
    }
    running = running.add(&sidecars).max(&starting);
    if let Some(whole) = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()) {
        let whole = lenient(whole);
        let kept = running.iter().filter(|(name, _)| whole.get(name) == 0);
        let all = whole.iter().chain(kept).map(|(name, amount)| (name.clone(), amount));
        running = ResourceVec::new(all).unwrap_or(running);
    }
    let overhead = spec.overhead.as_ref().map(lenient).unwrap_or_default();
    running.add(&overhead)
}

/// A vector as Kubernetes writes it.
pub(crate) fn quantities(amounts: &ResourceVec) -> BTreeMap<String, String> {
    bigfleet_proto::convert::resources::to_map(amounts).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: serde_json::Value) -> ResourceVec {
        pod_request(&serde_json::from_value(json).unwrap())
    }

    fn cpu(amount: &str) -> ResourceVec {
        ResourceVec::parse([("cpu", amount)]).unwrap()
    }

    #[test]
    fn a_pod_takes_what_the_scheduler_says_it_takes() {
        let of = |name: &str, cpu: &str| serde_json::json!({"name": name, "resources": {"requests": {"cpu": cpu}}});
        let sidecar = serde_json::json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}});
        assert_eq!(request(serde_json::json!({"containers": [of("a", "1"), of("b", "500m")]})), cpu("1.5"));
        assert_eq!(
            request(serde_json::json!({"containers": [of("a", "1")], "initContainers": [of("i", "3")]})),
            cpu("3")
        );
        assert_eq!(
            request(
                serde_json::json!({"containers": [of("a", "1")], "initContainers": [sidecar, of("i", "3")]})
            ),
            cpu("4"),
            "the sidecar runs beside what starts after it"
        );
        assert_eq!(
            request(serde_json::json!({"containers": [of("a", "1")], "overhead": {"cpu": "250m"}})),
            cpu("1.25")
        );
        assert_eq!(
            request(
                serde_json::json!({"containers": [of("a", "1")], "resources": {"requests": {"cpu": "5"}}})
            ),
            cpu("5")
        );
    }
}
