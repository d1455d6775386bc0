//! The way in for people who change the simulated world: faults of the cloud and demand of the clusters, on one port.

use std::collections::BTreeMap;

use bigfleet_net::{CallLayer, Clock};
use bigfleet_proto::transport;
use bigfleet_provider_sim::Control;
use bigfleet_provider_sim::admin::MOST_ADMIN_CONNECTIONS;
use bigfleet_provider_sim::admin::v1::sim_admin_server::SimAdminServer;
use bigfleet_provider_sim::admin::v1::sim_demand_server::{SimDemand, SimDemandServer};
use bigfleet_provider_sim::admin::v1::{
    ListDemandRequest, ListDemandResponse, RemoveDemandRequest, RemoveDemandResponse, SetDemandRequest,
    SetDemandResponse,
};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tonic::{Request, Response, Status};

use super::cluster::MOST_PODS;
use super::operator::{Command, Fixed, Unknown};
use super::world::World;
use crate::suggest::did_you_mean;

/// The demand of all simulated clusters.
#[derive(Clone)]
pub(crate) struct Demand {
    /// By name, in the order in which they are shown.
    operators: Arc<Vec<(String, mpsc::Sender<Command>)>>,
    world: World,
    clock: Arc<dyn Clock>,
}

impl Demand {
    /// The demand of these clusters.
    pub(crate) fn new(
        operators: Vec<(String, mpsc::Sender<Command>)>,
        world: World,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { operators: Arc::new(operators), world, clock }
    }

    fn find(&self, cluster: &str) -> Result<&mpsc::Sender<Command>, Status> {
        let found = self.operators.iter().find(|(name, _)| name == cluster);
        found.map(|(_, operator)| operator).ok_or_else(|| {
            let names = || self.operators.iter().map(|(name, _)| name.as_str());
            let perhaps = did_you_mean(cluster, names());
            let all = names().collect::<Vec<_>>().join(", ");
            Status::not_found(format!("no simulated cluster is called {cluster:?}{perhaps}; there are {all}"))
        })
    }

    async fn fix(&self, cluster: &str, wanted: Vec<(String, Option<u64>)>) -> Result<Fixed, Status> {
        let operator = self.find(cluster)?;
        let (answer, answered) = oneshot::channel();
        let command = Command::Fix { wanted: wanted.clone(), answer };
        operator.send(command).await.map_err(|_| gone())?;
        let fixed = answered.await.map_err(|_| gone())?;
        let fixed = fixed.map_err(|Unknown { work, known }| {
            let perhaps = did_you_mean(&work, known.iter().map(String::as_str));
            let all = known.join(", ");
            Status::not_found(format!("{cluster} has no work called {work:?}{perhaps}; there are {all}"))
        })?;
        self.world.fix(cluster, &wanted).map_err(|error| {
            Status::internal(format!(
                "it is done, but will be forgotten at the end: it cannot be written down: {error}"
            ))
        })?;
        Ok(fixed)
    }
}

fn gone() -> Status {
    Status::unavailable("the simulated world is stopping")
}

#[tonic::async_trait]
impl SimDemand for Demand {
    async fn list_demand(
        &self,
        request: Request<ListDemandRequest>,
    ) -> Result<Response<ListDemandResponse>, Status> {
        let cluster = request.into_inner().cluster;
        if !cluster.is_empty() {
            self.find(&cluster)?;
        }
        let mut work = Vec::new();
        for (_, operator) in self.operators.iter().filter(|(name, _)| cluster.is_empty() || *name == cluster)
        {
            let (answer, answered) = oneshot::channel();
            operator.send(Command::Look { answer }).await.map_err(|_| gone())?;
            work.extend(answered.await.map_err(|_| gone())?);
        }
        Ok(Response::new(ListDemandResponse { work, now_unix_nanos: self.clock.now_unix_nanos() }))
    }

    async fn set_demand(
        &self,
        request: Request<SetDemandRequest>,
    ) -> Result<Response<SetDemandResponse>, Status> {
        let SetDemandRequest { cluster, wanted } = request.into_inner();
        if wanted.is_empty() {
            return Err(Status::invalid_argument("nothing is wanted; give at least one WORK=NUMBER"));
        }
        if let Some(most) = wanted.iter().find(|wanted| wanted.count > MOST_PODS) {
            let (work, count) = (&most.work, most.count);
            return Err(Status::invalid_argument(format!(
                "{work}={count} is too much; a simulated cluster holds at most {MOST_PODS} of a kind"
            )));
        }
        let by_name: BTreeMap<String, Option<u64>> =
            wanted.into_iter().map(|wanted| (wanted.work, Some(wanted.count))).collect();
        let fixed = self.fix(&cluster, by_name.into_iter().collect()).await?;
        Ok(Response::new(SetDemandResponse { work: fixed.work }))
    }

    async fn remove_demand(
        &self,
        request: Request<RemoveDemandRequest>,
    ) -> Result<Response<RemoveDemandResponse>, Status> {
        let RemoveDemandRequest { cluster, work } = request.into_inner();
        let mut fixed = self.fix(&cluster, vec![(work.clone(), None)]).await?;
        if !fixed.was_fixed {
            return Err(Status::failed_precondition(format!(
                "nobody fixed {work} of {cluster}; it follows its own curve already"
            )));
        }
        Ok(Response::new(RemoveDemandResponse { work: fixed.work.pop() }))
    }
}

/// Serves both until `stop`.
pub(crate) async fn serve(
    control: Control,
    demand: Demand,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), tonic::transport::Error> {
    let layer = CallLayer::usual();
    let connections = layer.incoming(listener, None, MOST_ADMIN_CONNECTIONS);
    transport::server()
        .layer(layer)
        .add_service(SimAdminServer::new(control))
        .add_service(SimDemandServer::new(demand))
        .serve_with_incoming_shutdown(connections, stop)
        .await
}
