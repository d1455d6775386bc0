//! Nothing acknowledged is lost: killed without warning, started again, asked.

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::{ConfigureRequest, CreateRequest, DrainRequest, ListFilter, MachineRef};
use bigfleet_provider_kit::{CapacityType, Store};
use tonic::Code;

use crate::process::{Process, reach};
use crate::virtual_cloud::{VirtualCloud, code, quiet};

fn create(id: &str, epoch: i64, sequence: i64) -> CreateRequest {
    CreateRequest {
        machine_id: id.into(),
        shard_id: "shard".into(),
        shard_epoch: epoch,
        sequence_number: sequence,
    }
}

fn configure(id: &str, sequence: i64) -> ConfigureRequest {
    ConfigureRequest {
        machine_id: id.into(),
        cluster_id: "cluster".into(),
        shard_id: "shard".into(),
        shard_epoch: 1,
        sequence_number: sequence,
        shard_metadata: [("bigfleet.lucy.sh/assigned-group", "key\0a=b,;"), ("", "")]
            .map(|(key, value)| (key.into(), value.into()))
            .into(),
        ..ConfigureRequest::default()
    }
}

#[tokio::test]
async fn marks_operations_bindings_and_metadata_survive_kill_minus_nine() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let process = Process::standard("127.0.0.1:0", 40, &state);
    let mut client = process.client();
    let (bound, created, moving, unknown) = ("p-000000", "p-000001", "p-000002", "no-such-machine");
    client.create(create(bound, 1, 1)).await.expect("a slot");
    reach(&mut client, bound, MachineState::Idle).await;
    let first = client.configure(configure(bound, 2)).await.expect("idle").into_inner();
    let before = reach(&mut client, bound, MachineState::Configured).await;
    let made = client.create(create(created, 3, 3)).await.expect("a slot").into_inner();
    let idle = reach(&mut client, created, MachineState::Idle).await;
    assert_eq!(code(client.create(create(unknown, 9, 9)).await), Code::NotFound);
    client.create(create(moving, 1, 1)).await.expect("a slot");
    process.kill();

    let process = Process::standard("127.0.0.1:0", 40, &state);
    let mut client = process.client();
    let get = |id: &str| MachineRef { id: id.into() };
    assert_eq!(client.get(get(bound)).await.expect("known").into_inner(), before);
    assert_eq!(client.get(get(created)).await.expect("known").into_inner(), idle);
    let state_of_moving = client.get(get(moving)).await.expect("known").into_inner().state;
    assert_ne!(state_of_moving, MachineState::Creating.to_wire(), "nothing is stuck");
    for (id, epoch, sequence) in [(bound, 1, 2), (created, 3, 3), (unknown, 9, 9), (moving, 1, 1)] {
        assert_eq!(code(client.create(create(id, epoch, sequence)).await), Code::FailedPrecondition, "{id}");
    }
    let again = client.configure(configure(bound, 3)).await.expect("a repeat").into_inner();
    assert_eq!(again.operation_id, first.operation_id);
    let again = client.create(create(created, 3, 4)).await.expect("a repeat").into_inner();
    assert_eq!(again.operation_id, made.operation_id);
    let fresh = client.create(create("p-000003", 1, 1)).await.expect("a slot").into_inner();
    assert!(
        ![&first.operation_id, &made.operation_id].contains(&&fresh.operation_id),
        "ids are never used again"
    );
    let request = DrainRequest { machine_id: bound.into(), ..DrainRequest::default() };
    client.drain(request).await.expect("a binding can be undone");
    let drained = reach(&mut client, bound, MachineState::Idle).await;
    assert!(drained.cluster.is_empty() && drained.shard_metadata.is_empty());
}

#[tokio::test]
async fn killed_again_and_again_no_answer_is_taken_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let mut told: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
    let mut sequence = 0;
    for round in 0..6 {
        let process = Process::standard("127.0.0.1:0", 60, &state);
        let mut client = process.client();
        for (id, last) in &told {
            assert_eq!(
                code(client.create(create(id, 1, *last)).await),
                Code::FailedPrecondition,
                "round {round}, {id}"
            );
        }
        let listed = client.list(ListFilter::default()).await.expect("it answers").into_inner().machines;
        assert_eq!(listed.len(), 60 + 8 + 4);
        assert!(listed.iter().all(|m| ![2, 4, 6, 7].contains(&m.state)), "nothing is stuck");
        for number in 0..=round * 7 {
            let id = format!("p-{:06}", (number * 11 + round) % 60);
            sequence += 1;
            // Whatever the answer, it was given: the mark has moved.
            let _ = client.create(create(&id, 1, sequence)).await;
            told.insert(id, sequence);
        }
        process.kill();
    }
}

#[tokio::test]
async fn a_notice_is_kept_and_pools_know_what_is_out() {
    let mut config = quiet(2000);
    config.models.pools.on = true;
    config.models.pools.depth = 6.0;
    config.models.pools.refill_per_hour = 0.0;
    let store = Store::memory();
    let cloud = VirtualCloud::open_on(config.clone(), store.clone()).await;
    let wanted = |m: &bigfleet_proto::v1alpha1::Machine| {
        m.instance_type == "std-4" && m.zone == "zone-a" && m.capacity_type == CapacityType::Spot.to_wire()
    };
    let slots = cloud.ids(wanted);
    for id in &slots {
        cloud.create(id).await.expect("a slot");
    }
    cloud.pass(600).await;
    let made: Vec<_> = slots.iter().filter(|id| cloud.state(id) == MachineState::Idle).collect();
    assert!(!made.is_empty() && made.len() <= 6, "the pool is empty now: {}", made.len());
    cloud.fault(&format!("spot-reclaim machine={}", made[0]));
    cloud.pass(60).await;
    let machine = cloud.get(made[0]);
    cloud.stop().await;

    let cloud = VirtualCloud::open_on(config, store).await;
    assert_eq!(cloud.get(made[0]), machine);
    let left = cloud.ids(|m| wanted(m) && m.state == MachineState::Speculative.to_wire());
    let other = cloud.ids(|m| {
        m.instance_type == "std-4"
            && m.zone == "zone-a"
            && m.capacity_type == CapacityType::OnDemand.to_wire()
    });
    assert!(left.is_empty());
    cloud.create(&other[0]).await.expect("a slot");
    cloud.pass(100).await;
    assert!(cloud.get(&other[0]).last_error.contains("insufficient capacity"), "what is out is out");
    cloud.pass(100).await;
    assert_eq!(cloud.state(made[0]), MachineState::Failed, "the notice still holds");
}
