//! A fleet whose parts lose each other: three members of etcd, two coordinators, a shard with its cloud, each on a host of its own
//! (a network namespace), and every link that matters is cut in turn. What was acknowledged stays, nothing is assigned twice, and
//! the shard goes on deciding. Coordinators that are paused or cut off amid a write change nothing when they are back.

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

use bigfleet_kube_testbed::{EtcdMembers, Network, in_own_network};
use bigfleet_proto::coordinator_v1::GetStatusRequest;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{
    AssignDomainRequest, CapacityNeed, ListDomainAssignmentsRequest, NodeSelectorRequirement, ShardReport,
};
use operator::Operator;
use process::Process;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// How long anything may take before a test gives up. Not a bar: only an end to waiting.
const PATIENCE: Duration = Duration::from_mins(3);
/// How long one call may take before the other coordinator is asked.
const CALL: Duration = Duration::from_secs(2);
const REPORT: Duration = Duration::from_millis(250);
const ZONE: &str = "topology.kubernetes.io/zone";
/// The hosts, beside ours: the members, the coordinators, the shard.
const MEMBERS: [usize; 3] = [1, 2, 3];
const COORDINATORS: [usize; 2] = [4, 5];
const SHARD: usize = 6;

struct Scene {
    network: Network,
    coordinators: [Process; 2],
    channels: [Channel; 2],
    shop: Operator,
    /// Assignments that were acknowledged, by zone.
    acknowledged: BTreeMap<String, String>,
    /// Machines that the cluster asks for by now.
    wanted: usize,
    // Ended last, in this order.
    _shard: Process,
    _cloud: Process,
    _etcd: EtcdMembers,
    _folder: tempfile::TempDir,
}

/// Starts our program on a host.
fn start(network: &Network, host: usize, name: &str, arguments: &[&str]) -> Process {
    let enter = network.place(host).enter;
    let words: Vec<&str> = enter.iter().map(String::as_str).collect();
    let binary = [env!("CARGO_BIN_EXE_bigfleet")];
    Process::start_program(name, words[0], &[&words[1..], &binary, arguments].concat())
}

fn channel(network: &Network, host: usize, port: u16) -> Channel {
    let address = format!("http://{}:{port}", network.place(host).address);
    let endpoint = Endpoint::from_shared(address).expect("an address").connect_timeout(CALL);
    transport::endpoint(endpoint).connect_lazy()
}

/// Needs so many machines of one kind, each of them whole.
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

impl Scene {
    fn set() -> Self {
        let network = Network::of(6).unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().expect("a folder");
        let etcd = EtcdMembers::start_on(MEMBERS.map(|host| network.place(host)));
        let etcd = etcd.unwrap_or_else(|error| panic!("{error}"));
        let at = |host: usize, port: u16| format!("{}:{port}", network.place(host).address);
        let members = etcd.urls().join(",");
        let coordinators = COORDINATORS.map(|host| {
            let listen = at(host, 7790);
            let run = ["coordinator", "run", "--etcd", &members, "--etcd-lease-secs", "3", "--insecure"];
            let places = ["--listen", &listen, "--metrics", "none"];
            start(&network, host, &format!("coordinator {host}"), &[&run[..], &places].concat())
        });
        let cloud = ["provider", "sim", "--use-fake-backend", "--seed-count", "500", "--http", "none"];
        let places = ["--addr", "127.0.0.1:9000", "--admin", "127.0.0.1:9001"];
        let cloud = start(&network, SHARD, "cloud", &[&cloud[..], &places].concat());
        let data = folder.path().join("shard").display().to_string();
        let (listen, replicas) =
            (at(SHARD, 7780), COORDINATORS.map(|host| format!("http://{}", at(host, 7790))).join(","));
        let shard = ["shard", "--shard-id", "s1", "--data", &data, "--provider", "sim=http://127.0.0.1:9000"];
        let places = ["--listen", &listen, "--insecure", "--metrics", "none", "--coordinator", &replicas];
        let pace = ["--report-every", "500ms", "--tick", "500ms", "--list-every", "500ms"];
        let shard = start(&network, SHARD, "shard", &[&shard[..], &places, &pace].concat());
        let shop = Operator::start(&format!("http://{listen}"), "shop", REPORT, vec![want(0)]);
        let channels = COORDINATORS.map(|host| channel(&network, host, 7790));
        let (acknowledged, wanted) = (BTreeMap::new(), 0);
        Self {
            network,
            coordinators,
            channels,
            shop,
            acknowledged,
            wanted,
            _shard: shard,
            _cloud: cloud,
            _etcd: etcd,
            _folder: folder,
        }
    }

    /// Asks one coordinator to assign a zone, once.
    async fn assign(&self, coordinator: usize, zone: &str, shard: &str) -> Result<(), tonic::Status> {
        let answer = tokio::time::timeout(CALL, self.ask(coordinator, zone, shard)).await;
        answer.unwrap_or_else(|_| Err(tonic::Status::deadline_exceeded("no answer")))
    }

    /// The same, for as long as it may take.
    fn ask(
        &self,
        coordinator: usize,
        zone: &str,
        shard: &str,
    ) -> impl Future<Output = Result<(), tonic::Status>> + Send + use<> {
        let mut client = transport::coordinator_client(self.channels[coordinator].clone());
        let (topology_key, topology_value) = (ZONE.into(), zone.into());
        let request = AssignDomainRequest { topology_key, topology_value, shard_id: shard.into() };
        async move { client.assign_domain(request).await.map(drop) }
    }

    /// Asks one coordinator after the other, until one has it done. Whom, and how long it took.
    async fn have_assigned(&mut self, zone: &str, shard: &str, whom: &[usize]) -> (usize, Duration) {
        let begun = Instant::now();
        let by = until(&format!("{zone} is assigned"), async || {
            let mut last = None;
            for coordinator in whom {
                match self.assign(*coordinator, zone, shard).await {
                    Ok(()) => return Ok(*coordinator),
                    Err(status) if status.code() == Code::AlreadyExists => panic!("{zone}: {status}"),
                    Err(status) => last = Some(status),
                }
            }
            Err(last.map_or_else(String::new, |status| status.to_string()))
        })
        .await;
        self.acknowledged.insert(zone.into(), shard.into());
        (by, begun.elapsed())
    }

    /// The coordinator that leads by its own word and can have something stored.
    async fn leader(&mut self, zone: &str) -> usize {
        self.have_assigned(zone, "s1", &[0, 1]).await.0
    }

    /// One more machine is wanted; how long until it serves, by what its cluster was told.
    async fn have_decided(&mut self) -> Duration {
        self.wanted += 1;
        let begun = Instant::now();
        self.shop.report(vec![want(self.wanted)]);
        until("the shard decides", async || match self.shop.heard().configured() {
            count if count == self.wanted => Ok(()),
            count => Err(format!("{count} of {} serve", self.wanted)),
        })
        .await;
        begun.elapsed()
    }

    /// What any coordinator that answers knows of zones.
    async fn assigned(&self) -> Result<BTreeMap<String, String>, String> {
        let mut client = transport::coordinator_client(self.channels[0].clone());
        let answer = client.list_domain_assignments(ListDomainAssignmentsRequest {}).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(_) => transport::coordinator_client(self.channels[1].clone())
                .list_domain_assignments(ListDomainAssignmentsRequest {})
                .await
                .map_err(|status| status.to_string())?,
        };
        let assigned = answer.into_inner().assignments.into_iter();
        Ok(assigned.map(|domain| (domain.topology_value, domain.shard_id)).collect())
    }

    /// Cuts links, has something assigned and something decided meanwhile, and mends them.
    async fn without(&mut self, what: &str, links: &[(usize, usize)]) {
        for (one, other) in links {
            self.network.cut(*one, *other).expect("it can be cut");
        }
        let zone = format!("z-{}", self.acknowledged.len());
        let shard = if self.acknowledged.len().is_multiple_of(2) { "s1" } else { "s2" };
        let (by, assigned) = self.have_assigned(&zone, shard, &[0, 1]).await;
        let decided = self.have_decided().await;
        for (one, other) in links {
            self.network.mend(*one, *other).expect("it can be mended");
        }
        let (assigned, decided) = (assigned.as_secs_f64(), decided.as_secs_f64());
        eprintln!("{what:<44} assigned after {assigned:>4.1} s by {by}, decided after {decided:>4.1} s");
    }

    async fn term(&self, coordinator: usize) -> Result<(i64, bool), String> {
        let mut client = transport::fleet_client(self.channels[coordinator].clone());
        let status = tokio::time::timeout(CALL, client.get_status(GetStatusRequest {})).await;
        let status = status.map_err(|_| "no answer".to_owned())?.map_err(|status| status.to_string())?;
        let status = status.into_inner();
        Ok((status.term, status.is_leader))
    }

    /// The coordinator that led wakes or is found again: it follows, and what it was asked is not done.
    async fn is_deposed(&self, coordinator: usize) {
        until("who led before follows", async || {
            let (theirs, is_leader) = self.term(coordinator).await?;
            let (term, leads) = self.term(1 - coordinator).await?;
            if !is_leader && leads && theirs == term {
                Ok(())
            } else {
                Err(format!("{theirs} {is_leader} {term} {leads}"))
            }
        })
        .await;
    }
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

fn signal(process: &Process, signal: &str) {
    let sent = Command::new("kill").args([signal, &process.id().to_string()]).status();
    assert!(sent.expect("kill(1) is there").success());
}

/// A signal to stop takes a moment to reach all threads of a process.
fn stands_still(id: u32) -> Result<(), String> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).map_err(|error| error.to_string())?;
    for thread in threads.flatten() {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        if state != Some('T') {
            return Err(stat);
        }
    }
    Ok(())
}

#[test]
fn whoever_is_cut_off_or_paused_changes_nothing() {
    in_own_network("whoever_is_cut_off_or_paused_changes_nothing", || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(play());
    });
}

async fn play() {
    let mut scene = Scene::set();
    // A second shard, which only reports; and the first has a real zone to decide on.
    until("both shards are registered", async || {
        for coordinator in [0, 1] {
            let mut client = transport::coordinator_client(scene.channels[coordinator].clone());
            let report = ShardReport { shard_id: "s2".into(), shard_epoch: 1, ..ShardReport::default() };
            if client.report_shard(report).await.is_err() {
                continue;
            }
            return scene.assign(coordinator, "zone-a", "s1").await.map_err(|status| status.to_string());
        }
        Err("nobody leads".into())
    })
    .await;
    scene.have_assigned("zone-a", "s1", &[0, 1]).await;
    scene.have_decided().await;

    let leads = scene.leader("z-first").await;
    let leader = COORDINATORS[leads];
    for (one, other) in [(1, 2), (1, 3), (2, 3)] {
        scene.without(&format!("members {one} and {other}"), &[(one, other)]).await;
    }
    for member in MEMBERS {
        scene.without(&format!("the leader and member {member}"), &[(leader, member)]).await;
    }
    scene.without("a member and the others", &[(1, 2), (1, 3)]).await;
    scene.without("a member and everybody", &[(1, 2), (1, 3), (1, 4), (1, 5)]).await;
    scene.without("the shard and the leader", &[(SHARD, leader)]).await;
    scene.without("the shard and both", &[(SHARD, COORDINATORS[0]), (SHARD, COORDINATORS[1])]).await;

    // The leader loses all members amid a write. Somebody else leads and gives that zone to another; then the words of before
    // arrive after all.
    let leads = scene.leader("z-second").await;
    let links = MEMBERS.map(|member| (COORDINATORS[leads], member));
    for (one, other) in links {
        scene.network.cut(one, other).expect("it can be cut");
    }
    let asked = tokio::spawn(scene.ask(leads, "z-contested", "s1"));
    let (_, took) = scene.have_assigned("z-contested", "s2", &[1 - leads]).await;
    let decided = scene.have_decided().await;
    for (one, other) in links {
        scene.network.mend(one, other).expect("it can be mended");
    }
    let refused = asked.await.expect("no panic").expect_err("it reached nobody in time");
    scene.is_deposed(leads).await;
    eprintln!("the leader and all members: the next led after {took:.1?}, decided after {decided:.1?}");
    eprintln!("    it said: {}", refused.message());

    // The leader is paused past its lease, and wakes to a write that waits for it.
    let leads = scene.leader("z-third").await;
    signal(&scene.coordinators[leads], "-STOP");
    until("it stands still", async || stands_still(scene.coordinators[leads].id())).await;
    let asked = tokio::spawn(scene.ask(leads, "z-late", "s1"));
    let (_, took) = scene.have_assigned("z-late", "s2", &[1 - leads]).await;
    signal(&scene.coordinators[leads], "-CONT");
    let refused = asked.await.expect("no panic").expect_err("it woke after its lease");
    scene.is_deposed(leads).await;
    eprintln!("the leader paused past its lease: the next led after {took:.1?}");
    eprintln!("    it said: {}", refused.message());

    scene.have_decided().await;
    let expected = scene.acknowledged.clone();
    until("both know what was acknowledged, and nothing else", async || {
        let assigned = scene.assigned().await?;
        if assigned == expected { Ok(()) } else { Err(format!("{assigned:?} instead of {expected:?}")) }
    })
    .await;
}
