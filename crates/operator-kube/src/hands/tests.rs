//! Evictions on a real API server, and the two faults of the client crate that are worked around: a test that fails because a fault
//! is gone says that its workaround can go too.

use std::time::Duration;

use bigfleet_kube_common::Connection;
use bigfleet_kube_testbed::{ControlPlane, Identity, Parts, eventually, requests_served, scenarios};
use bigfleet_net::{Clock as _, SystemClock};
use bigfleet_operator::drain::Carried;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, EvictParams, GroupVersionKind, PostParams};
use kube::discovery::ApiResource;

use super::*;

/// What a pod may take to end.
const OWN_GRACE_SECS: i64 = 300;
/// What is left for it.
const LEFT_SECS: i64 = 7;
const REFUSED: [&str; 3] = ["verb=\"POST\"", "subresource=\"eviction\"", "code=\"429\""];

#[test]
fn on_a_real_control_plane() {
    scenarios(
        Parts::Controllers,
        1,
        scenarios![
            an_eviction_carries_its_grace_and_means_one_pod,
            the_clients_own_eviction_loses_its_grace,
            a_refused_eviction_is_asked_once,
            a_client_that_tries_again_by_itself_hides_a_refusal,
        ],
    );
}

/// The test beds have a server of 1.20. This is what others say of themselves, as they have it under `/api/v1`.
#[test]
fn the_version_of_an_eviction_is_the_servers() {
    for (version, expected) in
        [(json!("v1beta1"), "policy/v1beta1"), (json!("v1"), "policy/v1"), (json!(null), "policy/v1beta1")]
    {
        let list = serde_json::from_value(
            json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": ["create", "get"]},
                {"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": version,
                    "kind": "Eviction", "verbs": ["create"]},
            ]}),
        );
        assert_eq!(eviction_version(&list.expect("as servers write it")), expected, "{version}");
    }
}

/// A client as the operator has it.
async fn ours(plane: &ControlPlane) -> Client {
    let kubeconfig = Some(plane.kubeconfig_file("ours", &Identity::admin()).unwrap());
    Connection { kubeconfig, context: None }.client().await.unwrap()
}

/// A pod that runs on a node nobody has: it ends when somebody says so.
async fn running(plane: &ControlPlane, namespace: &str) -> (Api<CorePod>, Pod) {
    let pods: Api<CorePod> = Api::namespaced(plane.client().await, namespace);
    let pod: CorePod = serde_json::from_value(json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"nodeName": "far", "terminationGracePeriodSeconds": OWN_GRACE_SECS,
            "containers": [{"name": "c", "image": "none"}]},
    }))
    .unwrap();
    let made = pods.create(&PostParams::default(), &pod).await.unwrap();
    let runs = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    pods.patch_status("web", &PatchParams::default(), &Patch::Merge(&runs)).await.unwrap();
    let seen = Pod {
        namespace: namespace.into(),
        name: "web".into(),
        uid: made.uid().unwrap(),
        carried: Carried::ByItself,
        is_terminating: false,
        grace_secs: OWN_GRACE_SECS,
    };
    (pods, seen)
}

/// A disruption budget that lets nobody go, in the version the server has, and counted.
async fn budget(client: &Client, namespace: &str) {
    let groups = client.list_api_groups().await.unwrap();
    let policy = groups.groups.into_iter().find(|group| group.name == "policy").unwrap();
    let has_v1 = policy.versions.iter().any(|version| version.version == "v1");
    let kind = GroupVersionKind::gvk("policy", if has_v1 { "v1" } else { "v1beta1" }, "PodDisruptionBudget");
    let budgets: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind));
    let object = json!({"metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    budgets.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    eventually("the budget to be counted", async || {
        let budget = budgets.get("web").await.ok()?;
        (budget.data["status"]["currentHealthy"] == 1).then_some(())
    })
    .await;
}

async fn an_eviction_carries_its_grace_and_means_one_pod(plane: &ControlPlane, namespace: String) {
    let hands = Hands::new(ours(plane).await).await.unwrap();
    let (pods, seen) = running(plane, &namespace).await;
    let another = Pod { uid: "6f1d2a34-0000-4000-8000-000000000000".into(), ..seen.clone() };
    assert_eq!(
        hands.evict(&another, Some(LEFT_SECS)).await,
        Evicted::Accepted,
        "the one that was meant is gone"
    );
    assert_eq!(pods.get("web").await.unwrap().metadata.deletion_timestamp, None, "the one of its name stays");
    assert_eq!(hands.evict(&seen, Some(LEFT_SECS)).await, Evicted::Accepted);
    let ending = pods.get("web").await.unwrap().metadata;
    assert_eq!(ending.deletion_grace_period_seconds, Some(LEFT_SECS));
}

async fn the_clients_own_eviction_loses_its_grace(plane: &ControlPlane, namespace: String) {
    let (pods, _) = running(plane, &namespace).await;
    let delete_options = Some(DeleteParams::default().grace_period(u32::try_from(LEFT_SECS).unwrap()));
    let params = EvictParams { delete_options, ..EvictParams::default() };
    pods.evict("web", &params).await.unwrap();
    let ending = pods.get("web").await.unwrap().metadata;
    assert_eq!(ending.deletion_grace_period_seconds, Some(OWN_GRACE_SECS), "the server did not read it");
}

async fn a_refused_eviction_is_asked_once(plane: &ControlPlane, namespace: String) {
    let client = ours(plane).await;
    let hands = Hands::new(client.clone()).await.unwrap();
    let (pods, seen) = running(plane, &namespace).await;
    budget(&client, &namespace).await;
    let before = requests_served(&client, &REFUSED).await.unwrap();
    let Evicted::Blocked(why) = hands.evict(&seen, None).await else { panic!("a budget holds it") };
    assert!(why.contains("disruption budget"), "{why}");
    assert_eq!(requests_served(&client, &REFUSED).await.unwrap(), before + 1);
    assert_eq!(pods.get("web").await.unwrap().metadata.deletion_timestamp, None);
}

async fn a_client_that_tries_again_by_itself_hides_a_refusal(plane: &ControlPlane, namespace: String) {
    let mut config = plane.config_of(&Identity::admin()).await;
    config.default_retry = true;
    let client = plane.client().await;
    let usual = Hands::new(Client::try_from(config).unwrap()).await.unwrap();
    let (_, seen) = running(plane, &namespace).await;
    budget(&client, &namespace).await;
    let before = requests_served(&client, &REFUSED).await.unwrap();
    let clock = SystemClock::start();
    let asked_again = async {
        while requests_served(&client, &REFUSED).await.unwrap() < before + 3 {
            clock.sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        answer = usual.evict(&seen, None) => panic!("it came back by itself: {answer:?}"),
        () = asked_again => {}
    }
}
