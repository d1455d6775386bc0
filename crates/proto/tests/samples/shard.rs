//! Samples of the messages in `shard.proto`.

use super::capacity::{requirement, rollup};
use super::provider::resources;
use super::{bytes, s, texts, twice};
use crate::Golden;
use bigfleet_proto::v1alpha1::*;

pub(crate) fn check(golden: &mut Golden) {
    use operator_message::Payload as FromOperator;
    use shard_message::Payload as FromShard;
    for (member, payload) in [
        ("hello", FromOperator::Hello(hello())),
        ("rollup", FromOperator::Rollup(rollup())),
        ("bootstrap_response", FromOperator::BootstrapResponse(bootstrap_response())),
        ("reclaim_ack", FromOperator::ReclaimAck(reclaim_ack())),
    ] {
        golden.check(&format!("OperatorMessage.{member}"), &OperatorMessage { payload: Some(payload) });
    }
    for (member, payload) in [
        ("ack", FromShard::Ack(ack())),
        ("bootstrap_request", FromShard::BootstrapRequest(bootstrap_request())),
        ("reclaim_instruction", FromShard::ReclaimInstruction(reclaim_instruction())),
        ("node_state_update", FromShard::NodeStateUpdate(node_state_update())),
        ("available_capacity", FromShard::AvailableCapacity(available_capacity())),
    ] {
        golden.check(&format!("ShardMessage.{member}"), &ShardMessage { payload: Some(payload) });
    }
    golden.check("Hello", &hello());
    golden.check("BootstrapBlobResponse", &bootstrap_response());
    golden.check("ReclaimAck", &reclaim_ack());
    golden.check("Acknowledgement", &ack());
    golden.check("BootstrapRequest", &bootstrap_request());
    golden.check("ReclaimInstruction", &reclaim_instruction());
    golden.check("NodeStateUpdate", &node_state_update());
    golden.check("Taint", &taint());
    golden.check("AvailableCapacityUpdate", &available_capacity());
}

fn hello() -> Hello {
    Hello { cluster_id: s("cluster_id"), protocol_version: s("protocol_version") }
}

fn bootstrap_response() -> BootstrapBlobResponse {
    BootstrapBlobResponse {
        request_id: s("request_id"),
        user_data: bytes("user_data"),
        ttl_seconds: -3,
        error: s("error"),
    }
}

fn reclaim_ack() -> ReclaimAck {
    ReclaimAck { instruction_id: s("instruction_id"), nodes_started: 1002 }
}

fn ack() -> Acknowledgement {
    Acknowledgement { echo: s("echo"), coordinator_term: -2, shard_epoch: -3 }
}

fn bootstrap_request() -> BootstrapRequest {
    BootstrapRequest {
        request_id: s("request_id"),
        requirements: vec![requirement()],
        cluster_id: s("cluster_id"),
    }
}

fn reclaim_instruction() -> ReclaimInstruction {
    ReclaimInstruction {
        instruction_id: s("instruction_id"),
        nodes: twice("nodes"),
        grace_period_seconds: -3,
        preemptor_priority: 1004,
    }
}

fn node_state_update() -> NodeStateUpdate {
    NodeStateUpdate {
        supersedes_key: s("supersedes_key"),
        machine_id: s("machine_id"),
        cluster_id: s("cluster_id"),
        state: MachineState::Failed.into(),
        node_name: s("node_name"),
        provider_id: s("provider_id"),
        last_error: s("last_error"),
        labels: texts(),
        resources: Some(resources()),
        taints: vec![taint()],
    }
}

fn taint() -> Taint {
    Taint { key: s("key"), value: s("value"), effect: s("effect") }
}

fn available_capacity() -> AvailableCapacityUpdate {
    AvailableCapacityUpdate {
        supersedes_key: s("supersedes_key"),
        requirements: vec![requirement()],
        resources: Some(resources()),
        available_count: 1004,
        confidence: available_capacity_update::Confidence::High.into(),
        cost_per_hour: 6.5,
    }
}
