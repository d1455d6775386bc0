//! From a pod that waits to a machine that is given back, hop by hop.

use bigfleet_crds::{CapacityRequest, RequestPhase, UpcomingNode};
use bigfleet_kube_testbed::{ControlPlane, node_name};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::cluster::{Ask, Cluster, holds, is_ready};
use crate::fleet::Fleet;
use crate::hops::Hops;

/// Wire numbers of states.
const SPECULATIVE: i32 = 1;
const IDLE: i32 = 3;

pub(crate) async fn pods_become_nodes_and_nodes_go_politely(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::start(60);
    let mut shop = Cluster::connect(plane, "shop", &fleet).await;
    let ns = namespace.as_str();
    let mut hops = Hops::start();

    // Four pods of three cpus: two machines of eight.
    shop.deploy(ns, "web", 4, Ask::of("std-8", "3", "1Gi")).await;
    shop.until("a request for each pod", async || (shop.requests(ns).await.len() == 4).then_some(())).await;
    hops.reached("pods → requests");
    shop.until("requests to be taken up", async || {
        let requests = shop.requests(ns).await;
        let taken =
            |phase| requests.iter().filter(|r| r.status.as_ref().is_some_and(|s| s.phase == phase)).count();
        (taken(RequestPhase::Acknowledged) == 4).then_some(())
    })
    .await;
    hops.reached("requests → roll-up → shard");
    let machines = shop
        .until("machines", async || {
            let upcoming = shop.all::<UpcomingNode>().await;
            (upcoming.len() == 2 && upcoming.iter().all(is_ready)).then_some(upcoming)
        })
        .await;
    hops.reached("shard → provider → machines configured");
    shop.all_run(ns, 4).await;
    hops.reached("nodes joined, pods bound and running");
    shop.until("all conditions to hold", async || {
        let requests = shop.requests(ns).await;
        let all = |type_| requests.iter().all(|request| holds(request, type_));
        (all("Accepted") && all("Covered") && all("Joined")).then_some(())
    })
    .await;
    hops.reached("status shows Accepted, Covered, Joined");
    shop.until("each machine's object to name its node", async || {
        let upcoming = shop.all::<UpcomingNode>().await;
        let named = upcoming.iter().filter(|u| u.status.as_ref().is_some_and(|s| s.node_ref.is_some()));
        (named.count() == machines.len()).then_some(())
    })
    .await;
    at_rest(&shop).await;
    hops.reached("roll-ups go on, nothing is written any more");

    // Two pods are six cpus, and one machine is enough. Nobody may be evicted meanwhile. One by one, because then one is
    // left on each node: the fuller node loses its pod first.
    budget(&shop, ns).await;
    for pods in [3, 2] {
        shop.scale(ns, "web", pods).await;
        shop.all_run(ns, pods as usize).await;
    }
    hops.reached("scaled down");
    shop.until("a reclaim", async || (shop.metric("drains", "").await > 0).then_some(())).await;
    hops.reached("requests gone → roll-up → shard → reclaim");
    let node = drained(&shop).await;
    hops.reached("node cordoned; its pod is held by a disruption budget");
    assert_eq!(shop.pods(ns).await.len(), 2, "the budget was honoured");

    shop.nothing_was_forbidden();
    // An operator that starts in the middle of it goes on.
    shop.kill_operator();
    shop.start_operator(&["--no-leader-election"]);
    shop.until("the new operator to try again", async || {
        (shop.metric("evictions_total", "blocked").await > 0).then_some(())
    })
    .await;
    hops.reached("operator killed and started again: drain resumed");
    assert_eq!(shop.pods(ns).await.len(), 2, "still honoured");

    // Demand returns within the grace: the machine stays, and takes pods again.
    shop.scale(ns, "web", 4).await;
    shop.until("the node to be uncordoned", async || {
        let nodes = shop.all::<Node>().await;
        let drained = nodes.iter().find(|other| other.name_any() == node)?;
        (!is_cordoned(drained) && !drained.annotations().contains_key("bigfleet.lucy.sh/drain")).then_some(())
    })
    .await;
    shop.all_run(ns, 4).await;
    hops.reached("demand returned → reclaim taken back → node uncordoned → pods run");
    assert!(shop.events("Node").await.contains("TakenBack"));
    assert_eq!(shop.all::<UpcomingNode>().await.len(), 2, "nothing was bought for it");

    for pods in [3, 2] {
        shop.scale(ns, "web", pods).await;
        shop.all_run(ns, pods as usize).await;
    }
    let node = drained(&shop).await;
    hops.reached("scaled down again, reclaimed again, held by the budget again");
    no_budget(&shop, ns).await;
    shop.until("the node to go", async || {
        (!shop.all::<Node>().await.iter().any(|other| other.name_any() == node)).then_some(())
    })
    .await;
    hops.reached("budget gone → pod evicted → machine drained → node gone");
    shop.all_run(ns, 2).await;
    hops.reached("the evicted pod runs elsewhere");
    let machine = machines.iter().map(ResourceExt::name_any).find(|name| node_name(name) == node).unwrap();
    shop.until("the machine to be released", async || {
        matches!(fleet.state(&machine).await?, SPECULATIVE | IDLE).then_some(())
    })
    .await;
    hops.reached("machine released");
    shop.until("its object to go", async || (shop.all::<UpcomingNode>().await.len() == 1).then_some(()))
        .await;
    shop.nothing_was_forbidden();
    no_more_is_allowed(plane, ns).await;
    shop.clear(ns).await;
}

/// The accounts that all of this was done with cannot do what it does not take.
async fn no_more_is_allowed(plane: &ControlPlane, namespace: &str) {
    for account in ["bigfleet-operator", "bigfleet-pod-controller"] {
        let config = plane.config_of_account("bigfleet-system", account).await;
        let client = Client::try_from(config).unwrap();
        let (secrets, pods) =
            (Api::<Secret>::all(client.clone()), Api::<Pod>::namespaced(client.clone(), namespace));
        let requests: Api<CapacityRequest> = Api::namespaced(client, namespace);
        let delete = DeleteParams::default();
        let none = ListParams::default().labels("nobody=has-this");
        let refused = [
            ("read secrets", secrets.list(&none).await.err()),
            ("delete pods", pods.delete("web", &delete).await.err()),
            ("sweep pods", pods.delete_collection(&delete, &none).await.err()),
            ("sweep requests", requests.delete_collection(&delete, &none).await.err()),
        ];
        for (what, error) in refused {
            assert!(
                matches!(&error, Some(kube::Error::Api(status)) if status.code == 403),
                "{account} may {what}: {error:?}"
            );
        }
    }
}

/// Waits until objects of ours are written no more although roll-ups go on: they are written when they change.
async fn at_rest(shop: &Cluster) {
    let wrote = async || shop.metric("writes_total", "kind=\"ours\"").await;
    let told = async || shop.metric("rollups_total", "sent").await;
    let mut since = (wrote().await, told().await);
    shop.until("writes to end", async || {
        let now = (wrote().await, told().await);
        if now.0 != since.0 {
            since = now;
        }
        (now.1 >= since.1 + 3).then_some(())
    })
    .await;
}

/// Waits for a node that is being drained and whose pod cannot leave.
async fn drained(shop: &Cluster) -> String {
    shop.until("an eviction that a budget holds", async || {
        (shop.metric("evictions_total", "blocked").await > 0).then_some(())
    })
    .await;
    shop.until("people to be told", async || {
        shop.events("Node").await.contains("EvictionBlocked").then_some(())
    })
    .await;
    shop.until("one node to be cordoned", async || {
        let cordoned: Vec<Node> = shop.all::<Node>().await.into_iter().filter(is_cordoned).collect();
        (cordoned.len() == 1).then(|| cordoned[0].name_any())
    })
    .await
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
}

/// A disruption budget that lets nobody go, in the version the server has.
async fn budget(cluster: &Cluster, namespace: &str) {
    let object: DynamicObject = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }))
    .unwrap();
    budgets(cluster, namespace).await.create(&PostParams::default(), &object).await.unwrap();
}

async fn no_budget(cluster: &Cluster, namespace: &str) {
    budgets(cluster, namespace).await.delete("web", &DeleteParams::default()).await.unwrap();
}

async fn budgets(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let groups = cluster.client.list_api_groups().await.unwrap();
    let policy = groups.groups.into_iter().find(|group| group.name == "policy").unwrap();
    let has_v1 = policy.versions.iter().any(|version| version.version == "v1");
    let kind = GroupVersionKind::gvk("policy", if has_v1 { "v1" } else { "v1beta1" }, "PodDisruptionBudget");
    Api::namespaced_with(cluster.client.clone(), namespace, &ApiResource::from_gvk(&kind))
}
