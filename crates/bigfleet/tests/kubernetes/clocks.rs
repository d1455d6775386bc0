//! An operator whose clock is hours away from the API server's: nothing it does depends on the two agreeing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_crds::UpcomingNode;
use bigfleet_kube_common::{server_unix_nanos, unix_nanos};
use bigfleet_kube_testbed::{ControlPlane, Joiner, NewNode};
use bigfleet_net::{Clock, Sleep, SystemClock};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams};

use crate::cluster::{Ask, Cluster, condition};
use crate::fleet::Fleet;

const HOUR_NANOS: i64 = 3_600_000_000_000;
/// A node is somebody else's only after a while.
const A_WHILE: Duration = Duration::from_secs(11);
/// How long bootstrap data is good for where nobody says.
const TTL_NANOS: i64 = 900_000_000_000;

/// Real time, told wrongly.
#[derive(Debug)]
struct Wrong {
    clock: SystemClock,
    ahead_nanos: i64,
}

impl Clock for Wrong {
    fn now_unix_nanos(&self) -> i64 {
        self.clock.now_unix_nanos() + self.ahead_nanos
    }

    fn wall_unix_nanos(&self) -> i64 {
        self.clock.wall_unix_nanos() + self.ahead_nanos
    }

    fn sleep_until(&self, unix_nanos: i64) -> Sleep {
        self.clock.sleep_until(unix_nanos - self.ahead_nanos)
    }
}

pub(crate) async fn the_operators_clock_is_two_hours_slow(plane: &ControlPlane, namespace: String) {
    with_a_wrong_clock(plane, &namespace, -2 * HOUR_NANOS).await;
}

pub(crate) async fn the_operators_clock_is_two_hours_fast(plane: &ControlPlane, namespace: String) {
    with_a_wrong_clock(plane, &namespace, 2 * HOUR_NANOS).await;
}

async fn with_a_wrong_clock(plane: &ControlPlane, ns: &str, ahead_nanos: i64) {
    let fleet = Fleet::start(60);
    let mut shop = Cluster::connect(plane, "shop", &fleet).await;
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

    let clock = Arc::new(Wrong { clock: SystemClock::start(), ahead_nanos });
    let operator = shop.operator_with(clock, bigfleet_operator_kube::WATCH_FOR).await;
    shop.until("an old node to count as old", async || {
        let request = shop.requests(ns).await.pop()?;
        (condition(&request, "Accepted")?.reason == "ServedElsewhere").then_some(())
    })
    .await;
    assert_eq!(shop.all::<UpcomingNode>().await.len(), 0, "what runs already is not bought again");

    shop.scale(ns, "web", 2).await;
    shop.all_run(ns, 2).await;
    let acknowledged = shop
        .until("a request to be taken up", async || {
            let mut requests = shop.requests(ns).await.into_iter();
            requests.find_map(|request| request.status?.acknowledged_at)
        })
        .await;
    let server = server_unix_nanos(&shop.client).await.expect("the server says what time it has");
    let apart = unix_nanos(&acknowledged) - server;
    assert!(
        apart.signum() == ahead_nanos.signum() && apart.abs_diff(ahead_nanos) < HOUR_NANOS.unsigned_abs(),
        "the fault has struck: {apart}"
    );

    let secrets: Api<Secret> = Api::namespaced(shop.client.clone(), "kube-system");
    let ours = ListParams::default().fields("type=bootstrap.kubernetes.io/token");
    let tokens = secrets.list(&ours).await.unwrap().items;
    assert!(!tokens.is_empty(), "a machine was given a token to join with, and it is still there");
    for token in tokens {
        let end = String::from_utf8(token.data.unwrap()["expiration"].0.clone()).unwrap();
        let end = i64::try_from(end.parse::<Timestamp>().unwrap().as_nanosecond()).unwrap();
        // Those of other scenarios are older.
        assert!(
            end <= server + TTL_NANOS + 2_000_000_000,
            "none outlives its span by the clock that ends it"
        );
        assert!(end > server, "none has ended before its machine could join");
    }

    shop.scale(ns, "web", 0).await;
    shop.until("the machine to go again", async || shop.all::<UpcomingNode>().await.is_empty().then_some(()))
        .await;
    drop(operator);
    shop.clear(ns).await;
}
