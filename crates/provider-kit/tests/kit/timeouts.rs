//! Time-outs, on virtual time.

use std::time::Duration;

use bigfleet_model::machine::MachineState;
use bigfleet_provider_kit::Clock;

use crate::cloud::{FREE, World};

/// Lets tasks run until somebody waits on the clock.
async fn somebody_waits(world: &World) -> i64 {
    loop {
        if let Some(at) = world.clock.next_wake_unix_nanos() {
            return at - world.clock.now_unix_nanos();
        }
        tokio::task::yield_now().await;
    }
}

fn seconds(nanos: i64) -> i64 {
    nanos / 1_000_000_000
}

#[tokio::test]
async fn a_create_that_takes_too_long_fails_and_its_late_success_is_nothing() {
    let world = World::new(1).await;
    world.cloud.hold();
    world.create("m-0", FREE).await.unwrap();
    assert_eq!(seconds(somebody_waits(&world).await), 15 * 60);
    world.clock.advance(Duration::from_mins(15));
    let failed = world.reach("m-0", MachineState::Failed).await;
    assert_eq!(failed.last_error, "Create took longer than 900 s");
    world.cloud.release();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.get("m-0").await.unwrap(), *failed);
}

#[tokio::test]
async fn a_machine_is_configured_only_when_it_is_ready() {
    let world = World::new(1).await;
    world.create("m-0", FREE).await.unwrap();
    world.reach("m-0", MachineState::Idle).await;
    world.cloud.mood().not_ready = true;
    world.configure("m-0", "c", FREE).await.unwrap();
    for _ in 0..5 {
        assert_eq!(seconds(somebody_waits(&world).await), 2, "asked again every two seconds");
        world.clock.advance(Duration::from_secs(2));
        tokio::task::yield_now().await;
        assert_eq!(world.get("m-0").await.unwrap().state, MachineState::Configuring.to_wire());
    }
    world.cloud.mood().not_ready = false;
    somebody_waits(&world).await;
    world.clock.advance(Duration::from_secs(2));
    world.reach("m-0", MachineState::Configured).await;
}

#[tokio::test]
async fn a_machine_that_never_is_ready_fails_at_the_time_out() {
    let world = World::new(1).await;
    world.create("m-0", FREE).await.unwrap();
    world.reach("m-0", MachineState::Idle).await;
    world.cloud.mood().not_ready = true;
    world.configure("m-0", "c", FREE).await.unwrap();
    somebody_waits(&world).await;
    world.clock.advance(Duration::from_mins(15));
    assert_eq!(world.reach("m-0", MachineState::Failed).await.last_error, "Configure took longer than 900 s");
}

#[tokio::test]
async fn a_drain_has_its_grace_on_top() {
    let world = World::new(1).await;
    world.configured("m-0", "c").await;
    world.cloud.hold();
    world.drain("m-0", 600, FREE).await.unwrap();
    assert_eq!(seconds(somebody_waits(&world).await), 15 * 60 + 600);
}

#[tokio::test]
async fn grace_out_of_range_is_cut() {
    let world = World::new(2).await;
    world.configured("m-0", "c").await;
    world.configured("m-1", "c").await;
    world.cloud.hold();
    world.drain("m-0", i64::MIN, FREE).await.unwrap();
    assert_eq!(seconds(somebody_waits(&world).await), 15 * 60);
    world.clock.advance(Duration::from_mins(15));
    world.reach("m-0", MachineState::Failed).await;
    world.drain("m-1", i64::MAX, FREE).await.unwrap();
    assert_eq!(seconds(somebody_waits(&world).await), 15 * 60 + 7 * 24 * 3600);
}
