//! The part of the wire that others speak as well: `bigfleet.v1alpha1.Coordinator`.

use std::pin::Pin;

use bigfleet_coordinator as core;
use bigfleet_coordinator::Fleet;
use bigfleet_proto::v1alpha1 as wire;
use bigfleet_proto::v1alpha1::coordinator_server::Coordinator;
use bigfleet_proto::v1alpha1::snapshot_save_chunk::Payload;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::{Service, status};
use crate::convert;
use crate::gate::{Right, check};
use crate::replica::NotDone;
use crate::snapshot;

/// The largest piece of a snapshot in one message.
const CHUNK_BYTES: usize = 1 << 20;

#[tonic::async_trait]
impl Coordinator for Service {
    type SnapshotSaveStream = Pin<Box<dyn Stream<Item = Result<wire::SnapshotSaveChunk, Status>> + Send>>;

    async fn report_shard(
        &self,
        request: Request<wire::ShardReport>,
    ) -> Result<Response<wire::ReportAck>, Status> {
        let shard = &request.get_ref().shard_id;
        if shard.is_empty() {
            return Err(Status::invalid_argument("shard_id is missing"));
        }
        check(request.extensions(), Right::Be(shard))?;
        let message = request.into_inner();
        let report = convert::report(&message).map_err(Status::invalid_argument)?;
        let decided = self.replica.decide(move |deciding| {
            let now = deciding.now;
            let shard = message.shard_id.as_str();
            let registered = core::register(&deciding.state.fleet, shard, &message.shard_address, now)?;
            deciding.store(registered);
            let is_new = deciding.state.standing.hear(shard, report, now)?;
            for ack in &message.instruction_acks {
                let fleet = &deciding.state.fleet;
                let writes = core::acknowledge(fleet, shard, &ack.instruction_id, convert::outcome(ack), now);
                deciding.store(writes);
            }
            let fleet = &deciding.state.fleet;
            Ok(wire::ReportAck {
                coordinator_term: fleet.term(),
                acknowledged: is_new,
                instructions: core::pending(fleet, shard)
                    .map(|instruction| convert::instruction(fleet.term(), instruction))
                    .collect(),
            })
        });
        let ack = decided.await.map_err(status)?;
        self.metrics.reported();
        Ok(Response::new(ack))
    }

    async fn assign_domain(
        &self,
        request: Request<wire::AssignDomainRequest>,
    ) -> Result<Response<wire::AssignDomainResponse>, Status> {
        check(request.extensions(), Right::Command)?;
        let wire::AssignDomainRequest { topology_key, topology_value, shard_id } = request.into_inner();
        self.change(move |fleet, now| core::assign(fleet, &topology_key, &topology_value, &shard_id, now))
            .await?;
        Ok(Response::new(wire::AssignDomainResponse {}))
    }

    async fn unassign_domain(
        &self,
        request: Request<wire::UnassignDomainRequest>,
    ) -> Result<Response<wire::UnassignDomainResponse>, Status> {
        check(request.extensions(), Right::Command)?;
        let wire::UnassignDomainRequest { topology_key, topology_value } = request.into_inner();
        self.change(move |fleet, now| core::unassign(fleet, &topology_key, &topology_value, now)).await?;
        Ok(Response::new(wire::UnassignDomainResponse {}))
    }

    async fn remove_shard(
        &self,
        request: Request<wire::RemoveShardRequest>,
    ) -> Result<Response<wire::RemoveShardResponse>, Status> {
        check(request.extensions(), Right::Command)?;
        let shard = request.into_inner().shard_id;
        self.change(move |fleet, _| core::remove(fleet, &shard)).await?;
        Ok(Response::new(wire::RemoveShardResponse {}))
    }

    async fn list_shards(
        &self,
        request: Request<wire::ListShardsRequest>,
    ) -> Result<Response<wire::ListShardsResponse>, Status> {
        check(request.extensions(), Right::Read)?;
        let looked = self.replica.look(|state| {
            let shards = state.fleet.shards().filter(|shard| !shard.is_leaving).map(|shard| {
                let heard = state.standing.of(&shard.id).map(|heard| heard.received_unix_nanos);
                wire::ShardRegistryEntry {
                    shard_id: shard.id.to_string(),
                    address: shard.address.to_string(),
                    registered_at_unix_ns: shard.registered_unix_nanos,
                    // A leader that has just begun has heard nothing yet.
                    last_heartbeat_unix_ns: heard.unwrap_or(shard.registered_unix_nanos),
                }
            });
            shards.collect()
        });
        Ok(Response::new(wire::ListShardsResponse { shards: looked.await.map_err(status)? }))
    }

    async fn list_domain_assignments(
        &self,
        request: Request<wire::ListDomainAssignmentsRequest>,
    ) -> Result<Response<wire::ListDomainAssignmentsResponse>, Status> {
        check(request.extensions(), Right::Read)?;
        let list = |fleet: &Fleet| {
            let domains = fleet.domains().map(|domain| wire::DomainAssignment {
                topology_key: domain.key.to_string(),
                topology_value: domain.value.to_string(),
                shard_id: domain.tenure.holder().into(),
            });
            domains.collect()
        };
        Ok(Response::new(wire::ListDomainAssignmentsResponse { assignments: self.list(list).await? }))
    }

    async fn list_shard_reports(
        &self,
        request: Request<wire::ListShardReportsRequest>,
    ) -> Result<Response<wire::ListShardReportsResponse>, Status> {
        check(request.extensions(), Right::Read)?;
        let wanted = request.into_inner().shard_id;
        let looked = self.replica.look(move |state| {
            // Reports are with the leader alone: an empty list from another would read like silence.
            if !state.is_leading {
                return Err(NotDone::NotLeader(state.leader.clone()));
            }
            let reports = state.standing.all().filter(|(shard, _)| super::is_of(&wanted, shard));
            Ok(reports.map(|(shard, heard)| convert::snapshot(shard, heard)).collect())
        });
        let reports = looked.await.and_then(|looked| looked).map_err(status)?;
        Ok(Response::new(wire::ListShardReportsResponse { reports }))
    }

    async fn join_raft_cluster(
        &self,
        request: Request<wire::JoinRaftClusterRequest>,
    ) -> Result<Response<wire::JoinRaftClusterResponse>, Status> {
        check(request.extensions(), Right::Command)?;
        Err(Status::unimplemented(
            "membership is etcd's: start another `bigfleet coordinator --etcd ...`, and grow the etcd with etcdctl member add",
        ))
    }

    async fn snapshot_save(
        &self,
        request: Request<wire::SnapshotSaveRequest>,
    ) -> Result<Response<Self::SnapshotSaveStream>, Status> {
        check(request.extensions(), Right::Command)?;
        let looked = self.replica.look(|state| {
            if state.is_leading {
                Ok(snapshot::save(&state.fleet))
            } else {
                Err(NotDone::NotLeader(state.leader.clone()))
            }
        });
        let snapshot = looked.await.and_then(|looked| looked).map_err(status)?;
        let mut chunks = vec![Payload::MetaJson(snapshot.meta)];
        chunks.extend(snapshot.data.chunks(CHUNK_BYTES).map(|chunk| Payload::Data(chunk.to_vec())));
        let chunks = chunks.into_iter().map(|payload| Ok(wire::SnapshotSaveChunk { payload: Some(payload) }));
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks.collect::<Vec<_>>()))))
    }
}
