//! A coordinator under load over real sockets: shards that are not there, and send the reports they would send.
//!
//! `scripts/fleet-scale` runs it. Processes: three members of etcd, two coordinators, and this one, which plays all shards.
//! `FLEET_SHARDS`, `FLEET_CLUSTERS`, `FLEET_DOMAINS`, `FLEET_ROUNDS` (reports of each shard; one is 30 seconds of protocol time) and
//! `FLEET_PERIOD_MS` (how often a shard reports here; shorter than 30 s makes protocol time run faster than the wall clock) change
//! the size. Every report counts 500,000 machines and has 100 shortfalls, some of them aged; every shard follows and answers asks.

#![expect(clippy::disallowed_methods, reason = "a benchmark lives in real time")]

#[path = "../tests/support/process.rs"]
#[allow(dead_code, reason = "shared with tests, which use more of it")]
mod process;
#[path = "fleet/shards.rs"]
mod shards;

use std::time::{Duration, Instant};

use bigfleet_kube_testbed::EtcdMembers;
use bigfleet_proto::coordinator_v1::{BindClusterRequest, GetStatusRequest, Status};
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::AssignDomainRequest;
use process::{Process, free_port};
use shards::Shard;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};

const ZONE: &str = "topology.kubernetes.io/zone";
/// Calls of an admin under way at once.
const AT_ONCE: usize = 64;

struct Size {
    shards: usize,
    clusters: usize,
    domains: usize,
    rounds: usize,
    period: Duration,
}

impl Size {
    fn from_environment() -> Self {
        let number = |name: &str, default: usize| {
            std::env::var(name)
                .ok()
                .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
        };
        Self {
            shards: number("FLEET_SHARDS", 200),
            clusters: number("FLEET_CLUSTERS", 20_000),
            domains: number("FLEET_DOMAINS", 100_000),
            rounds: number("FLEET_ROUNDS", 60),
            period: Duration::from_millis(number("FLEET_PERIOD_MS", 5_000) as u64),
        }
    }
}

fn main() {
    // `cargo test --benches` and `cargo nextest` call benches too; this one is too large for that.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let size = Size::from_environment();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(measure(size));
}

struct Fleet {
    etcd: EtcdMembers,
    ports: [u16; 2],
    coordinators: [Option<Process>; 2],
}

impl Fleet {
    fn start() -> Self {
        let mut fleet = Self {
            etcd: EtcdMembers::start().unwrap_or_else(|error| panic!("{error}")),
            ports: [free_port(), free_port()],
            coordinators: [None, None],
        };
        for place in 0..2 {
            let (listen, etcd) = (format!("127.0.0.1:{}", fleet.ports[place]), fleet.etcd.urls().join(","));
            let arguments = [
                "coordinator",
                "run",
                "--etcd",
                &etcd,
                "--listen",
                &listen,
                "--metrics",
                "none",
                "--log-filter",
                "warn",
            ];
            fleet.coordinators[place] = Some(Process::start(&format!("coordinator {place}"), &arguments));
        }
        fleet
    }

    fn channel(&self, place: usize) -> Channel {
        let address = format!("http://127.0.0.1:{}", self.ports[place]);
        transport::endpoint(Endpoint::from_shared(address).expect("an address")).connect_lazy()
    }

    async fn status(&self, place: usize) -> Option<Status> {
        let mut client = transport::fleet_client(self.channel(place));
        Some(client.get_status(GetStatusRequest {}).await.ok()?.into_inner())
    }

    /// Waits for a leader: which it is, and what it says.
    async fn leader(&self) -> (usize, Status) {
        loop {
            for place in (0..2).filter(|place| self.coordinators[*place].is_some()) {
                if let Some(status) = self.status(place).await.filter(|status| status.is_leader) {
                    return (place, status);
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Memory of a coordinator: now, and at most, in MiB.
    fn memory(&self, place: usize) -> (u64, u64) {
        let id = self.coordinators[place].as_ref().expect("it runs").id();
        let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let of = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
            number.unwrap_or(0) / 1024
        };
        (of("VmRSS:"), of("VmHWM:"))
    }
}

/// Calls an admin makes, so many at once; how long all of them took.
async fn many<F>(count: usize, call: impl Fn(usize) -> F) -> Duration
where
    F: Future<Output = Result<(), tonic::Status>> + Send + 'static,
{
    let begun = Instant::now();
    let (mut calls, mut next) = (JoinSet::new(), 0);
    while next < count || !calls.is_empty() {
        while next < count && calls.len() < AT_ONCE {
            calls.spawn(call(next));
            next += 1;
        }
        if let Some(done) = calls.join_next().await {
            done.expect("no call panics").expect("the leader takes it");
        }
    }
    begun.elapsed()
}

fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

async fn measure(size: Size) {
    let mut fleet = Fleet::start();
    let (leads, _) = fleet.leader().await;
    let channel = fleet.channel(leads);
    say(&format!(
        "{} shards of 500,000 machines, {} clusters, {} domains, {} rounds every {:?}",
        size.shards, size.clusters, size.domains, size.rounds, size.period
    ));
    let mut shards: Vec<Shard> = (0..size.shards).map(Shard::new).collect();
    for shard in &mut shards {
        shard.report(&channel).await.expect("the leader takes it");
    }
    let took = many(size.domains, |number| {
        let request = AssignDomainRequest {
            topology_key: ZONE.into(),
            topology_value: format!("zone-{number:06}"),
            shard_id: shards::name(number % size.shards),
        };
        let mut client = transport::coordinator_client(channel.clone());
        async move { client.assign_domain(request).await.map(drop) }
    })
    .await;
    say(&format!("assigning: {took:.1?}, {:.0} domains a second", per_second(size.domains, took)));
    let took = many(size.clusters, |number| {
        let request = BindClusterRequest {
            cluster_id: format!("cluster-{number:05}"),
            shard_id: shards::name(number % size.shards),
        };
        let mut client = transport::fleet_client(channel.clone());
        async move { client.bind_cluster(request).await.map(drop) }
    })
    .await;
    say(&format!("binding: {took:.1?}, {:.0} clusters a second", per_second(size.clusters, took)));
    // Every shard takes what it was told to take.
    let begun = Instant::now();
    let mut rounds = 0;
    loop {
        rounds += 1;
        for shard in &mut shards {
            shard.report(&channel).await.expect("the leader takes it");
        }
        let status = fleet.leader().await.1;
        if status.instructions == 0 {
            break;
        }
    }
    let took = begun.elapsed();
    say(&format!(
        "taking: {took:.1?} in {rounds} rounds, {:.0} answers a second",
        per_second(size.domains, took)
    ));
    let (status, memory) = (fleet.leader().await.1, fleet.memory(leads));
    say(&format!("at rest: {} domains, {} MiB now, {} MiB at most", status.domains, memory.0, memory.1));

    steady(&size, &fleet, leads, shards).await;
    recovery(&mut fleet, leads).await;
}

/// Reports as they come all day, with shortfalls that are asked about.
async fn steady(size: &Size, fleet: &Fleet, leads: usize, shards: Vec<Shard>) {
    let channel = fleet.channel(leads);
    let before = fleet.status(leads).await.expect("it leads");
    let begun = Instant::now();
    let (mut all, count) = (JoinSet::new(), shards.len() as u32);
    for (place, shard) in shards.into_iter().enumerate() {
        let (channel, rounds, period) = (channel.clone(), size.rounds, size.period);
        // They do not all report in the same instant.
        let offset = period * place as u32 / count;
        all.spawn(shard.live(channel, rounds, period, offset));
    }
    let (mut took, mut asked, mut given) = (Vec::new(), 0, 0);
    while let Some(done) = all.join_next().await {
        let lived = done.expect("no shard panics");
        took.extend(lived.reports);
        asked += lived.asked;
        given += lived.given;
    }
    let span = begun.elapsed();
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    let after = fleet.status(leads).await.expect("it still leads");
    let writes = (after.revision - before.revision) as usize;
    say(&format!(
        "steady: {} reports in {span:.0?} ({:.0} s of protocol time), {:.0} a second; half within {:.1?}, 99 % within {:.1?}, all within {:.1?}",
        took.len(),
        size.rounds as f64 * 30.0,
        per_second(took.len(), span),
        at(0.5),
        at(0.99),
        at(1.0)
    ));
    say(&format!(
        "help: {asked} asks heard, {given} machines offered, {} transfers; {writes} transactions, {:.2} a second",
        after.transfers,
        per_second(writes, span)
    ));
    let memory = fleet.memory(leads);
    say(&format!("memory of the leader: {} MiB now, {} MiB at most", memory.0, memory.1));
    assert!(asked > 0, "aged shortfalls are asked about, or this is no load");
    let saved = std::process::Command::new(
        std::env::var("BIGFLEET_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_bigfleet").into()),
    )
    .args(["coordinator", "save", "--coordinator", &format!("127.0.0.1:{}", fleet.ports[leads])])
    .arg(std::env::temp_dir().join(format!("bigfleet-scale-{}.jsonl", std::process::id())))
    .status();
    let file = std::env::temp_dir().join(format!("bigfleet-scale-{}.jsonl", std::process::id()));
    let bytes = std::fs::metadata(&file).map_or(0, |file| file.len());
    let _ = std::fs::remove_file(&file);
    assert!(saved.is_ok_and(|status| status.success()), "a snapshot can be taken");
    say(&format!("state: a snapshot of {:.1} MiB", bytes as f64 / f64::from(1 << 20)));
}

/// The leader is killed; how long until another one answers a report.
async fn recovery(fleet: &mut Fleet, leads: usize) {
    let begun = Instant::now();
    fleet.coordinators[leads].take().expect("it runs").kill();
    let (next, status) = fleet.leader().await;
    let mut shard = Shard::new(0);
    let channel = fleet.channel(next);
    while shard.report(&channel).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    say(&format!(
        "recovery: {:.1?} from the kill of the leader to the next answered report, with {} domains (lease 10 s); {} MiB",
        begun.elapsed(),
        status.domains,
        fleet.memory(next).0
    ));
}

#[expect(clippy::print_stdout, reason = "figures are what this is for")]
fn say(text: &str) {
    println!("{text}");
}
