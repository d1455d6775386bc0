//! What the tests on a control plane share: the controller under its own account, pods, metrics.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bigfleet_kube_common::{Connection, ElectionSettings, Timing, install};
use bigfleet_kube_testbed::{ControlPlane, apply, eventually};
use bigfleet_net::SystemClock;
use bigfleet_pod_controller::translate::Policy;
use bigfleet_pod_controller::{Running, Settings, run};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

/// The manifest that people install.
const MANIFEST: &str = include_str!("../../../../deploy/kubernetes/pod-controller.yaml");

/// The controller that all scenarios of a test share, started by the first that needs it.
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
    let kubeconfig = account(plane).await;
    let settings = Settings {
        connection: Connection { kubeconfig: Some(kubeconfig), context: None },
        policy: Policy::default(),
        election,
        metrics: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
    };
    run(settings, Arc::new(SystemClock::start())).await.unwrap()
}

/// Installs the definitions and the manifest's account and rights, once, and gives its kubeconfig.
async fn account(plane: &ControlPlane) -> std::path::PathBuf {
    static ACCOUNT: OnceCell<std::path::PathBuf> = OnceCell::const_new();
    let made = ACCOUNT.get_or_init(|| async {
        let client = plane.client().await;
        install(&client, &SystemClock::start()).await.unwrap();
        for document in MANIFEST.split("\n---\n") {
            let object: Value = serde_saphyr::from_str(document).unwrap();
            apply(&client, &object).await;
        }
        plane.kubeconfig_file_of_account("bigfleet-system", "bigfleet-pod-controller").await.unwrap()
    });
    made.await.clone()
}

/// A pod that asks for a cpu, with this changed in its spec.
pub(crate) fn pod(name: &str, spec: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}]},
    });
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
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

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
