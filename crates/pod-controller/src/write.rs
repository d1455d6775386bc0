//! Carrying out a step: one call or two, and what became of it.

use std::sync::Arc;

use bigfleet_crds::{CapacityRequest, condition_type};
use bigfleet_kube_common::{Announcement, Severity, announce};
use bigfleet_net::Clock;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};

use crate::ledger::{Step, Uid};
use crate::object::{PodName, request, request_name, status};
use crate::translate::Effect;

/// Who writes requests, in their managed fields and in events.
const MANAGER: &str = "bigfleet-pod-controller";

/// What became of a step.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) pod: Uid,
    pub(crate) step: Step,
    pub(crate) outcome: Outcome,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The request is now this.
    Written(Box<CapacityRequest>),
    /// The request is no more, or never was.
    Gone,
    /// The server will not have it, and says why.
    Refused(String),
    /// Something is in the way; it may work later.
    Failed(kube::Error),
}

impl Outcome {
    /// One word, for a metric.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Written(_) => "written",
            Self::Gone => "gone",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
        }
    }
}

impl Step {
    /// One word, for a metric.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            Self::Status { .. } => "status",
            Self::Delete { .. } => "delete",
        }
    }
}

/// Carries out a step.
pub(crate) async fn carry_out(client: Client, clock: Arc<dyn Clock>, pod: Uid, step: Step) -> Done {
    let outcome = match &step {
        Step::Apply { pod, spec } => {
            let api: Api<CapacityRequest> = Api::namespaced(client.clone(), &pod.namespace);
            let apply = PatchParams::apply(MANAGER).force();
            let written = api.patch(&request_name(&pod.uid), &apply, &Patch::Apply(request(pod, spec))).await;
            let outcome = judge(written);
            if let Outcome::Refused(reason) = &outcome {
                let message = format!("the cluster refuses the pod's capacity request: {reason}");
                tell(&client, &*clock, pod, "RequestRefused", Severity::Warning, message).await;
            }
            outcome
        }
        Step::Status { pod, conditions } => {
            for condition in conditions {
                let (reason, severity) = if condition.type_ == condition_type::PENALTIES_READ {
                    ("PenaltyNotRead", Severity::Warning)
                } else if condition.reason == Effect::Crowded.name() {
                    ("NotCarried", Severity::Normal)
                } else {
                    ("NotCarried", Severity::Warning)
                };
                tell(&client, &*clock, pod, reason, severity, condition.message.clone()).await;
            }
            let api: Api<CapacityRequest> = Api::namespaced(client, &pod.namespace);
            let name = request_name(&pod.uid);
            match api.get_opt(&name).await {
                Ok(Some(found)) => {
                    let patch = Patch::Merge(status(&found, conditions));
                    judge(api.patch_status(&name, &PatchParams::default(), &patch).await)
                }
                // The news of it is on its way.
                Ok(None) => Outcome::Gone,
                Err(error) => Outcome::Failed(error),
            }
        }
        Step::Delete { namespace, name, uid } => {
            let api: Api<CapacityRequest> = Api::namespaced(client, namespace);
            let only = Some(Preconditions { uid: uid.clone(), resource_version: None });
            match api.delete(name, &DeleteParams { preconditions: only, ..DeleteParams::default() }).await {
                Ok(_) => Outcome::Gone,
                // Another of that name: the one that was meant is gone.
                Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Outcome::Gone,
                Err(error) => Outcome::Failed(error),
            }
        }
    };
    Done { pod, step, outcome }
}

fn judge(answer: kube::Result<CapacityRequest>) -> Outcome {
    match answer {
        Ok(request) => Outcome::Written(Box::new(request)),
        // Too large, or not what the definition allows. A namespace that is going says 403, which passes.
        Err(kube::Error::Api(status)) if matches!(status.code, 400 | 413 | 422) => {
            Outcome::Refused(status.message.clone())
        }
        Err(error) => Outcome::Failed(error),
    }
}

/// Tells people who look at the pod. Worth trying once: the condition stays in any case.
async fn tell(
    client: &Client,
    clock: &dyn Clock,
    pod: &PodName,
    reason: &'static str,
    severity: Severity,
    message: String,
) {
    let about = ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Pod".into()),
        namespace: Some(pod.namespace.to_string()),
        name: Some(pod.name.to_string()),
        uid: Some(pod.uid.to_string()),
        ..ObjectReference::default()
    };
    let announcement = Announcement { about, severity, reason, message };
    if let Err(error) = announce(client, clock, MANAGER, &announcement).await {
        tracing::debug!(%error, namespace = %pod.namespace, pod = %pod.name, "an event could not be written");
    }
}
