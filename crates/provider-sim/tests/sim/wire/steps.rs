//! The steps of a move (2.1), in order.

use bigfleet_model::machine::MachineState::{
    self, Configured, Configuring, Creating, Deleting, Draining, Idle, Speculative,
};
use bigfleet_proto::v1alpha1::{ConfigureRequest, MachineRef};
use tonic::Code;

use super::{FREE, MOVES, Move, Socket, code, operation};
use crate::virtual_cloud;

fn during(kind: Move) -> (MachineState, MachineState, MachineState) {
    match kind {
        Move::Create => (Speculative, Creating, Idle),
        Move::Configure => (Idle, Configuring, Configured),
        Move::Drain => (Configured, Draining, Idle),
        Move::Delete => (Idle, Deleting, Speculative),
    }
}

#[tokio::test]
async fn step_1_no_machine_named() {
    let socket = Socket::open(8).await;
    for kind in MOVES {
        assert_eq!(code(&socket.act(kind, "", ("s", 9, 9)).await), Code::InvalidArgument, "{kind:?}");
    }
    let get = socket.client.clone().get(MachineRef::default()).await;
    assert_eq!(virtual_cloud::code(get), Code::InvalidArgument);
}

#[tokio::test]
async fn step_3_the_fence_is_per_shard_and_machine_and_moves_whatever_happens() {
    let socket = Socket::open(32).await;
    let (a, b) = (socket.in_state(0, Speculative).await, socket.in_state(1, Speculative).await);
    assert_eq!(code(&socket.act(Move::Create, &a, ("s", 5, 5)).await), Code::Ok);
    for token in [("s", 5, 5), ("s", 5, 4), ("s", 4, 99), ("s", -1, 0)] {
        assert_eq!(code(&socket.act(Move::Create, &a, token).await), Code::FailedPrecondition, "{token:?}");
    }
    assert_eq!(code(&socket.act(Move::Create, &b, ("s", 1, 1)).await), Code::Ok, "another machine");
    assert_eq!(code(&socket.act(Move::Create, &a, ("t", 1, 1)).await), Code::Ok, "another shard");
    // Refused for its position, and yet the mark has moved.
    assert_eq!(code(&socket.act(Move::Drain, &b, ("s", 7, 7)).await), Code::Internal);
    assert_eq!(code(&socket.act(Move::Create, &b, ("s", 7, 7)).await), Code::FailedPrecondition);
    assert_eq!(code(&socket.act(Move::Create, &b, ("s", 7, 8)).await), Code::Ok);
    // Without a token nobody is fenced.
    assert_eq!(code(&socket.act(Move::Create, &b, FREE).await), Code::Ok);
}

#[tokio::test]
async fn step_4_unknown_machines_come_after_the_fence() {
    let socket = Socket::open(8).await;
    for kind in MOVES {
        let id = format!("nobody-{kind:?}");
        assert_eq!(code(&socket.act(kind, &id, ("s", 3, 3)).await), Code::NotFound, "{kind:?}");
        assert_eq!(code(&socket.act(kind, &id, ("s", 3, 3)).await), Code::FailedPrecondition, "{kind:?}");
    }
    let get = socket.client.clone().get(MachineRef { id: "nobody".into() }).await;
    assert_eq!(virtual_cloud::code(get), Code::NotFound);
}

#[tokio::test]
async fn step_5_a_repeated_call_gets_the_first_answer_again() {
    let socket = Socket::open(64).await;
    for (number, kind) in MOVES.into_iter().enumerate() {
        let (from, under_way, to) = during(kind);
        let id = socket.in_state(number, from).await;
        let first = socket.act(kind, &id, ("s", 1, 100)).await.expect("it may start");
        assert_eq!(first.machine.expect("a snapshot").state, under_way.to_wire(), "{kind:?} is asynchronous");
        let again = operation(socket.act(kind, &id, ("s", 1, 101)).await);
        assert_eq!(again, first.operation_id, "{kind:?} under way");
        socket.reach(&id, to).await;
        let again = operation(socket.act(kind, &id, ("s", 1, 102)).await);
        assert_eq!(again, first.operation_id, "{kind:?} done");
        assert_eq!(socket.get(&id).await.state, to.to_wire(), "nothing restarts");
    }
}

#[tokio::test]
async fn step_5_arguments_are_not_compared() {
    let socket = Socket::open(16).await;
    let id = socket.in_state(0, Configured).await;
    let other = ConfigureRequest {
        machine_id: id.clone(),
        cluster_id: "other".into(),
        ..ConfigureRequest::default()
    };
    let answer = socket.client.clone().configure(other).await.expect("a quiet repeat").into_inner();
    assert_eq!(answer.machine.expect("a snapshot").cluster, "cluster", "the caller sees what holds");
}

#[tokio::test]
async fn step_6_everything_else_is_refused_and_never_as_fenced() {
    let socket = Socket::open(64).await;
    let speculative = socket.in_state(0, Speculative).await;
    let configured = socket.in_state(1, Configured).await;
    let fixed = "p-000007".to_string();
    assert_eq!(socket.get(&fixed).await.state, Idle.to_wire(), "one in eight is there from the start");
    for (id, kind) in [
        (&speculative, Move::Configure),
        (&speculative, Move::Drain),
        (&speculative, Move::Delete),
        (&fixed, Move::Create),
        (&fixed, Move::Drain),
        (&configured, Move::Delete),
    ] {
        let before = socket.get(id).await;
        assert_eq!(code(&socket.act(kind, id, FREE).await), Code::Internal, "{kind:?} of {id}");
        assert_eq!(socket.get(id).await, before, "no partial effect");
    }
}

#[tokio::test]
async fn step_7_every_cycle_has_operations_of_its_own() {
    let socket = Socket::open(16).await;
    let id = socket.in_state(0, Idle).await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        for (kind, to) in [
            (Move::Configure, Configured),
            (Move::Drain, Idle),
            (Move::Delete, Speculative),
            (Move::Create, Idle),
        ] {
            assert!(seen.insert(operation(socket.act(kind, &id, FREE).await)), "{kind:?}");
            socket.reach(&id, to).await;
        }
    }
    assert_eq!(seen.len(), 12);
}

#[tokio::test]
async fn sixteen_equal_calls_at_once_are_one_operation() {
    let socket = Socket::open(16).await;
    let id = socket.in_state(0, Speculative).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let mut client = socket.client.clone();
        let request =
            bigfleet_proto::v1alpha1::CreateRequest { machine_id: id.clone(), ..Default::default() };
        calls.spawn(async move { client.create(request).await.expect("accepted").into_inner().operation_id });
    }
    let ids: std::collections::BTreeSet<String> = calls.join_all().await.into_iter().collect();
    assert_eq!(ids.len(), 1);
}

#[tokio::test]
async fn kind_and_not_target_is_the_key() {
    let socket = Socket::open(16).await;
    let id = socket.in_state(0, Idle).await;
    assert_eq!(code(&socket.act(Move::Drain, &id, FREE).await), Code::Internal, "never drained");
    socket.act(Move::Configure, &id, FREE).await.expect("idle");
    socket.reach(&id, Configured).await;
    let drained = operation(socket.act(Move::Drain, &id, FREE).await);
    socket.reach(&id, Idle).await;
    assert_eq!(
        operation(socket.act(Move::Drain, &id, FREE).await),
        drained,
        "drained before: a quiet repeat"
    );
}
