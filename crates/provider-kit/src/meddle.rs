//! Lies, for tests and simulations: a wrapper around a service that answers honestly.
//!
//! Real providers list what is no longer so, leave machines out, answer twice or too late, and fail for no
//! reason. The kit does none of that; a [`Meddler`] does it to the kit's answers, from outside, so that the
//! honest code stays free of it.

use bigfleet_proto::provider_v1::ConfigureOutput;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
};
use tonic::{Request, Response, Status};

use crate::list::{Lister, Selection};
use crate::operation::OperationKind;
use crate::output::Outputs;

/// Which call is being meddled with.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// One of the four moves, on this machine.
    Move(OperationKind, String),
    /// A Get of this machine.
    Get(String),
    /// A List.
    List(ListFilter),
}

/// Changes what callers see. Each function may also wait, for as long as it likes.
pub trait Meddler: Send + Sync + 'static {
    /// Before the call reaches the service. An error is answered at once, and the service sees nothing.
    fn before(&self, asked: &Asked) -> impl Future<Output = Result<(), Status>> + Send {
        let _ = asked;
        async { Ok(()) }
    }

    /// After the service has answered a move; the move stands, whatever is returned here.
    fn acked(
        &self,
        asked: &Asked,
        honest: Result<TransitionAck, Status>,
    ) -> impl Future<Output = Result<TransitionAck, Status>> + Send {
        let _ = asked;
        async { honest }
    }

    /// After the service has answered a Get.
    fn got(&self, honest: Result<Machine, Status>) -> impl Future<Output = Result<Machine, Status>> + Send {
        async { honest }
    }

    /// After the service has answered a List, in one answer or in chunks.
    fn listed(
        &self,
        filter: &ListFilter,
        honest: Selection,
    ) -> impl Future<Output = Result<Selection, Status>> + Send {
        let _ = filter;
        async { Ok(honest) }
    }
}

/// A service whose answers pass through a [`Meddler`].
pub struct Meddled<S, M> {
    service: S,
    meddler: M,
}

impl<S, M> Meddled<S, M> {
    /// Puts a meddler between a service and its callers.
    pub fn new(service: S, meddler: M) -> Self {
        Self { service, meddler }
    }

    /// The honest service.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// The meddler.
    pub fn meddler(&self) -> &M {
        &self.meddler
    }
}

impl<S: CapacityProvider, M: Meddler> Meddled<S, M> {
    async fn acked(
        &self,
        kind: OperationKind,
        machine_id: String,
        answer: impl Future<Output = Result<Response<TransitionAck>, Status>> + Send,
    ) -> Result<Response<TransitionAck>, Status> {
        let asked = Asked::Move(kind, machine_id);
        self.meddler.before(&asked).await?;
        let honest = answer.await.map(Response::into_inner);
        self.meddler.acked(&asked, honest).await.map(Response::new)
    }
}

#[tonic::async_trait]
impl<S: CapacityProvider + Lister, M: Meddler> CapacityProvider for Meddled<S, M> {
    async fn create(&self, request: Request<CreateRequest>) -> Result<Response<TransitionAck>, Status> {
        let id = request.get_ref().machine_id.clone();
        self.acked(OperationKind::Create, id, self.service.create(request)).await
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Result<Response<TransitionAck>, Status> {
        let id = request.get_ref().machine_id.clone();
        self.acked(OperationKind::Configure, id, self.service.configure(request)).await
    }

    async fn drain(&self, request: Request<DrainRequest>) -> Result<Response<TransitionAck>, Status> {
        let id = request.get_ref().machine_id.clone();
        self.acked(OperationKind::Drain, id, self.service.drain(request)).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<TransitionAck>, Status> {
        let id = request.get_ref().machine_id.clone();
        self.acked(OperationKind::Delete, id, self.service.delete(request)).await
    }

    async fn get(&self, request: Request<MachineRef>) -> Result<Response<Machine>, Status> {
        self.meddler.before(&Asked::Get(request.get_ref().id.clone())).await?;
        let honest = self.service.get(request).await.map(Response::into_inner);
        self.meddler.got(honest).await.map(Response::new)
    }

    async fn list(&self, request: Request<ListFilter>) -> Result<Response<MachineList>, Status> {
        Ok(Response::new(self.select(request.get_ref()).await?.into_list().await))
    }
}

impl<S: Lister, M: Meddler> Lister for Meddled<S, M> {
    async fn select(&self, filter: &ListFilter) -> Result<Selection, Status> {
        self.meddler.before(&Asked::List(filter.clone())).await?;
        let honest = self.service.select(filter).await?;
        self.meddler.listed(filter, honest).await
    }
}

/// What was printed is for people, and no subject of lies.
impl<S: Outputs, M: Meddler> Outputs for Meddled<S, M> {
    async fn configure_output(&self, machine_id: &str, most_bytes: usize) -> Result<ConfigureOutput, Status> {
        self.service.configure_output(machine_id, most_bytes).await
    }
}
