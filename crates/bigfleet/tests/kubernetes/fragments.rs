//! Pods of awkward sizes on the real scheduler: sums are covered, holes are not, until the operator asks for them.

use std::collections::BTreeSet;
use std::time::Duration;

use bigfleet_crds::UpcomingNode;
use bigfleet_kube_testbed::ControlPlane;
use bigfleet_net::{Clock as _, nanos};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::cluster::{Ask, Cluster};
use crate::fleet::Fleet;
use crate::hops::Hops;

/// Deployments, each of two pods.
const DEPLOYMENTS: u32 = 60;
/// How long nothing must move.
const SILENCE: Duration = Duration::from_secs(15);

/// Where evicted pods will go is the scheduler's to say, and a guess of the operator's. Where it is wrong a pod waits, and a machine
/// comes for it: a few of forty that leave may, and then nothing.
const WRONG_GUESSES: usize = 2;

/// On machines of 7920m and 30 GiB: just over half, just over a third, cpu-heavy, memory-heavy, just under a machine.
const SIZES: [(&str, &str); 5] =
    [("4200m", "1Gi"), ("2800m", "2Gi"), ("6", "1Gi"), ("1", "17Gi"), ("7", "24Gi")];

pub(crate) async fn awkward_pods_get_their_places_and_then_nothing_moves(
    plane: &ControlPlane,
    namespace: String,
) {
    let fleet = Fleet::start(1200);
    let shop = Cluster::connect(plane, "shop", &fleet).await;
    let ns = namespace.as_str();
    let mut hops = Hops::start();
    for number in 0..DEPLOYMENTS {
        let (cpu, memory) = SIZES[number as usize % SIZES.len()];
        let name = format!("d{number:02}");
        // Every sixth wants its pods on different nodes, which no sum says; every tenth is a gang of one zone.
        let affinity = match number {
            _ if number % 6 == 5 => Some(apart(&name)),
            _ if number % 10 == 3 => Some(together(&name)),
            _ => None,
        };
        shop.deploy(ns, &name, 2, Ask { affinity: affinity.as_ref(), ..Ask::of("std-8", cpu, memory) }).await;
    }
    hops.reached("60 deployments made");
    shop.all_run(ns, 2 * DEPLOYMENTS as usize).await;
    hops.reached("120 awkward pods run");
    assert!(shop.metric("revisions_total", "raised").await > 0, "sums alone were not enough");
    let (before, _) = silence(&shop, ns).await;
    let shows_reserve = shop
        .requests(ns)
        .await
        .iter()
        .any(|request| request.status.as_ref().is_some_and(|status| !status.reserved.is_empty()));
    assert!(shows_reserve, "what is reserved is visible on requests");
    let raised = shop.metric("revisions_total", "raised").await;
    hops.reached(&format!("and then silence, on {} machines after {raised} revisions", before.len()));

    for number in 0..DEPLOYMENTS {
        shop.scale(ns, &format!("d{number:02}"), 1).await;
    }
    let half = DEPLOYMENTS as usize;
    shop.until("half of the pods to be gone", async || (shop.pods(ns).await.len() == half).then_some(()))
        .await;
    shop.until("machines to go", async || (machines(&shop).await.len() < before.len()).then_some(())).await;
    let (after, returned) = silence(&shop, ns).await;
    shop.all_run(ns, half).await;
    let came = after.difference(&before).count();
    assert!(came + returned <= WRONG_GUESSES, "{came} came while others went, {returned} went and came back");
    hops.reached(&format!("scaled down by half, then silence again, on {} machines", after.len()));
    assert!(after.len() < before.len());
    shop.clear(ns).await;
}

/// Keeps pods of this name off each other's nodes.
fn apart(name: &str) -> Value {
    json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}}},
    ]}})
}

/// Keeps pods of this name in one zone.
fn together(name: &str) -> Value {
    json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": name}}},
    ]}})
}

/// Waits until all pods have a node and no machine has come or gone for a while. Which machines are there, and how many had
/// gone and came back meanwhile.
async fn silence(shop: &Cluster, namespace: &str) -> (BTreeSet<String>, usize) {
    let mut last = machines(shop).await;
    let mut since = shop.clock.now_unix_nanos();
    let (mut gone, mut returned) = (BTreeSet::new(), 0);
    shop.until("silence", async || {
        let now = shop.clock.now_unix_nanos();
        let machines = machines(shop).await;
        let waits = shop.pods(namespace).await.iter().any(is_waiting);
        if waits || machines != last {
            gone.extend(last.difference(&machines).cloned());
            returned += machines.difference(&last).filter(|name| gone.contains(*name)).count();
            (last, since) = (machines, now);
        }
        (now - since > nanos(SILENCE)).then(|| (last.clone(), returned))
    })
    .await
}

async fn machines(shop: &Cluster) -> BTreeSet<String> {
    shop.all::<UpcomingNode>().await.iter().map(ResourceExt::name_any).collect()
}

fn is_waiting(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none())
}
