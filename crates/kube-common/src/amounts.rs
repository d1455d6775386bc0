//! What a pod requests in all, by the rules that the scheduler goes by.
//!
//! Containers run together: their sum. Init containers run before them, one after another, beside the sidecars that were
//! started before each: the largest moment counts. What is said for the pod as a whole takes the place of cpu, memory and
//! huge pages of its containers. Overhead comes on top.

use std::collections::BTreeMap;

use bigfleet_model::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Raw;

/// Amounts by resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// What could not be read: the first text of each resource.
pub type Unread = BTreeMap<String, String>;

/// What a pod requests. Amounts that are none, or negative, count as not there and are noted.
pub fn pod_requests(spec: &PodSpec, unread: &mut Unread) -> Amounts {
    let mut running = Amounts::new();
    for container in &spec.containers {
        add(&mut running, &of_container(container, unread));
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let asks = of_container(container, unread);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut running, &asks);
            add(&mut sidecars, &asks);
            raise(&mut starting, &sidecars);
        } else {
            let mut moment = asks;
            add(&mut moment, &sidecars);
            raise(&mut starting, &moment);
        }
    }
    raise(&mut running, &starting);
    for (name, amount) in spec.resources.as_ref().map(|whole| of(whole, unread)).unwrap_or_default() {
        if name == "cpu" || name == "memory" || name.starts_with("hugepages-") {
            running.insert(name, amount);
        }
    }
    add(&mut running, &read(spec.overhead.as_ref(), unread));
    running
}

fn of_container(container: &Container, unread: &mut Unread) -> Amounts {
    container.resources.as_ref().map(|resources| of(resources, unread)).unwrap_or_default()
}

/// A limit without a request is a request of that much; the server writes it so, a file need not.
fn of(resources: &ResourceRequirements, unread: &mut Unread) -> Amounts {
    let mut amounts = read(resources.limits.as_ref(), unread);
    amounts.extend(read(resources.requests.as_ref(), unread));
    amounts
}

fn read(list: Option<&BTreeMap<String, Raw>>, unread: &mut Unread) -> Amounts {
    let mut amounts = Amounts::new();
    for (name, text) in list.into_iter().flatten() {
        match Quantity::parse(&text.0) {
            Ok(amount) if !amount.is_negative() => {
                amounts.insert(name.clone(), amount);
            }
            _ => {
                unread.entry(name.clone()).or_insert_with(|| text.0.clone());
            }
        }
    }
    amounts
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.get(name).map_or(*amount, |present| present.saturating_add(amount));
        to.insert(name.clone(), sum);
    }
}

fn raise(to: &mut Amounts, at_least: &Amounts) {
    for (name, amount) in at_least {
        if to.get(name).is_none_or(|present| present < amount) {
            to.insert(name.clone(), *amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(name: &str, cpu: &str) -> Value {
        json!({"name": name, "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn a_pod_takes_what_the_scheduler_says_it_takes() {
        let sidecar =
            json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}});
        let cases = [
            (json!({"containers": [of("a", "1"), of("b", "500m")]}), "1500m"),
            (json!({"containers": [of("a", "1")], "initContainers": [of("i", "3")]}), "3"),
            // The sidecar runs beside what starts after it.
            (json!({"containers": [of("a", "1")], "initContainers": [sidecar, of("i", "3")]}), "4"),
            (json!({"containers": [of("a", "1")], "overhead": {"cpu": "250m"}}), "1250m"),
            (json!({"containers": [of("a", "1")], "resources": {"requests": {"cpu": "5"}}}), "5"),
        ];
        for (spec, expected) in cases {
            let spec: PodSpec = serde_json::from_value(spec).unwrap();
            let amounts = pod_requests(&spec, &mut Unread::new());
            assert_eq!(amounts["cpu"], Quantity::parse(expected).unwrap());
        }
    }
}
