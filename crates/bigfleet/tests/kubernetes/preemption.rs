//! Two clusters on one shard: what one asks for urgently is taken from the other, and comes back when it is done.

use bigfleet_crds::{ConditionStatus, UpcomingNode};
use bigfleet_kube_testbed::{ControlPlane, Parts};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::cluster::{Ask, Cluster, condition, is_running};
use crate::fleet::Fleet;
use crate::hops::Hops;

pub(crate) async fn a_cluster_yields_to_another_and_gets_it_back(plane: &ControlPlane, namespace: String) {
    let other = ControlPlane::start(Parts::All).await.unwrap();
    let away = other.namespace("training").await;
    // Three whole hosts are there, and there is no way to buy a fourth.
    let fleet = Fleet::start(24);
    let shop = Cluster::connect(plane, "shop", &fleet).await;
    let lab = Cluster::connect(&other, "lab", &fleet).await;
    let (ns, away) = (namespace.as_str(), away.as_str());
    let mut hops = Hops::start();

    let host = Ask::of("metal-64", "40", "8Gi");
    shop.deploy(ns, "batch", 3, host).await;
    shop.all_run(ns, 3).await;
    hops.reached("three pods of the one cluster run on the three hosts there are");

    urgent(&lab).await;
    lab.deploy(away, "train", 1, Ask { class: Some("urgent"), ..host }).await;
    shop.until("a pod to be evicted", async || {
        (shop.metric("evictions_total", "accepted").await > 0).then_some(())
    })
    .await;
    hops.reached("urgent pod in the other → roll-up → shard → preemption → eviction here");
    lab.all_run(away, 1).await;
    hops.reached("machine drained, given to the other, joined there; its pod runs");
    shop.until("the evicted pod's request to say that it waits", async || {
        let waits = shop.requests(ns).await.into_iter().find(|request| {
            condition(request, "Covered").is_some_and(|covered| covered.status == ConditionStatus::False)
        })?;
        condition(&waits, "Covered").map(|covered| (covered.reason.clone(), covered.message.clone()))
    })
    .await;
    let running = shop.pods(ns).await.iter().filter(|pod| is_running(pod)).count();
    assert_eq!((running, shop.all::<UpcomingNode>().await.len()), (2, 2), "one machine went, and no more");
    assert_eq!(lab.all::<UpcomingNode>().await.len(), 1);
    hops.reached("the one that lost it says why it waits");

    lab.scale(away, "train", 0).await;
    shop.all_run(ns, 3).await;
    hops.reached("urgent pod gone → machine given back → pod runs here again");
    lab.until("nothing to be left there", async || lab.all::<UpcomingNode>().await.is_empty().then_some(()))
        .await;
    shop.clear(ns).await;
    lab.clear(away).await;
}

async fn urgent(cluster: &Cluster) {
    let class: PriorityClass = serde_json::from_value(json!({
        "metadata": {"name": "urgent"}, "value": 1_000_000, "preemptionPolicy": "Never",
    }))
    .unwrap();
    let api: Api<PriorityClass> = Api::all(cluster.client.clone());
    api.create(&PostParams::default(), &class).await.unwrap();
}
