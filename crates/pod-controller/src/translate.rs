//! A pod's demand as a CapacityRequest: pure, and the same for the controller and for a preview.
//!
//! What a request can say is less than what a pod can ask for. Nothing is narrowed or widened in silence: whatever a
//! request does not say is a [`Loss`], which names the field and what follows from it. Preferences are not demands:
//! preferred affinities and spreads with `ScheduleAnyway` are left to the scheduler, and are no loss.

mod affinity;
mod loss;
mod penalty;
mod pods;
mod requests;
mod selector;
mod skip;
mod taint;

use std::collections::BTreeMap;

use bigfleet_crds::{CapacityRequestSpec, Requirement};
use k8s_openapi::api::core::v1::{Pod, PodSpec};

pub use loss::{Effect, Loss};
pub use penalty::{BadPenalty, ClassDefaults, Penalties};
pub use skip::Skip;
pub use taint::{MachineTaint, MachineTaintError};

/// The label that a node has of itself. No machine has it before it is a node.
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";

/// What the cluster's administrator has said about pods and machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The schedulers whose pods count. Others may have machines of their own.
    pub schedulers: Vec<String>,
    /// Which machines are tainted when they are nodes.
    pub machine_taints: Vec<MachineTaint>,
    /// Labels that every node of the cluster has, whether or not its machine is listed with them.
    pub node_labels: BTreeMap<String, String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            schedulers: vec!["default-scheduler".into()],
            machine_taints: Vec::new(),
            node_labels: BTreeMap::new(),
        }
    }
}

/// What becomes of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Translation {
    /// It asks for nothing, on purpose.
    Skipped(Skip),
    /// It asks for this.
    Wanted(Box<Wanted>),
}

/// What a pod asks for, as far as the pod itself says it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The request, without penalties.
    pub spec: CapacityRequestSpec,
    /// The penalties that the pod's annotations say, and those that could not be read.
    pub penalties: Penalties,
    /// The priority class, whose penalties count where the pod says none.
    pub class: Option<String>,
    /// What the request does not say.
    pub losses: Vec<Loss>,
}

impl Wanted {
    /// The request with penalties: those of the pod, then those of its priority class.
    pub fn request(&self, class: Option<&ClassDefaults>) -> CapacityRequestSpec {
        let default = class.map(|class| &class.penalties);
        CapacityRequestSpec {
            interruption_penalty: self
                .penalties
                .interruption
                .clone()
                .or_else(|| default.and_then(|default| default.interruption.clone())),
            reclamation_penalty: self
                .penalties
                .reclamation
                .clone()
                .or_else(|| default.and_then(|default| default.reclamation.clone())),
            ..self.spec.clone()
        }
    }
}

/// Translates a pod.
pub fn translate(pod: &Pod, policy: &Policy) -> Translation {
    let empty = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty);
    if let Some(skip) = skip::skip(pod, spec, policy) {
        return Translation::Skipped(skip);
    }
    let mut losses = Vec::new();
    let Some(mut requirements) = affinity::requirements(spec, &mut losses) else {
        return Translation::Skipped(Skip::NeverSchedulable);
    };
    if affinity::is_node_bound(&requirements) {
        return Translation::Skipped(Skip::NodeBound);
    }
    requirements.retain(|requirement| !affinity::is_implied(requirement, &policy.node_labels));
    requirements.extend(taint::avoided(spec, &policy.machine_taints));
    requirements.sort_unstable();
    requirements.dedup();
    bound(&mut requirements, &mut losses);
    let among = pods::among(pod, spec, &mut losses);
    let resources = requests::requests(spec, &mut losses);
    losses.extend(loss::others(spec));
    let request = CapacityRequestSpec {
        requirements,
        resources,
        priority: spec.priority.unwrap_or(0),
        topology_spread: among.spread,
        co_location: among.co_location,
        ..CapacityRequestSpec::default()
    };
    losses.sort_by_key(|loss| (loss.effect, loss.field));
    Translation::Wanted(Box::new(Wanted {
        spec: request,
        penalties: Penalties::read(pod.metadata.annotations.as_ref()),
        class: spec.priority_class_name.clone().filter(|name| !name.is_empty()),
        losses,
    }))
}

/// How many requirements a request may have, and how many values each.
const REQUIREMENTS: usize = 64;
const VALUES: usize = 256;

/// A pod may be a megabyte of requirements; a request may not.
fn bound(requirements: &mut Vec<Requirement>, losses: &mut Vec<Loss>) {
    let too_many_values = requirements.iter().any(|requirement| requirement.values.len() > VALUES);
    if requirements.len() <= REQUIREMENTS && !too_many_values {
        return;
    }
    losses.push(Loss::new(
        Effect::Refused,
        "spec.affinity.nodeAffinity",
        format!(
            "the pod has {} requirements on nodes; a request carries {REQUIREMENTS} with {VALUES} values each, and one \
             that needs more asks for nothing",
            requirements.len()
        ),
    ));
    // What stays is refused by the operator: an unknown operator, the sign for "do not guess".
    *requirements = vec![Requirement {
        key: "bigfleet.lucy.sh/too-many-requirements".into(),
        operator: "Refused".into(),
        values: Vec::new(),
    }];
}
