//! Samples of the messages in `coordinator.proto`.

use super::capacity::requirement;
use super::provider::resources;
use super::{bytes, counts, s, twice};
use crate::Golden;
use bigfleet_proto::v1alpha1::*;

pub(crate) fn check(golden: &mut Golden) {
    reports(golden);
    instructions(golden);
    admin(golden);
    reads(golden);
}

fn reports(golden: &mut Golden) {
    golden.check(
        "ShardReport",
        &ShardReport {
            shard_id: s("shard_id"),
            cycle: -2,
            timestamp_unix_nanos: -3,
            shard_epoch: -4,
            summary: Some(summary()),
            shortfalls: vec![shortfall()],
            instruction_acks: vec![instruct_ack()],
            shard_address: s("shard_address"),
        },
    );
    golden.check("ShardSummary", &summary());
    golden.check("Shortfall", &shortfall());
    golden.check("InstructAck", &instruct_ack());
    let payload = coordinator_instruction::Payload::AssignDomain(assign_domain());
    golden.check(
        "ReportAck",
        &ReportAck { coordinator_term: -1, acknowledged: true, instructions: vec![instruction(payload)] },
    );
}

fn instructions(golden: &mut Golden) {
    use coordinator_instruction::Payload;
    let unassign = UnassignDomain { topology_key: s("topology_key"), topology_value: s("topology_value") };
    let reassign = ReassignSpeculative { machine_ids: twice("machine_ids") };
    let drain = CrossShardDrain { machine_ids: twice("machine_ids"), preemptor_priority: 1002 };
    let transfer = TransferOwnership {
        machine_ids: twice("machine_ids"),
        from_shard_id: s("from_shard_id"),
        to_shard_id: s("to_shard_id"),
    };
    golden.check("AssignDomain", &assign_domain());
    golden.check("UnassignDomain", &unassign);
    golden.check("ReassignSpeculative", &reassign);
    golden.check("CrossShardDrain", &drain);
    golden.check("TransferOwnership", &transfer);
    for (member, payload) in [
        ("assign_domain", Payload::AssignDomain(assign_domain())),
        ("unassign_domain", Payload::UnassignDomain(unassign)),
        ("reassign_speculative", Payload::ReassignSpeculative(reassign)),
        ("cross_shard_drain", Payload::CrossShardDrain(drain)),
        ("transfer_ownership", Payload::TransferOwnership(transfer)),
    ] {
        golden.check(&format!("CoordinatorInstruction.{member}"), &instruction(payload));
    }
}

fn admin(golden: &mut Golden) {
    golden.check(
        "AssignDomainRequest",
        &AssignDomainRequest {
            topology_key: s("topology_key"),
            topology_value: s("topology_value"),
            shard_id: s("shard_id"),
        },
    );
    golden.check("AssignDomainResponse", &AssignDomainResponse {});
    golden.check(
        "UnassignDomainRequest",
        &UnassignDomainRequest { topology_key: s("topology_key"), topology_value: s("topology_value") },
    );
    golden.check("UnassignDomainResponse", &UnassignDomainResponse {});
    golden.check("RemoveShardRequest", &RemoveShardRequest { shard_id: s("shard_id") });
    golden.check("RemoveShardResponse", &RemoveShardResponse {});
    golden.check(
        "JoinRaftClusterRequest",
        &JoinRaftClusterRequest { node_id: s("node_id"), raft_address: s("raft_address") },
    );
    golden.check("JoinRaftClusterResponse", &JoinRaftClusterResponse {});
    golden.check("SnapshotSaveRequest", &SnapshotSaveRequest {});
    for (member, payload) in [
        ("meta_json", snapshot_save_chunk::Payload::MetaJson(bytes("meta_json"))),
        ("data", snapshot_save_chunk::Payload::Data(bytes("data"))),
    ] {
        golden.check(&format!("SnapshotSaveChunk.{member}"), &SnapshotSaveChunk { payload: Some(payload) });
    }
}

fn reads(golden: &mut Golden) {
    let entry = ShardRegistryEntry {
        shard_id: s("shard_id"),
        address: s("address"),
        registered_at_unix_ns: -3,
        last_heartbeat_unix_ns: -4,
    };
    let assignment = DomainAssignment {
        topology_key: s("topology_key"),
        topology_value: s("topology_value"),
        shard_id: s("shard_id"),
    };
    let report = ShardReportSnapshot {
        shard_id: s("shard_id"),
        cycle: -2,
        received_at_unix_ns: -3,
        summary: Some(summary()),
        shortfalls: vec![shortfall()],
    };
    golden.check("ListShardsRequest", &ListShardsRequest {});
    golden.check("ShardRegistryEntry", &entry);
    golden.check("ListShardsResponse", &ListShardsResponse { shards: vec![entry] });
    golden.check("ListDomainAssignmentsRequest", &ListDomainAssignmentsRequest {});
    golden.check("DomainAssignment", &assignment);
    golden.check(
        "ListDomainAssignmentsResponse",
        &ListDomainAssignmentsResponse { assignments: vec![assignment] },
    );
    golden.check("ListShardReportsRequest", &ListShardReportsRequest { shard_id: s("shard_id") });
    golden.check("ShardReportSnapshot", &report);
    golden.check("ListShardReportsResponse", &ListShardReportsResponse { reports: vec![report] });
}

fn summary() -> ShardSummary {
    ShardSummary {
        total_machines: 1001,
        free_machines: 1002,
        per_instance_type_counts: counts(),
        per_zone_counts: counts(),
        provider_address: s("provider_address"),
    }
}

fn shortfall() -> Shortfall {
    Shortfall {
        requirements: vec![requirement()],
        deficit: Some(resources()),
        priority: 1003,
        age_cycles: 1005,
        interruption_penalty_bucket: PenaltyBucket::Pinned.into(),
    }
}

fn instruct_ack() -> InstructAck {
    InstructAck {
        instruction_id: s("instruction_id"),
        outcome: instruct_ack::Outcome::Failed.into(),
        reason: s("reason"),
    }
}

fn instruction(payload: coordinator_instruction::Payload) -> CoordinatorInstruction {
    CoordinatorInstruction {
        coordinator_term: -1,
        sequence_number: -2,
        instruction_id: s("instruction_id"),
        payload: Some(payload),
    }
}

fn assign_domain() -> AssignDomain {
    AssignDomain { topology_key: s("topology_key"), topology_value: s("topology_value") }
}
