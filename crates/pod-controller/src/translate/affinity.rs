//! What a pod demands of the labels of its node: nodeSelector and required node affinity, as one list that all holds.
//!
//! Required affinity is a list of alternatives, and a request has one list. Alternatives that differ in one place can
//! often be said in one list, exactly: "zone a, or zone b" is "zone a or b". Where they cannot, the request carries the
//! first alternative it can, and the pod is told that the others are not asked for.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_crds::Requirement;
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec};

use super::HOSTNAME;
use super::loss::{Effect, Loss};

const FIELD: &str = "spec.affinity.nodeAffinity";
/// How many alternatives are looked at.
const TERMS: usize = 64;

/// One alternative: all of it holds.
type Term = BTreeSet<Requirement>;

/// The list, or nothing if no node can ever match.
pub(super) fn requirements(spec: &PodSpec, losses: &mut Vec<Loss>) -> Option<Vec<Requirement>> {
    let mut all: Term =
        spec.node_selector.iter().flatten().map(|(key, value)| is_in(key, [value.clone()])).collect();
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    if let Some(required) = required {
        all.extend(one_of(&required.node_selector_terms, losses)?);
    }
    if let Some(requirement) = all.iter().find(|requirement| !is_known(&requirement.operator)) {
        losses.push(Loss::new(
            Effect::Refused,
            FIELD,
            format!("the operator {} cannot be carried, so nothing is asked for", requirement.operator),
        ));
    }
    Some(all.into_iter().collect())
}

/// The one list for several alternatives.
fn one_of(terms: &[NodeSelectorTerm], losses: &mut Vec<Loss>) -> Option<Term> {
    // An empty alternative matches nothing; one that names nodes helps only where those nodes are.
    let matching = terms.iter().filter(|term| expressions(term).next().is_some() || names_nodes(term));
    let (named, open): (Vec<_>, Vec<_>) = matching.take(TERMS + 1).partition(|term| names_nodes(term));
    if open.is_empty() {
        // All of them name nodes: told by the host name that follows from it.
        return named.first().map(|_| Term::from([is_in(HOSTNAME, [String::new()])]));
    }
    let mut alternatives: Vec<Term> = Vec::new();
    for term in &open {
        let term: Term = expressions(term).map(requirement).collect();
        if !alternatives.contains(&term) {
            alternatives.push(term);
        }
    }
    let cut = alternatives.len() > TERMS || terms.len() > TERMS;
    alternatives.truncate(TERMS);
    if named.is_empty()
        && !cut
        && let Some(merged) = merged(&alternatives)
    {
        return Some(merged);
    }
    let count = terms.len();
    let carried =
        alternatives.iter().position(|term| term.iter().all(|requirement| is_known(&requirement.operator)));
    let carried = alternatives.swap_remove(carried.unwrap_or(0));
    let others = count - 1;
    losses.push(Loss::new(
        Effect::Narrowed,
        FIELD,
        format!("the pod allows {count} alternatives that one request cannot say; {others} of them are not asked for"),
    ));
    Some(carried)
}

/// The alternatives in one list that means exactly the same, if there is one.
fn merged(alternatives: &[Term]) -> Option<Term> {
    let (first, others) = alternatives.split_first()?;
    let mut common = first.clone();
    common.retain(|requirement| others.iter().all(|term| term.contains(requirement)));
    let rest: Vec<Vec<&Requirement>> =
        alternatives.iter().map(|term| term.difference(&common).collect()).collect();
    if rest.iter().any(Vec::is_empty) {
        // One of them asks for nothing beyond what all ask for: the others add nothing.
        return Some(common);
    }
    let single: Option<Vec<&Requirement>> =
        rest.iter().map(|rest| if let [one] = rest.as_slice() { Some(*one) } else { None }).collect();
    let single = single?;
    let (key, operator) = (&single[0].key, single[0].operator.as_str());
    if single.iter().any(|one| one.key != *key || one.operator != operator) {
        return None;
    }
    match operator {
        "In" => {
            let values = single.iter().flat_map(|one| one.values.iter().cloned());
            common.insert(is_in(key, values.collect::<BTreeSet<_>>()));
        }
        "NotIn" => {
            // Not in A or not in B is not in both.
            let mut both: BTreeSet<String> = single[0].values.iter().cloned().collect();
            both.retain(|value| single.iter().all(|one| one.values.contains(value)));
            if !both.is_empty() {
                let values = both.into_iter().collect();
                common.insert(Requirement { key: key.clone(), operator: "NotIn".into(), values });
            }
        }
        _ => return None,
    }
    Some(common)
}

/// Whether the pod can only run on nodes it names.
pub(super) fn is_node_bound(requirements: &[Requirement]) -> bool {
    requirements.iter().any(|requirement| requirement.key == HOSTNAME && requirement.operator == "In")
}

/// Whether every node has what is demanded, whatever its machine is listed with.
pub(super) fn is_implied(requirement: &Requirement, node_labels: &BTreeMap<String, String>) -> bool {
    let Some(value) = node_labels.get(&requirement.key) else { return false };
    match requirement.operator.as_str() {
        "In" => requirement.values.contains(value),
        "NotIn" => !requirement.values.contains(value),
        "Exists" => true,
        _ => false,
    }
}

fn is_known(operator: &str) -> bool {
    matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist")
}

fn expressions(term: &NodeSelectorTerm) -> impl Iterator<Item = &NodeSelectorRequirement> {
    term.match_expressions.iter().flatten()
}

fn names_nodes(term: &NodeSelectorTerm) -> bool {
    term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty())
}

fn requirement(expression: &NodeSelectorRequirement) -> Requirement {
    let values: BTreeSet<String> = expression.values.iter().flatten().cloned().collect();
    Requirement {
        key: expression.key.clone(),
        operator: expression.operator.clone(),
        values: values.into_iter().collect(),
    }
}

fn is_in(key: &str, values: impl IntoIterator<Item = String>) -> Requirement {
    Requirement { key: key.into(), operator: "In".into(), values: values.into_iter().collect() }
}
