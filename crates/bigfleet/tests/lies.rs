//! A real shard and a real provider that lies: truth is adopted, and no lie spends the quota.
//!
//! What takes minutes in a fleet takes seconds here: windows of six seconds instead of thirty, and lies of five instead of 25.

#![expect(
    clippy::disallowed_methods,
    reason = "processes run in real time, and so does whoever waits for them"
)]

#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "support/operator.rs"]
mod operator;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "support/process.rs"]
mod process;

use std::process::Command;
use std::time::Duration;

use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{CapacityNeed, ListFilter, Machine, NodeSelectorRequirement};
use operator::Operator;
use process::{Process, free_port};
use tonic::transport::Endpoint;

const REPORT: Duration = Duration::from_millis(250);
/// How often something is looked for before a test gives up, a tenth of a second apart. Not a bar: an end to waiting.
const TRIES: u32 = 1200;
const SPECULATIVE: i32 = 1;
const CONFIGURED: i32 = 5;

struct Scene {
    provider: Process,
    shard: Process,
    ports: [u16; 4],
    _folder: tempfile::TempDir,
}

impl Scene {
    fn open(faults: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = [(); 4].map(|()| free_port());
        let [cloud, admin, listen, metrics] = ports.map(|port| format!("127.0.0.1:{port}"));
        // A fifth of the slots are std-4.
        let provider = [
            &["provider", "sim", "--use-fake-backend", "--seed-count", "1500", "--provider", "east"][..],
            &["--addr", &cloud, "--admin", &admin, "--http", "none"],
        ];
        let faults: Vec<&str> = faults.iter().flat_map(|line| ["--fault", line]).collect();
        let provider = Process::start("provider", &[&provider.concat()[..], &faults].concat());
        let (data, at) = (folder.path().join("shard"), format!("east=http://{cloud}"));
        let data = data.to_str().expect("a plain path");
        let shard = [
            &["shard", "--shard-id", "s1", "--data", data, "--provider", &at, "--listen", &listen][..],
            &["--metrics", &metrics, "--tick", "500ms", "--list-every", "300ms", "--full-list-every", "2s"],
            &["--purchase-window", "6s", "--reclaim-window", "500ms", "--reclaim-fraction", "1"],
            &["--on-demand-hold", "3s", "--spot-hold", "2s", "--guard-spacing", "300ms"],
        ];
        let shard = Process::start("shard", &shard.concat());
        Self { provider, shard, ports, _folder: folder }
    }

    fn said(&self) -> String {
        format!("{}\n{}", self.provider.last_words(), self.shard.last_words())
    }

    /// Adds a fault to the cloud.
    fn fault(&self, words: &[&str]) {
        let admin = format!("127.0.0.1:{}", self.ports[1]);
        let arguments = [&["fault", "add"], words, &["--admin", &admin]].concat();
        let added = Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(arguments).output().expect("it runs");
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }

    /// The machines that exist, as their provider lists them.
    async fn exist(&self) -> Vec<Machine> {
        let address = format!("http://127.0.0.1:{}", self.ports[0]);
        let endpoint = transport::endpoint(Endpoint::from_shared(address).expect("an address"));
        let Ok(channel) = endpoint.connect().await else { return Vec::new() };
        let list = transport::provider_client(channel).list(ListFilter::default()).await;
        let machines = list.map(|list| list.into_inner().machines).unwrap_or_default();
        machines.into_iter().filter(|machine| machine.state != SPECULATIVE).collect()
    }

    async fn configured(&self) -> usize {
        self.exist()
            .await
            .iter()
            .filter(|machine| machine.state == CONFIGURED && machine.cluster == "shop")
            .count()
    }

    /// A number the shard shows, summed over the series that contain all of these words.
    async fn metric(&self, name: &str, words: &[&str]) -> f64 {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut text = String::new();
        if let Ok(mut socket) = tokio::net::TcpStream::connect(("127.0.0.1", self.ports[3])).await {
            let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            let _ = socket.write_all(request.as_bytes()).await;
            let _ = socket.read_to_string(&mut text).await;
        }
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && words.iter().all(|word| line.contains(word)));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// How many machines were bought so far.
    async fn bought(&self) -> f64 {
        self.metric("bigfleet_shard_actions_total", &["begun", "rovision"]).await
    }

    async fn until(&self, what: &str, is: impl AsyncFn() -> bool) {
        for _ in 0..TRIES {
            if is().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{what}: did not happen\n{}", self.said());
    }

    /// An operator that wants this many machines of four cpus, and has them.
    async fn wanting(&self, machines: u32) -> Operator {
        let operator = Operator::start(
            &format!("http://127.0.0.1:{}", self.ports[2]),
            "shop",
            REPORT,
            vec![want(machines)],
        );
        self.until("the machines to be there", async || self.configured().await == machines as usize).await;
        operator
    }
}

fn want(machines: u32) -> CapacityNeed {
    let amounts = |cpu: f64| [("cpu".to_owned(), format!("{cpu}"))].into();
    CapacityNeed {
        requirements: vec![NodeSelectorRequirement {
            key: "node.kubernetes.io/instance-type".into(),
            operator: 1,
            values: vec!["std-4".into()],
        }],
        // Less than a whole machine each, and more than half of one.
        aggregate_resources: amounts(3.0 * f64::from(machines)),
        min_unit: amounts(3.0),
        priority: 1000,
        ..CapacityNeed::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_machines_shown_failed_for_a_moment_are_not_bought_anew_and_lost_ones_are() {
    let scene = Scene::open(&[]);
    let needs = 100;
    let _operator = scene.wanting(needs).await;
    let before = scene.bought().await;
    scene.fault(&["shown-failed", "--for", "5s"]);
    scene
        .until("the loss to be noticed", async || {
            scene.metric("bigfleet_shard_notices_total", &["suspicious_loss"]).await > 0.0
        })
        .await;
    scene
        .until("the machines to be back", async || {
            scene.metric("bigfleet_shard_notices_total", &["loss_returned"]).await > 0.0
        })
        .await;
    let extra = scene.bought().await - before;
    assert!(extra <= 10.0, "{extra} were bought for a lie\n{}", scene.said());
    // What was bought is given back, and nothing else.
    scene
        .until("the fleet to be as it was", async || {
            scene.configured().await == needs as usize && scene.exist().await.len() == needs as usize
        })
        .await;
    // A real loss is replaced in full.
    let before = scene.bought().await;
    scene.fault(&["host-loss", "count=100"]);
    scene.until("everything to be replaced", async || scene.configured().await == needs as usize).await;
    let replaced = scene.bought().await - before;
    assert!((95.0..=105.0).contains(&replaced), "{replaced} were bought for a hundred");
    assert!(scene.metric("bigfleet_shard_notices_total", &["loss_believed"]).await > 0.0, "{}", scene.said());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moves_that_are_denied_and_lists_that_disagree_buy_nothing_twice() {
    let scene = Scene::open(&["denied-moves --for 15s"]);
    let _operator = scene.wanting(60).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((scene.exist().await.len(), scene.bought().await), (60, 60.0), "{}", scene.said());
    scene.fault(&["halved-list", "--for", "8s"]);
    scene
        .until("a listing to be held", async || {
            scene.metric("bigfleet_shard_listings_total", &["held"]).await >= 4.0
        })
        .await;
    scene.fault(&["contradicted-list", "share=0.5", "--for", "3s"]);
    scene
        .until("the contradiction to be noticed", async || {
            scene.metric("bigfleet_shard_notices_total", &["named_twice"]).await > 0.0
        })
        .await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!((scene.exist().await.len(), scene.bought().await), (60, 60.0), "{}", scene.said());
    assert_eq!(scene.configured().await, 60);
}
