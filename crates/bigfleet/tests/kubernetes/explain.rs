//! What people are told about a pod that waits, by kubectl's means, by the cluster and by the shard alone.

use std::process::Command;

use bigfleet_kube_testbed::{ControlPlane, Identity, apply};
use kube::ResourceExt as _;
use serde_json::Value;

use crate::cluster::{Ask, Cluster, condition};
use crate::fleet::Fleet;

const ASSESS: &str = include_str!("../../../../deploy/kubernetes/assess.yaml");

pub(crate) async fn a_pod_is_explained_through_the_cluster_and_through_the_shard(
    plane: &ControlPlane,
    namespace: String,
) {
    let fleet = Fleet::start(60);
    let shop = Cluster::connect(plane, "shop", &fleet).await;
    let ns = namespace.as_str();
    // No machine of this type holds as much.
    shop.deploy(ns, "huge", 1, Ask::of("std-8", "500", "1Gi")).await;
    let request = shop
        .until("the request to say that nothing is to be had", async || {
            let request = shop.requests(ns).await.pop()?;
            (condition(&request, "Covered")?.reason == "NoMatchingSupply").then_some(request)
        })
        .await;
    let covered = condition(&request, "Covered").unwrap();
    assert!(covered.need_id.is_some() && covered.message.contains("cpu"), "{covered:?}");
    shop.until("the pod to have the same sentence as an event", async || {
        shop.events("Pod").await.contains("NoMatchingSupply").then_some(())
    })
    .await;

    let pod = shop.pods(ns).await.pop().unwrap();
    let name = format!("{ns}/{}", pod.name_any());
    let kubeconfig = plane.kubeconfig_file("reader", &Identity::admin()).unwrap();
    let through_cluster = ask(&[
        "explain",
        "pod",
        &name,
        "--server",
        fleet.shard(),
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ]);
    assert_eq!(through_cluster["node"], "");
    assert_eq!(through_cluster["request"]["name"], request.name_any());
    assert_eq!(through_cluster["need"]["need"]["reason"], "no_matching_supply", "{through_cluster:#}");
    // The sentence is the same in the condition, in the event, and where the shard is asked.
    let sentence = "is short: no machine there is, whoever holds it, meets what it asks for";
    assert!(covered.message.contains(sentence), "{covered:?}");
    let event = format!("NoMatchingSupply: {}", covered.message);
    assert!(
        through_cluster["events"].as_array().unwrap().iter().any(|one| *one == event),
        "{through_cluster:#}"
    );
    let need = covered.need_id.as_deref().unwrap();
    let explained = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .args(["explain", "need", need, "-o", "text", "--server", fleet.shard()])
        .env("COLUMNS", "1000")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&explained.stdout).contains(sentence), "{explained:?}");

    let through_shard = shop
        .until("the shard to know of it", async || {
            let answer = try_ask(&["explain", "pod", &name, "--server", fleet.shard(), "--shard-only"])?;
            (answer["cluster"] == "shop").then_some(answer)
        })
        .await;
    assert_eq!(through_shard["need"]["need"]["reason"], "no_matching_supply", "{through_shard:#}");
    let needs = ask(&["get", "needs", "--server", fleet.shard(), "--json"]);
    assert_eq!(
        (&needs["pods_waiting"], &needs["pods_waiting_examples"][0]),
        (&Value::from(1), &Value::from(name.as_str()))
    );

    // Looking at the cluster needs no connection and no rights but to look, and the same things are seen.
    for document in ASSESS.split("\n---\n") {
        apply(&shop.client, &serde_saphyr::from_str(document).unwrap()).await;
    }
    let looker = plane.kubeconfig_file_of_account("bigfleet-system", "bigfleet-assess").await.unwrap();
    let looker = looker.to_str().unwrap();
    let seen = ask(&["assess", "--kubeconfig", looker, "--json"]);
    assert_eq!(
        (&seen["pods"]["waiting"], &seen["packing"]["pods_without_hole"]),
        (&Value::from(1), &Value::from(1))
    );
    let would = ask(&["observe", "--kubeconfig", looker, "--server", fleet.shard(), "--json"]);
    assert_eq!(would["edited_needs"].to_string().trim_matches('"'), "1", "{would:#}");
    let short = |side: &str| would[side]["short"].as_u64().unwrap();
    assert_eq!(short("after"), short("before") + 1, "nobody could have it there either");
    shop.clear(ns).await;
}

fn ask(words: &[&str]) -> Value {
    try_ask(words).unwrap_or_else(|| panic!("{words:?} has no answer"))
}

pub(crate) fn try_ask(words: &[&str]) -> Option<Value> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(words).env_remove("KUBECONFIG").output().unwrap();
    serde_json::from_slice(&output.stdout).ok()
}
