//! Each step of a move, and that they come in this order.

use bigfleet_model::machine::MachineState;
use bigfleet_provider_kit::Store;
use tonic::Code;

use crate::cloud::{Cloud, FREE, World, operation, state};

#[tokio::test]
async fn step_1_a_call_names_a_machine() {
    let world = World::new(1).await;
    assert_eq!(world.create("", ("s", 1, 1)).await, Err(Code::InvalidArgument));
    assert_eq!(world.configure("", "c", FREE).await, Err(Code::InvalidArgument));
    assert_eq!(world.drain("", 0, FREE).await, Err(Code::InvalidArgument));
    assert_eq!(world.delete("", FREE).await, Err(Code::InvalidArgument));
    assert_eq!(world.get("").await, Err(Code::InvalidArgument));
}

#[tokio::test]
async fn step_2_delete_is_unimplemented_before_the_fence_is_asked() {
    let mut cloud = Cloud::of(1);
    cloud.can_delete = false;
    let world = World::with(cloud, Store::memory()).await;
    assert_eq!(world.delete("m-0", ("s", 5, 5)).await, Err(Code::Unimplemented));
    assert_eq!(world.delete("", FREE).await, Err(Code::InvalidArgument), "step 1 comes first");
    assert!(world.create("m-0", ("s", 1, 1)).await.is_ok(), "the mark did not move");
}

#[tokio::test]
async fn step_3_the_fence_stands_per_shard_and_machine() {
    let world = World::new(2).await;
    assert!(world.create("m-0", ("s", 2, 5)).await.is_ok());
    assert_eq!(world.create("m-0", ("s", 2, 5)).await, Err(Code::FailedPrecondition), "the same again");
    assert_eq!(world.create("m-0", ("s", 2, 4)).await, Err(Code::FailedPrecondition));
    assert_eq!(world.create("m-0", ("s", 1, 900)).await, Err(Code::FailedPrecondition));
    assert!(world.create("m-1", ("s", 1, 1)).await.is_ok(), "another machine");
    assert!(world.create("m-0", ("t", 1, 1)).await.is_ok(), "another shard");
    assert!(world.create("m-0", ("s", 3, -9)).await.is_ok(), "a newer life");
    assert!(world.create("m-0", FREE).await.is_ok(), "unfenced calls pass");
}

#[tokio::test]
async fn step_3_zero_and_negative_tokens_are_tokens() {
    let world = World::new(1).await;
    assert!(world.create("m-0", ("s", -5, -5)).await.is_ok());
    assert_eq!(world.create("m-0", ("s", -5, -6)).await, Err(Code::FailedPrecondition));
    assert!(world.create("m-0", ("s", 0, 0)).await.is_ok(), "zero is above minus five");
    assert_eq!(world.create("m-0", ("s", 0, 0)).await, Err(Code::FailedPrecondition));
    assert!(world.create("m-0", ("", 0, 1)).await.is_ok(), "no shard name, but a token");
    assert_eq!(world.create("m-0", ("", 0, 1)).await, Err(Code::FailedPrecondition));
}

#[tokio::test]
async fn step_3_the_mark_moves_even_if_the_call_is_then_refused() {
    let world = World::new(1).await;
    assert_eq!(world.drain("m-0", 0, ("s", 1, 7)).await, Err(Code::Internal), "nothing to drain");
    assert_eq!(world.create("m-0", ("s", 1, 7)).await, Err(Code::FailedPrecondition));
    assert_eq!(world.create("nobody", ("s", 1, 7)).await, Err(Code::NotFound));
    assert_eq!(world.create("nobody", ("s", 1, 7)).await, Err(Code::FailedPrecondition), "before not-found");
}

#[tokio::test]
async fn step_4_an_unknown_machine_is_not_found() {
    let world = World::new(1).await;
    assert_eq!(world.create("nobody", FREE).await, Err(Code::NotFound));
    assert_eq!(world.get("nobody").await, Err(Code::NotFound));
}

#[tokio::test]
async fn step_5_a_repeated_call_gets_the_first_answer() {
    let world = World::new(1).await;
    world.cloud.hold();
    let first = world.create("m-0", ("s", 1, 1)).await;
    let again = world.create("m-0", ("s", 1, 2)).await;
    assert_eq!((operation(&again), state(&again)), (operation(&first), MachineState::Creating));
    world.cloud.release();
    world.reach("m-0", MachineState::Idle).await;
    let after = world.create("m-0", ("s", 1, 3)).await;
    assert_eq!((operation(&after), state(&after)), (operation(&first), MachineState::Idle));
    assert_eq!(world.cloud.mood().calls, ["Create m-0"], "nothing was started again");
}

#[tokio::test]
async fn step_5_the_kind_is_the_key_not_the_state() {
    let world = World::new(1).await;
    world.create("m-0", FREE).await.unwrap();
    world.reach("m-0", MachineState::Idle).await;
    assert_eq!(world.drain("m-0", 0, FREE).await, Err(Code::Internal), "idle, but never drained");
    world.configure("m-0", "c", FREE).await.unwrap();
    world.reach("m-0", MachineState::Configured).await;
    let drained = world.drain("m-0", 0, FREE).await;
    world.reach("m-0", MachineState::Idle).await;
    let again = world.drain("m-0", 0, FREE).await;
    assert_eq!(operation(&again), operation(&drained), "idle, and drained before");
}

#[tokio::test]
async fn step_5_arguments_are_not_compared_and_the_snapshot_tells() {
    let world = World::new(1).await;
    world.configured("m-0", "shop").await;
    let other = world.configure("m-0", "bank", FREE).await.unwrap();
    assert_eq!(other.machine.unwrap().cluster, "shop");
}

#[tokio::test]
async fn step_6_a_move_starts_only_where_it_may() {
    let world = World::new(2).await;
    for answer in [
        world.configure("m-0", "c", FREE).await,
        world.drain("m-0", 0, FREE).await,
        world.delete("m-0", FREE).await,
    ] {
        assert_eq!(answer, Err(Code::Internal), "speculative");
    }
    world.configured("m-0", "c").await;
    assert_eq!(world.delete("m-0", FREE).await, Err(Code::Internal), "configured");
    assert_eq!(
        world.create("m-0", FREE).await,
        Err(Code::Internal),
        "create leads to idle, not to configured"
    );
    let before = world.get("m-0").await.unwrap();
    assert_eq!(before.cluster, "c");
    world.create("m-1", FREE).await.unwrap();
    world.reach("m-1", MachineState::Idle).await;
    assert_eq!(
        world.configure("m-1", "", FREE).await,
        Err(Code::InvalidArgument),
        "a cluster without a name"
    );
    assert_eq!(world.get("m-1").await.unwrap().state, MachineState::Idle.to_wire());
}

#[tokio::test]
async fn step_7_each_cycle_has_an_operation_of_its_own() {
    let world = World::new(1).await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let created = world.create("m-0", FREE).await;
        assert_eq!(state(&created), MachineState::Creating);
        assert!(seen.insert(operation(&created).to_string()));
        world.reach("m-0", MachineState::Idle).await;
        let deleted = world.delete("m-0", FREE).await;
        assert_eq!(state(&deleted), MachineState::Deleting);
        assert!(seen.insert(operation(&deleted).to_string()));
        world.reach("m-0", MachineState::Speculative).await;
    }
}

#[tokio::test]
async fn too_many_moves_at_once_are_refused_without_effect() {
    use bigfleet_proto::v1alpha1::CreateRequest;
    use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
    use bigfleet_provider_kit::{Options, Provider, VirtualClock};
    let cloud = Cloud::of(2);
    cloud.hold();
    let mut options = Options::new(std::sync::Arc::new(VirtualClock::at(0)), 1);
    options.max_transitions = 1;
    let provider = Provider::open(cloud.clone(), Store::memory(), options).await.unwrap();
    let create =
        |id: &str| tonic::Request::new(CreateRequest { machine_id: id.into(), ..CreateRequest::default() });
    provider.create(create("m-0")).await.unwrap();
    assert_eq!(provider.create(create("m-1")).await.unwrap_err().code(), Code::ResourceExhausted);
    assert!(provider.create(create("m-0")).await.is_ok(), "a repeated call begins nothing");
    cloud.release();
    provider.handle().wait_for("m-0", |machine| machine.state == MachineState::Idle.to_wire()).await;
    provider.create(create("m-1")).await.unwrap();
}
