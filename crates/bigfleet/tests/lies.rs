//! A real shard and a real provider that lies: truth is adopted and clusters are told, but no lie spends the quota.
//!
//! A hundred machines are bound over sockets before the provider begins to lie. The wording of each lie, and what it may cost,
//! is in docs/security.md.

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

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{CapacityNeed, ListFilter, Machine, NodeSelectorRequirement};
use operator::Operator;
use process::{Process, free_port};
use tonic::transport::Endpoint;

/// How long anything may take before a test gives up. Not a bar: only an end to waiting.
const PATIENCE: Duration = Duration::from_mins(3);
const REPORT: Duration = Duration::from_millis(500);
/// Machines that are wanted: a third of those there are.
const WANTED: usize = 100;

const SPECULATIVE: i32 = 1;
const IDLE: i32 = 3;
const CONFIGURED: i32 = 5;

struct Scene {
    _folder: tempfile::TempDir,
    _provider: Process,
    provider_port: u16,
    admin: String,
    shard: Process,
    shard_port: u16,
    http_port: u16,
    shop: Operator,
}

impl Scene {
    /// A provider with 300 machines of the kind that is wanted, which may lie from the start, and a shard with more flags.
    fn begin(lie: Option<&str>, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [provider_port, admin_port, shard_port, http_port] = std::array::from_fn(|_| free_port());
        let (addr, admin) = (format!("127.0.0.1:{provider_port}"), format!("127.0.0.1:{admin_port}"));
        let lie = lie.map(|line| vec!["--fault", line]).unwrap_or_default();
        let cloud = ["provider", "sim", "--use-fake-backend", "--seed-count", "1500", "--http", "none"];
        let places = ["--addr", &addr, "--admin", &admin];
        let provider = Process::start("provider", &[&cloud[..], &places, &lie].concat());
        let data = folder.path().join("shard").to_str().expect("a plain path").to_owned();
        let (at, listen) = (format!("sim=http://{addr}"), format!("127.0.0.1:{shard_port}"));
        let metrics = format!("127.0.0.1:{http_port}");
        let shard = ["shard", "--shard-id", "s1", "--data", &data, "--provider", &at, "--list-every", "1s"];
        let places = ["--listen", &listen, "--metrics", &metrics];
        let shard = Process::start("shard", &[&shard[..], &places, flags].concat());
        let shop = Operator::start(&format!("http://{listen}"), "shop", REPORT, vec![want(WANTED)]);
        Self {
            _folder: folder,
            _provider: provider,
            provider_port,
            admin,
            shard,
            shard_port,
            http_port,
            shop,
        }
    }

    /// The machines of the kind that is wanted, as their provider says they are now.
    async fn machines(&self) -> Vec<Machine> {
        let address = format!("http://127.0.0.1:{}", self.provider_port);
        let endpoint = transport::endpoint(Endpoint::from_shared(address).expect("an address"));
        let Ok(channel) = endpoint.connect().await else { return Vec::new() };
        let listed = transport::provider_client(channel).list(ListFilter::default()).await;
        let machines = listed.map(|list| list.into_inner().machines).unwrap_or_default();
        machines.into_iter().filter(|machine| machine.instance_type == "std-4").collect()
    }

    async fn count(&self, is: impl Fn(&Machine) -> bool) -> usize {
        self.machines().await.iter().filter(|machine| is(machine)).count()
    }

    /// How many purchases were begun in this life of the shard.
    async fn bought(&self) -> usize {
        let text = get(self.http_port, "/metrics").await.unwrap_or_default();
        let begun = text.lines().filter(|line| {
            line.starts_with("bigfleet_shard_actions_total")
                && line.contains("Provision")
                && line.contains("begun")
        });
        begun.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as usize
    }

    /// Waits until a hundred machines serve, by the provider's word and by what the cluster was told.
    async fn serving(&self) {
        self.until("a hundred machines serve", || async {
            let (there, told) = (self.count(serves).await, self.shop.heard().configured());
            if (there, told) == (WANTED, WANTED) {
                Ok(())
            } else {
                Err(format!("{there} serve, {told} told"))
            }
        })
        .await;
    }

    fn lie(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        command(&[&["fault", "--admin", &self.admin, "add"][..], &words].concat());
    }

    fn rails(&self) -> String {
        command(&["get", "rails", "-o", "text", "--server", &format!("http://127.0.0.1:{}", self.shard_port)])
    }

    async fn until<F: Future<Output = Result<(), String>>>(&self, what: &str, is: impl Fn() -> F) {
        let mut last = String::new();
        let wait = async {
            loop {
                match is().await {
                    Ok(()) => return,
                    Err(why) => last = why,
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let happened = tokio::time::timeout(PATIENCE, wait).await.is_ok();
        assert!(happened, "{what}: did not happen; last seen: {last}\n{}", self.shard.last_words());
    }

    /// Waits until the shard has written this many times that something is so.
    async fn says(&self, words: &str, times: usize) {
        self.until(words, || async {
            let said = self.shard.last_words().matches(words).count();
            if said >= times { Ok(()) } else { Err(format!("said {said} times")) }
        })
        .await;
    }
}

fn command(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(words).output().expect("it runs");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn serves(machine: &Machine) -> bool {
    machine.state == CONFIGURED && machine.cluster == "shop"
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

/// Needs so many machines of one kind, each of them whole: what a node of it leaves to pods.
fn want(count: usize) -> CapacityNeed {
    let amounts = |machines: usize| BTreeMap::from([("cpu".to_owned(), format!("{}m", machines * 3920))]);
    CapacityNeed {
        requirements: vec![NodeSelectorRequirement {
            key: "node.kubernetes.io/instance-type".into(),
            operator: 1,
            values: vec!["std-4".into()],
        }],
        aggregate_resources: amounts(count),
        min_unit: amounts(1),
        priority: 1000,
        ..CapacityNeed::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_machines_shown_failed_for_25_seconds_cost_at_most_ten() {
    let scene = Scene::begin(None, &[]);
    scene.serving().await;
    assert_eq!(scene.bought().await, WANTED);
    scene.lie("shown-failed --for 25s");
    scene
        .until("the cluster is told at once", || async {
            let told = scene.shop.heard().configured();
            if told <= 10 { Ok(()) } else { Err(format!("{told} are still there")) }
        })
        .await;
    let rails = scene.rails();
    assert!(rails.contains("shop") && rails.contains("lost"), "{rails}");
    // When they are back, the first lie is over.
    scene
        .until("the machines are back", || async {
            let told = scene.shop.heard().configured();
            if told >= WANTED { Ok(()) } else { Err(format!("{told} are there")) }
        })
        .await;
    scene.says("are back", 1).await;
    let bought = scene.bought().await - WANTED;
    assert!(bought <= 10, "{bought} were bought for a lie of 25 s");
    // What was bought beside them is taken back from the cluster, and waits to be given back.
    scene.serving().await;
    let beside = scene.count(|machine| machine.state == IDLE).await;
    assert!(beside <= bought, "{beside} idle of {bought}");
    assert_eq!(scene.bought().await - WANTED, bought, "and that is all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_zone_is_replaced_in_full_when_listings_agree_for_two_windows() {
    // A tenth of the usual window, so that two of them are six seconds.
    let scene = Scene::begin(None, &["--purchase-window", "3s"]);
    scene.serving().await;
    let lost = scene.count(|machine| serves(machine) && machine.zone == "zone-a").await;
    assert!(lost > WANTED / 5, "{lost} machines are in the zone: no suspicious loss");
    let begun = Instant::now();
    scene.lie("zone-outage zone-a --for 1h");
    scene.says("loses more than 20 %", 1).await;
    scene.says("are replaced like any others", 1).await;
    let elsewhere = |machine: &Machine| serves(machine) && machine.zone != "zone-a";
    scene
        .until("all of it is replaced", || async {
            let (there, told) = (scene.count(elsewhere).await, scene.shop.heard().configured());
            if (there, told) == (WANTED, WANTED) {
                Ok(())
            } else {
                Err(format!("{there} serve, {told} told"))
            }
        })
        .await;
    let made = |machine: &Machine| machine.state != SPECULATIVE && machine.zone != "zone-a";
    assert_eq!(scene.count(made).await, WANTED, "no more than was lost");
    eprintln!("{lost} machines of a lost zone replaced after {:?}, window 3s", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moves_that_are_denied_are_not_bought_again() {
    let scene = Scene::begin(Some("denied-moves p=0.5"), &[]);
    scene.serving().await;
    // As long as it takes for a listing to be asked about whatever was denied.
    scene
        .until("nothing is on its way", || async {
            let moving =
                scene.count(|machine| ![SPECULATIVE, IDLE, CONFIGURED].contains(&machine.state)).await;
            if moving == 0 { Ok(()) } else { Err(format!("{moving} are moving")) }
        })
        .await;
    let made = scene.count(|machine| machine.state != SPECULATIVE).await;
    assert_eq!(made, WANTED, "a Create that was denied was carried out, and is the one that is wanted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_id_twice_and_another_half_each_time_take_nothing_away() {
    // What changed is asked for in between; these lies are told where everything is listed.
    let scene = Scene::begin(None, &["--full-list-every", "1s"]);
    scene.serving().await;
    for (lie, words) in
        [("contradicted-list share=0.5", "neither is believed"), ("halved-list", "no longer lists")]
    {
        scene.lie(&format!("{lie} --for 12s"));
        scene.says(words, 1).await;
        let lied = Instant::now();
        while lied.elapsed() < Duration::from_secs(10) {
            assert_eq!(scene.shop.heard().configured(), WANTED, "{lie}: {}", scene.shard.last_words());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(scene.bought().await, WANTED, "{lie}");
    }
    scene.serving().await;
}
