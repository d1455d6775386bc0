//! What is done to the API server: one call each, no waiting and no trying again; the desk decides about that.

use bigfleet_crds::{AvailableCapacity, CapacityRequest, UpcomingNode};
use bigfleet_operator::drain::{Evicted, Mark, Pod};
use k8s_openapi::api::core::v1::{Node, Pod as CorePod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::api::{Api, DeleteParams, PartialObjectMeta, Patch, PatchParams, Preconditions};
use kube::{Client, Resource};
use serde_json::{Value, json};

use crate::news::Trouble;
use crate::seen::{DRAIN, MACHINE, write_mark};

/// Who we are in the managed fields of objects.
pub(crate) const MANAGER: &str = "bigfleet-operator";
/// The same for statuses. Before 1.22 a server does not tell the two apart, and would take the spec away when the status is
/// applied under one name.
const STATUS_MANAGER: &str = "bigfleet-operator-status";

/// The API server, as far as we touch it.
#[derive(Clone)]
pub(crate) struct Hands {
    client: Client,
    /// The version of `Eviction` it takes.
    eviction: &'static str,
}

impl Hands {
    /// Asks the server which version of `Eviction` it takes.
    pub(crate) async fn new(client: Client) -> kube::Result<Self> {
        let eviction = eviction_version(&client.list_core_api_resources("v1").await?);
        Ok(Self { client, eviction })
    }

    /// Writes a request's status over the version it was read at, and says which version it is now. A merge patch: before
    /// 1.22 or so servers take the list of conditions for one value, whoever applies it, and others have conditions in it.
    pub(crate) async fn write_status(
        &self,
        request: &str,
        version: &str,
        mut status: Value,
        acknowledged_at: Option<&Value>,
    ) -> Result<String, Trouble> {
        let (namespace, name) = request.split_once('/').unwrap_or(("", request));
        status["phase"] = json!(if acknowledged_at.is_some() { "Acknowledged" } else { "Pending" });
        if let Some(at) = acknowledged_at {
            status["acknowledgedAt"] = at.clone();
        }
        let body = json!({"metadata": {"resourceVersion": version}, "status": status});
        // What comes back may be a request that cannot be read; only its version matters.
        let api: Api<PartialObjectMeta<CapacityRequest>> = Api::namespaced(self.client.clone(), namespace);
        let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
        match api.patch_status(name, &params, &Patch::Merge(&body)).await {
            Ok(written) => Ok(written.metadata.resource_version.unwrap_or_default()),
            Err(kube::Error::Api(status)) if status.code == 409 => Err(Trouble::Conflict),
            Err(error) => done::<()>(Err(error)).map(|()| String::new()),
        }
    }

    /// Applies an `UpcomingNode` and its status.
    pub(crate) async fn apply_upcoming(
        &self,
        name: &str,
        object: Value,
        status: Value,
    ) -> Result<(), Trouble> {
        let api: Api<UpcomingNode> = Api::all(self.client.clone());
        done(api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object)).await)?;
        done(
            api.patch_status(name, &PatchParams::apply(STATUS_MANAGER).force(), &Patch::Apply(&status)).await,
        )
    }

    /// Applies an `AvailableCapacity`.
    pub(crate) async fn apply_available(&self, name: &str, object: Value) -> Result<(), Trouble> {
        let api: Api<AvailableCapacity> = Api::all(self.client.clone());
        done(api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object)).await)
    }

    /// Removes an `UpcomingNode`.
    pub(crate) async fn delete_upcoming(&self, name: &str) -> Result<(), Trouble> {
        self.delete::<UpcomingNode>(name, None).await
    }

    /// Removes a node whose machine has left.
    pub(crate) async fn delete_node(&self, name: &str, uid: &str) -> Result<(), Trouble> {
        self.delete::<Node>(name, Some(uid)).await
    }

    async fn delete<K>(&self, name: &str, uid: Option<&str>) -> Result<(), Trouble>
    where
        K: Resource<Scope = kube::core::ClusterResourceScope, DynamicType = ()>
            + Clone
            + serde::de::DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let preconditions = uid.map(|uid| Preconditions { uid: Some(uid.into()), resource_version: None });
        match done(api.delete(name, &DeleteParams { preconditions, ..DeleteParams::default() }).await) {
            // It was to be gone, and is; or another of that name has come.
            Err(Trouble::Gone) => Ok(()),
            done => done,
        }
    }

    /// Writes on a node which machine it is, for whoever describes it.
    pub(crate) async fn name_machine(&self, node: &str, machine: &str) -> Result<(), Trouble> {
        let patch = json!({"metadata": {"annotations": {MACHINE: machine}}});
        let api: Api<Node> = Api::all(self.client.clone());
        done(api.patch(node, &PatchParams::default(), &Patch::Merge(&patch)).await)
    }

    /// Makes a node unschedulable and marks it, or the reverse.
    pub(crate) async fn cordon(&self, node: &str, mark: Option<&Mark>) -> Result<(), Trouble> {
        let patch = match mark {
            Some(mark) => json!({
                "metadata": {"annotations": {DRAIN: write_mark(mark)}}, "spec": {"unschedulable": true},
            }),
            None => json!({"metadata": {"annotations": {DRAIN: null}}, "spec": {"unschedulable": null}}),
        };
        let api: Api<Node> = Api::all(self.client.clone());
        done(api.patch(node, &PatchParams::default(), &Patch::Merge(&patch)).await)
    }

    /// Asks for a pod's eviction. Posted by hand: the client crate spells the options in a way servers do not read, and
    /// the pod must be the one we mean.
    pub(crate) async fn evict(&self, pod: &Pod, grace_secs: Option<i64>) -> Evicted {
        let mut options = json!({"preconditions": {"uid": pod.uid}});
        if let Some(secs) = grace_secs {
            options["gracePeriodSeconds"] = secs.into();
        }
        let body = json!({
            "apiVersion": self.eviction, "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": options,
        });
        let path = format!("{}/{}/eviction", CorePod::url_path(&(), Some(&pod.namespace)), pod.name);
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes());
        let request = match request {
            Ok(request) => request,
            Err(error) => return Evicted::Failed(error.to_string()),
        };
        match self.client.request_text(request).await {
            Ok(_) => Evicted::Accepted,
            Err(kube::Error::Api(status)) => match status.code {
                // Gone, or another pod has its name by now.
                404 | 409 => Evicted::Accepted,
                429 if is_budget(&status) => Evicted::Blocked(status.message.clone()),
                // The server's words for several budgets on one pod.
                500 if status.message.contains("PodDisruptionBudget") => {
                    Evicted::Blocked(status.message.clone())
                }
                _ => Evicted::Failed(status.message.clone()),
            },
            Err(error) => Evicted::Failed(error.to_string()),
        }
    }
}

/// The version of `Eviction` that a server takes which has these resources: the older one is gone since 1.25, the newer one is there
/// since 1.22.
fn eviction_version(resources: &APIResourceList) -> &'static str {
    let eviction = resources.resources.iter().find(|resource| resource.name == "pods/eviction");
    let version = eviction.and_then(|resource| resource.version.as_deref());
    if version == Some("v1") { "policy/v1" } else { "policy/v1beta1" }
}

/// Whether a 429 is a disruption budget's and not a server that is asked too much.
fn is_budget(status: &kube::core::Status) -> bool {
    let causes = status.details.as_ref().map(|details| &details.causes[..]).unwrap_or_default();
    causes.iter().any(|cause| cause.reason == "DisruptionBudget")
        || status.message.contains("disruption budget")
}

fn done<T>(done: kube::Result<T>) -> Result<(), Trouble> {
    match done {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status))
            if status.code == 404
                || status.code == 409
                    && status.reason == "Conflict"
                    && status.message.contains("Precondition") =>
        {
            Err(Trouble::Gone)
        }
        Err(error) => Err(Trouble::Failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests;
