//! Pods that wait: when what is on its way is expected, and that one which nothing holds keeps nobody else waiting.

use std::time::Duration;

use bigfleet_crds::{CapacityRequest, OWNED_BY_POD, UpcomingNode};
use bigfleet_kube_common::unix_nanos;
use bigfleet_kube_testbed::ControlPlane;
use bigfleet_net::Clock as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

use crate::cluster::{Ask, Cluster, condition, holds, is_ready, is_running};
use crate::explain::try_ask;
use crate::fleet::Fleet;

const MINUTE_NANOS: i64 = 60_000_000_000;
/// Longer than pods must be stuck before anything is asked for them.
const QUIET: Duration = Duration::from_secs(6);

pub(crate) async fn what_is_on_its_way_says_when_it_is_expected(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::slow(60);
    assert!(fleet.keeps_a_record(), "what was observed is read from the record");
    let shop = Cluster::connect(plane, "shop", &fleet).await;
    let ns = namespace.as_str();
    shop.deploy(ns, "web", 1, Ask::of("std-8", "5", "1Gi")).await;
    shop.all_run(ns, 1).await;
    let first = shop.all::<UpcomingNode>().await[0].name_any();

    // One was seen to come: the next is expected.
    shop.scale(ns, "web", 2).await;
    let (request, need) = shop
        .until("requests to say when", async || {
            let request = shop.requests(ns).await.into_iter().find(|request| {
                condition(request, "Joined").is_some_and(|joined| joined.expected_time.is_some())
            })?;
            let need = condition(&request, "Joined")?.need_id.clone()?;
            let need = try_ask(&["explain", "need", &need, "--server", fleet.shard(), "--json"])?;
            Some((request, need))
        })
        .await;
    let joined = condition(&request, "Joined").unwrap();
    assert_eq!(joined.reason, "Joining");
    let (earliest, latest) = (joined.earliest_time.as_ref().unwrap(), joined.expected_time.as_ref().unwrap());
    let now = shop.clock.now_unix_nanos();
    assert!(unix_nanos(earliest) <= unix_nanos(latest));
    assert!(unix_nanos(latest).abs_diff(now) < MINUTE_NANOS.unsigned_abs(), "{joined:?}");
    assert!(
        joined.message.contains(", the last expected ") && joined.message.contains(" seen)"),
        "{joined:?}"
    );
    assert_eq!(need["need"]["coming"], 1, "{need:#}");
    shop.until("the machine's own object to say when", async || {
        let all = shop.all::<UpcomingNode>().await;
        let coming = all.iter().find(|machine| machine.name_any() != first)?;
        let said = coming.status.as_ref()?.expected_ready_time.is_some();
        // Or it is there by now, and nothing is expected any more.
        (said || is_ready(coming)).then_some(())
    })
    .await;
    shop.all_run(ns, 2).await;
    shop.until("nothing to be expected when all are there", async || {
        let all = shop.requests(ns).await;
        let there = |request: &CapacityRequest| {
            condition(request, "Joined").is_some_and(|joined| joined.expected_time.is_none())
                && holds(request, "Joined")
        };
        all.iter().all(there).then_some(())
    })
    .await;
    shop.clear(ns).await;
}

pub(crate) async fn one_pod_that_nothing_holds_keeps_nobody_waiting(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::start(60);
    let shop = Cluster::connect(plane, "shop", &fleet).await;
    let ns = namespace.as_str();
    shop.deploy(ns, "web", 2, Ask::of("std-8", "5", "1Gi")).await;
    shop.all_run(ns, 2).await;
    let before: Vec<String> = shop.all::<UpcomingNode>().await.iter().map(UpcomingNode::name_any).collect();
    // The same profile, and more than any machine of the type has.
    shop.deploy(ns, "giant", 1, Ask::of("std-8", "500", "1Gi")).await;
    shop.until("both deployments to be asked for", async || {
        (shop.requests(ns).await.len() == 3).then_some(())
    })
    .await;
    shop.scale(ns, "web", 3).await;
    shop.until("three small pods to run beside the one that waits", async || {
        let pods = shop.pods(ns).await;
        (pods.iter().filter(|pod| is_running(pod)).count() == 3).then_some(())
    })
    .await;
    assert!(shop.metric("revisions_total", "set_apart").await > 0, "that is what it was done with");
    let machines: Vec<String> = shop.all::<UpcomingNode>().await.iter().map(UpcomingNode::name_any).collect();
    assert!(before.iter().all(|machine| machines.contains(machine)), "{before:?} stay: {machines:?}");
    shop.until("each to say how it stands", async || {
        let requests = shop.requests(ns).await;
        let is_giant = |request: &&CapacityRequest| request.spec.resources["cpu"].as_str() == "500";
        let (giant, small): (Vec<_>, Vec<_>) = requests.iter().partition(is_giant);
        let waits = condition(giant.first()?, "Covered")?;
        let says =
            waits.reason == "NoMatchingSupply" && waits.message.contains("too small for its largest pod");
        (says && small.len() == 3 && small.iter().all(|request| holds(request, "Joined"))).then_some(())
    })
    .await;
    shop.clear(ns).await;
}

/// A pod waits before its request is there, and the request changes nothing about the sum: another one like it goes. No verdict
/// follows, no node comes: the request itself must make the operator look.
pub(crate) async fn a_stuck_pod_whose_request_comes_late_is_noticed(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::start(60);
    let mut shop = Cluster::connect(plane, "shop", &fleet).await;
    let ns = namespace.as_str();
    shop.deploy(ns, "web", 1, Ask::of("std-8", "5", "1Gi")).await;
    shop.all_run(ns, 1).await;
    let first = shop.requests(ns).await.pop().unwrap();
    let home = shop.pods(ns).await.pop().unwrap().spec.unwrap().node_name.unwrap();
    shop.stop_pod_controller();

    // A second machine, for a request that no pod has, and filled with a pod that has no request.
    let requests: Api<CapacityRequest> = Api::namespaced(shop.client.clone(), ns);
    requests
        .create(&PostParams::default(), &CapacityRequest::new("spare", first.spec.clone()))
        .await
        .unwrap();
    let other = shop
        .until("a second node", async || {
            let joined = shop.all::<UpcomingNode>().await.into_iter().filter(is_ready).count();
            let nodes = shop.all::<Node>().await;
            let other = nodes.iter().map(Node::name_any).find(|name| *name != home);
            other.filter(|_| joined == 2 && nodes.len() == 2)
        })
        .await;
    let filler: Pod = serde_json::from_value(json!({
        "metadata": {"name": "filler"},
        "spec": {"nodeName": other, "terminationGracePeriodSeconds": 0, "containers": [
            {"name": "c", "image": "none", "resources": {"requests": {"cpu": "5", "memory": "1Gi"}}}]},
    }))
    .unwrap();
    let pods: Api<Pod> = Api::namespaced(shop.client.clone(), ns);
    pods.create(&PostParams::default(), &filler).await.unwrap();
    shop.all_run(ns, 2).await;

    shop.scale(ns, "web", 2).await;
    let stuck = shop
        .until("a pod without a place", async || {
            let waits = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none());
            let pod = shop.pods(ns).await.into_iter().find(waits)?;
            let conditions = pod.status.as_ref()?.conditions.as_ref()?;
            conditions.iter().any(|one| one.reason.as_deref() == Some("Unschedulable")).then_some(pod)
        })
        .await;
    // Looked at, and nobody knows what it asks for.
    shop.clock.sleep(QUIET).await;
    let uid = stuck.uid().unwrap();
    let mut late = CapacityRequest::new(&format!("pod-{uid}"), first.spec.clone());
    late.metadata.labels = Some([(OWNED_BY_POD.to_owned(), uid)].into());
    requests.create(&PostParams::default(), &late).await.unwrap();
    requests.delete("spare", &DeleteParams::default()).await.unwrap();
    shop.all_run(ns, 3).await;
    assert_eq!(shop.all::<UpcomingNode>().await.len(), 3, "a machine came for it");
    pods.delete("filler", &DeleteParams::default()).await.unwrap();
    shop.delete_all(&requests).await;
    shop.clear(ns).await;
}
