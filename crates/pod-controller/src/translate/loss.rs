//! What a request does not say, and what follows from it.

use std::fmt;

use k8s_openapi::api::core::v1::PodSpec;

/// What follows from something that was not carried. Ordered by how much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// The request cannot be put into a roll-up: nothing is asked for.
    Refused,
    /// A machine may come that the pod cannot use.
    Widened,
    /// Fewer machines come into question than the pod could use.
    Narrowed,
    /// Too few machines may come at first; more are asked for when the pod finds no place.
    Crowded,
}

impl Effect {
    /// One word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "Refused",
            Self::Widened => "Widened",
            Self::Narrowed => "Narrowed",
            Self::Crowded => "Crowded",
        }
    }
}

/// One thing that a request does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What follows.
    pub effect: Effect,
    /// The field of the pod, from a fixed list: it is a metric's label.
    pub field: &'static str,
    /// A sentence. Text of the pod in it is escaped and bounded.
    pub sentence: String,
}

impl Loss {
    pub(crate) fn new(effect: Effect, field: &'static str, sentence: impl Into<String>) -> Self {
        Self { effect, field, sentence: sentence.into() }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.sentence)
    }
}

/// What a pod may ask for that no request has a place for.
pub(super) fn others(spec: &PodSpec) -> Vec<Loss> {
    let mut losses = Vec::new();
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    if ports.any(|port| port.host_port.is_some_and(|port| port != 0)) {
        losses.push(Loss::new(
            Effect::Crowded,
            "spec.containers.ports.hostPort",
            "two pods with the same host port need two machines, which requests cannot say",
        ));
    }
    let mut volumes = spec.volumes.iter().flatten();
    if volumes.any(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some()) {
        losses.push(Loss::new(
            Effect::Widened,
            "spec.volumes.persistentVolumeClaim",
            "a volume may be bound to a zone that the request does not name",
        ));
    }
    if spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()) {
        losses.push(Loss::new(
            Effect::Widened,
            "spec.resourceClaims",
            "devices claimed through resource claims are not part of the request",
        ));
    }
    losses
}
