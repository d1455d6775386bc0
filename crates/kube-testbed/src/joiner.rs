//! Stands in for machines: nodes that exist, stay alive and run pods, on paper.
//!
//! What a kubelet would say is said by these tasks: the node and that it is ready, the lease every ten seconds, a pod's
//! start, and its end when it is told to go. Without the last two a bound pod never runs and an evicted pod never goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_net::{Clock, SystemClock};
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinHandle;

/// How often a kubelet renews its lease.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// Where leases of nodes are.
pub(crate) const LEASES: &str = "kube-node-lease";

/// A node to be.
#[derive(Clone, Debug, Default)]
pub struct NewNode {
    /// Its name.
    pub name: String,
    /// What it offers, all of it allocatable.
    pub resources: BTreeMap<String, String>,
    /// Its labels; the host name is added.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// The machine behind it, as the provider names it.
    pub provider_id: Option<String>,
}

/// Nodes on paper. Dropping it stops their heartbeat and leaves the objects as they are.
pub struct Joiner {
    client: Client,
    clock: Arc<SystemClock>,
    nodes: Arc<Mutex<BTreeSet<String>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Joiner {
    /// Begins without a node.
    pub fn start(client: Client) -> Self {
        let mut joiner = Self::heartbeat(client.clone());
        joiner.tasks.push(tokio::spawn(run_pods(client, joiner.clock.clone(), joiner.nodes.clone())));
        joiner
    }

    /// The same for nodes whose pods somebody else runs.
    pub(crate) fn heartbeat(client: Client) -> Self {
        let clock = Arc::new(SystemClock::start());
        let nodes = Arc::new(Mutex::new(BTreeSet::new()));
        let renewing = tokio::spawn(renew(client.clone(), clock.clone(), nodes.clone()));
        Self { client, clock, nodes, tasks: vec![renewing] }
    }

    /// Makes a node, ready.
    pub async fn join(&self, new: NewNode) -> kube::Result<Node> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let mut labels = new.labels;
        labels.insert("kubernetes.io/hostname".into(), new.name.clone());
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": new.name, "labels": labels},
            "spec": {"providerID": new.provider_id, "taints": new.taints},
        }))
        .expect("a node");
        nodes.create(&PostParams::default(), &node).await?;
        beat(&self.client, &*self.clock, &new.name).await?;
        self.nodes.lock().expect("no holder panics").insert(new.name.clone());
        let mut resources = new.resources;
        resources.entry("pods".into()).or_insert_with(|| "110".into());
        let now = now(&*self.clock);
        let status = json!({"status": {
            "capacity": resources, "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "on paper",
                "lastHeartbeatTime": now, "lastTransitionTime": now}],
        }});
        nodes.patch_status(&new.name, &PatchParams::default(), &Patch::Merge(&status)).await
    }

    /// Removes a node, as a machine that is gone: no heartbeat, no object.
    pub async fn leave(&self, name: &str) -> kube::Result<()> {
        self.nodes.lock().expect("no holder panics").remove(name);
        let delete = DeleteParams::default();
        gone_is_fine(Api::<Node>::all(self.client.clone()).delete(name, &delete).await)?;
        gone_is_fine(Api::<Lease>::namespaced(self.client.clone(), LEASES).delete(name, &delete).await)
    }
}

impl std::fmt::Debug for Joiner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Joiner").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl Drop for Joiner {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn renew(client: Client, clock: Arc<SystemClock>, nodes: Arc<Mutex<BTreeSet<String>>>) {
    loop {
        clock.sleep(RENEW_EVERY).await;
        let names: Vec<String> = nodes.lock().expect("no holder panics").iter().cloned().collect();
        for name in names {
            // The next one will do; four may be missed before anybody minds.
            let _ = beat(&client, &*clock, &name).await;
        }
    }
}

/// Renews a node's lease, or makes it.
async fn beat(client: &Client, clock: &dyn Clock, name: &str) -> kube::Result<Lease> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": MicroTime(timestamp(clock))},
    });
    leases.patch(name, &PatchParams::apply("joiner").force(), &Patch::Apply(&lease)).await
}

/// Starts pods that were bound to one of the nodes, and lets those go that were told to.
async fn run_pods(client: Client, clock: Arc<SystemClock>, nodes: Arc<Mutex<BTreeSet<String>>>) {
    let pods = watcher(Api::<Pod>::all(client.clone()), watcher::Config::default());
    let mut pods = pods.default_backoff().applied_objects().boxed();
    while let Some(pod) = pods.next().await {
        let Ok(pod) = pod else { continue };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        if !node.is_some_and(|node| nodes.lock().expect("no holder panics").contains(node)) {
            continue;
        }
        // What fails here is seen again with the pod's next change, or is gone.
        let _ = if pod.metadata.deletion_timestamp.is_some() {
            let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            let uid = Some(Preconditions { uid: pod.uid(), resource_version: None });
            let now = DeleteParams { preconditions: uid, ..DeleteParams::default().grace_period(0) };
            gone_is_fine(api.delete(&pod.name_any(), &now).await)
        } else if pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Pending") {
            run(&client, &*clock, &pod).await
        } else {
            Ok(())
        };
    }
}

async fn run(client: &Client, clock: &dyn Clock, pod: &Pod) -> kube::Result<()> {
    let now = now(clock);
    let holds = |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": now});
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| {
        json!({"name": container.name, "image": container.image, "imageID": "", "ready": true, "started": true,
            "restartCount": 0, "state": {"running": {"startedAt": now}}})
    });
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(holds);
    let status = json!({"status": {
        "phase": "Running", "startTime": now,
        "conditions": conditions,
        "containerStatuses": containers.collect::<Vec<_>>(),
    }});
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(&status)).await.map(drop)
}

pub(crate) fn gone_is_fine<T>(done: kube::Result<T>) -> kube::Result<()> {
    match done {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        done => done.map(drop),
    }
}

fn timestamp(clock: &dyn Clock) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(clock.now_unix_nanos()))
        .expect("the clock shows a time of this age")
}

fn now(clock: &dyn Clock) -> String {
    format!("{:.0}", timestamp(clock))
}
