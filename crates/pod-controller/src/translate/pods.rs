//! What a pod demands of its place among other pods: spread, affinity, anti-affinity.
//!
//! A request can speak of pods like itself: its need is their sum. It cannot speak of others.

use bigfleet_crds::{CoLocation, TopologySpread};
use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint};

use super::loss::{Effect, Loss};
use super::{HOSTNAME, selector};

const SPREAD: &str = "spec.topologySpreadConstraints";
const AFFINITY: &str = "spec.affinity.podAffinity";
const ANTI: &str = "spec.affinity.podAntiAffinity";
/// How many terms of each kind are looked at.
const TERMS: usize = 64;

/// What is carried.
#[derive(Default)]
pub(super) struct Among {
    pub(super) spread: Vec<TopologySpread>,
    pub(super) co_location: Option<CoLocation>,
}

pub(super) fn among(pod: &Pod, spec: &PodSpec, losses: &mut Vec<Loss>) -> Among {
    let mut among = Among::default();
    let spreads = spec.topology_spread_constraints.as_deref().unwrap_or_default();
    let affinity = spec.affinity.as_ref();
    let together = affinity.and_then(|affinity| {
        affinity.pod_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_deref()
    });
    let apart = affinity.and_then(|affinity| {
        affinity.pod_anti_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_deref()
    });
    let (together, apart) = (together.unwrap_or_default(), apart.unwrap_or_default());
    for (count, field) in [(spreads.len(), SPREAD), (together.len(), AFFINITY), (apart.len(), ANTI)] {
        if count > TERMS {
            losses.push(Loss::new(
                Effect::Widened,
                field,
                format!("the pod has {count} of these; the first {TERMS} are looked at"),
            ));
        }
    }
    spreads.iter().take(TERMS).for_each(|constraint| spread(pod, constraint, &mut among, losses));
    together.iter().take(TERMS).for_each(|term| join(pod, term, &mut among, losses));
    apart.iter().take(TERMS).for_each(|term| part(pod, term, &mut among, losses));
    among.spread.sort_unstable();
    among.spread.dedup();
    among
}

/// A strict spread over domains is carried; one over nodes goes without saying, since two machines are two nodes.
fn spread(pod: &Pod, constraint: &TopologySpreadConstraint, among: &mut Among, losses: &mut Vec<Loss>) {
    if constraint.when_unsatisfiable != "DoNotSchedule" {
        return;
    }
    let key = &constraint.topology_key;
    if !selector::matches(constraint.label_selector.as_ref(), pod.metadata.labels.as_ref()) {
        losses.push(Loss::new(
            Effect::Widened,
            SPREAD,
            format!("the spread over {key} counts other pods than these, which requests cannot say"),
        ));
        return;
    }
    if key == HOSTNAME {
        losses.push(Loss::new(
            Effect::Crowded,
            SPREAD,
            "how many pods may share a machine cannot be said in a request",
        ));
        return;
    }
    let narrower = [
        (constraint.min_domains.is_some_and(|domains| domains > 1), "minDomains"),
        (constraint.match_label_keys.as_ref().is_some_and(|keys| !keys.is_empty()), "matchLabelKeys"),
    ];
    for (_, name) in narrower.into_iter().filter(|(is_set, _)| *is_set) {
        losses.push(Loss::new(
            Effect::Crowded,
            SPREAD,
            format!("the spread over {key} is carried without its {name}"),
        ));
    }
    among.spread.push(TopologySpread {
        topology_key: key.clone(),
        max_skew: constraint.max_skew,
        when_unsatisfiable: "DoNotSchedule".into(),
    });
}

/// Affinity to pods like itself is a gang.
fn join(pod: &Pod, term: &PodAffinityTerm, among: &mut Among, losses: &mut Vec<Loss>) {
    let key = &term.topology_key;
    if !is_about_itself(pod, term) {
        losses.push(Loss::new(
            Effect::Widened,
            AFFINITY,
            format!("affinity within {key} to other pods than these cannot be said in a request"),
        ));
        return;
    }
    let gang = CoLocation { topology_key: key.clone(), label_selector: term.label_selector.clone() };
    match &among.co_location {
        None => among.co_location = Some(gang),
        Some(first) if *first == gang => {}
        Some(first) => losses.push(Loss::new(
            Effect::Widened,
            AFFINITY,
            format!(
                "a request carries one affinity: the one within {}, not the one within {key}",
                first.topology_key
            ),
        )),
    }
}

/// Anti-affinity to pods like itself is an even spread. Over nodes it goes without saying.
fn part(pod: &Pod, term: &PodAffinityTerm, among: &mut Among, losses: &mut Vec<Loss>) {
    let key = &term.topology_key;
    let about_itself = is_about_itself(pod, term);
    if key == HOSTNAME {
        let whom =
            if about_itself { "one of these pods to a machine" } else { "no machine shared with other pods" };
        losses.push(Loss::new(Effect::Crowded, ANTI, format!("{whom}: that cannot be said in a request")));
    } else if about_itself {
        among.spread.push(TopologySpread {
            topology_key: key.clone(),
            max_skew: 1,
            when_unsatisfiable: "DoNotSchedule".into(),
        });
    } else {
        losses.push(Loss::new(
            Effect::Widened,
            ANTI,
            format!("anti-affinity within {key} to other pods than these cannot be said in a request"),
        ));
    }
}

/// Whether a term speaks of the pod itself and its like, in its own namespace.
fn is_about_itself(pod: &Pod, term: &PodAffinityTerm) -> bool {
    let own = pod.metadata.namespace.as_deref().unwrap_or("default");
    let listed = term.namespaces.as_deref().unwrap_or_default();
    let here = match &term.namespace_selector {
        None => listed.is_empty() || listed.iter().all(|name| name == own),
        // An empty one means every namespace: pods of others too.
        Some(_) => false,
    };
    let excludes_itself = term.mismatch_label_keys.as_ref().is_some_and(|keys| !keys.is_empty());
    here && !excludes_itself && selector::matches(term.label_selector.as_ref(), pod.metadata.labels.as_ref())
}
