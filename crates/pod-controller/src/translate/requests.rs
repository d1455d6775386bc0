//! What a pod requests in all, by the rules that the scheduler goes by.
//!
//! Containers run together: their sum. Init containers run before them, one after another, beside the sidecars that were
//! started before each: the largest moment counts. What is said for the pod as a whole takes the place of cpu, memory and
//! huge pages of its containers. Overhead comes on top.

use std::collections::BTreeMap;

use bigfleet_crds::Quantity as Text;
use bigfleet_model::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Raw;

use super::loss::{Effect, Loss};

const FIELD: &str = "spec.containers.resources";
/// How many kinds of resources a request may have.
const KINDS: usize = 64;

/// Amounts by resource.
type Amounts = BTreeMap<String, Quantity>;

/// What could not be read: the first text of each resource, carried as it stands so that the operator says so too.
type Unread = BTreeMap<String, String>;

/// The pod's request. A resource whose amount cannot be read stands there as it was written.
pub(super) fn requests(spec: &PodSpec, losses: &mut Vec<Loss>) -> BTreeMap<String, Text> {
    let mut unread = Unread::new();
    let amounts = total(spec, &mut unread);
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

/// The sum by the scheduler's rules.
fn total(spec: &PodSpec, unread: &mut Unread) -> Amounts {
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
