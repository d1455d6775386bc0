//! Nothing acknowledged is lost: a provider process is killed at random points, started again, and asked.
//!
//! The process is this test binary itself, run again with [`child`] as its only test.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bigfleet_model::machine::MachineState;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::capacity_provider_client::CapacityProviderClient;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DrainRequest, ListFilter, Machine, MachineRef, TransitionAck,
};
use bigfleet_provider_kit::{Options, Provider, Server, Settings, Store};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::cloud::Cloud;

const STORE: &str = "KIT_TEST_STORE";
const MACHINES: usize = 400;
const ROUNDS: u64 = 25;

/// Serves until it is killed. Does nothing unless [`start`] has asked for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(store) = std::env::var(STORE) else { return };
    let provider = Provider::open(Cloud::of(MACHINES), Store::file(store), Options::default()).await.unwrap();
    let handle = provider.handle();
    let server = Server::bind(provider, handle, Settings::plain(([127, 0, 0, 1], 0).into())).await.unwrap();
    eprintln!("listening on {}", server.grpc_addr());
    server.run(std::future::pending()).await.unwrap();
}

/// A provider process, killed at the latest when this is dropped.
struct Process {
    child: Child,
    client: CapacityProviderClient<Channel>,
}

impl Process {
    async fn start(store: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child", "--nocapture"])
            .env(STORE, store)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening on ").map(String::from));
        let address = address.expect("the provider starts");
        // Read on, so that the child never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let endpoint = transport::endpoint(Endpoint::from_shared(format!("http://{address}")).unwrap());
        Self { child, client: transport::provider_client(endpoint.connect().await.unwrap()) }
    }

    /// `kill -9`: no handler runs, nothing is flushed.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What we were told about a machine.
#[derive(Debug, Default, Clone)]
struct Told {
    /// The highest token that was accepted.
    sequence: i64,
    /// The last acknowledged move: its operation, the states the machine may be in since then, its cluster.
    last: Option<(String, Vec<MachineState>, String)>,
}

struct Book {
    told: BTreeMap<String, Told>,
    operations: BTreeSet<String>,
    sequence: i64,
    random: u64,
}

impl Book {
    fn random(&mut self, below: u64) -> u64 {
        bigfleet_model::splitmix::next(&mut self.random) % below
    }

    /// One call that suits the machine; false when the process no longer answers.
    async fn call(&mut self, client: &mut CapacityProviderClient<Channel>) -> bool {
        use MachineState::{Configured, Configuring, Creating, Draining, Failed, Idle, Speculative};
        let id = format!("m-{}", self.random(MACHINES as u64));
        let Ok(machine) = client.get(MachineRef { id: id.clone() }).await else { return false };
        self.sequence += 1;
        let (shard_id, shard_epoch, sequence_number) = ("s".to_string(), 1, self.sequence);
        let (answer, since, cluster) = match MachineState::from_wire(machine.get_ref().state).unwrap() {
            Speculative => {
                let request =
                    CreateRequest { machine_id: id.clone(), shard_id, shard_epoch, sequence_number };
                (client.create(request).await, vec![Creating, Idle], String::new())
            }
            Idle => {
                let cluster = format!("cluster-{sequence_number}");
                let request = ConfigureRequest {
                    machine_id: id.clone(),
                    cluster_id: cluster.clone(),
                    shard_metadata: [("sequence".to_string(), sequence_number.to_string())].into(),
                    shard_id,
                    shard_epoch,
                    sequence_number,
                    ..ConfigureRequest::default()
                };
                (client.configure(request).await, vec![Configuring, Configured], cluster)
            }
            Configured => {
                let request = DrainRequest {
                    machine_id: id.clone(),
                    grace_period_seconds: 0,
                    shard_id,
                    shard_epoch,
                    sequence_number,
                };
                (client.drain(request).await, vec![Draining, Idle], String::new())
            }
            Failed => {
                // Refused, but the mark must stay.
                let request =
                    CreateRequest { machine_id: id.clone(), shard_id, shard_epoch, sequence_number };
                match client.create(request).await {
                    Err(status) if status.code() == Code::Internal => {
                        self.told.entry(id).or_default().sequence = sequence_number;
                        return true;
                    }
                    other => return answered(&other.map(drop)),
                }
            }
            _ => return true,
        };
        if let Ok(ack) = &answer {
            self.take_down(id, ack.get_ref(), sequence_number, since, cluster);
        }
        answered(&answer.map(drop))
    }

    fn take_down(
        &mut self,
        id: String,
        ack: &TransitionAck,
        sequence: i64,
        since: Vec<MachineState>,
        cluster: String,
    ) {
        let fresh = self.operations.insert(ack.operation_id.clone());
        assert!(fresh, "operation {} was used before", ack.operation_id);
        *self.told.entry(id).or_default() =
            Told { sequence, last: Some((ack.operation_id.clone(), since, cluster)) };
    }

    /// Everything we were told must still hold.
    async fn compare(&self, client: &mut CapacityProviderClient<Channel>) {
        let list = client.list(ListFilter::default()).await.unwrap().into_inner();
        assert_eq!(list.machines.len(), MACHINES);
        let machines: BTreeMap<&str, &Machine> = list.machines.iter().map(|m| (m.id.as_str(), m)).collect();
        for (id, told) in &self.told {
            let machine = machines[id.as_str()];
            let state = MachineState::from_wire(machine.state).unwrap();
            assert!(!state.is_transitional(), "{id} is stuck in {state}");
            if let Some((_, since, cluster)) = &told.last {
                let failed = state == MachineState::Failed && !machine.last_error.is_empty();
                assert!(failed || since.contains(&state), "{id}: was told {told:?}, is {state}");
                if state == MachineState::Configured {
                    assert_eq!(&machine.cluster, cluster);
                    assert_eq!(machine.shard_metadata["sequence"], told.sequence.to_string());
                }
            }
            let request = CreateRequest {
                machine_id: id.clone(),
                shard_id: "s".into(),
                shard_epoch: 1,
                sequence_number: told.sequence,
            };
            let code = client.create(request).await.expect_err("an old token").code();
            assert_eq!(code, Code::FailedPrecondition, "{id}: the mark at {} was lost", told.sequence);
        }
    }
}

/// Whether the process is alive: a refusal is an answer, a broken connection is not.
fn answered(answer: &Result<(), Status>) -> bool {
    !matches!(answer, Err(status) if matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut book =
        Book { told: BTreeMap::new(), operations: BTreeSet::new(), sequence: 0, random: 20_261_115 };
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let mut process = Process::start(&store).await;
        let mut client = process.client.clone();
        book.compare(&mut client).await;
        // Several callers at once, so that the kill finds commits and calls in every stage.
        let background: Vec<_> = (0..4)
            .map(|caller| {
                let mut client = client.clone();
                tokio::spawn(async move {
                    for step in 0.. {
                        let machine_id =
                            format!("m-{}", (caller * 97 + step * 13 + round as usize) % MACHINES);
                        let shard_id = format!("other-{caller}");
                        let request =
                            CreateRequest { machine_id, shard_id, shard_epoch: 0, sequence_number: 0 };
                        if !answered(&client.create(request).await.map(drop)) {
                            return;
                        }
                        if step % 3 == 2 {
                            tokio::task::yield_now().await;
                        }
                    }
                })
            })
            .collect();
        let calls = 5 + book.random(60);
        for _ in 0..calls {
            assert!(book.call(&mut client).await, "the process lives until it is killed");
        }
        process.kill();
        for caller in background {
            caller.await.unwrap();
        }
        acknowledged = book.operations.len();
    }
    let mut process = Process::start(&store).await;
    book.compare(&mut process.client).await;
    assert!(acknowledged > 100, "only {acknowledged} moves were acknowledged: the test did not do its work");
}
