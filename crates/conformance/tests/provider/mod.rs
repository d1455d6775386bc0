//! A small provider that does everything right, or one chosen thing wrong.
//!
//! It is written apart from the kit on purpose: a suite that is tried on the kit alone would share its mistakes.

pub(crate) mod defect;
mod ends;
pub(crate) mod expected;
mod inventory;
mod listing;
mod world;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bigfleet_conformance::Restarter;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::capacity_provider_server::{CapacityProvider, CapacityProviderServer};
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use defect::Defect;
use world::{Call, Kind, World};

#[derive(Clone)]
pub(crate) struct Provider(Arc<Mutex<World>>);

/// Starts a plaintext provider on a free port.
pub(crate) async fn start(defect: Option<Defect>) -> (SocketAddr, Provider) {
    start_on(transport::server(), defect).await
}

/// Starts a provider on a free port of this server.
pub(crate) async fn start_on(mut server: Server, defect: Option<Defect>) -> (SocketAddr, Provider) {
    let provider = Provider(Arc::new(Mutex::new(World::new(defect))));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    let (health, health_service) = tonic_health::server::health_reporter();
    if defect == Some(Defect::NotServing) {
        health.set_not_serving::<CapacityProviderServer<Provider>>().await;
    } else {
        health.set_serving::<CapacityProviderServer<Provider>>().await;
    }
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(bigfleet_proto::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("our own descriptors are sound");
    let server = server
        .add_service(transport::provider_server(provider.clone()))
        .add_service(health_service)
        .add_service(reflection);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    (address, provider)
}

#[expect(clippy::disallowed_methods, reason = "the provider lives in real time, like any other")]
async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

impl Provider {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("no holder panics")
    }

    async fn act(&self, call: Call) -> Result<Response<TransitionAck>, Status> {
        let defect = self.world().defect;
        if call.id.is_empty() {
            return Err(match defect {
                Some(Defect::EmptyIdNotFound) => Status::not_found("no such machine"),
                _ => Status::invalid_argument("machine_id is empty"),
            });
        }
        assert!(!(defect == Some(Defect::PanicsOnNul) && call.id.contains('\0')), "a planted panic");
        if defect == Some(Defect::RacesMakeTwo) {
            return self.act_in_two_steps(call).await;
        }
        let (ack, begun) = self.world().ask(&call)?;
        if begun {
            self.end_later(&call);
        }
        Ok(Response::new(ack))
    }

    /// Looks, lets others in, and then acts on what it saw.
    async fn act_in_two_steps(&self, call: Call) -> Result<Response<TransitionAck>, Status> {
        let legal = self.world().position(&call).is_ok();
        pause(5).await;
        if legal && self.world().slots.contains_key(&call.id) {
            let ack = self.world().begin(&call);
            self.end_later(&call);
            return Ok(Response::new(ack));
        }
        let (ack, begun) = self.world().ask(&call)?;
        if begun {
            self.end_later(&call);
        }
        Ok(Response::new(ack))
    }

    fn end_later(&self, call: &Call) {
        let (provider, id, kind) = (self.clone(), call.id.clone(), call.kind);
        let world = self.world();
        let (generation, creates) = (world.generation, world.creates);
        if kind == Kind::Create && creates % 20 == 19 && world.has(Defect::LosesMovesUnderLoad) {
            return;
        }
        // These show only if a call, or a crash, comes while a move is under way.
        let during =
            [Defect::RestartLeavesMovesStuck, Defect::RestartFailsSilently, Defect::ConfigureWhileDraining];
        let shows_under_way = during.into_iter().any(|defect| world.has(defect));
        drop(world);
        // Not the same for all: moves end in another order than they began.
        let latency = 20 + creates as u64 * 7 % 17;
        let latency = if shows_under_way { 150 } else { latency };
        tokio::spawn(async move {
            pause(latency).await;
            provider.world().end(&id, kind, generation);
        });
    }
}

impl Restarter for Provider {
    fn restart(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        self.world().restart();
        Box::pin(async { Ok(()) })
    }
}

fn call(kind: Kind, id: String, shard: String, epoch: i64, sequence: i64) -> Call {
    Call {
        kind,
        id,
        shard,
        token: (epoch, sequence),
        cluster: String::new(),
        metadata: std::collections::BTreeMap::new(),
    }
}

#[tonic::async_trait]
impl CapacityProvider for Provider {
    async fn create(&self, request: Request<CreateRequest>) -> Result<Response<TransitionAck>, Status> {
        let r = request.into_inner();
        self.act(call(Kind::Create, r.machine_id, r.shard_id, r.shard_epoch, r.sequence_number)).await
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Result<Response<TransitionAck>, Status> {
        let r = request.into_inner();
        let call = call(Kind::Configure, r.machine_id, r.shard_id, r.shard_epoch, r.sequence_number);
        self.act(Call { cluster: r.cluster_id, metadata: r.shard_metadata, ..call }).await
    }

    async fn drain(&self, request: Request<DrainRequest>) -> Result<Response<TransitionAck>, Status> {
        let r = request.into_inner();
        self.act(call(Kind::Drain, r.machine_id, r.shard_id, r.shard_epoch, r.sequence_number)).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<TransitionAck>, Status> {
        let r = request.into_inner();
        self.act(call(Kind::Delete, r.machine_id, r.shard_id, r.shard_epoch, r.sequence_number)).await
    }

    async fn get(&self, request: Request<MachineRef>) -> Result<Response<Machine>, Status> {
        let id = request.into_inner().id;
        if id.is_empty() {
            return Err(Status::invalid_argument("id is empty"));
        }
        let world = self.world();
        let slot = world.slots.get(&id).ok_or_else(|| world::unknown(&id))?;
        Ok(Response::new(slot.machine.clone()))
    }

    async fn list(&self, request: Request<ListFilter>) -> Result<Response<MachineList>, Status> {
        self.world().list(request.into_inner()).map(Response::new)
    }
}
