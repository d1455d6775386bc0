//! Records, metadata (2.4), broken machines, and the sharp edges (9).

use std::collections::BTreeMap;

use bigfleet_model::machine::MachineState::{Configured, Failed, Idle, Speculative};
use bigfleet_proto::convert::machine::Received;
use bigfleet_proto::v1alpha1::{ConfigureRequest, ListFilter, Machine};
use bigfleet_provider_sim::FAULT_LABEL;
use tonic::Code;

use super::{FREE, MOVES, Move, Socket, code};

/// What every record must show in its state.
fn check(machine: &Machine) {
    let state = machine.state;
    let unmade = state == 1 || state == 2;
    assert!(unmade != machine.host.is_some() || state == 8, "host of {machine:?}");
    assert_eq!((4..=6).contains(&state), !machine.cluster.is_empty(), "cluster of {machine:?}");
    assert_eq!(state == 8, !machine.last_error.is_empty(), "error of {machine:?}");
    assert!(!machine.zone.is_empty() && !machine.instance_type.is_empty() && machine.capacity_type > 0);
    Received::try_from(machine).expect("a shard takes it");
    for label in
        ["instance-type", "instance_type", "instanceType", "zone", "availability-zone", "availability_zone"]
    {
        assert!(!machine.labels.contains_key(label), "{label} says again what a field says");
    }
    for label in ["capacity-type", "capacity_type", "capacityType"] {
        assert!(!machine.labels.contains_key(label), "{label} says again what a field says");
    }
}

#[tokio::test]
async fn records_are_right_in_every_state_of_a_life() {
    let socket = Socket::open(16).await;
    let id = socket.in_state(0, Speculative).await;
    check(&socket.get(&id).await);
    for (kind, to) in [
        (Move::Create, Idle),
        (Move::Configure, Configured),
        (Move::Drain, Idle),
        (Move::Delete, Speculative),
    ] {
        let ack = socket.act(kind, &id, FREE).await.expect("it may start");
        check(&ack.machine.expect("a snapshot"));
        check(&socket.reach(&id, to).await);
    }
    for machine in socket.list(ListFilter::default()).await.machines {
        check(&machine);
    }
}

#[tokio::test]
async fn metadata_is_echoed_exactly_and_goes_with_the_binding() {
    let socket = Socket::open(16).await;
    let id = socket.in_state(0, Idle).await;
    let metadata: BTreeMap<String, String> = [
        ("bigfleet.lucy.sh/assigned-priority", "-2147483648"),
        ("bigfleet.lucy.sh/assigned-interruption-penalty-dollars", "0.5"),
        ("bigfleet.lucy.sh/assigned-reclamation-penalty-dollars", "1e+300"),
        ("bigfleet.lucy.sh/assigned-need-fingerprint", "ab\u{1}\u{7f}é🚀"),
        ("bigfleet.lucy.sh/assigned-group", "topology.bigfleet/rack\0job=a,;"),
        ("", ""),
        ("a\0b", "\r\n\t"),
    ]
    .map(|(key, value)| (key.to_string(), value.to_string()))
    .into();
    let request = ConfigureRequest {
        machine_id: id.clone(),
        cluster_id: "c".into(),
        shard_metadata: metadata.clone(),
        ..ConfigureRequest::default()
    };
    let ack = socket.client.clone().configure(request).await.expect("idle").into_inner();
    assert_eq!(
        ack.machine.expect("a snapshot").shard_metadata,
        metadata,
        "from the beginning of the Configure"
    );
    assert_eq!(socket.reach(&id, Configured).await.shard_metadata, metadata);
    let ack = socket.act(Move::Drain, &id, FREE).await.expect("configured");
    assert_eq!(ack.machine.expect("a snapshot").shard_metadata, metadata, "it stays while draining");
    let idle = socket.reach(&id, Idle).await;
    assert!(idle.shard_metadata.is_empty() && idle.cluster.is_empty());
}

#[tokio::test]
async fn a_slot_that_fails_stays_failed_with_its_reason() {
    let socket = Socket::open(16).await;
    let all = socket.list(ListFilter::default()).await.machines;
    let broken = all.iter().find(|machine| machine.labels.contains_key(FAULT_LABEL)).expect("there are some");
    assert_eq!((broken.state, broken.labels[FAULT_LABEL].as_str()), (Speculative.to_wire(), "error"));
    socket.act(Move::Create, &broken.id, FREE).await.expect("accepted, to fail later");
    let failed = socket.reach(&broken.id, Failed).await;
    check(&failed);
    for kind in MOVES {
        let refused = code(&socket.act(kind, &broken.id, FREE).await);
        assert!(![Code::Ok, Code::FailedPrecondition].contains(&refused), "{kind:?}: {refused:?}");
    }
    assert_eq!(socket.get(&broken.id).await, failed, "the first reason stays");
}

#[tokio::test]
async fn edge_2_and_6_negative_and_zero_tokens_are_ordinary() {
    let socket = Socket::open(16).await;
    let id = socket.in_state(0, Speculative).await;
    assert_eq!(code(&socket.act(Move::Create, &id, ("s", -5, -5)).await), Code::Ok);
    assert_eq!(code(&socket.act(Move::Create, &id, ("s", -5, -5)).await), Code::FailedPrecondition);
    assert_eq!(code(&socket.act(Move::Create, &id, ("s", 0, 0)).await), Code::Ok, "a real token, and higher");
    assert_eq!(code(&socket.act(Move::Create, &id, ("s", 0, 0)).await), Code::FailedPrecondition);
    assert_eq!(code(&socket.act(Move::Create, &id, ("", 0, 1)).await), Code::Ok, "a token without a shard");
    assert_eq!(code(&socket.act(Move::Create, &id, ("", 0, 1)).await), Code::FailedPrecondition);
    assert_eq!(code(&socket.act(Move::Create, &id, ("s", i64::MAX, i64::MAX)).await), Code::Ok);
    assert_eq!(
        code(&socket.act(Move::Create, &id, ("s", i64::MIN, i64::MIN)).await),
        Code::FailedPrecondition
    );
}

#[tokio::test]
async fn edge_5_delete_is_supported_and_the_slot_can_be_made_again() {
    let socket = Socket::open(16).await;
    let id = socket.in_state(0, Idle).await;
    let hardware = socket.get(&id).await.host;
    socket.act(Move::Delete, &id, FREE).await.expect("idle");
    assert_eq!(socket.reach(&id, Speculative).await.host, None);
    socket.act(Move::Create, &id, FREE).await.expect("a slot");
    assert_ne!(socket.reach(&id, Idle).await.host, hardware, "new hardware");
}

#[tokio::test]
async fn edge_7_junk_ids_do_not_wash_out_real_marks() {
    let socket = Socket::open(16).await;
    let id = socket.in_state(0, Speculative).await;
    socket.act(Move::Create, &id, ("s", 1, 1)).await.expect("a slot");
    for number in 0..500 {
        let junk = format!("junk-{number}");
        assert_eq!(code(&socket.act(Move::Create, &junk, ("s", 1, 1)).await), Code::NotFound);
    }
    assert_eq!(code(&socket.act(Move::Create, &id, ("s", 1, 1)).await), Code::FailedPrecondition);
}
