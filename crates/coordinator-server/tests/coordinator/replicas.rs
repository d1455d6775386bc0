//! Three replicas on three members: one leads, the others follow, redirect, and take over.

use std::net::SocketAddr;

use bigfleet_coordinator_server::store::Store;
use bigfleet_coordinator_server::{LEADER_HEADER, Running, Settings, start};
use bigfleet_net::dial;
use bigfleet_proto::coordinator_v1::fleet_client::FleetClient;
use bigfleet_proto::coordinator_v1::{
    BindClusterRequest, FollowRequest, GetStatusRequest, ListDomainsRequest, Quota, SetQuotaRequest, Status,
};
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::coordinator_client::CoordinatorClient;
use bigfleet_proto::v1alpha1::coordinator_instruction::Payload;
use bigfleet_proto::v1alpha1::{
    AssignDomainRequest, InstructAck, JoinRaftClusterRequest, ListShardsRequest, RemoveShardRequest,
    ReportAck, ShardReport, UnassignDomainRequest, instruct_ack,
};
use tonic::Code;
use tonic::transport::Channel;

use crate::etcd::{Members, until};

pub(crate) async fn replica(store: Store) -> Running {
    let settings = Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: String::new(),
        http: None,
        tls: None,
        store,
        tidies: true,
        export: None,
    };
    start(settings).await.expect("loopback")
}

/// Both clients of one replica.
pub(crate) struct Caller {
    pub(crate) wire: CoordinatorClient<Channel>,
    pub(crate) fleet: FleetClient<Channel>,
}

pub(crate) fn caller(running: &Running) -> Caller {
    let channel = dial(&format!("http://{}", running.address), None).expect("an address");
    Caller { wire: transport::coordinator_client(channel.clone()), fleet: transport::fleet_client(channel) }
}

impl Caller {
    pub(crate) async fn status(&mut self) -> Option<Status> {
        Some(self.fleet.get_status(GetStatusRequest {}).await.ok()?.into_inner())
    }

    pub(crate) async fn report(
        &mut self,
        shard: &str,
        cycle: i64,
        acks: Vec<InstructAck>,
    ) -> Option<ReportAck> {
        let report = ShardReport {
            shard_id: shard.into(),
            shard_address: format!("{shard}.example:7780"),
            shard_epoch: 1,
            cycle,
            instruction_acks: acks,
            ..ShardReport::default()
        };
        Some(self.wire.report_shard(report).await.ok()?.into_inner())
    }

    pub(crate) async fn assign(&mut self, value: &str, shard: &str) -> Result<(), tonic::Status> {
        let request = AssignDomainRequest {
            topology_key: "zone".into(),
            topology_value: value.into(),
            shard_id: shard.into(),
        };
        self.wire.assign_domain(request).await.map(drop)
    }
}

/// Waits for a leader among replicas; which it is.
pub(crate) async fn leader(replicas: &[&Running]) -> usize {
    until("one of them leads", async || {
        for (place, running) in replicas.iter().enumerate() {
            if caller(running).status().await.is_some_and(|status| status.is_leader) {
                return Some(place);
            }
        }
        None
    })
    .await
}

fn accepted(ack: &ReportAck) -> Vec<InstructAck> {
    let accept = |id: &String| InstructAck {
        instruction_id: id.clone(),
        outcome: instruct_ack::Outcome::Accepted.into(),
        reason: String::new(),
    };
    ack.instructions.iter().map(|order| accept(&order.instruction_id)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_domain_moves_when_its_holder_has_let_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = bigfleet_coordinator_server::store::Embedded::open(folder.path()).expect("a folder");
    let running = replica(Store::Embedded(std::sync::Arc::new(store))).await;
    leader(&[&running]).await;
    let mut caller = caller(&running);
    for shard in ["a", "b"] {
        let ack = caller.report(shard, 1, Vec::new()).await.expect("it leads");
        assert!(ack.acknowledged && ack.instructions.is_empty(), "{ack:?}");
    }
    let unknown = caller.assign("z1", "nobody").await.expect_err("unknown");
    assert_eq!(unknown.code(), Code::NotFound, "{unknown}");
    caller.assign("z1", "a").await.expect("free");
    caller.assign("z1", "a").await.expect("twice is once");
    assert_eq!(caller.assign("z1", "b").await.expect_err("owned").code(), Code::AlreadyExists);

    let join = JoinRaftClusterRequest { node_id: "b".into(), raft_address: "b:1".into() };
    let refused = caller.wire.join_raft_cluster(join).await.expect_err("there is no such cluster");
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(refused.message().contains("membership is etcd's"), "{refused}");

    let told = caller.report("a", 2, Vec::new()).await.expect("it leads");
    assert!(
        matches!(told.instructions[..], [ref one] if matches!(one.payload, Some(Payload::AssignDomain(_))))
    );
    let again = caller.report("a", 3, Vec::new()).await.expect("it leads");
    assert_eq!(again.instructions, told.instructions, "told until it is answered");
    let done = caller.report("a", 4, accepted(&again)).await.expect("it leads");
    assert!(done.instructions.is_empty());

    // Moving: the holder is told first, and nobody else before it has answered.
    let request = UnassignDomainRequest { topology_key: "zone".into(), topology_value: "z1".into() };
    caller.wire.unassign_domain(request).await.expect("held");
    caller.assign("z1", "b").await.expect("promised");
    assert!(caller.report("b", 2, Vec::new()).await.expect("it leads").instructions.is_empty());
    let leave = caller.report("a", 5, Vec::new()).await.expect("it leads");
    assert!(matches!(leave.instructions[0].payload, Some(Payload::UnassignDomain(_))));
    let domains =
        caller.fleet.list_domains(ListDomainsRequest::default()).await.expect("any replica").into_inner();
    let domain = &domains.domains[0];
    assert_eq!(
        (domain.shard_id.as_str(), domain.is_leaving, domain.next_shard_id.as_str()),
        ("a", true, "b")
    );
    caller.report("a", 6, accepted(&leave)).await.expect("it leads");
    let take = caller.report("b", 3, Vec::new()).await.expect("it leads");
    assert!(matches!(take.instructions[0].payload, Some(Payload::AssignDomain(_))));

    // A shard hears what concerns it, at once and when it changes.
    let mut follow =
        caller.fleet.follow(FollowRequest { shard_id: "b".into() }).await.expect("it leads").into_inner();
    assert_eq!(follow.message().await.expect("open").expect("a charge").quotas.len(), 0);
    let quota = Quota { shard_id: "b".into(), provider: "p".into(), machines: Some(7), ..Quota::default() };
    caller.fleet.set_quota(SetQuotaRequest { quota: Some(quota.clone()) }).await.expect("it leads");
    let charge = follow.message().await.expect("open").expect("a charge");
    assert_eq!(charge.quotas, [quota]);
    let bind = BindClusterRequest { cluster_id: "shop".into(), shard_id: "b".into() };
    caller.fleet.bind_cluster(bind).await.expect("it leads");
    assert_eq!(follow.message().await.expect("open").expect("a charge").cluster_ids, ["shop"]);

    // A shard that is gone for good leaves nothing behind.
    caller.wire.remove_shard(RemoveShardRequest { shard_id: "b".into() }).await.expect("known");
    until("it is forgotten", async || {
        let status = caller.status().await?;
        ((status.shards, status.domains, status.quotas, status.clusters) == (1, 0, 0, 0)).then_some(())
    })
    .await;
    running.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_read_and_redirect_and_one_takes_over() {
    let members = Members::start();
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(replica(members.store("three")).await);
    }
    let at = leader(&replicas.iter().collect::<Vec<_>>()).await;
    let mut leads = caller(&replicas[at]);
    leads.report("a", 1, Vec::new()).await.expect("it leads");
    leads.assign("z1", "a").await.expect("free");
    let before = leads.status().await.expect("it answers");

    let follower = &replicas[(at + 1) % 3];
    let mut reads = caller(follower);
    until("a follower knows what was stored", async || {
        let status = reads.status().await?;
        (status.domains == 1 && !status.is_leader).then_some(())
    })
    .await;
    let shards = reads.wire.list_shards(ListShardsRequest {}).await.expect("reads are answered").into_inner();
    assert_eq!(shards.shards[0].shard_id, "a");
    let redirected = reads.assign("z2", "a").await.expect_err("it does not lead");
    assert_eq!(redirected.code(), Code::FailedPrecondition);
    let named =
        redirected.metadata().get(LEADER_HEADER).expect("the leader is named").to_str().expect("text");
    assert_eq!(named, format!("http://{}", replicas[at].address));

    let stopped = replicas.remove(at);
    stopped.stop().await.expect("it stops");
    let next = leader(&replicas.iter().collect::<Vec<_>>()).await;
    let mut leads = caller(&replicas[next]);
    let after = leads.status().await.expect("it answers");
    assert!(after.term > before.term, "{} then {}", before.term, after.term);
    assert_eq!((after.shards, after.domains, after.instructions), (1, 1, 1), "nothing is lost");
    let told = leads.report("a", 2, Vec::new()).await.expect("it leads");
    assert_eq!(told.instructions.len(), 1);
    for running in replicas {
        running.stop().await.expect("it stops");
    }
}
