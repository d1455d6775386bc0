//! Pods that ask the fleet for nothing, each for a reason.

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::Policy;

/// Why a pod asks for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skip {
    /// It has ended, or is going without ever having had a place.
    Over,
    /// One of a DaemonSet: it comes with the node and never asks for one.
    DaemonSet,
    /// The image of a static pod, which the node runs by itself.
    Mirror,
    /// A static pod itself, as a kubelet would report it.
    Static,
    /// Somebody else schedules it.
    ForeignScheduler,
    /// It is not to be scheduled yet.
    Gated,
    /// It names the node it wants; another machine would not help.
    NodeBound,
    /// It matches no node, whatever the node is like.
    NeverSchedulable,
}

impl Skip {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::Over,
        Self::DaemonSet,
        Self::Mirror,
        Self::Static,
        Self::ForeignScheduler,
        Self::Gated,
        Self::NodeBound,
        Self::NeverSchedulable,
    ];

    /// One word, for a metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Over => "over",
            Self::DaemonSet => "daemon_set",
            Self::Mirror => "mirror",
            Self::Static => "static",
            Self::ForeignScheduler => "foreign_scheduler",
            Self::Gated => "gated",
            Self::NodeBound => "node_bound",
            Self::NeverSchedulable => "never_schedulable",
        }
    }
}

/// The reason, as far as it shows without looking at affinities.
pub(super) fn skip(pod: &Pod, spec: &PodSpec, policy: &Policy) -> Option<Skip> {
    let annotation = |key: &str| pod.metadata.annotations.as_ref().and_then(|all| all.get(key));
    let owners = pod.metadata.owner_references.iter().flatten();
    let controller = owners.clone().find(|owner| owner.controller == Some(true));
    let of_a_daemon_set = controller.is_some_and(|owner| {
        owner.kind == "DaemonSet"
            && matches!(owner.api_version.split('/').next(), Some("apps" | "extensions"))
    });
    if is_over(pod, spec) {
        Some(Skip::Over)
    } else if of_a_daemon_set {
        Some(Skip::DaemonSet)
    } else if annotation("kubernetes.io/config.mirror").is_some() {
        Some(Skip::Mirror)
    } else if annotation("kubernetes.io/config.source").is_some_and(|source| source != "api")
        || owners.clone().any(|owner| owner.kind == "Node" && owner.api_version == "v1")
    {
        Some(Skip::Static)
    } else if !policy.schedulers.iter().any(|name| name == scheduler(spec)) {
        Some(Skip::ForeignScheduler)
    } else if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        Some(Skip::Gated)
    } else {
        None
    }
}

/// A pod that is going still has its place until it is gone, unless it never had one.
fn is_over(pod: &Pod, spec: &PodSpec) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let going = pod.metadata.deletion_timestamp.is_some();
    matches!(phase, Some("Succeeded" | "Failed"))
        || (going && spec.node_name.as_deref().unwrap_or("").is_empty())
}

fn scheduler(spec: &PodSpec) -> &str {
    spec.scheduler_name.as_deref().filter(|name| !name.is_empty()).unwrap_or("default-scheduler")
}
