//! What a record carries in each state, failures, and what the provider says of its own accord.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::machine::MachineState;
use bigfleet_proto::convert::machine::Received;
use bigfleet_proto::v1alpha1::ConfigureRequest;
use bigfleet_provider_kit::{Offering, Store, UpdateError};
use tonic::Code;

use crate::cloud::{Cloud, FREE, World, operation};

fn metadata() -> BTreeMap<String, String> {
    let pairs =
        [("k", "v"), ("", "empty key"), ("empty value", ""), ("nul\u{0}", "\u{0}\u{1b}[31m\n"), ("ü", "💡")];
    pairs.into_iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

#[tokio::test]
async fn host_cluster_and_metadata_come_and_go_with_the_state() {
    let world = World::new(1).await;
    let speculative = world.get("m-0").await.unwrap();
    assert!(speculative.host.is_none() && speculative.cluster.is_empty());

    world.cloud.hold();
    let creating = world.create("m-0", FREE).await.unwrap().machine.unwrap();
    assert!(creating.host.is_none());
    world.cloud.release();
    let idle = world.reach("m-0", MachineState::Idle).await;
    assert_eq!(idle.host.as_ref().unwrap().r#ref, "host-of-m-0");
    assert_eq!(idle.host.as_ref().unwrap().provider, "cloud");

    world.cloud.hold();
    let request = ConfigureRequest {
        machine_id: "m-0".into(),
        cluster_id: "shop".into(),
        bootstrap_blob: vec![0, 255],
        shard_metadata: metadata(),
        ..ConfigureRequest::default()
    };
    let configuring = world.configure_with(request).await.unwrap().machine.unwrap();
    assert_eq!(
        (configuring.cluster.as_str(), &configuring.shard_metadata),
        ("shop", &metadata()),
        "from the start"
    );
    world.cloud.release();
    let configured = world.reach("m-0", MachineState::Configured).await;
    assert_eq!((configured.cluster.as_str(), &configured.shard_metadata), ("shop", &metadata()));

    world.cloud.hold();
    let draining = world.drain("m-0", 30, FREE).await.unwrap().machine.unwrap();
    assert_eq!(
        (draining.cluster.as_str(), &draining.shard_metadata),
        ("shop", &metadata()),
        "until it is idle"
    );
    world.cloud.release();
    let idle = world.reach("m-0", MachineState::Idle).await;
    assert!(idle.cluster.is_empty() && idle.shard_metadata.is_empty() && idle.host.is_some());

    world.delete("m-0", FREE).await.unwrap();
    let slot = world.reach("m-0", MachineState::Speculative).await;
    assert_eq!(*slot, speculative, "a slot again, as if nothing had been");
}

#[tokio::test]
async fn every_record_on_the_way_is_one_a_shard_accepts() {
    let world = World::new(1).await;
    let good = |machine: &bigfleet_provider_kit::Machine| {
        let received = Received::try_from(machine).expect("a shard takes it");
        assert!(machine.host.is_none() || !machine.zone.is_empty());
        received
    };
    world.cloud.hold();
    good(world.create("m-0", FREE).await.unwrap().machine.as_ref().unwrap());
    world.cloud.release();
    good(&*world.reach("m-0", MachineState::Idle).await);
    good(world.configure("m-0", "c", FREE).await.unwrap().machine.as_ref().unwrap());
    good(&*world.reach("m-0", MachineState::Configured).await);
    good(world.drain("m-0", 1, FREE).await.unwrap().machine.as_ref().unwrap());
    good(&*world.reach("m-0", MachineState::Idle).await);
    good(world.delete("m-0", FREE).await.unwrap().machine.as_ref().unwrap());
    good(&*world.reach("m-0", MachineState::Speculative).await);
    world.cloud.mood().failures.insert("Create m-0".into(), "no stock".into());
    world.create("m-0", FREE).await.unwrap();
    good(&*world.reach("m-0", MachineState::Failed).await);
}

#[tokio::test]
async fn failed_is_the_end_and_stays_readable() {
    let world = World::new(2).await;
    world.cloud.mood().failures.insert("Create m-0".into(), "no stock".into());
    world.create("m-0", ("s", 1, 1)).await.unwrap();
    let failed = world.reach("m-0", MachineState::Failed).await;
    assert_eq!(failed.last_error, "no stock");
    world.cloud.mood().failures.clear();
    assert_eq!(world.create("m-0", ("s", 1, 2)).await, Err(Code::Internal));
    assert_eq!(world.configure("m-0", "c", ("s", 1, 3)).await, Err(Code::Internal));
    assert_eq!(world.drain("m-0", 0, ("s", 1, 4)).await, Err(Code::Internal));
    assert_eq!(world.delete("m-0", ("s", 1, 5)).await, Err(Code::Internal));
    assert_eq!(
        world.create("m-0", ("s", 1, 5)).await,
        Err(Code::FailedPrecondition),
        "the fence still stands"
    );
    assert_eq!(world.get("m-0").await.unwrap(), *failed);
}

#[tokio::test]
async fn a_failed_configure_and_drain_lose_the_binding_and_keep_the_host() {
    let world = World::new(2).await;
    world.create("m-0", FREE).await.unwrap();
    world.reach("m-0", MachineState::Idle).await;
    world.cloud.mood().failures.insert("Configure m-0".into(), "no network".into());
    world.configure("m-0", "c", FREE).await.unwrap();
    let failed = world.reach("m-0", MachineState::Failed).await;
    assert!(failed.host.is_some() && failed.cluster.is_empty() && failed.shard_metadata.is_empty());
    world.configured("m-1", "c").await;
    world.cloud.mood().failures.insert("Drain m-1".into(), "stuck".into());
    world.drain("m-1", 0, FREE).await.unwrap();
    assert_eq!(world.reach("m-1", MachineState::Failed).await.last_error, "stuck");
}

#[tokio::test]
async fn code_that_panics_fails_its_machine_and_nothing_else() {
    let world = World::new(2).await;
    world.cloud.mood().panics = true;
    world.create("m-0", FREE).await.unwrap();
    let failed = world.reach("m-0", MachineState::Failed).await;
    assert!(failed.last_error.contains("own code"), "{}", failed.last_error);
    world.cloud.mood().panics = false;
    world.create("m-1", FREE).await.unwrap();
    world.reach("m-1", MachineState::Idle).await;
}

#[tokio::test]
async fn sixteen_equal_calls_are_one_operation() {
    let folder = tempfile::tempdir().unwrap();
    // On a disk the calls really overlap: each waits for the commit.
    for store in [Store::memory(), Store::file(folder.path().join("store"))] {
        let world = World::with(Cloud::of(1), store).await;
        world.cloud.hold();
        let answers = join_all((0..16).map(|_| world.create("m-0", FREE)).collect()).await;
        let ids: BTreeSet<&str> = answers.iter().map(operation).collect();
        assert_eq!((answers.len(), ids.len()), (16, 1));
        world.cloud.release();
        world.reach("m-0", MachineState::Idle).await;
        assert_eq!(world.cloud.mood().calls, ["Create m-0"]);
    }
}

#[tokio::test]
async fn sixteen_tokens_at_once_pass_in_rising_order_only() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(Cloud::of(1), Store::file(folder.path().join("store"))).await;
    let answers = join_all((0..16).map(|_| world.create("m-0", ("s", 1, 1))).collect()).await;
    let passed = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(passed, 1, "one token is one call: {answers:?}");
    assert!(answers.iter().all(|answer| answer.is_ok() || *answer == Err(Code::FailedPrecondition)));
}

/// Polls all of them in turn until each is done.
async fn join_all<T>(calls: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut calls: Vec<_> = calls.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = calls.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (call, done) in calls.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(answer) = call.as_mut().poll(cx)
            {
                *done = Some(answer);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_strand_the_machine() {
    let world = World::new(1).await;
    {
        let call = world.create("m-0", FREE);
        tokio::pin!(call);
        // Polled once, so that the call is on its way, then dropped.
        let polled =
            std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_pending())).await;
        assert!(polled);
    }
    world.reach("m-0", MachineState::Idle).await;
}

#[tokio::test]
async fn the_provider_speaks_up_by_itself() {
    let world = World::new(1).await;
    world.configured("m-0", "c").await;
    let handle = world.provider.handle();
    let revision = handle.revision();

    handle.update("m-0", |machine| machine.price_per_hour = 0.7).await.unwrap();
    assert_eq!(world.get("m-0").await.unwrap().price_per_hour, 0.7);
    assert_eq!(handle.revision(), revision + 1);
    handle.update("m-0", |machine| machine.price_per_hour = 0.7).await.unwrap();
    assert_eq!(handle.revision(), revision + 1, "no difference, no revision");

    let lost = |machine: &mut bigfleet_provider_kit::Machine| {
        machine.state = MachineState::Failed.to_wire();
        machine.last_error = "spot machine taken back".into();
    };
    let failed = handle.update("m-0", lost).await.unwrap();
    assert!(failed.cluster.is_empty(), "the binding went with the machine");

    handle.insert(Offering::new("new", "big", "zone-b")).await.unwrap();
    assert!(matches!(handle.insert(Offering::new("new", "big", "b")).await, Err(UpdateError::Exists(_))));
    assert!(matches!(handle.update("nobody", |_| ()).await, Err(UpdateError::Unknown(_))));
    let refused = handle.update("new", |machine| machine.id = "other".into()).await;
    assert!(matches!(refused, Err(UpdateError::Record(_))));
    let refused = handle.update("new", |machine| machine.price_per_hour = -1.0).await;
    assert!(matches!(refused, Err(UpdateError::Record(_))));
    assert_eq!(world.get("new").await.unwrap().price_per_hour, 0.0);
}

#[tokio::test]
async fn an_outcome_that_comes_after_the_machine_was_lost_is_dropped() {
    let world = World::new(1).await;
    world.cloud.hold();
    world.create("m-0", FREE).await.unwrap();
    let lost = |machine: &mut bigfleet_provider_kit::Machine| {
        machine.state = MachineState::Failed.to_wire();
        machine.last_error = "host died".into();
    };
    world.provider.handle().update("m-0", lost).await.unwrap();
    world.cloud.release();
    world.provider.handle().stop(std::time::Duration::from_secs(1)).await;
    assert_eq!(world.get("m-0").await.unwrap().last_error, "host died");
    assert!(
        world.provider.handle().scrape().contains(r#"transitions_total{kind="Create",outcome="late"} 1"#)
    );
}

#[tokio::test]
async fn an_outcome_of_an_earlier_operation_does_not_end_a_later_one() {
    let world = World::new(1).await;
    world.cloud.hold();
    world.cloud.mood().failures.insert("Create m-0".into(), "the first attempt is lost".into());
    world.create("m-0", FREE).await.unwrap();
    while world.cloud.mood().calls.is_empty() {
        tokio::task::yield_now().await;
    }
    world.cloud.mood().failures.clear();
    let withdrawn =
        |machine: &mut bigfleet_provider_kit::Machine| machine.state = MachineState::Speculative.to_wire();
    world.provider.handle().update("m-0", withdrawn).await.unwrap();
    world.create("m-0", FREE).await.unwrap();
    while world.cloud.mood().calls.len() < 2 {
        tokio::task::yield_now().await;
    }
    world.cloud.fail_now.notify_one();
    let late = r#"transitions_total{kind="Create",outcome="late"} 1"#;
    while !world.provider.handle().scrape().contains(late) {
        assert_eq!(world.get("m-0").await.unwrap().state, MachineState::Creating.to_wire());
        tokio::task::yield_now().await;
    }
    world.cloud.release();
    world.provider.handle().stop(std::time::Duration::from_secs(1)).await;
    assert_eq!(world.get("m-0").await.unwrap().state, MachineState::Idle.to_wire());
}
