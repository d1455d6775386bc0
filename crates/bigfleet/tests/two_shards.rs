//! Two shards on one provider, two coordinators, an etcd of three members, all real processes: a fleet is laid out, bounded,
//! helped and moved, while members, coordinators and shards are killed. At no moment do two shards have a machine.

#![expect(
    clippy::disallowed_methods,
    reason = "processes run in real time, and so does whoever waits for them"
)]

#[path = "support/operator.rs"]
mod operator;
#[path = "support/process.rs"]
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use bigfleet_kube_testbed::EtcdMembers;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::operator_message::Payload as Says;
use bigfleet_proto::v1alpha1::{CapacityNeed, Hello, ListFilter, Machine, OperatorMessage};
use operator::Operator;
use process::{Process, free_port};
use serde_json::Value;
use tonic::transport::Endpoint;

const SPECULATIVE: i32 = 1;
const CONFIGURED: i32 = 5;
const ZONE: &str = "topology.kubernetes.io/zone";
/// How long anything may take before the test gives up. Not a bar: only an end to waiting.
const PATIENCE: Duration = Duration::from_mins(3);
const REPORT: Duration = Duration::from_millis(250);
const SHARDS: [&str; 2] = ["eu-1", "eu-2"];

struct Scene {
    folder: tempfile::TempDir,
    etcd: EtcdMembers,
    cloud_port: u16,
    coordinator_ports: [u16; 2],
    shard_ports: [u16; 2],
    cloud: Option<Process>,
    coordinators: [Option<Process>; 2],
    shards: [Option<Process>; 2],
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

impl Scene {
    fn set() -> Self {
        let mut scene = Self {
            folder: tempfile::tempdir().expect("a folder"),
            etcd: EtcdMembers::start().unwrap_or_else(|error| panic!("{error}")),
            cloud_port: free_port(),
            coordinator_ports: [free_port(), free_port()],
            shard_ports: [free_port(), free_port()],
            cloud: None,
            coordinators: [None, None],
            shards: [None, None],
        };
        scene.start_cloud();
        for place in 0..2 {
            scene.start_coordinator(place);
            scene.start_shard(place);
        }
        scene
    }

    fn start_cloud(&mut self) {
        let state = self.folder.path().join("cloud");
        let arguments = [
            "provider",
            "sim",
            "--use-fake-backend",
            "--seed-count",
            "24",
            "--fault-slots",
            "0",
            "--addr",
            &local(self.cloud_port),
            "--http",
            "none",
            "--state",
            state.to_str().expect("a plain path"),
        ];
        self.cloud = Some(Process::start("cloud", &arguments));
    }

    fn start_coordinator(&mut self, place: usize) {
        let (listen, etcd) = (local(self.coordinator_ports[place]), self.etcd.urls().join(","));
        let arguments = [
            "coordinator",
            "run",
            "--etcd",
            &etcd,
            "--etcd-lease-secs",
            "3",
            "--listen",
            &listen,
            "--metrics",
            "none",
        ];
        self.coordinators[place] = Some(Process::start(&format!("coordinator {place}"), &arguments));
    }

    fn start_shard(&mut self, place: usize) {
        let data = self.folder.path().join(SHARDS[place]);
        let replicas = self.coordinator_ports.map(|port| format!("http://{}", local(port))).join(",");
        let (listen, provider) =
            (local(self.shard_ports[place]), format!("sim=http://{}", local(self.cloud_port)));
        let arguments = [
            "shard",
            "--shard-id",
            SHARDS[place],
            "--data",
            data.to_str().expect("a plain path"),
            "--provider",
            &provider,
            "--listen",
            &listen,
            "--metrics",
            "none",
            "--coordinator",
            &replicas,
            "--report-every",
            "400ms",
            "--tick",
            "500ms",
            "--list-every",
            "300ms",
            "--guard-spacing",
            "300ms",
            "--reclaim-window",
            "500ms",
        ];
        self.shards[place] = Some(Process::start(SHARDS[place], &arguments));
    }

    fn shard(&self, place: usize) -> String {
        format!("http://{}", local(self.shard_ports[place]))
    }

    /// Runs a command against a coordinator that lives.
    fn run(&self, words: &[&str]) -> Result<Vec<Value>, String> {
        let alive = (0..2).find(|place| self.coordinators[*place].is_some()).expect("one lives");
        let done = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
            .args(words)
            .env("BIGFLEET_COORDINATOR", local(self.coordinator_ports[alive]))
            .output()
            .expect("the binary");
        if !done.status.success() {
            return Err(format!("{words:?}: {}", String::from_utf8_lossy(&done.stderr)));
        }
        let text = String::from_utf8(done.stdout).expect("text");
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// A command that goes through sooner or later.
    async fn order(&self, words: &[&str]) {
        until("a command is carried out", async || self.run(words).map(drop)).await;
    }

    /// Who holds which zone for good.
    fn held(&self) -> Result<BTreeMap<String, String>, String> {
        let domains = self.run(&["get", "domains"])?;
        let held = domains.iter().filter(|domain| domain["arriving"] == false && domain["leaving"] == false);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Ok(held.map(|domain| (text(&domain["value"]), text(&domain["shard"]))).collect())
    }

    async fn holds(&self, zone: &str, shard: &str) {
        until("a zone is held", async || {
            let held = self.held()?;
            if held.get(zone).is_some_and(|holder| holder == shard) {
                Ok(())
            } else {
                Err(format!("{held:?}"))
            }
        })
        .await;
    }

    /// All machines, as the cloud sees them.
    async fn machines(&self) -> Vec<Machine> {
        let endpoint =
            Endpoint::from_shared(format!("http://{}", local(self.cloud_port))).expect("an address");
        let Ok(channel) = transport::endpoint(endpoint).connect().await else { return Vec::new() };
        let listed = transport::provider_client(channel).list(ListFilter::default()).await;
        listed.map(|list| list.into_inner().machines).unwrap_or_default()
    }

    /// How many machines serve a cluster, by zone.
    async fn serving(&self, cluster: &str) -> BTreeMap<String, usize> {
        let mut serving = BTreeMap::new();
        for machine in self.machines().await {
            if machine.state == CONFIGURED && machine.cluster == cluster {
                *serving.entry(machine.zone).or_default() += 1;
            }
        }
        serving
    }

    /// The machines that a shard knows.
    fn known(&self, place: usize) -> Result<BTreeSet<String>, String> {
        let done = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
            .args(["get", "machines", "--server", &self.shard(place)])
            .output()
            .expect("the binary");
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
        let text = String::from_utf8(done.stdout).expect("text");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"));
        Ok(lines
            .filter_map(|line| line["machine"].as_str().or(line["id"].as_str()).map(String::from))
            .collect())
    }

    /// Nothing is under way between shards, everything is somebody's, and nothing is of two.
    async fn is_shared_out(&self) {
        until("every machine is one shard's", async || {
            let transfers = self.run(&["get", "transfers"])?;
            if let Some(under_way) = transfers.iter().find(|transfer| transfer["step"] != "arrived") {
                return Err(format!("{under_way}"));
            }
            let (one, two) = (self.known(0)?, self.known(1)?);
            let both: Vec<&String> = one.intersection(&two).collect();
            assert!(both.is_empty(), "{both:?} are of both shards while nothing moves");
            // The third zone is assigned to nobody.
            let machines = self.machines().await;
            let all = machines.iter().filter(|machine| machine.zone != "zone-c").count();
            if one.len() + two.len() == all {
                Ok(())
            } else {
                Err(format!("{} and {} of {all}", one.len(), two.len()))
            }
        })
        .await;
    }
}

/// Waits until something is so.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let begun = tokio::time::Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(why) => assert!(begun.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// So many units of one CPU, which want to stay where they are.
fn need(priority: i32, cpus: u64) -> CapacityNeed {
    let resource = |amount: String| BTreeMap::from([("cpu".to_owned(), amount)]);
    CapacityNeed {
        priority,
        aggregate_resources: resource(cpus.to_string()),
        min_unit: resource("1".into()),
        ..CapacityNeed::default()
    }
}

/// What an operator hears that dials a shard for a cluster of another.
async fn refused(shard: &str, cluster: &str) -> Result<String, String> {
    let endpoint = Endpoint::from_shared(shard.to_owned()).expect("an address");
    let channel = transport::endpoint(endpoint).connect().await.map_err(|error| error.to_string())?;
    let hello = Hello { cluster_id: cluster.into(), protocol_version: "v1alpha1".into() };
    let says = tokio_stream::iter([OperatorMessage { payload: Some(Says::Hello(hello)) }]);
    let says = tokio_stream::StreamExt::chain(says, tokio_stream::pending());
    let session = transport::shard_client(channel).session(says).await;
    let mut session = session.map_err(|status| status.message().to_owned())?.into_inner();
    match session.message().await {
        Err(status) => Ok(status.message().to_owned()),
        Ok(frame) => Err(format!("it was heard: {frame:?}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_shards_share_a_fleet_whoever_is_killed() {
    let mut scene = Scene::set();
    until("both shards are registered", async || {
        let shards = scene.run(&["get", "shards"])?;
        if shards.len() == 2 { Ok(()) } else { Err(format!("{shards:?}")) }
    })
    .await;
    let shop = Operator::start(&scene.shard(0), "shop", REPORT, vec![need(100, 8)]);
    let web = Operator::start(&scene.shard(1), "web", REPORT, vec![need(100, 8)]);
    until("both clusters are heard", async || {
        if shop.heard().acks.len() > 8 && web.heard().acks.len() > 8 { Ok(()) } else { Err("not yet".into()) }
    })
    .await;
    let untouched = scene.machines().await.iter().all(|machine| machine.state == SPECULATIVE);
    assert!(untouched, "what is assigned to nobody is nobody's");

    // Laid out, and bounded: two machines at most.
    scene.order(&["quota", "--shard", "eu-1", "--provider", "sim", "2"]).await;
    scene.order(&["assign", &format!("{ZONE}=zone-a"), "--to", "eu-1"]).await;
    scene.order(&["assign", &format!("{ZONE}=zone-b"), "--to", "eu-2"]).await;
    scene.holds("zone-a", "eu-1").await;
    scene.holds("zone-b", "eu-2").await;
    until("each is served from its own zone", async || {
        let (shop, web) = (scene.serving("shop").await, scene.serving("web").await);
        let is_apart = shop.keys().eq(["zone-a"]) && web.keys().eq(["zone-b"]);
        if is_apart { Ok(()) } else { Err(format!("{shop:?} {web:?}")) }
    })
    .await;
    shop.report(vec![need(100, 100_000)]);
    until("as much as the quota allows", async || {
        let shop = scene.serving("shop").await;
        if shop.get("zone-a") == Some(&2) { Ok(()) } else { Err(format!("{shop:?}")) }
    })
    .await;
    let acks = shop.heard().acks.len();
    until("more reports are answered", async || {
        if shop.heard().acks.len() > acks + 20 { Ok(()) } else { Err("not yet".into()) }
    })
    .await;
    let held = scene.machines().await.iter().filter(|m| m.zone == "zone-a" && m.state != SPECULATIVE).count();
    assert_eq!(held, 2, "slots beyond the quota are no supply");

    // Without the bound it takes all it has, and then what the other can spare.
    scene.order(&["quota", "--shard", "eu-1", "--provider", "sim", "--none"]).await;
    until("the other shard helps", async || {
        let shop = scene.serving("shop").await;
        if shop.contains_key("zone-b") { Ok(()) } else { Err(format!("{shop:?}")) }
    })
    .await;
    let transfers = scene.run(&["get", "transfers"]).expect("somebody leads");
    assert!(
        transfers.iter().all(|transfer| transfer["from"] == "eu-2" && transfer["to"] == "eu-1"),
        "{transfers:?}"
    );
    assert!(!scene.serving("web").await.is_empty(), "the donor keeps what it needs");
    let unassigned = scene.machines().await.into_iter().filter(|machine| machine.zone == "zone-c");
    assert!(
        unassigned.into_iter().all(|machine| machine.state == SPECULATIVE),
        "nobody's zone is left alone"
    );
    shop.report(vec![need(100, 8)]);
    scene.is_shared_out().await;

    // A zone moves while a member, the leader and the giver are killed, one after the other.
    scene.etcd.kill(0);
    scene.order(&["unassign", &format!("{ZONE}=zone-a")]).await;
    scene.coordinators[0].take().expect("it runs").kill();
    scene.order(&["assign", &format!("{ZONE}=zone-a"), "--to", "eu-2"]).await;
    scene.shards[0].take().expect("it runs").kill();
    scene.start_shard(0);
    scene.holds("zone-a", "eu-2").await;
    scene.start_coordinator(0);
    scene.etcd.begin(0).expect("etcd starts");
    scene.coordinators[1].take().expect("it runs").kill();
    scene.is_shared_out().await;
    scene.start_coordinator(1);

    // Its cluster moves with it; the old shard says where to.
    scene.order(&["bind", "shop", "--to", "eu-2"]).await;
    drop(shop);
    let eu_2 = local(scene.shard_ports[1]);
    until("the old shard names the new one", async || {
        let heard = refused(&scene.shard(0), "shop").await?;
        if heard.contains(&eu_2) && heard.contains("eu-2") { Ok(()) } else { Err(heard) }
    })
    .await;
    let shop = Operator::start(&scene.shard(1), "shop", REPORT, vec![need(100, 8)]);
    until("the new shard has taken over what serves it", async || {
        if shop.heard().configured() > 0 { Ok(()) } else { Err(format!("{:?}", shop.heard().nodes)) }
    })
    .await;

    // The cloud serves elsewhere, and the shards are told.
    scene.cloud.take().expect("it runs").kill();
    scene.cloud_port = free_port();
    scene.start_cloud();
    scene.order(&["set-provider", "sim", &format!("http://{}", local(scene.cloud_port))]).await;
    let before: usize = scene.serving("web").await.values().sum();
    web.report(vec![need(100, 400)]);
    until("machines are ordered where the cloud is now", async || {
        let now: usize = scene.serving("web").await.values().sum();
        if now > before { Ok(()) } else { Err(format!("{before} and {now} serve web")) }
    })
    .await;
    for shard in &mut scene.shards {
        assert_eq!(shard.take().expect("it runs").stop(), Some(0));
    }
}
