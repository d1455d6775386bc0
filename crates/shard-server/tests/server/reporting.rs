//! Reports to a coordinator that answers, and one that does not.

use std::time::Duration;

use bigfleet_net::CallLayer;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::coordinator_instruction::Payload;
use bigfleet_proto::v1alpha1::coordinator_server::Coordinator;
use bigfleet_proto::v1alpha1::{
    AssignDomain, AssignDomainRequest, AssignDomainResponse, CoordinatorInstruction, JoinRaftClusterRequest,
    JoinRaftClusterResponse, ListDomainAssignmentsRequest, ListDomainAssignmentsResponse,
    ListShardReportsRequest, ListShardReportsResponse, ListShardsRequest, ListShardsResponse,
    RemoveShardRequest, RemoveShardResponse, ReportAck, ShardReport, SnapshotSaveChunk, SnapshotSaveRequest,
    UnassignDomainRequest, UnassignDomainResponse,
};
use bigfleet_shard_server::{Reporting, Settings};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use crate::house::{Provider, anywhere, cloud, hasty, listed_often, soon, start, until_ready};
use crate::operator::{Operator, need};

/// Passes reports on and always has the same instruction.
struct Fake(mpsc::UnboundedSender<ShardReport>);

macro_rules! unused {
    ($($name:ident: $request:ty => $response:ty),*) => {
        #[tonic::async_trait]
        impl Coordinator for Fake {
            async fn report_shard(&self, request: Request<ShardReport>) -> Result<Response<ReportAck>, Status> {
                self.0.send(request.into_inner()).map_err(|_| Status::internal("the test is over"))?;
                let payload = Some(Payload::AssignDomain(AssignDomain::default()));
                let order = CoordinatorInstruction {
                    coordinator_term: 7,
                    sequence_number: 1,
                    instruction_id: "i-1".into(),
                    payload,
                };
                Ok(Response::new(ReportAck { coordinator_term: 7, acknowledged: true, instructions: vec![order] }))
            }
            type SnapshotSaveStream = tokio_stream::Empty<Result<SnapshotSaveChunk, Status>>;
            async fn snapshot_save(&self, _: Request<SnapshotSaveRequest>) -> Result<Response<Self::SnapshotSaveStream>, Status> {
                Err(Status::unimplemented("fake"))
            }
            $(async fn $name(&self, _: Request<$request>) -> Result<Response<$response>, Status> {
                Err(Status::unimplemented("fake"))
            })*
        }
    };
}

unused! {
    assign_domain: AssignDomainRequest => AssignDomainResponse,
    unassign_domain: UnassignDomainRequest => UnassignDomainResponse,
    remove_shard: RemoveShardRequest => RemoveShardResponse,
    list_shards: ListShardsRequest => ListShardsResponse,
    list_domain_assignments: ListDomainAssignmentsRequest => ListDomainAssignmentsResponse,
    list_shard_reports: ListShardReportsRequest => ListShardReportsResponse,
    join_raft_cluster: JoinRaftClusterRequest => JoinRaftClusterResponse
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shortfalls_are_reported_and_instructions_answered() {
    let listener = TcpListener::bind(anywhere()).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (reports, mut received) = mpsc::unbounded_channel();
    let layer = CallLayer::usual();
    let mut service = transport::server().layer(layer.clone());
    let service = service.add_service(transport::coordinator_server(Fake(reports)));
    let serving = tokio::spawn(service.serve_with_incoming(layer.incoming(listener, None, 10)));

    let sim = cloud("sim", 8).await;
    let provider = Provider::serve(sim.service(), sim.handle(), anywhere()).await;
    let reporting = Reporting { every: Duration::from_millis(50), ..Reporting::to(address) };
    let settings = Settings {
        coordinator: Some(reporting),
        ..Settings::local(hasty(), vec![listed_often("sim", provider.url())])
    };
    let running = start(settings).await;
    until_ready(&running).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    let mut impossible = need(10, 1);
    impossible.min_unit.insert("cpu".into(), "100000".into());
    impossible.aggregate_resources.insert("cpu".into(), "100000".into());
    shop.rollup(vec![impossible]).await;
    assert_eq!(shop.ack().await, "rollup");

    let report = soon("a report with the shortfall", async {
        loop {
            let report = received.recv().await.unwrap();
            if !report.shortfalls.is_empty() {
                return report;
            }
        }
    })
    .await;
    assert_eq!((&*report.shard_id, report.shard_epoch), ("s1", running.epoch));
    assert_eq!(report.shard_address, running.grpc.to_string());
    let summary = report.summary.unwrap();
    assert_eq!(summary.total_machines, 12, "8 and the 4 that always fail");
    assert_eq!(summary.per_zone_counts.values().sum::<i32>(), 12);
    assert_eq!(report.shortfalls.len(), 1);
    assert_eq!(report.shortfalls[0].priority, 10);
    assert_eq!(report.shortfalls[0].deficit.as_ref().unwrap().resources["cpu"], "100k");
    let acks = soon("an answer to the instruction", async {
        loop {
            let report = received.recv().await.unwrap();
            if !report.instruction_acks.is_empty() {
                return report.instruction_acks;
            }
        }
    })
    .await;
    assert_eq!((acks.len(), &*acks[0].instruction_id), (1, "i-1"));
    assert!(acks[0].reason.contains("the domain has no key or no value"), "{}", acks[0].reason);
    shop.hello().await;
    running.stop().await.unwrap();
    provider.stop().await;
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_a_coordinator_that_is_not_there() {
    let reporting = Reporting { every: Duration::from_millis(20), ..Reporting::to("http://127.0.0.1:1") };
    let running = start(Settings { coordinator: Some(reporting), ..Settings::local(hasty(), vec![]) }).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    shop.rollup(vec![need(1, 1)]).await;
    assert_eq!(shop.ack().await, "rollup");
    running.stop().await.unwrap();
}
