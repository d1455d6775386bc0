//! The services: who may call, what is asked of the replica, and how its answers read on the wire.

mod wire;

use std::pin::Pin;

use bigfleet_coordinator as core;
use bigfleet_coordinator::{Fleet, Refusal, Writes};
use bigfleet_proto::coordinator_v1 as v1;
use bigfleet_proto::coordinator_v1::fleet_server::Fleet as FleetService;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status};

use crate::convert;
use crate::gate::{Right, check};
use crate::metrics::Metrics;
use crate::replica::{NotDone, Replica};

pub use bigfleet_proto::transport::LEADER_HEADER;

/// Serves both packages.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) replica: Replica,
    pub(crate) metrics: Metrics,
    pub(crate) store: &'static str,
    /// Turns true when the server stops.
    pub(crate) is_stopping: tokio::sync::watch::Receiver<bool>,
}

impl Service {
    /// An admin's change.
    async fn change(
        &self,
        change: impl FnOnce(&Fleet, i64) -> Result<Writes, Refusal> + Send + 'static,
    ) -> Result<(), Status> {
        let decided = self.replica.decide(move |deciding| {
            let writes = change(&deciding.state.fleet, deciding.now)?;
            deciding.store(writes);
            Ok(())
        });
        decided.await.map_err(status)
    }

    /// What the fleet lists, from any replica.
    async fn list<T: Send + 'static>(
        &self,
        list: impl FnOnce(&Fleet) -> Vec<T> + Send + 'static,
    ) -> Result<Vec<T>, Status> {
        self.replica.look(move |state| list(&state.fleet)).await.map_err(status)
    }
}

/// How a call that was not carried out reads on the wire.
fn status(error: NotDone) -> Status {
    let message = error.to_string();
    match error {
        NotDone::NotLeader(leader) => {
            let mut status = Status::failed_precondition(message);
            if let Some(leader) = leader.and_then(|leader| MetadataValue::try_from(leader).ok()) {
                status.metadata_mut().insert(LEADER_HEADER, leader);
            }
            status
        }
        NotDone::Refused(refusal) => match refusal {
            Refusal::Missing { .. }
            | Refusal::TooLong { .. }
            | Refusal::Unreadable { .. }
            | Refusal::TooMany { .. }
            | Refusal::OtherKey { .. }
            | Refusal::Wrong { .. } => Status::invalid_argument(message),
            Refusal::Full { .. } => Status::resource_exhausted(message),
            Refusal::Unknown { .. } => Status::not_found(message),
            Refusal::Owned { .. } => Status::already_exists(message),
            Refusal::Leaving { .. } | Refusal::Moving { .. } | Refusal::Rests { .. } => {
                Status::unavailable(message)
            }
        },
        NotDone::Unknown(_) | NotDone::Stopping => Status::unavailable(message),
    }
}

/// Only those of one shard, or all.
fn is_of(wanted: &str, shard: &str) -> bool {
    wanted.is_empty() || wanted == shard
}

#[tonic::async_trait]
impl FleetService for Service {
    type FollowStream = Pin<Box<dyn Stream<Item = Result<v1::Charge, Status>> + Send>>;

    async fn get_status(
        &self,
        request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::Status>, Status> {
        check(request.extensions(), Right::ReadOrShard)?;
        let store = self.store;
        let looked = self.replica.look(move |state| v1::Status {
            is_leader: state.is_leading,
            term: state.fleet.term(),
            leader_address: state.leader.clone().unwrap_or_default(),
            store: store.into(),
            revision: state.revision,
            shards: state.fleet.shards().len() as u64,
            domains: state.fleet.domains().len() as u64,
            quotas: state.fleet.quotas().len() as u64,
            providers: state.fleet.providers().len() as u64,
            clusters: state.fleet.clusters().len() as u64,
            transfers: state.fleet.transfers().len() as u64,
            instructions: state.fleet.instructions().len() as u64,
            asks: state.help.asks().len() as u64,
        });
        Ok(Response::new(looked.await.map_err(status)?))
    }

    async fn set_quota(
        &self,
        request: Request<v1::SetQuotaRequest>,
    ) -> Result<Response<v1::SetQuotaResponse>, Status> {
        check(request.extensions(), Right::Command)?;
        let quota = request.into_inner().quota.unwrap_or_default();
        let machines = quota.machines;
        let kind = core::Quota {
            shard: quota.shard_id.into(),
            provider: quota.provider.into(),
            instance_type: quota.instance_type.into(),
            zone: quota.zone.into(),
            capacity_type: quota.capacity_type.into(),
            machines: 0,
        };
        self.change(move |fleet, _| core::set_quota(fleet, &kind, machines)).await?;
        Ok(Response::new(v1::SetQuotaResponse {}))
    }

    async fn list_quotas(
        &self,
        request: Request<v1::ListQuotasRequest>,
    ) -> Result<Response<v1::ListQuotasResponse>, Status> {
        check(request.extensions(), Right::Read)?;
        let shard = request.into_inner().shard_id;
        let list = move |fleet: &Fleet| {
            fleet.quotas().filter(|quota| is_of(&shard, &quota.shard)).map(convert::quota).collect()
        };
        Ok(Response::new(v1::ListQuotasResponse { quotas: self.list(list).await? }))
    }

    async fn set_provider(
        &self,
        request: Request<v1::SetProviderRequest>,
    ) -> Result<Response<v1::SetProviderResponse>, Status> {
        check(request.extensions(), Right::Command)?;
        let provider = request.into_inner().provider.unwrap_or_default();
        let shards: Vec<Box<str>> = provider.shard_ids.into_iter().map(Into::into).collect();
        let (name, address) = (provider.name, provider.address);
        self.change(move |fleet, _| core::set_provider(fleet, &name, &address, &shards)).await?;
        Ok(Response::new(v1::SetProviderResponse {}))
    }

    async fn remove_provider(
        &self,
        request: Request<v1::RemoveProviderRequest>,
    ) -> Result<Response<v1::RemoveProviderResponse>, Status> {
        check(request.extensions(), Right::Command)?;
        let name = request.into_inner().name;
        self.change(move |fleet, _| core::remove_provider(fleet, &name)).await?;
        Ok(Response::new(v1::RemoveProviderResponse {}))
    }

    async fn list_providers(
        &self,
        request: Request<v1::ListProvidersRequest>,
    ) -> Result<Response<v1::ListProvidersResponse>, Status> {
        check(request.extensions(), Right::Read)?;
        let providers = self.list(|fleet| fleet.providers().map(convert::provider).collect()).await?;
        Ok(Response::new(v1::ListProvidersResponse { providers }))
    }

    async fn bind_cluster(
        &self,
        request: Request<v1::BindClusterRequest>,
    ) -> Result<Response<v1::BindClusterResponse>, Status> {
        check(request.extensions(), Right::Command)?;
        let v1::BindClusterRequest { cluster_id, shard_id } = request.into_inner();
        self.change(move |fleet, _| core::bind_cluster(fleet, &cluster_id, &shard_id)).await?;
        Ok(Response::new(v1::BindClusterResponse {}))
    }

    async fn unbind_cluster(
        &self,
        request: Request<v1::UnbindClusterRequest>,
    ) -> Result<Response<v1::UnbindClusterResponse>, Status> {
        check(request.extensions(), Right::Command)?;
        let cluster = request.into_inner().cluster_id;
        self.change(move |fleet, _| core::unbind_cluster(fleet, &cluster)).await?;
        Ok(Response::new(v1::UnbindClusterResponse {}))
    }

    async fn get_cluster(
        &self,
        request: Request<v1::GetClusterRequest>,
    ) -> Result<Response<v1::Cluster>, Status> {
        check(request.extensions(), Right::ReadOrShard)?;
        let id = request.into_inner().cluster_id;
        let look = self.replica.look(move |state| match state.fleet.cluster(&id) {
            Some(cluster) => convert::cluster(&state.fleet, cluster),
            None => v1::Cluster { cluster_id: id, ..v1::Cluster::default() },
        });
        Ok(Response::new(look.await.map_err(status)?))
    }

    async fn list_clusters(
        &self,
        request: Request<v1::ListClustersRequest>,
    ) -> Result<Response<v1::ListClustersResponse>, Status> {
        check(request.extensions(), Right::Read)?;
        let shard = request.into_inner().shard_id;
        let list = move |fleet: &Fleet| {
            let clusters = fleet.clusters().filter(|cluster| is_of(&shard, &cluster.shard));
            clusters.map(|cluster| convert::cluster(fleet, cluster)).collect()
        };
        Ok(Response::new(v1::ListClustersResponse { clusters: self.list(list).await? }))
    }

    async fn list_domains(
        &self,
        request: Request<v1::ListDomainsRequest>,
    ) -> Result<Response<v1::ListDomainsResponse>, Status> {
        check(request.extensions(), Right::Read)?;
        let shard = request.into_inner().shard_id;
        let list = move |fleet: &Fleet| {
            fleet
                .domains()
                .filter(|domain| is_of(&shard, domain.tenure.holder()))
                .map(convert::domain)
                .collect()
        };
        Ok(Response::new(v1::ListDomainsResponse { domains: self.list(list).await? }))
    }

    async fn list_transfers(
        &self,
        request: Request<v1::ListTransfersRequest>,
    ) -> Result<Response<v1::ListTransfersResponse>, Status> {
        check(request.extensions(), Right::Read)?;
        let shard = request.into_inner().shard_id;
        let list = move |fleet: &Fleet| {
            let concerns =
                |transfer: &&core::Transfer| is_of(&shard, &transfer.from) || is_of(&shard, &transfer.to);
            fleet.transfers().filter(concerns).map(convert::transfer).collect()
        };
        Ok(Response::new(v1::ListTransfersResponse { transfers: self.list(list).await? }))
    }

    async fn follow(
        &self,
        request: Request<v1::FollowRequest>,
    ) -> Result<Response<Self::FollowStream>, Status> {
        let shard = &request.get_ref().shard_id;
        if shard.is_empty() {
            return Err(Status::invalid_argument("shard_id is missing"));
        }
        check(request.extensions(), Right::Be(shard))?;
        let charges = self.replica.follow(shard.as_str().into()).await.map_err(status)?;
        // Ends with the leadership, and with the server.
        let stopping = WatchStream::from_changes(self.is_stopping.clone()).map(|_| None);
        let charges = WatchStream::new(charges).map(Some).merge(stopping);
        Ok(Response::new(Box::pin(charges.map_while(|charge| charge.map(Ok)))))
    }

    async fn answer_ask(
        &self,
        request: Request<v1::AnswerAskRequest>,
    ) -> Result<Response<v1::AnswerAskResponse>, Status> {
        let v1::AnswerAskRequest { shard_id, .. } = request.get_ref();
        check(request.extensions(), Right::Be(shard_id))?;
        let v1::AnswerAskRequest { shard_id, ask_id, machines } = request.into_inner();
        let machines = machines
            .into_iter()
            .map(|given| core::Offered { machine: given.machine_id.into(), domain: given.domain.into() });
        let machines: Vec<core::Offered> = machines.collect();
        let answered = self.replica.decide(move |deciding| {
            let state = &mut *deciding.state;
            let writes = state.help.answer(&state.fleet, &shard_id, ask_id, &machines, deciding.now)?;
            deciding.store(writes);
            Ok(())
        });
        answered.await.map_err(status)?;
        Ok(Response::new(v1::AnswerAskResponse {}))
    }
}
