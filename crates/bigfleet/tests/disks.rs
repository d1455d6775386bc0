//! Disks that are slow and disks that are full, real ones: of one member of etcd and of all, of a coordinator that keeps the
//! fleet in a file, of a shard. What was acknowledged is there, what was not stored is not said to be, and work goes on as soon as
//! it can.

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

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bigfleet_kube_testbed::{EtcdMembers, in_own_network};
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{AssignDomainRequest, ListDomainAssignmentsRequest, ShardReport};
use operator::Operator;
use process::{Process, free_port};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// How long anything may take before a test gives up. Not a bar: only an end to waiting.
const PATIENCE: Duration = Duration::from_mins(3);
const CALL: Duration = Duration::from_secs(10);
const REPORT: Duration = Duration::from_millis(250);
/// What a slow disk adds to each synchronisation.
const DELAY_MICROS: u64 = 300_000;

/// A process whose disk is slow for as long as this is there: each fdatasync and fsync of it is held up.
struct Slow(Process);

impl Slow {
    fn start(name: &str, id: u32) -> Self {
        let inject = format!("inject=fdatasync,fsync:delay_enter={DELAY_MICROS}");
        let id = id.to_string();
        let arguments = ["-f", "-e", "trace=fdatasync,fsync", "-e", &inject, "-p", &id];
        let slow = Process::start_program(&format!("strace of {name}"), "strace", &arguments);
        Self(slow)
    }

    /// How often it was held up by now.
    fn times(&self) -> usize {
        self.0.last_words().matches("(DELAYED)").count()
    }
}

/// Whether the disks of other processes can be slowed down here.
fn can_slow() -> bool {
    let tried = Command::new("strace").args(["-e", "trace=none", "true"]).stderr(Stdio::null()).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        eprintln!("SKIPPED slow disks: strace(1) is not here, or may not trace");
    }
    can
}

/// A small disk of its own at a folder.
fn small_disk(at: &Path, mebibytes: u32) {
    let size = format!("size={mebibytes}m");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(at).status();
    assert!(mounted.expect("mount(8) is there").success(), "{}", at.display());
}

/// Takes all the room that is left on a disk.
fn fill(at: &Path) {
    let mut file = File::create(at.join("full")).expect("it can be created");
    let zeros = vec![0; 1 << 20];
    let mut size = zeros.len();
    while size > 0 {
        if file.write_all(&zeros[..size]).is_err() {
            size /= 2;
        }
    }
}

fn make_room(at: &Path) {
    std::fs::remove_file(at.join("full")).expect("it was filled");
}

/// Waits until something is so.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(why) => assert!(begun.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A coordinator, and what it has acknowledged.
struct Coordinator {
    process: Process,
    channel: Channel,
    acknowledged: BTreeSet<String>,
}

impl Coordinator {
    async fn start(keep: [&str; 2]) -> Self {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let run = ["coordinator", "run", "--listen", &listen, "--metrics", "none"];
        let process = Process::start("coordinator", &[&run[..], &keep].concat());
        let endpoint = Endpoint::from_shared(format!("http://{listen}")).expect("an address");
        let channel = transport::endpoint(endpoint).connect_lazy();
        let coordinator = Self { process, channel, acknowledged: BTreeSet::new() };
        until("a shard is registered", async || {
            let mut client = transport::coordinator_client(coordinator.channel.clone());
            let report = ShardReport { shard_id: "s1".into(), shard_epoch: 1, ..ShardReport::default() };
            client.report_shard(report).await.map(drop).map_err(|status| status.to_string())
        })
        .await;
        coordinator
    }

    async fn try_assign(&self, zone: &str) -> Result<(), tonic::Status> {
        let mut client = transport::coordinator_client(self.channel.clone());
        let (topology_key, topology_value) = ("zone".into(), zone.into());
        let request = AssignDomainRequest { topology_key, topology_value, shard_id: "s1".into() };
        match tokio::time::timeout(CALL, client.assign_domain(request)).await {
            Ok(answer) => answer.map(drop),
            Err(_) => Err(tonic::Status::deadline_exceeded("no answer")),
        }
    }

    /// Has so many more zones assigned; how long each took in the middle.
    async fn assign(&mut self, count: usize) -> Duration {
        let begun = Instant::now();
        for _ in 0..count {
            let zone = format!("z{}", self.acknowledged.len());
            until(&zone, async || self.try_assign(&zone).await.map_err(|status| status.to_string())).await;
            self.acknowledged.insert(zone);
        }
        begun.elapsed() / u32::try_from(count).expect("a few")
    }

    /// All that was acknowledged is there, and nothing that nobody asked for.
    async fn has_all(&self) {
        let mut client = transport::coordinator_client(self.channel.clone());
        let answer = client.list_domain_assignments(ListDomainAssignmentsRequest {}).await.expect("it reads");
        let there: BTreeSet<String> =
            answer.into_inner().assignments.into_iter().map(|domain| domain.topology_value).collect();
        assert_eq!(there, self.acknowledged);
    }
}

fn play<F: Future<Output = ()>>(test: &str, scene: impl FnOnce() -> F) {
    in_own_network(test, || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(scene());
    });
}

#[test]
fn members_of_etcd_with_slow_and_full_disks() {
    play("members_of_etcd_with_slow_and_full_disks", members);
}

async fn members() {
    let mut etcd = EtcdMembers::start().unwrap_or_else(|error| panic!("{error}"));
    let members = etcd.urls().join(",");
    let mut coordinator = Coordinator::start(["--etcd", &members]).await;
    eprintln!("a write, all disks quick: {:.1?}", coordinator.assign(10).await);
    if can_slow() {
        let mut slow = Vec::new();
        for member in 0..3 {
            let (id, ..) = etcd.look(member).expect("it runs");
            slow.push(Slow::start("a member", id.unsigned_abs()));
            until("it is slow", async || {
                coordinator.assign(1).await;
                if slow[member].times() > 0 { Ok(()) } else { Err(slow[member].0.last_words()) }
            })
            .await;
            eprintln!("a write, disks slow of {}: {:.1?}", member + 1, coordinator.assign(5).await);
        }
    }

    // The third member comes onto a disk of its own, which then has no room left.
    etcd.kill(2);
    let (folder, aside) = (etcd.folder(2), tempfile::tempdir().expect("a folder"));
    let copy = |from: &Path, to: &Path| {
        let done = Command::new("cp").arg("-a").arg(from).arg(to).status();
        assert!(done.expect("cp(1) is there").success());
    };
    copy(&folder.join("data"), aside.path());
    small_disk(&folder, 200);
    copy(&aside.path().join("data"), &folder);
    etcd.begin(2).expect("etcd starts");
    coordinator.assign(5).await;
    fill(&folder);
    let mut written = 0;
    until("the member notices that there is no room", async || {
        coordinator.assign(20).await;
        written += 20;
        let (_, runs, words) = etcd.look(2).expect("it was started");
        if runs { Err(format!("{written} writes later: {words}")) } else { Ok(()) }
    })
    .await;
    eprintln!(
        "a full disk ended its member after {written} writes; a write then: {:.1?}",
        coordinator.assign(5).await
    );
    make_room(&folder);
    etcd.begin(2).expect("etcd starts");
    // Without another there is a majority only with the one that was away.
    etcd.kill(0);
    coordinator.assign(5).await;
    coordinator.has_all().await;
}

#[test]
fn a_coordinator_with_a_file_on_a_slow_and_full_disk() {
    play("a_coordinator_with_a_file_on_a_slow_and_full_disk", file);
}

async fn file() {
    let folder = tempfile::tempdir().expect("a folder");
    small_disk(folder.path(), 24);
    let data = folder.path().join("fleet").display().to_string();
    let mut coordinator = Coordinator::start(["--data", &data]).await;
    eprintln!("a write, the disk quick: {:.1?}", coordinator.assign(10).await);
    if can_slow() {
        let slow = Slow::start("the coordinator", coordinator.process.id());
        until("it is slow", async || {
            coordinator.assign(1).await;
            if slow.times() > 0 { Ok(()) } else { Err(slow.0.last_words()) }
        })
        .await;
        eprintln!("a write, the disk slow: {:.1?}", coordinator.assign(5).await);
    }
    fill(folder.path());
    let mut refused = None;
    let mut before = 0;
    while refused.is_none() {
        let zone = format!("z{}", coordinator.acknowledged.len());
        match coordinator.try_assign(&zone).await {
            Ok(()) => drop(coordinator.acknowledged.insert(zone)),
            Err(status) => refused = Some(status),
        }
        before += 1;
        assert!(before < 20_000, "there must be an end to a full disk");
    }
    // The same zone is asked for again below.
    let status = refused.expect("it was refused just now");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    eprintln!("refused after {before} writes on a full disk: {}", status.message());
    make_room(folder.path());
    let took = Instant::now();
    coordinator.assign(5).await;
    eprintln!("taken again after {:.1?}", took.elapsed());
    coordinator.has_all().await;
    // And so it is for the next one who opens the file.
    let acknowledged = std::mem::take(&mut coordinator.acknowledged);
    coordinator.process.kill();
    let mut coordinator = Coordinator::start(["--data", &data]).await;
    coordinator.acknowledged = acknowledged;
    coordinator.has_all().await;
}

#[test]
fn a_shard_on_a_slow_disk_decides() {
    play("a_shard_on_a_slow_disk_decides", shard);
}

async fn shard() {
    if !can_slow() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (cloud_port, port) = (free_port(), free_port());
    let (addr, listen) = (format!("127.0.0.1:{cloud_port}"), format!("127.0.0.1:{port}"));
    let cloud = ["provider", "sim", "--use-fake-backend", "--seed-count", "100", "--http", "none"];
    let _cloud = Process::start("cloud", &[&cloud[..], &["--addr", &addr]].concat());
    let data = folder.path().join("shard").display().to_string();
    let provider = format!("sim=http://{addr}");
    let shard = ["shard", "--shard-id", "s1", "--data", &data, "--provider", &provider, "--metrics", "none"];
    let places = ["--listen", &listen, "--list-every", "500ms"];
    let shard = Process::start("shard", &[&shard[..], &places].concat());
    let shop = Operator::start(&format!("http://{listen}"), "shop", REPORT, vec![]);
    let slow = Slow::start("the shard", shard.id());
    for wanted in 1..=3_usize {
        let begun = Instant::now();
        let cpu = |machines: usize| [("cpu".to_owned(), format!("{}m", machines * 3920))].into();
        let kind = bigfleet_proto::v1alpha1::NodeSelectorRequirement {
            key: "node.kubernetes.io/instance-type".into(),
            operator: 1,
            values: vec!["std-4".into()],
        };
        let need = bigfleet_proto::v1alpha1::CapacityNeed {
            requirements: vec![kind],
            aggregate_resources: cpu(wanted),
            min_unit: cpu(1),
            ..Default::default()
        };
        shop.report(vec![need]);
        until("another machine serves", async || match shop.heard().configured() {
            count if count == wanted => Ok(()),
            count => Err(format!("{count} serve")),
        })
        .await;
        eprintln!("decided and carried out on a slow disk after {:.1?}", begun.elapsed());
    }
    assert!(slow.times() > 3, "it was held up: {}", slow.0.last_words());
}
