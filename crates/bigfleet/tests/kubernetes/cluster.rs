//! A cluster's side: the shipped manifests' accounts and rights, `bigfleet pod-controller` and `bigfleet operator` as
//! processes under exactly these, and machines that become nodes on paper.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_crds::{CapacityRequest, Condition, ConditionStatus, NodePhase, UpcomingNode};
use bigfleet_kube_common::install;
use bigfleet_kube_testbed::{ControlPlane, apply, http_get, join_machines, processor_secs};
use bigfleet_net::{Clock, SystemClock, nanos};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::fleet::Fleet;
use crate::process::{Process, free_port};

const MANIFESTS: [&str; 2] = [
    include_str!("../../../../deploy/kubernetes/pod-controller.yaml"),
    include_str!("../../../../deploy/kubernetes/operator.yaml"),
];
/// Longer than anything takes on a busy machine; whoever gets here has failed.
const PATIENCE: Duration = Duration::from_mins(5);
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// A connected cluster. Dropping it stops what was started for it.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) clock: Arc<SystemClock>,
    name: String,
    shard: String,
    kubeconfig: PathBuf,
    template: tempfile::NamedTempFile,
    metrics: String,
    operator: Option<Process>,
    pods: Option<Process>,
    joining: JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.joining.abort();
    }
}

impl Cluster {
    /// Connects a control plane to a fleet under this name; its machines become nodes on paper.
    pub(crate) async fn connect(plane: &ControlPlane, name: &str, fleet: &Fleet) -> Self {
        let joining = tokio::spawn(join_machines(plane.client().await));
        Self::connect_with(plane, name, fleet, "join {{ .ClusterID }} with {{ .JoinToken }}", joining).await
    }

    /// The same for machines that become nodes by themselves, with this bootstrap template.
    pub(crate) async fn connect_hosts(
        plane: &ControlPlane,
        name: &str,
        fleet: &Fleet,
        template: &str,
    ) -> Self {
        Self::connect_with(plane, name, fleet, template, tokio::spawn(std::future::ready(()))).await
    }

    async fn connect_with(
        plane: &ControlPlane,
        name: &str,
        fleet: &Fleet,
        bootstrap: &str,
        joining: JoinHandle<()>,
    ) -> Self {
        let client = plane.client().await;
        let clock = Arc::new(SystemClock::start());
        install(&client, &*clock).await.unwrap();
        for document in MANIFESTS.iter().flat_map(|manifest| manifest.split("\n---\n")) {
            let object: Value = serde_saphyr::from_str(document).unwrap();
            // Programs of the manifests run here, not there.
            if object["kind"] != "Deployment" {
                apply(&client, &object).await;
            }
        }
        let account = plane.kubeconfig_file_of_account("bigfleet-system", "bigfleet-pod-controller").await;
        let account = account.unwrap().display().to_string();
        let arguments =
            ["pod-controller", "--kubeconfig", &account, "--no-leader-election", "--metrics", "none"];
        let pods = Process::start("pod controller", &arguments);
        let kubeconfig =
            plane.kubeconfig_file_of_account("bigfleet-system", "bigfleet-operator").await.unwrap();
        let template = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(template.path(), bootstrap).unwrap();
        let mut cluster = Self {
            client,
            clock,
            name: name.into(),
            shard: fleet.shard().into(),
            kubeconfig,
            template,
            metrics: String::new(),
            operator: None,
            pods: Some(pods),
            joining,
        };
        cluster.start_operator(&["--no-leader-election"]);
        cluster
    }

    /// Starts an operator, or another one in the place of the one that was killed.
    pub(crate) fn start_operator(&mut self, flags: &[&str]) {
        let (operator, metrics) = self.new_operator(flags);
        (self.operator, self.metrics) = (Some(operator), metrics);
    }

    /// One more operator, and where its metrics are.
    pub(crate) fn new_operator(&self, flags: &[&str]) -> (Process, String) {
        let metrics = format!("127.0.0.1:{}", free_port());
        let kubeconfig = self.kubeconfig.display().to_string();
        let template = self.template.path().display().to_string();
        let who = ["operator", "--cluster", &self.name, "--shard", &self.shard, "--kubeconfig", &kubeconfig];
        let files = ["--bootstrap-template-file", &template, "--metrics", &metrics];
        let pace = ["--rollup-interval-secs", "2", "--debounce-secs", "0.2", "--settle-secs", "3"];
        (Process::start(&self.name, &[&who[..], &files, &pace, flags].concat()), metrics)
    }

    /// An operator in this process, with a clock of its own and watches of this length. Dropping it stops it.
    pub(crate) async fn operator_with(
        &self,
        clock: Arc<dyn Clock>,
        watch_for: Duration,
    ) -> bigfleet_operator_kube::Running {
        let text = std::fs::read_to_string(self.template.path()).unwrap();
        let settings = bigfleet_operator_kube::Settings {
            cluster: self.name.clone(),
            shard: self.shard.clone(),
            tls: None,
            template: bigfleet_operator::template::Template::parse(&text).unwrap(),
            blob_ttl: Duration::from_mins(15),
            interval: Duration::from_secs(2),
            debounce: Duration::from_millis(200),
            settle: Duration::from_secs(3),
            subtract_existing: true,
            watch_for,
        };
        let connection =
            bigfleet_kube_common::Connection { kubeconfig: Some(self.kubeconfig.clone()), context: None };
        let client = connection.client().await.unwrap();
        bigfleet_operator_kube::start(settings, client, clock).await.unwrap()
    }

    /// Ends the operator like a power cut.
    pub(crate) fn kill_operator(&mut self) {
        self.operator.take().expect("it runs").kill();
    }

    /// Ends the pod controller: whoever tests writes requests.
    pub(crate) fn stop_pod_controller(&mut self) {
        assert_eq!(self.pods.take().expect("it runs").stop(), Some(0), "it stops as it is asked");
    }

    /// Makes another operator, started with [`Self::new_operator`], the one this cluster has.
    pub(crate) fn adopt_operator(&mut self, operator: Process, metrics: String) {
        (self.operator, self.metrics) = (Some(operator), metrics);
    }

    /// The operator's memory, as the kernel counts it.
    pub(crate) fn operator_size(&self) -> String {
        let id = self.operator.as_ref().expect("it runs").id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let mib = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
            line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap_or_default() / 1024.0
        };
        format!("{:.0} MiB resident, {:.0} MiB of it its own", mib("VmRSS:"), mib("RssAnon:"))
    }

    /// How long each process of this cluster, its control plane and its fleet has had a processor, the busiest first.
    pub(crate) fn processor_seconds(&self, plane: &ControlPlane, fleet: &Fleet) -> String {
        let ours = [("operator", &self.operator), ("pod controller", &self.pods)];
        let ours =
            ours.into_iter().filter_map(|(name, program)| Some((name.to_owned(), program.as_ref()?.id())));
        let ours =
            ours.chain(fleet.processes()).filter_map(|(name, id)| Some((name, processor_secs(id).ok()?)));
        let mut used: Vec<(String, f64)> = ours.chain(plane.processor_secs()).collect();
        used.sort_by(|a, b| b.1.total_cmp(&a.1));
        used.iter().map(|(name, secs)| format!("{name} {secs:.1}")).collect::<Vec<_>>().join(", ")
    }

    /// The operator's metrics; empty if it does not answer.
    pub(crate) async fn metrics(&self) -> String {
        http_get(&self.metrics, "/metrics").await.unwrap_or_default()
    }

    /// The sum of a metric of the operator over all series whose labels contain this.
    pub(crate) async fn metric(&self, name: &str, labels: &str) -> u64 {
        let name = format!("bigfleet_operator_{name}");
        let text = self.metrics().await;
        let lines = text.lines().filter(|line| line.starts_with(&name) && line.contains(labels));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Asks until the answer is there.
    pub(crate) async fn until<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let deadline = self.clock.now_unix_nanos() + nanos(PATIENCE);
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            let late = self.clock.now_unix_nanos() > deadline;
            assert!(!late, "{}: still waiting: {what}\n{}", self.name, self.situation().await);
            self.clock.sleep(ASK_AGAIN).await;
        }
    }

    /// What there is, for a test that fails.
    async fn situation(&self) -> String {
        let mut text = self.metrics().await;
        for pod in self.all::<Pod>().await {
            let spec = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
            let _ = writeln!(text, "pod {} {phase:?} on {spec:?}", pod.name_any());
        }
        for request in self.all::<CapacityRequest>().await.into_iter().take(5) {
            let _ = writeln!(text, "request {} {:?}", request.name_any(), request.status);
        }
        for node in self.all::<UpcomingNode>().await {
            let _ = writeln!(text, "upcoming {} {:?}", node.name_any(), node.status);
        }
        for program in self.operator.iter().chain(&self.pods) {
            text += &program.last_words();
        }
        text
    }

    /// Everything of a kind; nothing if the server does not answer.
    pub(crate) async fn all<K>(&self) -> Vec<K>
    where
        K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        Api::<K>::all(self.client.clone())
            .list(&ListParams::default())
            .await
            .map_or(Vec::new(), |list| list.items)
    }

    /// The pods of a namespace.
    pub(crate) async fn pods(&self, namespace: &str) -> Vec<Pod> {
        let all = self.all::<Pod>().await;
        all.into_iter().filter(|pod| pod.namespace().as_deref() == Some(namespace)).collect()
    }

    /// The requests of a namespace.
    pub(crate) async fn requests(&self, namespace: &str) -> Vec<CapacityRequest> {
        let all = self.all::<CapacityRequest>().await;
        all.into_iter().filter(|request| request.namespace().as_deref() == Some(namespace)).collect()
    }

    /// Reasons of events about objects of a kind.
    pub(crate) async fn events(&self, kind: &str) -> BTreeSet<String> {
        let all = self.all::<Event>().await.into_iter();
        let of_kind = all.filter(|event| event.involved_object.kind.as_deref() == Some(kind));
        of_kind.filter_map(|event| event.reason).collect()
    }

    /// Makes a deployment of pods for machines of one type.
    pub(crate) async fn deploy(&self, namespace: &str, name: &str, replicas: u32, ask: Ask<'_>) {
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "nodeSelector": {"node.kubernetes.io/instance-type": ask.on},
                        "priorityClassName": ask.class,
                        "affinity": ask.affinity,
                        "containers": [{"name": "c", "image": "none",
                            "resources": {"requests": {"cpu": ask.cpu, "memory": ask.memory}}}],
                    },
                },
            },
        }))
        .unwrap();
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        api.create(&PostParams::default(), &deployment).await.unwrap();
    }

    /// Changes how many pods a deployment has.
    pub(crate) async fn scale(&self, namespace: &str, name: &str, replicas: u32) {
        self.try_scale(namespace, name, replicas).await.unwrap();
    }

    /// The same where the server may not answer.
    pub(crate) async fn try_scale(&self, namespace: &str, name: &str, replicas: u32) -> kube::Result<()> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let patch = json!({"spec": {"replicas": replicas}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
    }

    /// Waits until a namespace has exactly so many pods and all of them run.
    pub(crate) async fn all_run(&self, namespace: &str, count: usize) {
        self.until(&format!("{count} pods to run"), async || {
            let pods = self.pods(namespace).await;
            let running = pods.iter().filter(|pod| is_running(pod)).count();
            (pods.len() == count && running == count).then_some(())
        })
        .await;
    }

    /// Nothing was refused to the programs: the rights in the manifests are enough.
    pub(crate) fn nothing_was_forbidden(&self) {
        for program in self.operator.iter().chain(&self.pods) {
            let said = program.last_words();
            assert!(!said.contains("forbidden"), "{said}");
        }
    }

    /// Deletes all there is of a kind in a namespace, a page at a time: a server gives up on thousands in one call.
    pub(crate) async fn delete_all<K>(&self, api: &Api<K>)
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let page = ListParams::default().limit(500);
        self.until("all to be deleted", async || {
            let _ = api.delete_collection(&DeleteParams::default(), &page).await;
            api.list(&ListParams::default().limit(1)).await.ok()?.items.is_empty().then_some(())
        })
        .await;
    }

    /// Takes everything down, so that the next scenario finds an empty cluster.
    pub(crate) async fn clear(mut self, namespace: &str) {
        let (all, delete) = (ListParams::default(), DeleteParams::default());
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        deployments.delete_collection(&delete, &all).await.unwrap();
        self.until("all pods to go", async || self.pods(namespace).await.is_empty().then_some(())).await;
        self.until("all requests to go", async || self.requests(namespace).await.is_empty().then_some(()))
            .await;
        for program in [self.operator.take(), self.pods.take()].into_iter().flatten() {
            assert_eq!(program.stop(), Some(0), "it stops as it is asked");
        }
        self.joining.abort();
        // Nobody makes any more; what is left of them is nobody's.
        self.until("machines and nodes to go", async || {
            let machines = Api::<UpcomingNode>::all(self.client.clone());
            let nodes = Api::<Node>::all(self.client.clone());
            for machine in self.all::<UpcomingNode>().await {
                let _ = machines.delete(&machine.name_any(), &delete).await;
            }
            for node in self.all::<Node>().await {
                let _ = nodes.delete(&node.name_any(), &delete).await;
            }
            let left = self.all::<UpcomingNode>().await.len() + self.all::<Node>().await.len();
            (left == 0).then_some(())
        })
        .await;
    }
}

/// What a pod asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// The type of machine.
    pub(crate) on: &'a str,
    pub(crate) cpu: &'a str,
    pub(crate) memory: &'a str,
    /// The priority class.
    pub(crate) class: Option<&'a str>,
    pub(crate) affinity: Option<&'a Value>,
}

impl<'a> Ask<'a> {
    /// So much, on machines of this type.
    pub(crate) fn of(on: &'a str, cpu: &'a str, memory: &'a str) -> Self {
        Self { on, cpu, memory, class: None, affinity: None }
    }
}

/// A condition of a request.
pub(crate) fn condition<'a>(request: &'a CapacityRequest, type_: &str) -> Option<&'a Condition> {
    request.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether a condition of a request holds.
pub(crate) fn holds(request: &CapacityRequest, type_: &str) -> bool {
    condition(request, type_).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// The machines of a cluster that are nodes by now.
pub(crate) fn is_ready(upcoming: &UpcomingNode) -> bool {
    upcoming.status.as_ref().is_some_and(|status| status.phase == NodePhase::Ready)
}

pub(crate) fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
        && pod.metadata.deletion_timestamp.is_none()
}
