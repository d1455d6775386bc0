//! Samples of the messages in `provider.proto`.

use super::{bytes, s, texts};
use crate::Golden;
use bigfleet_proto::v1alpha1::*;

pub(crate) fn check(golden: &mut Golden) {
    golden.check("HostRef", &host());
    golden.check("Resources", &resources());
    golden.check("Machine", &machine());
    golden.check("MachineRef", &MachineRef { id: s("id") });
    golden.check("MachineList", &MachineList { machines: vec![machine()], revision: bytes("revision") });
    golden.check(
        "ListFilter",
        &ListFilter { states: vec![8, 8], max_results: 1004, since_revision: bytes("since_revision") },
    );
    golden.check(
        "CreateRequest",
        &CreateRequest {
            machine_id: s("machine_id"),
            shard_id: s("shard_id"),
            shard_epoch: -4,
            sequence_number: -5,
        },
    );
    golden.check(
        "ConfigureRequest",
        &ConfigureRequest {
            machine_id: s("machine_id"),
            cluster_id: s("cluster_id"),
            bootstrap_blob: bytes("bootstrap_blob"),
            shard_id: s("shard_id"),
            shard_epoch: -5,
            sequence_number: -6,
            shard_metadata: texts(),
        },
    );
    golden.check(
        "DrainRequest",
        &DrainRequest {
            machine_id: s("machine_id"),
            grace_period_seconds: -2,
            shard_id: s("shard_id"),
            shard_epoch: -4,
            sequence_number: -5,
        },
    );
    golden.check(
        "DeleteRequest",
        &DeleteRequest {
            machine_id: s("machine_id"),
            shard_id: s("shard_id"),
            shard_epoch: -3,
            sequence_number: -4,
        },
    );
    golden
        .check("TransitionAck", &TransitionAck { operation_id: s("operation_id"), machine: Some(machine()) });
}

fn host() -> HostRef {
    HostRef { provider: s("provider"), r#ref: s("ref") }
}

pub(crate) fn resources() -> Resources {
    Resources { resources: texts() }
}

fn machine() -> Machine {
    Machine {
        id: s("id"),
        state: MachineState::Failed.into(),
        host: Some(host()),
        instance_type: s("instance_type"),
        zone: s("zone"),
        capacity_type: CapacityType::Spot.into(),
        price_per_hour: 7.5,
        interruption_probability: 8.5,
        resources: Some(resources()),
        labels: texts(),
        last_error: s("last_error"),
        allocatable: Some(resources()),
        cluster: s("cluster"),
        shard_metadata: texts(),
    }
}
