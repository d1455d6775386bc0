//! The admin API: faults are added and lifted while the cloud runs, over gRPC on loopback.

use std::net::SocketAddr;
use std::sync::Arc;

use bigfleet_net::CallLayer;
use bigfleet_proto::transport;
use thiserror::Error;
use tokio::net::TcpListener;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

use crate::fault::{BoardError, Entry, Line, Status as FaultStatus};
use crate::sim::Control;

/// Generated from `proto/bigfleet/sim/v1/*.proto`; the comments there are the documentation.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod v1 {
    tonic::include_proto!("bigfleet.sim.v1");
}

use v1::sim_admin_client::SimAdminClient;
use v1::sim_admin_server::{SimAdmin, SimAdminServer};
use v1::{
    AddFaultRequest, ExportScenarioRequest, ExportScenarioResponse, Fault, GetStatusRequest,
    GetStatusResponse, LiftFaultRequest, ListFaultsRequest, ListFaultsResponse, ListNodesRequest,
    ListNodesResponse, Node, Pool,
};

fn refused(error: &BoardError) -> Status {
    let code = match error {
        BoardError::Full => Code::ResourceExhausted,
        BoardError::Unknown(_) => Code::NotFound,
        BoardError::Over(_) => Code::FailedPrecondition,
        BoardError::NotKept(_) => Code::Internal,
        BoardError::Nowhere { .. } => Code::InvalidArgument,
    };
    Status::new(code, error.to_string())
}

impl Control {
    fn shown(&self, entry: &Entry) -> Fault {
        Fault {
            id: entry.id,
            line: entry.line_since(entry.from_unix_nanos).to_string(),
            status: entry.status(self.now_unix_nanos()).name().into(),
            from_unix_nanos: entry.from_unix_nanos,
            until_unix_nanos: entry.until_unix_nanos.unwrap_or(0),
        }
    }

    fn entry(&self, id: u64) -> Option<Fault> {
        self.faults().iter().find(|entry| entry.id == id).map(|entry| self.shown(entry))
    }
}

#[tonic::async_trait]
impl SimAdmin for Control {
    async fn add_fault(&self, request: Request<AddFaultRequest>) -> Result<Response<Fault>, Status> {
        let line: Line = request
            .get_ref()
            .line
            .parse()
            .map_err(|error: crate::fault::FaultError| Status::invalid_argument(error.to_string()))?;
        let id = Control::add_fault(self, &line).map_err(|error| refused(&error))?;
        self.entry(id).map(Response::new).ok_or_else(|| refused(&BoardError::Unknown(id)))
    }

    async fn lift_fault(&self, request: Request<LiftFaultRequest>) -> Result<Response<Fault>, Status> {
        let id = request.get_ref().id;
        let fault = Control::lift_fault(self, id).map_err(|error| refused(&error))?;
        let over = FaultStatus::Over.name().to_string();
        // One that had not begun is no longer on the board.
        let gone = || Fault { id, line: fault.to_string(), status: over, ..Fault::default() };
        Ok(Response::new(self.entry(id).unwrap_or_else(gone)))
    }

    async fn list_faults(
        &self,
        request: Request<ListFaultsRequest>,
    ) -> Result<Response<ListFaultsResponse>, Status> {
        let now = self.now_unix_nanos();
        let all = request.get_ref().all;
        let entries = self.faults();
        let shown = entries.iter().filter(|entry| all || entry.status(now) != FaultStatus::Over);
        Ok(Response::new(ListFaultsResponse { faults: shown.map(|entry| self.shown(entry)).collect() }))
    }

    async fn export_scenario(
        &self,
        request: Request<ExportScenarioRequest>,
    ) -> Result<Response<ExportScenarioResponse>, Status> {
        let name = request.into_inner().name;
        let name = if name.is_empty() { "incident".into() } else { name };
        Ok(Response::new(ExportScenarioResponse { json: self.export(name).to_json() }))
    }

    async fn get_status(&self, _: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        let shared = &self.0;
        let pool = |(name, machines_left, stock_outs): (&str, f64, u64)| Pool {
            name: name.into(),
            machines_left,
            stock_outs,
        };
        let pools = shared.pools().levels().map(pool).collect();
        Ok(Response::new(GetStatusResponse {
            provider: shared.name.clone(),
            seed: shared.seed,
            now_unix_nanos: shared.now(),
            started_unix_nanos: shared.started_unix_nanos,
            models: shared.models.settings().into_iter().collect(),
            pools,
            nodes: shared.nodes().len() as u64,
            events: shared.log.count(),
        }))
    }

    async fn list_nodes(&self, _: Request<ListNodesRequest>) -> Result<Response<ListNodesResponse>, Status> {
        let nodes = self.0.nodes().clone();
        let node = |(machine_id, cluster_id)| Node { machine_id, cluster_id };
        Ok(Response::new(ListNodesResponse { nodes: nodes.into_iter().map(node).collect() }))
    }
}

/// How many connections to an admin API are open at once.
pub const MOST_ADMIN_CONNECTIONS: usize = 64;

/// Serves the admin API until `stop`.
pub(crate) async fn serve(
    control: Control,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), tonic::transport::Error> {
    let layer = CallLayer::usual();
    let connections = layer.incoming(listener, None, MOST_ADMIN_CONNECTIONS);
    transport::server()
        .layer(layer)
        .add_service(SimAdminServer::new(control))
        .serve_with_incoming_shutdown(connections, stop)
        .await
}

/// Why an admin call did not do what was asked.
#[derive(Clone, Debug, Error)]
pub enum AdminError {
    /// Not an address.
    #[error("{0:?} is no address; write HOST:PORT")]
    Address(String),
    /// Nobody answers.
    #[error(
        "no simulated cloud answers at {address} ({reason}); start one with `bigfleet up` or `bigfleet provider sim --admin {address}`"
    )]
    Unreachable {
        /// Where.
        address: String,
        /// What happened there.
        reason: String,
    },
    /// It answered no.
    #[error("{0}")]
    Refused(String),
}

/// A client of the admin API.
#[derive(Clone, Debug)]
pub struct AdminClient {
    address: Arc<str>,
    client: SimAdminClient<Channel>,
}

impl AdminClient {
    /// The cloud at `address`, given as HOST:PORT. Nothing is sent yet.
    pub fn new(address: &str) -> Result<Self, AdminError> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let endpoint = endpoint.ok().filter(|_| address.contains(':') && !address.contains("//"));
        let endpoint = endpoint.ok_or_else(|| AdminError::Address(address.into()))?;
        let channel = transport::endpoint(endpoint).connect_lazy();
        Ok(Self { address: address.into(), client: SimAdminClient::new(channel) })
    }

    fn error(&self, status: &Status) -> AdminError {
        if status.code() == Code::Unavailable {
            let (address, reason) = (self.address.to_string(), status.message().into());
            return AdminError::Unreachable { address, reason };
        }
        AdminError::Refused(status.message().into())
    }

    /// Adds a fault.
    pub async fn add(&self, line: &Line) -> Result<Fault, AdminError> {
        let request = AddFaultRequest { line: line.to_string() };
        let answer = self.client.clone().add_fault(request).await;
        answer.map(Response::into_inner).map_err(|status| self.error(&status))
    }

    /// Lifts a fault.
    pub async fn lift(&self, id: u64) -> Result<Fault, AdminError> {
        let answer = self.client.clone().lift_fault(LiftFaultRequest { id }).await;
        answer.map(Response::into_inner).map_err(|status| self.error(&status))
    }

    /// The faults on the board; with `all`, also those that are over.
    pub async fn list(&self, all: bool) -> Result<Vec<Fault>, AdminError> {
        let answer = self.client.clone().list_faults(ListFaultsRequest { all }).await;
        answer.map(|answer| answer.into_inner().faults).map_err(|status| self.error(&status))
    }

    /// Everything that went wrong so far, as a scenario file.
    pub async fn export(&self, name: &str) -> Result<String, AdminError> {
        let answer = self.client.clone().export_scenario(ExportScenarioRequest { name: name.into() }).await;
        answer.map(|answer| answer.into_inner().json).map_err(|status| self.error(&status))
    }

    /// How the cloud is doing.
    pub async fn status(&self) -> Result<GetStatusResponse, AdminError> {
        let answer = self.client.clone().get_status(GetStatusRequest {}).await;
        answer.map(Response::into_inner).map_err(|status| self.error(&status))
    }

    /// The nodes that are really there: machine and cluster.
    pub async fn nodes(&self) -> Result<Vec<Node>, AdminError> {
        let answer = self.client.clone().list_nodes(ListNodesRequest {}).await;
        answer.map(|answer| answer.into_inner().nodes).map_err(|status| self.error(&status))
    }
}

/// Whether an address can be reached from this machine alone.
pub(crate) fn is_private(address: &SocketAddr) -> bool {
    address.ip().is_loopback()
}
