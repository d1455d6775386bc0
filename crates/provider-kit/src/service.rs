//! The six calls of the wire.

use std::time::Duration;

use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
};
use tonic::{Request, Response, Status};

use crate::backend::Backend;
use crate::fence::Token;
use crate::list::{self, Lister, Selection};
use crate::provider::Provider;
use crate::refusal::Refusal;
use crate::steps::{Call, Order};

/// The longest grace a drain can be given; longer ones are cut, negative ones are none.
const GRACE_LIMIT_SECS: u64 = 7 * 24 * 3600;

#[tonic::async_trait]
impl<B: Backend> CapacityProvider for Provider<B> {
    async fn create(&self, request: Request<CreateRequest>) -> Result<Response<TransitionAck>, Status> {
        let message = request.into_inner();
        let token = Token::new(message.shard_id, message.shard_epoch, message.sequence_number);
        self.observed(
            "Create",
            self.accept(Call { machine_id: message.machine_id, token, order: Order::Create }),
        )
        .await
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Result<Response<TransitionAck>, Status> {
        let message = request.into_inner();
        let token = Token::new(message.shard_id, message.shard_epoch, message.sequence_number);
        let order = Order::Configure {
            cluster_id: message.cluster_id,
            metadata: message.shard_metadata,
            bootstrap: message.bootstrap_blob,
        };
        self.observed("Configure", self.accept(Call { machine_id: message.machine_id, token, order })).await
    }

    async fn drain(&self, request: Request<DrainRequest>) -> Result<Response<TransitionAck>, Status> {
        let message = request.into_inner();
        let token = Token::new(message.shard_id, message.shard_epoch, message.sequence_number);
        let grace_secs = u64::try_from(message.grace_period_seconds).unwrap_or(0).min(GRACE_LIMIT_SECS);
        let order = Order::Drain { grace: Duration::from_secs(grace_secs) };
        self.observed("Drain", self.accept(Call { machine_id: message.machine_id, token, order })).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<TransitionAck>, Status> {
        let message = request.into_inner();
        let token = Token::new(message.shard_id, message.shard_epoch, message.sequence_number);
        self.observed(
            "Delete",
            self.accept(Call { machine_id: message.machine_id, token, order: Order::Delete }),
        )
        .await
    }

    async fn get(&self, request: Request<MachineRef>) -> Result<Response<Machine>, Status> {
        self.observed("Get", async {
            let id = request.into_inner().id;
            if id.is_empty() {
                return Err(Refusal::NoMachineId.into());
            }
            let machine = self.shared.fleet().get(&id).map(|row| row.machine.clone());
            machine.map(|machine| Machine::clone(&machine)).ok_or_else(|| Refusal::UnknownMachine(id).into())
        })
        .await
    }

    async fn list(&self, request: Request<ListFilter>) -> Result<Response<MachineList>, Status> {
        self.observed("List", async { Ok(list::select(&self.shared, request.get_ref()).into_list().await) })
            .await
    }
}

impl<B: Backend> Lister for Provider<B> {
    async fn select(&self, filter: &ListFilter) -> Result<Selection, Status> {
        let selected = self.observed("List", async { Ok(list::select(&self.shared, filter)) });
        selected.await.map(Response::into_inner)
    }
}

impl<B: Backend> Provider<B> {
    /// Answers a call and counts it.
    async fn observed<T>(
        &self,
        method: &'static str,
        answer: impl Future<Output = Result<T, Status>> + Send,
    ) -> Result<Response<T>, Status> {
        let clock = &self.shared.options.clock;
        let began = clock.now_unix_nanos();
        let answer = answer.await;
        let code = answer.as_ref().map_or_else(Status::code, |_| tonic::Code::Ok);
        self.shared.metrics.answered(method, code, clock.now_unix_nanos() - began);
        answer.map(Response::new)
    }
}
