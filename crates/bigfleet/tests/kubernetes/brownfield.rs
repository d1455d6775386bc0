//! A cluster that had nodes before it was connected: what runs there is not bought again, unless somebody says so.

use bigfleet_crds::UpcomingNode;
use bigfleet_kube_testbed::{ControlPlane, Identity, Joiner, NewNode};
use bigfleet_net::Clock as _;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::cluster::{Ask, Cluster, condition, holds};
use crate::explain::try_ask;
use crate::fleet::Fleet;

/// A node is somebody else's only after a while.
const A_WHILE: Duration = Duration::from_secs(11);

pub(crate) async fn nodes_that_were_there_are_not_bought_again(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::start(60);
    let mut shop = Cluster::connect(plane, "shop", &fleet).await;
    let ns = namespace.as_str();
    shop.kill_operator();
    let joiner = Joiner::start(shop.client.clone());
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let old = NewNode {
        name: "old".into(),
        resources: map(&[("cpu", "8"), ("memory", "32Gi")]),
        labels: map(&[("node.kubernetes.io/instance-type", "std-8")]),
        ..NewNode::default()
    };
    joiner.join(old).await.unwrap();
    shop.deploy(ns, "web", 1, Ask::of("std-8", "5", "1Gi")).await;
    shop.all_run(ns, 1).await;
    shop.clock.sleep(A_WHILE).await;

    shop.start_operator(&["--no-leader-election"]);
    shop.until("the request to say who serves it", async || {
        let request = shop.requests(ns).await.pop()?;
        (condition(&request, "Accepted")?.reason == "ServedElsewhere").then_some(())
    })
    .await;
    assert_eq!(shop.metric("nodes", "other").await, 1, "it is reported");
    let bound =
        async || fleet.machines().await.into_iter().filter(|machine| machine.cluster == "shop").count();
    assert_eq!((bound().await, shop.all::<UpcomingNode>().await.len()), (0, 0), "nothing was bought");
    // A second one has no room there, and only it is asked for.
    shop.scale(ns, "web", 2).await;
    shop.all_run(ns, 2).await;
    assert_eq!(bound().await, 1);

    // What adopting would add is shown before it is done.
    let kubeconfig = plane.kubeconfig_file("reader", &Identity::admin()).unwrap();
    let assess = || {
        let words = ["assess", "--json", "--kubeconfig", kubeconfig.to_str().unwrap()];
        try_ask(&words).expect("an answer")["brownfield"].clone()
    };
    shop.until("the fleet's node to be known as one", async || {
        (assess()["pods_set_aside"] == 1).then_some(())
    })
    .await;
    let before = assess();
    assert_eq!(
        (&before["adoptable"][0]["node"], &before["adoptable"][0]["adds"]["cpu"]),
        (&json!("old"), &json!("5"))
    );
    assert_eq!(
        (&before["asked_as_it_is"]["cpu"], &before["asked_with_all"]["cpu"]),
        (&json!("5"), &json!("10"))
    );

    let nodes: Api<Node> = Api::all(shop.client.clone());
    let adopt = json!({"metadata": {"annotations": {"bigfleet.lucy.sh/adopt": "true"}}});
    nodes.patch("old", &PatchParams::default(), &Patch::Merge(&adopt)).await.unwrap();
    let after = assess();
    assert_eq!((&after["adoptable"], &after["asked_as_it_is"]), (&json!([]), &before["asked_with_all"]));
    shop.until("the fleet to stand in for the old node too", async || {
        let all = shop.requests(ns).await;
        (bound().await == 2 && all.len() == 2 && all.iter().all(|one| holds(one, "Covered"))).then_some(())
    })
    .await;
    shop.until("the fleet's nodes to say which machine they are", async || {
        let nodes =
            shop.all::<Node>().await.into_iter().filter(|node| node.name_any() != "old").collect::<Vec<_>>();
        let named = nodes
            .iter()
            .filter(|node| node.annotations().contains_key("bigfleet.lucy.sh/machine-id"))
            .count();
        (nodes.len() == 2 && named == 2).then_some(())
    })
    .await;
    shop.clear(ns).await;
}
