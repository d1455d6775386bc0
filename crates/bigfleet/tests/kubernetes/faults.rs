//! The operator while the control plane fails, its peers die and its objects are hostile. Each scenario makes sure that the fault
//! has struck.

use std::time::Duration;

use bigfleet_crds::{CapacityRequest, UpcomingNode};
use bigfleet_kube_testbed::{ControlPlane, requests_served};
use bigfleet_net::Clock as _;
use futures::StreamExt as _;
use futures::stream;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use crate::cluster::{Ask, Cluster, holds};
use crate::fleet::Fleet;
use crate::hops::Hops;

/// A cluster with one deployment of one pod, running.
async fn with_one_pod(plane: &ControlPlane, namespace: &str) -> (Fleet, Cluster) {
    let fleet = Fleet::start(60);
    let shop = Cluster::connect(plane, "shop", &fleet).await;
    shop.deploy(namespace, "web", 1, Ask::of("std-8", "5", "1Gi")).await;
    shop.all_run(namespace, 1).await;
    (fleet, shop)
}

/// Another pod gets another machine: everything works.
async fn still_works(shop: &Cluster, namespace: &str) {
    shop.until("the deployment to be scaled", async || {
        shop.try_scale(namespace, "web", 2).await.is_ok().then_some(())
    })
    .await;
    shop.all_run(namespace, 2).await;
    assert_eq!(shop.all::<UpcomingNode>().await.len(), 2, "one machine more, and none too many");
}

pub(crate) async fn the_api_server_restarts(plane: &ControlPlane, namespace: String) {
    let (_fleet, shop) = with_one_pod(plane, &namespace).await;
    plane.kill_api_server();
    assert!(plane.client().await.apiserver_version().await.is_err(), "the fault has struck");
    plane.start_api_server().await.unwrap();
    shop.until("every watch to have noticed", async || {
        let broken = shop.metrics().await;
        let broken = ["requests", "nodes", "pods", "upcoming nodes"]
            .iter()
            .all(|what| broken.contains(&format!("watches_broken_total{{what=\"{what}\"")));
        broken.then_some(())
    })
    .await;
    still_works(&shop, &namespace).await;
    shop.clear(&namespace).await;
}

/// The server ends a watch after a while, in good order. It goes on from where it was: nothing is listed anew, nothing is missed.
pub(crate) async fn watches_expire(plane: &ControlPlane, namespace: String) {
    let (_fleet, mut shop) = with_one_pod(plane, &namespace).await;
    shop.kill_operator();
    let ended = async || {
        let labels = ["verb=\"WATCH\"", "resource=\"capacityrequests\""];
        requests_served(&shop.client, &labels).await.unwrap_or_default()
    };
    let operator = shop.operator_with(shop.clock.clone(), Duration::from_secs(1)).await;
    let said = |name: &str, what: &str| {
        let text = operator.health().metrics();
        let name = format!("bigfleet_operator_{name}");
        let lines = text.lines().filter(|line| line.starts_with(&name) && line.contains(what));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>()
    };
    shop.until("the operator to have read all", async || (said("lists", "pods") == 1).then_some(())).await;
    let before = ended().await;
    shop.until("watches to expire", async || (ended().await >= before + 5).then_some(())).await;
    still_works(&shop, &namespace).await;
    for what in ["requests", "nodes", "pods", "upcoming nodes"] {
        assert_eq!(said("lists", &format!("what=\"{what}\"")), 1, "{what}: nothing was listed anew");
    }
    assert_eq!(said("watches_broken", ""), 0, "to expire is not to break");
    drop(operator);
    shop.clear(&namespace).await;
}

/// A server that has started again knows nothing of before: who asks it to go on from there is told that the place is gone.
pub(crate) async fn a_watch_is_told_that_its_place_is_gone(plane: &ControlPlane, namespace: String) {
    let (_fleet, shop) = with_one_pod(plane, &namespace).await;
    let told = async || shop.metric("watches_broken_total", "cause=\"expired\"").await;
    let before = told().await;
    plane.kill_api_server();
    plane.start_api_server().await.unwrap();
    shop.until("a watch to be told 410", async || (told().await > before).then_some(())).await;
    shop.until("a list to be read anew", async || (shop.metric("lists", "").await > 4).then_some(())).await;
    still_works(&shop, &namespace).await;
    shop.clear(&namespace).await;
}

pub(crate) async fn etcd_is_lost_for_a_while(plane: &ControlPlane, namespace: String) {
    let (fleet, shop) = with_one_pod(plane, &namespace).await;
    plane.kill_etcd();
    let notes: Api<ConfigMap> = Api::namespaced(shop.client.clone(), &namespace);
    let note: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "note"}})).unwrap();
    let now = PostParams::default();
    let refused = tokio::select! {
        made = notes.create(&now, &note) => made.is_err(),
        () = shop.clock.sleep(Duration::from_secs(2)) => true,
    };
    assert!(refused, "the fault has struck");
    // The shard goes on hearing what the cluster wanted when it was last seen, so nothing is taken from it.
    let said = shop.metric("rollups_total", "sent").await;
    shop.until("roll-ups to go on", async || {
        (shop.metric("rollups_total", "sent").await > said + 2).then_some(())
    })
    .await;
    let bound = fleet.machines().await.into_iter().filter(|machine| machine.cluster == "shop").count();
    assert_eq!(bound, 1, "its machine stays");
    plane.start_etcd().await.unwrap();
    still_works(&shop, &namespace).await;
    shop.clear(&namespace).await;
}

pub(crate) async fn the_api_server_stands_still(plane: &ControlPlane, namespace: String) {
    let (_fleet, shop) = with_one_pod(plane, &namespace).await;
    plane.with_api_server(|server| server.freeze()).unwrap();
    let client = plane.client().await;
    let answered = tokio::select! {
        version = client.apiserver_version() => version.is_ok(),
        () = shop.clock.sleep(Duration::from_secs(3)) => false,
    };
    assert!(!answered, "the fault has struck");
    let said = shop.metric("rollups_total", "sent").await;
    shop.until("roll-ups to go on", async || {
        (shop.metric("rollups_total", "sent").await > said + 2).then_some(())
    })
    .await;
    plane.with_api_server(|server| server.go_on()).unwrap();
    still_works(&shop, &namespace).await;
    shop.clear(&namespace).await;
}

/// A server that runs for a tenth of the time: calls are answered, each of them late.
pub(crate) async fn the_api_server_is_slow(plane: &ControlPlane, namespace: String) {
    let (_fleet, shop) = with_one_pod(plane, &namespace).await;
    let (work, rest) = (Duration::from_millis(50), Duration::from_millis(450));
    let slow = async {
        loop {
            plane.with_api_server(|server| server.freeze()).unwrap();
            shop.clock.sleep(rest).await;
            plane.with_api_server(|server| server.go_on()).unwrap();
            shop.clock.sleep(work).await;
        }
    };
    let served = async {
        let client = plane.client().await;
        let mut late = 0;
        for _ in 0..10 {
            // Not all of them while it runs for once: a quick machine answers ten calls in that time.
            shop.clock.sleep(work * 2).await;
            let asked = shop.clock.now_unix_nanos();
            client.apiserver_version().await.unwrap();
            late += u32::from(shop.clock.now_unix_nanos() - asked > 200_000_000);
        }
        still_works(&shop, &namespace).await;
        late
    };
    let late = tokio::select! {
        late = served => late,
        () = slow => unreachable!("it does not end"),
    };
    plane.with_api_server(|server| server.go_on()).unwrap();
    assert!(late >= 3, "the fault has struck: {late} of 10 calls were late");
    shop.clear(&namespace).await;
}

/// Somebody writes the same objects as fast as the server lets them.
pub(crate) async fn a_storm_of_writers(plane: &ControlPlane, namespace: String) {
    let (_fleet, shop) = with_one_pod(plane, &namespace).await;
    let requests: Api<CapacityRequest> = Api::namespaced(shop.client.clone(), &namespace);
    shop.scale(&namespace, "web", 6).await;
    let mut number = 0;
    shop.until("writes to collide, and all to be as it should", async || {
        number += 1;
        for request in shop.requests(&namespace).await {
            let edit = json!({"metadata": {"annotations": {"storm": number.to_string()}}});
            let _ = requests.patch(&request.name_any(), &PatchParams::default(), &Patch::Merge(&edit)).await;
        }
        let collided = shop.metric("writes_total", "conflict").await > 0;
        // Until they have: what is shown is put out of order, so that there is something to write.
        if !collided {
            for request in shop.requests(&namespace).await {
                let edit = json!({"status": {"phase": "Pending", "conditions": []}});
                let _ = requests
                    .patch_status(&request.name_any(), &PatchParams::default(), &Patch::Merge(&edit))
                    .await;
            }
        }
        let all = shop.requests(&namespace).await;
        (collided && all.len() == 6 && all.iter().all(|request| holds(request, "Joined"))).then_some(())
    })
    .await;
    shop.all_run(&namespace, 6).await;
    shop.clear(&namespace).await;
}

/// The operator that works dies; the other takes its place and goes on.
pub(crate) async fn the_leader_dies(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::start(60);
    let mut shop = Cluster::connect(plane, "shop", &fleet).await;
    shop.kill_operator();
    shop.start_operator(&[]);
    let holder = async |cluster: &Cluster| {
        let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "bigfleet-system");
        leases.get_opt("bigfleet-operator").await.ok()??.spec?.holder_identity
    };
    let first = shop.until("a leader", async || holder(&shop).await.filter(|who| !who.is_empty())).await;
    let (second, metrics) = shop.new_operator(&[]);
    shop.deploy(&namespace, "web", 1, Ask::of("std-8", "5", "1Gi")).await;
    shop.all_run(&namespace, 1).await;
    let mut hops = Hops::start();
    shop.kill_operator();
    let next = shop.until("another leader", async || holder(&shop).await.filter(|who| *who != first)).await;
    assert_ne!(first, next, "the fault has struck");
    shop.adopt_operator(second, metrics);
    still_works(&shop, &namespace).await;
    hops.reached("the leader was killed; the other has the lease and does the work");
    shop.clear(&namespace).await;
}

/// Requests that nobody can use, many of them: they are marked one by one, and the good one among them is served.
pub(crate) async fn hostile_requests_are_marked_and_hold_nobody_up(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::start(60);
    let shop = Cluster::connect(plane, "shop", &fleet).await;
    let kind = ApiResource::erase::<CapacityRequest>(&());
    let requests: Api<DynamicObject> = Api::namespaced_with(shop.client.clone(), &namespace, &kind);
    let count = if std::env::var_os("BIGFLEET_BARS").is_some() { 10_000 } else { 1_000 };
    let mut hops = Hops::start();
    let made = stream::iter(0..count).map(|number| {
        let (requests, name) = (requests.clone(), format!("bad-{number}"));
        let object = DynamicObject::new(&name, &kind).data(json!({"spec": hostile(number)}));
        async move { requests.create(&PostParams::default(), &object).await.map(drop) }
    });
    let made: Vec<kube::Result<()>> = made.buffer_unordered(16).collect().await;
    assert!(made.iter().all(Result::is_ok), "{:?}", made.iter().find(|made| made.is_err()));
    hops.reached(&format!("{count} hostile requests made"));
    shop.deploy(&namespace, "web", 1, Ask::of("std-8", "5", "1Gi")).await;
    shop.all_run(&namespace, 1).await;
    hops.reached("a good one among them served");
    assert_eq!(shop.metric("requests", "refused").await, count, "the fault has struck");
    shop.until("each to be marked", async || {
        let all = requests.list(&ListParams::default()).await.ok()?;
        let marked = all.iter().filter(|request| {
            let conditions = request.data["status"]["conditions"].as_array();
            conditions
                .is_some_and(|all| all.iter().any(|one| one["reason"] == "Invalid" && one["message"] != ""))
        });
        (marked.count() as u64 == count).then_some(())
    })
    .await;
    hops.reached("each bad one says what is wrong with it");
    shop.until("the good one to be covered", async || {
        let all = requests.list(&ListParams::default()).await.ok()?;
        let good = all.into_iter().find(|request| request.name_any().starts_with("pod-"))?;
        holds(&good.try_parse::<CapacityRequest>().ok()?, "Covered").then_some(())
    })
    .await;
    shop.delete_all(&requests).await;
    shop.clear(&namespace).await;
}

/// What the server lets through and nobody can use.
fn hostile(number: u64) -> Value {
    let cpu = json!({"cpu": "1"});
    match number % 6 {
        0 => json!({"priority": 0, "resources": cpu,
            "requirements": [{"key": "size", "operator": "Gt", "values": ["7"]}]}),
        1 => json!({"priority": 0, "resources": cpu,
            "requirements": [{"key": "k".repeat(5000), "operator": "Exists"}]}),
        2 => json!({"priority": 9_999_999_999_i64, "resources": cpu}),
        3 => {
            let many =
                (0..500).map(|n| json!({"key": format!("k{n}"), "operator": "Exists"})).collect::<Vec<_>>();
            json!({"priority": 0, "resources": cpu, "requirements": many})
        }
        4 => json!({"priority": 0, "resources": {"cpu": "999999999999999999999999999999E"}}),
        _ => json!({"priority": 0, "resources": cpu, "interruptionPenalty": "-5"}),
    }
}
