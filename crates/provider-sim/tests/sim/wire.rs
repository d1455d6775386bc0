//! The wire, rule by rule, over a real socket: what an independent suite will ask of the test binary.
//!
//! In the order of the contract: the steps of a move, their details, listings, metadata, and the sharp edges.

mod edges;
mod listing;
mod steps;

use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::capacity_provider_client::CapacityProviderClient;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
};
use bigfleet_provider_kit::{Server, Settings, Store, SystemClock};
use bigfleet_provider_sim::{Config, Sim};
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::process::{client, reach};

pub(super) type Answer = Result<TransitionAck, Status>;

/// Who calls: shard, epoch, sequence.
pub(super) type Token<'a> = (&'a str, i64, i64);

/// Nobody in particular.
pub(super) const FREE: Token<'static> = ("", 0, 0);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Move {
    Create,
    Configure,
    Drain,
    Delete,
}

pub(super) const MOVES: [Move; 4] = [Move::Create, Move::Configure, Move::Drain, Move::Delete];

/// The test provider on a socket.
pub(super) struct Socket {
    pub(super) client: CapacityProviderClient<Channel>,
    _sim: Sim,
}

impl Socket {
    pub(super) async fn open(machines: usize) -> Self {
        let config = Config::for_test_suites("p", machines);
        let sim =
            Sim::open(config, Store::memory(), Arc::new(SystemClock::start())).await.expect("a good start");
        let settings = Settings::plain(([127, 0, 0, 1], 0).into());
        let server = Server::bind(sim.service(), sim.handle(), settings).await.expect("a free port");
        let client = client(&server.grpc_addr().to_string());
        tokio::spawn(server.run(std::future::pending()));
        Self { client, _sim: sim }
    }

    pub(super) async fn act(&self, kind: Move, id: &str, token: Token<'_>) -> Answer {
        let (machine_id, shard_id, shard_epoch, sequence_number) =
            (id.to_string(), token.0.to_string(), token.1, token.2);
        let mut client = self.client.clone();
        let answer = match kind {
            Move::Create => {
                client.create(CreateRequest { machine_id, shard_id, shard_epoch, sequence_number }).await
            }
            Move::Delete => {
                client.delete(DeleteRequest { machine_id, shard_id, shard_epoch, sequence_number }).await
            }
            Move::Drain => {
                let grace_period_seconds = 1;
                client
                    .drain(DrainRequest {
                        machine_id,
                        grace_period_seconds,
                        shard_id,
                        shard_epoch,
                        sequence_number,
                    })
                    .await
            }
            Move::Configure => {
                let cluster_id = "cluster".to_string();
                client
                    .configure(ConfigureRequest {
                        machine_id,
                        cluster_id,
                        shard_id,
                        shard_epoch,
                        sequence_number,
                        ..ConfigureRequest::default()
                    })
                    .await
            }
        };
        answer.map(Response::into_inner)
    }

    pub(super) async fn get(&self, id: &str) -> Machine {
        self.client.clone().get(MachineRef { id: id.into() }).await.expect("it is known").into_inner()
    }

    pub(super) async fn list(&self, filter: ListFilter) -> MachineList {
        self.client.clone().list(filter).await.expect("listing never fails").into_inner()
    }

    pub(super) async fn reach(&self, id: &str, state: MachineState) -> Machine {
        reach(&mut self.client.clone(), id, state).await
    }

    /// A machine that nobody else uses, in this state. Each test has its own provider; `number` tells them apart.
    pub(super) async fn in_state(&self, number: usize, state: MachineState) -> String {
        // One in eight is Idle from the start; those are left alone.
        let id = format!("p-{:06}", number / 7 * 8 + number % 7);
        if state == MachineState::Speculative {
            return id;
        }
        self.act(Move::Create, &id, FREE).await.expect("a slot");
        self.reach(&id, MachineState::Idle).await;
        if state == MachineState::Configured {
            self.act(Move::Configure, &id, FREE).await.expect("idle");
            self.reach(&id, MachineState::Configured).await;
        }
        id
    }
}

pub(super) fn code(answer: &Answer) -> Code {
    answer.as_ref().map_or_else(Status::code, |_| Code::Ok)
}

pub(super) fn operation(answer: Answer) -> String {
    answer.expect("accepted").operation_id
}
