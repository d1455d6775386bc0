//! How fast and how small, on two cores with everything on one machine. Run by `scripts/kube-bars`.

use std::time::Duration;

use bigfleet_crds::{CapacityRequest, RequestPhase, UpcomingNode};
use bigfleet_kube_testbed::ControlPlane;
use bigfleet_net::Clock as _;
use futures::{StreamExt as _, stream};
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::cluster::{Ask, Cluster, is_ready, is_running};
use crate::fleet::Fleet;
use crate::hops::Hops;

/// How long an operator may do nothing before its size is taken.
const REST: Duration = Duration::from_secs(15);
/// How often large lists are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(crate) async fn two_thousand_pods_on_two_hundred_nodes(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::start(2400);
    let shop = Cluster::connect(plane, "shop", &fleet).await;
    let ns = namespace.as_str();
    shop.clock.sleep(REST).await;
    eprintln!("  operator at rest: {}", shop.operator_size());
    let mut hops = Hops::start();
    // Ten to a machine of 7920m.
    for number in 0..20 {
        shop.deploy(ns, &format!("d{number:02}"), 100, Ask::of("std-8", "750m", "1Gi")).await;
    }
    shop.until("2000 requests", async || (shop.metric("requests", "asked").await == 2000).then_some(()))
        .await;
    hops.reached("20 deployments → 2,000 pods → 2,000 requests known to the operator");
    // Whoever looks at thousands of objects all the time is what is measured in the end.
    let now_and_then = async || shop.clock.sleep(LOOK_EVERY).await;
    shop.until("all to be taken up", async || {
        now_and_then().await;
        let requests = shop.requests(ns).await;
        let taken = requests.iter().filter_map(|request| request.status.as_ref());
        (taken.filter(|status| status.phase == RequestPhase::Acknowledged).count() == 2000).then_some(())
    })
    .await;
    hops.reached("2,000 requests shown as taken up");
    shop.until("200 machines", async || {
        now_and_then().await;
        let ready = shop.all::<UpcomingNode>().await.iter().filter(|machine| is_ready(machine)).count();
        (ready >= 200).then_some(())
    })
    .await;
    hops.reached("200 machines configured");
    shop.until("2,000 pods to run", async || {
        now_and_then().await;
        (shop.pods(ns).await.iter().filter(|pod| is_running(pod)).count() == 2000).then_some(())
    })
    .await;
    hops.reached("2,000 pods bound and running");
    eprintln!("  processor seconds: {}", shop.processor_seconds(plane, &fleet));
    eprintln!("  operator with 2,000 pods: {}", shop.operator_size());
    shop.clear(ns).await;
}

pub(crate) async fn twenty_thousand_requests_at_the_start(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::start(24);
    let mut shop = Cluster::connect(plane, "shop", &fleet).await;
    shop.kill_operator();
    let requests: Api<CapacityRequest> = Api::namespaced(shop.client.clone(), &namespace);
    let mut hops = Hops::start();
    let made = stream::iter(0..20_000).map(|number| {
        let requests = requests.clone();
        let request: CapacityRequest = serde_json::from_value(json!({
            "metadata": {"name": format!("r{number}")},
            "spec": {"priority": number % 100, "resources": {"cpu": "1", "memory": "1Gi"},
                // Nobody has any of these: what is measured is the reading.
                "requirements": [{"key": "pool", "operator": "In", "values": [format!("p{}", number % 20)]}]},
        }))
        .unwrap();
        async move { requests.create(&PostParams::default(), &request).await.map(drop) }
    });
    let made: Vec<kube::Result<()>> = made.buffer_unordered(24).collect().await;
    assert!(made.iter().all(Result::is_ok), "{:?}", made.iter().find(|made| made.is_err()));
    hops.reached("20,000 requests made");
    shop.start_operator(&["--no-leader-election"]);
    shop.until("the first roll-up", async || {
        (shop.metric("requests", "asked").await == 20_000).then_some(())
    })
    .await;
    hops.reached("operator started, 20,000 requests listed, added up and reported");
    eprintln!("  processor seconds: {}", shop.processor_seconds(plane, &fleet));
    eprintln!("  operator with 20,000 requests: {}", shop.operator_size());
    shop.delete_all(&requests).await;
    shop.clear(&namespace).await;
}
