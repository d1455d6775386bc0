//! The pod controller while the control plane fails. Each scenario makes sure that the fault has struck.

use std::time::Duration;

use bigfleet_crds::CapacityRequest;
use bigfleet_kube_testbed::{ControlPlane, Parts, eventually, scenarios};
use bigfleet_net::{Clock as _, SystemClock};
use bigfleet_pod_controller::request_name;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::request_of;
use crate::support::{metric, own_controller, pod, sum};

/// One after another: each breaks what the others need.
#[test]
fn under_faults() {
    scenarios(
        Parts::Controllers,
        1,
        scenarios![
            the_api_server_restarts,
            etcd_is_lost_for_a_while,
            the_api_server_stands_still,
            a_storm_of_edits,
        ],
    );
}

async fn made(plane: &ControlPlane, namespace: &str, name: &str) -> Pod {
    let pods: Api<Pod> = Api::namespaced(plane.client().await, namespace);
    // A server that has just come back may not know its service accounts yet.
    eventually(&format!("pod {name} is made"), async || {
        match pods.create(&PostParams::default(), &pod(name, json!({}))).await {
            Ok(made) => Some(made),
            Err(kube::Error::Api(status)) if status.code == 409 => pods.get_opt(name).await.unwrap(),
            Err(_) => None,
        }
    })
    .await
}

/// Every pod of the namespace has its request, and there is no other.
async fn each_pod_has_one(plane: &ControlPlane, namespace: &str, count: usize) {
    let client = plane.client().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let requests: Api<CapacityRequest> = Api::namespaced(client, namespace);
    let pods = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(pods.items.len(), count);
    let mut expected: Vec<String> = pods.iter().map(|pod| request_name(&pod.uid().unwrap())).collect();
    expected.sort();
    let found = requests.list(&ListParams::default()).await.unwrap();
    let mut found: Vec<String> = found.iter().map(kube::ResourceExt::name_any).collect();
    found.sort();
    assert_eq!(found, expected);
}

async fn the_api_server_restarts(plane: &ControlPlane, namespace: String) {
    let running = own_controller(plane).await;
    request_of(plane, &made(plane, &namespace, "before").await).await;
    metric(&running).await;
    plane.kill_api_server();
    let version = plane.client().await.apiserver_version().await;
    assert!(version.is_err(), "the fault has struck");
    plane.start_api_server().await.unwrap();
    request_of(plane, &made(plane, &namespace, "after").await).await;
    assert!(sum(&running, "watch_errors_total", "resource=\"pods\"").await > 0, "the watch noticed");
    each_pod_has_one(plane, &namespace, 2).await;
    running.stop().await;
}

async fn etcd_is_lost_for_a_while(plane: &ControlPlane, namespace: String) {
    let running = own_controller(plane).await;
    request_of(plane, &made(plane, &namespace, "before").await).await;
    plane.kill_etcd();
    let pods: Api<Pod> = Api::namespaced(plane.client().await, &namespace);
    let clock = SystemClock::start();
    let (now, during) = (PostParams::default(), pod("during", json!({})));
    let refused = tokio::select! {
        made = pods.create(&now, &during) => made.is_err(),
        () = clock.sleep(Duration::from_secs(2)) => true,
    };
    assert!(refused, "the fault has struck");
    plane.start_etcd().await.unwrap();
    request_of(plane, &made(plane, &namespace, "during").await).await;
    request_of(plane, &made(plane, &namespace, "after").await).await;
    each_pod_has_one(plane, &namespace, 3).await;
    running.stop().await;
}

async fn the_api_server_stands_still(plane: &ControlPlane, namespace: String) {
    let running = own_controller(plane).await;
    request_of(plane, &made(plane, &namespace, "before").await).await;
    let clock = SystemClock::start();
    plane.with_api_server(|server| server.freeze()).unwrap();
    let client = plane.client().await;
    let answered = tokio::select! {
        version = client.apiserver_version() => version.is_ok(),
        () = clock.sleep(Duration::from_secs(3)) => false,
    };
    assert!(!answered, "the fault has struck");
    plane.with_api_server(|server| server.go_on()).unwrap();
    request_of(plane, &made(plane, &namespace, "after").await).await;
    each_pod_has_one(plane, &namespace, 2).await;
    running.stop().await;
}

/// Somebody edits the request as fast as the server lets them. The controller puts it right, again and again, and in the end.
async fn a_storm_of_edits(plane: &ControlPlane, namespace: String) {
    let running = own_controller(plane).await;
    let web = made(plane, &namespace, "web").await;
    let right = request_of(plane, &web).await;
    let requests: Api<CapacityRequest> = Api::namespaced(plane.client().await, &namespace);
    let before = sum(&running, "writes_total", "step=\"apply\"").await;
    for priority in 1..=200 {
        let edit = json!({"spec": {"priority": priority}});
        requests.patch(&right.name_any(), &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    }
    eventually("the request as it was", async || {
        (requests.get(&right.name_any()).await.unwrap().spec == right.spec).then_some(())
    })
    .await;
    assert!(sum(&running, "writes_total", "step=\"apply\"").await > before, "it was at work");
    each_pod_has_one(plane, &namespace, 1).await;
    running.stop().await;
}
