//! What the tests on a control plane share: the controller under its own account, pods, metrics.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bigfleet_kube_common::{Connection, ElectionSettings, Timing, install};
use bigfleet_kube_testbed::{ControlPlane, apply, eventually, http_get};
use bigfleet_net::SystemClock;
use bigfleet_pod_controller::translate::Policy;
use bigfleet_pod_controller::{Running, Settings, run};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The manifest that people install.
const MANIFEST: &str = include_str!("../../../../deploy/kubernetes/pod-controller.yaml");

/// The controller that the scenarios of the first test share, started by the first that needs it.
pub(crate) async fn controller(plane: &ControlPlane) -> &'static Running {
    static SHARED: OnceCell<Running> = OnceCell::const_new();
    SHARED.get_or_init(|| own_controller(plane)).await
}

/// A controller without an election.
pub(crate) async fn own_controller(plane: &ControlPlane) -> Running {
    start(plane, None).await
}

/// A controller that takes part in an election.
pub(crate) async fn replica(plane: &ControlPlane, identity: &str) -> Running {
    let election = ElectionSettings {
        namespace: "bigfleet-system".into(),
        name: "bigfleet-pod-controller".into(),
        identity: identity.into(),
        timing: Timing {
            lease: Duration::from_secs(30),
            give_up: Duration::from_secs(20),
            retry: Duration::from_millis(200),
        },
    };
    start(plane, Some(election)).await
}

async fn start(plane: &ControlPlane, election: Option<ElectionSettings>) -> Running {
    // Shown if the test fails. The first one sets it up for all.
    let _ = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
        .with_writer(std::io::stderr)
        .try_init();
    let kubeconfig = account(plane).await;
    let settings = Settings {
        connection: Connection { kubeconfig: Some(kubeconfig), context: None },
        policy: Policy::default(),
        election,
        metrics: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
    };
    run(settings, Arc::new(SystemClock::start())).await.unwrap()
}

/// Installs the definitions and the manifest's account and rights, and gives its kubeconfig. Twice is as good as once.
async fn account(plane: &ControlPlane) -> std::path::PathBuf {
    let client = plane.client().await;
    install(&client, &SystemClock::start()).await.unwrap();
    for document in MANIFEST.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        apply(&client, &object).await;
    }
    plane.kubeconfig_file_of_account("bigfleet-system", "bigfleet-pod-controller").await.unwrap()
}

/// A pod that asks for a cpu, with this changed in its spec.
pub(crate) fn pod(name: &str, spec: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}]},
    });
    let Value::Object(fields) = spec else { panic!("a spec has fields") };
    for (key, value) in fields {
        pod["spec"][key] = value;
    }
    serde_json::from_value(pod).unwrap()
}

/// What a controller's metrics say, once it is ready.
pub(crate) async fn metric(running: &Running) -> String {
    let address = running.metrics.unwrap();
    eventually("ready", async || get(address, "/readyz").await.starts_with("HTTP/1.1 200").then_some(()))
        .await;
    get(address, "/metrics").await
}

/// Whether it does the work.
pub(crate) async fn leads(running: &Running) -> bool {
    metric(running).await.contains("\nbigfleet_pod_controller_leading 1\n")
}

/// The sum of a counter over all series whose labels contain this.
pub(crate) async fn sum(running: &Running, counter: &str, labels: &str) -> u64 {
    let text = get(running.metrics.unwrap(), "/metrics").await;
    let name = format!("bigfleet_pod_controller_{counter}");
    let lines = text.lines().filter(|line| line.starts_with(&name) && line.contains(labels));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

async fn get(address: SocketAddr, path: &str) -> String {
    http_get(&address.to_string(), path).await.unwrap()
}
