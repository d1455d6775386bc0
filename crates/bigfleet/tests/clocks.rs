//! Clocks that are wrong: coordinators and shards that are hours apart, and whose seconds are too long or too short, on a real etcd
//! and a real cloud. Leases count in the clocks of etcd's members, which are right here: a coordinator that believes in its lease
//! for too long is refused by the store. So nothing is assigned twice, and shards decide on.

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
use std::sync::Arc;
use std::time::{Duration, Instant};

use bigfleet_coordinator_server::store::{Etcd, EtcdSettings, Store};
use bigfleet_coordinator_server::{Settings, start_by};
use bigfleet_kube_testbed::EtcdMembers;
use bigfleet_net::{Clock, Sleep, SystemClock};
use bigfleet_proto::coordinator_v1::GetStatusRequest;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{AssignDomainRequest, CapacityNeed, ListDomainAssignmentsRequest};
use bigfleet_shard_server::{ProviderAddress, Reporting};
use operator::Operator;
use process::{Process, free_port};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// How long anything may take before the test gives up. Not a bar: only an end to waiting.
const PATIENCE: Duration = Duration::from_mins(3);
const HOUR: i64 = 3600 * 1_000_000_000;
const ZONE: &str = "topology.kubernetes.io/zone";
/// Assignments that are asked for, one after the other.
const ASSIGNED: usize = 30;

/// A clock that is off, and whose seconds are too long or too short.
#[derive(Debug)]
struct Wrong {
    right: SystemClock,
    begun: i64,
    off: i64,
    /// How many of its seconds pass in a right one.
    speed: f64,
}

impl Wrong {
    fn by(off: i64, speed: f64) -> Arc<dyn Clock> {
        let right = SystemClock::start();
        Arc::new(Self { begun: right.now_unix_nanos(), right, off, speed })
    }
}

impl Clock for Wrong {
    fn now_unix_nanos(&self) -> i64 {
        let passed = (self.right.now_unix_nanos() - self.begun) as f64 * self.speed;
        self.begun + self.off + passed as i64
    }

    fn sleep_until(&self, unix_nanos: i64) -> Sleep {
        let wait = (unix_nanos - self.now_unix_nanos()).max(0) as f64 / self.speed;
        self.right.sleep(Duration::from_nanos(wait as u64))
    }
}

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

fn channel(address: impl std::fmt::Display) -> Channel {
    transport::endpoint(Endpoint::from_shared(address.to_string()).expect("an address")).connect_lazy()
}

async fn assign(channel: &Channel, zone: &str, shard: &str) -> Result<(), tonic::Status> {
    let mut client = transport::coordinator_client(channel.clone());
    let (topology_key, topology_value) = (ZONE.into(), zone.into());
    let request = AssignDomainRequest { topology_key, topology_value, shard_id: shard.into() };
    client.assign_domain(request).await.map(drop)
}

async fn status(channel: &Channel) -> Result<(i64, bool), String> {
    let status = transport::fleet_client(channel.clone()).get_status(GetStatusRequest {}).await;
    let status = status.map_err(|status| status.to_string())?.into_inner();
    Ok((status.term, status.is_leader))
}

/// Needs so many machines of one kind, each of them whole.
fn want(count: usize) -> CapacityNeed {
    let amounts = |machines: usize| BTreeMap::from([("cpu".to_owned(), format!("{}m", machines * 3920))]);
    let requirement = bigfleet_proto::v1alpha1::NodeSelectorRequirement {
        key: "node.kubernetes.io/instance-type".into(),
        operator: 1,
        values: vec!["std-4".into()],
    };
    CapacityNeed {
        requirements: vec![requirement],
        aggregate_resources: amounts(count),
        min_unit: amounts(1),
        priority: 1000,
        ..CapacityNeed::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_clocks_assign_nothing_twice_and_shards_decide_on() {
    let etcd = EtcdMembers::start().unwrap_or_else(|error| panic!("{error}"));
    // One believes in its lease three times as long as it lasts, and asks for more of it too late.
    let clocks = [Wrong::by(-HOUR, 0.3), Wrong::by(2 * HOUR, 2.0), Wrong::by(0, 1.0)];
    let mut coordinators = Vec::new();
    for clock in clocks {
        let settings = EtcdSettings {
            members: etcd.urls(),
            tls: None,
            prefix: "/clocks/".into(),
            lease: Duration::from_secs(3),
            patience: Duration::from_secs(5),
        };
        let store = Store::Etcd(Arc::new(Etcd::new(settings, clock.clone()).expect("addresses")));
        let settings = Settings {
            listen: ([127, 0, 0, 1], 0).into(),
            advertise: String::new(),
            http: None,
            tls: None,
            store,
            tidies: true,
            export: None,
        };
        coordinators.push(start_by(settings, clock).await.expect("loopback"));
    }
    let addresses: Vec<String> =
        coordinators.iter().map(|running| format!("http://{}", running.address)).collect();
    let channels: Vec<Channel> = addresses.iter().map(channel).collect();

    let cloud_port = free_port();
    let addr = format!("127.0.0.1:{cloud_port}");
    let cloud = ["provider", "sim", "--use-fake-backend", "--seed-count", "500", "--http", "none"];
    let _cloud = Process::start("cloud", &[&cloud[..], &["--addr", &addr]].concat());
    let mut shards = Vec::new();
    for (name, clock) in [("s1", Wrong::by(-5 * HOUR, 1.5)), ("s2", Wrong::by(7 * HOUR, 0.7))] {
        let mut provider = ProviderAddress::new("sim", format!("http://{addr}"));
        provider.config.list_every = 1_000_000_000;
        let config =
            bigfleet_shard::Config { is_assigned: true, ..bigfleet_shard::Config::new(name, 0, vec![]) };
        let reporting = Reporting { every: Duration::from_millis(500), ..Reporting::to(addresses.join(",")) };
        let settings = bigfleet_shard_server::Settings {
            coordinator: Some(reporting),
            ..bigfleet_shard_server::Settings::local(config, vec![provider])
        };
        shards.push(bigfleet_shard_server::start(settings, clock).await.expect("loopback"));
    }

    let (mut acknowledged, mut terms, mut tried) = (BTreeMap::new(), Vec::new(), 0);
    let mut shops = Vec::new();
    for place in 0..ASSIGNED {
        let zone = match place {
            0 => "zone-a".to_owned(),
            1 => "zone-b".to_owned(),
            _ => format!("z-{place}"),
        };
        let shard = ["s1", "s2"][place % 2];
        let term = until(&format!("{zone} is assigned"), async || {
            let mut last = String::new();
            for channel in &channels {
                tried += 1;
                match assign(channel, &zone, shard).await {
                    Ok(()) => return Ok(status(channel).await?.0),
                    Err(status) if status.code() == Code::AlreadyExists => panic!("{zone}: {status}"),
                    Err(status) => last = status.to_string(),
                }
            }
            Err(last)
        })
        .await;
        acknowledged.insert(zone, shard.to_owned());
        terms.push(term);
        // Both shards decide meanwhile.
        if place == 1 {
            for (shard, name) in shards.iter().zip(["shop", "web"]) {
                let every = Duration::from_millis(250);
                shops.push(Operator::start(&format!("http://{}", shard.grpc), name, every, vec![want(3)]));
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    for shop in &shops {
        until("three machines serve", async || match shop.heard().configured() {
            3 => Ok(()),
            count => Err(format!("{count} serve")),
        })
        .await;
    }
    let leaders: std::collections::BTreeSet<i64> = terms.iter().copied().collect();
    eprintln!("{} terms in {ASSIGNED} assignments, {tried} tries", leaders.len());
    let (mut rising, last) = (terms.clone(), terms.last().expect("some"));
    rising.sort_unstable();
    assert_eq!(rising, terms, "terms only rise");
    until("everybody knows what was acknowledged, and nothing else", async || {
        for channel in &channels {
            let mut client = transport::coordinator_client(channel.clone());
            let answer = client.list_domain_assignments(ListDomainAssignmentsRequest {}).await;
            let answer = answer.map_err(|status| status.to_string())?.into_inner().assignments;
            let there: BTreeMap<String, String> =
                answer.into_iter().map(|domain| (domain.topology_value, domain.shard_id)).collect();
            if there != acknowledged || status(channel).await?.0 < *last {
                return Err(format!("{there:?} instead of {acknowledged:?}"));
            }
        }
        Ok(())
    })
    .await;
    drop(shops);
    for running in coordinators {
        running.stop().await.expect("it stops");
    }
    for shard in shards {
        shard.stop().await.expect("it stops");
    }
}
