//! The whole thing with real processes: a shard, two simulated providers, three operators over sockets. It scales up,
//! preempts, reclaims, releases, survives kill -9 of each, and ends quiet.

#![expect(
    clippy::disallowed_methods,
    reason = "processes run in real time, and so does whoever waits for them"
)]

#[path = "support/operator.rs"]
mod operator;
#[path = "support/process.rs"]
mod process;

use std::collections::BTreeMap;
use std::time::Duration;

use bigfleet_model::quantity::Quantity;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{CapacityNeed, ListFilter, Machine, NodeSelectorRequirement};
use operator::Operator;
use process::{Process, free_port};
use tonic::transport::Endpoint;

/// What takes minutes in a real fleet takes seconds here.
const QUICK: [&str; 14] = [
    "--tick",
    "500ms",
    "--list-every",
    "300ms",
    "--reclaim-window",
    "500ms",
    "--guard-spacing",
    "300ms",
    "--on-demand-hold",
    "3s",
    "--spot-hold",
    "2s",
    "--bootstrap-timeout",
    "5s",
];
/// How long anything may take before the test gives up. Not a bar: only an end to waiting.
const PATIENCE: Duration = Duration::from_mins(2);
const REPORT: Duration = Duration::from_millis(250);

const SPECULATIVE: i32 = 1;
const CONFIGURED: i32 = 5;

struct Scene {
    folder: tempfile::TempDir,
    ports: [u16; 2],
    shard_port: u16,
    http_port: u16,
    providers: Vec<Process>,
    shard: Option<Process>,
}

impl Scene {
    fn provider(&self, index: usize) -> Process {
        let (addr, state) =
            (format!("127.0.0.1:{}", self.ports[index]), self.folder.path().join(format!("cloud-{index}")));
        let name = ["east", "west"][index];
        let state = state.to_str().expect("a plain path");
        let arguments = [
            "provider",
            "sim",
            "--use-fake-backend",
            "--seed-count",
            "42",
            "--idle-count",
            "6",
            "--provider",
            name,
            "--addr",
            &addr,
            "--state",
            state,
            "--http",
            "none",
        ];
        Process::start(name, &arguments)
    }

    fn start_shard(&mut self) {
        let data = self.folder.path().join("shard");
        let [east, west] = ["east", "west"].map(String::from);
        let east = format!("{east}=http://127.0.0.1:{}", self.ports[0]);
        let west = format!("{west}=http://127.0.0.1:{}", self.ports[1]);
        let (listen, metrics) =
            (format!("127.0.0.1:{}", self.shard_port), format!("127.0.0.1:{}", self.http_port));
        let arguments = [
            "shard",
            "--shard-id",
            "s1",
            "--data",
            data.to_str().expect("a plain path"),
            "--provider",
            &east,
            "--provider",
            &west,
            "--listen",
            &listen,
            "--metrics",
            &metrics,
        ];
        self.shard = Some(Process::start("shard", &[&arguments[..], &QUICK].concat()));
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.shard_port)
    }

    /// All machines of both providers, as they themselves see them.
    async fn machines(&self) -> Vec<Machine> {
        let mut machines = Vec::new();
        for port in self.ports {
            let address = format!("http://127.0.0.1:{port}");
            let endpoint = transport::endpoint(Endpoint::from_shared(address).expect("an address"));
            let Ok(channel) = endpoint.connect().await else { continue };
            let Ok(list) = transport::provider_client(channel).list(ListFilter::default()).await else {
                continue;
            };
            machines.extend(list.into_inner().machines);
        }
        machines
    }

    /// How many machines serve each cluster, by the providers' word.
    async fn serving(&self) -> BTreeMap<String, usize> {
        let mut serving = BTreeMap::new();
        for machine in self.machines().await.into_iter().filter(|machine| machine.state == CONFIGURED) {
            *serving.entry(machine.cluster).or_default() += 1;
        }
        serving
    }

    async fn metric(&self, name: &str) -> Option<f64> {
        let text = get(self.http_port, "/metrics").await?;
        let lines = text.lines().filter(|line| line.starts_with(name));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Some(values.sum())
    }

    /// Actions begun so far in this life of the shard.
    async fn begun(&self) -> f64 {
        let text = get(self.http_port, "/metrics").await.unwrap_or_default();
        let begun = text
            .lines()
            .filter(|line| line.starts_with("bigfleet_shard_actions_total") && line.contains("begun"));
        begun.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

/// A plain HTTP GET, or nothing if nobody answers.
async fn get(port: u16, path: &str) -> Option<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

/// Waits until something is so.
async fn until<F: Future<Output = Result<(), String>>>(what: &str, is: impl Fn() -> F) {
    let mut last = String::new();
    let wait = async {
        loop {
            match is().await {
                Ok(()) => return,
                Err(why) => last = why,
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let happened = tokio::time::timeout(PATIENCE, wait).await.is_ok();
    assert!(happened, "{what}: did not happen; last seen: {last}");
}

fn serves(serving: &BTreeMap<String, usize>, wanted: &[(&str, usize)]) -> Result<(), String> {
    let is = wanted.iter().all(|(cluster, count)| serving.get(*cluster).copied().unwrap_or(0) == *count);
    if is { Ok(()) } else { Err(format!("{serving:?} instead of {wanted:?}")) }
}

/// Needs as much as these machines provide together, on machines of that type.
fn want(instance_type: &str, priority: i32, count: usize, like: &Machine) -> CapacityNeed {
    let provides = like.allocatable.as_ref().or(like.resources.as_ref()).expect("machines have a size");
    let whole = |text: &String| text.parse::<Quantity>().expect("a quantity").to_f64();
    let cpu = provides.resources.get("cpu").map_or(0.0, whole);
    CapacityNeed {
        requirements: vec![NodeSelectorRequirement {
            key: "node.kubernetes.io/instance-type".into(),
            operator: 1,
            values: vec![instance_type.into()],
        }],
        aggregate_resources: [("cpu".to_owned(), format!("{}", cpu * count as f64))].into(),
        min_unit: [("cpu".to_owned(), "1".to_owned())].into(),
        priority,
        ..CapacityNeed::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_scales_preempts_reclaims_releases_survives_and_falls_silent() {
    let mut scene = Scene {
        folder: tempfile::tempdir().expect("a folder"),
        ports: [free_port(), free_port()],
        shard_port: free_port(),
        http_port: free_port(),
        providers: Vec::new(),
        shard: None,
    };
    scene.providers = vec![scene.provider(0), scene.provider(1)];
    scene.start_shard();
    until("both providers answer", || async {
        let count = scene.machines().await.len();
        if count >= 96 { Ok(()) } else { Err(format!("{count} machines")) }
    })
    .await;
    let machines = scene.machines().await;
    let metal = machines.iter().find(|m| m.instance_type == "metal-64").expect("there is metal").clone();
    let small = machines.iter().find(|m| m.instance_type == "std-4").expect("there are small ones").clone();
    let metals = machines.iter().filter(|m| m.instance_type == "metal-64").count();
    assert_eq!(metals, 12, "six of each provider");

    // Scale up: all the metal there is, and some machines that must be bought.
    let address = scene.address();
    let batch = Operator::start(&address, "batch", REPORT, vec![want("metal-64", 100, metals, &metal)]);
    let ml = Operator::start(&address, "ml", REPORT, vec![want("std-4", 1_000, 4, &small)]);
    let shop = Operator::start(&address, "shop", REPORT, vec![]);
    until("scaling up", || async { serves(&scene.serving().await, &[("batch", 12), ("ml", 4)]) }).await;
    until("the clusters are told", || async {
        let heard = (batch.heard().configured(), ml.heard().configured());
        if heard == (12, 4) { Ok(()) } else { Err(format!("{heard:?}")) }
    })
    .await;

    // Preempt: a higher priority wants three of the metal machines, and gets exactly three.
    shop.report(vec![want("metal-64", 1_000_000, 3, &metal)]);
    until("preemption", || async { serves(&scene.serving().await, &[("batch", 9), ("shop", 3), ("ml", 4)]) })
        .await;
    let preempted: Vec<_> = batch.heard().reclaims;
    assert_eq!(preempted.len(), 3, "one wave: {preempted:?}");
    assert!(preempted.iter().all(|(_, priority)| *priority == 1_000_000));

    // The shard dies in the middle of the next change, and comes back.
    ml.report(vec![want("std-4", 1_000, 7, &small)]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    scene.shard.take().expect("it runs").kill();
    scene.start_shard();
    until("the shard goes on", || async {
        serves(&scene.serving().await, &[("batch", 9), ("shop", 3), ("ml", 7)])
    })
    .await;
    until("operators come back", || async {
        let sessions = [&batch, &ml, &shop].map(|operator| operator.heard().sessions);
        if sessions.iter().all(|count| *count >= 2) { Ok(()) } else { Err(format!("{sessions:?}")) }
    })
    .await;

    // A provider dies in the middle of a change, and comes back with all it had.
    ml.report(vec![want("std-4", 1_000, 9, &small)]);
    tokio::time::sleep(Duration::from_millis(200)).await;
    scene.providers.remove(0).kill();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let east = scene.provider(0);
    scene.providers.insert(0, east);
    until("the provider goes on", || async {
        serves(&scene.serving().await, &[("batch", 9), ("shop", 3), ("ml", 9)])
    })
    .await;

    // An operator dies; its cluster keeps what it has; a new one takes over.
    drop(ml);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(scene.serving().await.get("ml"), Some(&9), "silence takes nothing away");
    let ml = Operator::start(&address, "ml", REPORT, vec![want("std-4", 1_000, 9, &small)]);
    until("the new operator is told what it has", || async {
        let count = ml.heard().configured();
        if count == 9 { Ok(()) } else { Err(format!("{count} machines")) }
    })
    .await;

    // Reclaim and release: the cluster wants nothing any more. The guard asks three times, then machines drain, idle, and are
    // given back.
    ml.report(vec![]);
    until("reclaim", || async { serves(&scene.serving().await, &[("batch", 9), ("shop", 3), ("ml", 0)]) })
        .await;
    let acks = ml.heard().acks;
    assert!(acks.iter().any(|ack| ack.starts_with("rollup held 1 of 3: ")), "{acks:?}");
    until("release", || async {
        let machines = scene.machines().await;
        let kept = machines.iter().filter(|m| m.instance_type == "std-4" && m.state != SPECULATIVE).count();
        // Reserved machines are bought like the others but never given back.
        let reserved = machines
            .iter()
            .filter(|m| m.state == 3 && m.instance_type == "std-4" && m.capacity_type == 2)
            .count();
        if kept == reserved {
            Ok(())
        } else {
            Err(format!("{kept} small machines are not given back, {reserved} reserved"))
        }
    })
    .await;

    // Quiet: cycles go on and nothing is begun.
    let (begun, cycles) =
        (scene.begun().await, scene.metric("bigfleet_shard_cycle_duration_seconds_count").await);
    let cycles = cycles.expect("metrics are served");
    until("many more cycles", || async {
        let now = scene.metric("bigfleet_shard_cycle_duration_seconds_count").await.unwrap_or(0.0);
        if now >= cycles + 20.0 { Ok(()) } else { Err(format!("{cycles} then {now}")) }
    })
    .await;
    assert_eq!(scene.begun().await, begun, "at steady demand nothing moves");
    assert!(begun > 0.0, "the counter counts");
    serves(&scene.serving().await, &[("batch", 9), ("shop", 3), ("ml", 0)]).expect("nobody lost anything");
    assert!(
        get(scene.http_port, "/readyz").await.is_some_and(|answer| answer.contains("200")),
        "and it says so"
    );

    // And it stops when asked to.
    assert_eq!(scene.shard.take().expect("it runs").stop(), Some(0));
}
