//! A disk that fails at every possible operation, and power that goes at every possible operation.
//!
//! What is written lies in a cache until it is synced. The sweep lets one operation fail, in each of several
//! ways, then compares what callers were told with what a restart finds.

use bigfleet_model::machine::MachineState;
use bigfleet_provider_kit::Store;
use bigfleet_testkit::{Disk, Fault};
use tonic::Code;

use crate::cloud::{Cloud, FREE, World};

fn store(disk: &Disk) -> Store {
    let disk = disk.clone();
    Store::opened_by("(test disk)", move |builder| builder.create_with_backend(disk.clone()))
}

/// What came of one fault.
struct Outcome {
    /// The fault came before the Create was over.
    hit: bool,
    /// The Create was acknowledged all the same.
    acknowledged: bool,
    /// The provider asked for a restart.
    diverged: bool,
}

/// One Create with a fault `operations` into it, then a second one after the disk is mended, then a restart.
/// Tells what came of it.
async fn strike(operations: u64, fault: Fault) -> Outcome {
    let disk = Disk::default();
    let cloud = Cloud::of(3);
    let world = World::with(cloud.clone(), store(&disk)).await;
    world.cloud.hold();
    world.create("m-0", ("s", 1, 1)).await.expect("the disk works");
    disk.arm(operations, fault);
    let struck = world.create("m-1", ("s", 1, 1)).await;
    let seen = world.get("m-1").await.unwrap().state;
    let expected = if struck.is_ok() { MachineState::Creating } else { MachineState::Speculative };
    assert_eq!(seen, expected.to_wire(), "{fault:?} at {operations}: told {struck:?}");
    let (hit, later) = if fault == Fault::PowerLoss {
        // The process is gone with the power, before the disk is back.
        world.provider.handle().stop(std::time::Duration::ZERO).await;
        (disk.mend(fault), None)
    } else {
        let hit = disk.mend(fault);
        let later = world.create("m-2", FREE).await;
        world.provider.handle().stop(std::time::Duration::ZERO).await;
        (hit, Some(later))
    };
    drop(world);

    let world = World::with(cloud, store(&disk)).await;
    let after = |state: i32| MachineState::from_wire(state).unwrap() == MachineState::Failed;
    assert!(after(world.get("m-0").await.unwrap().state), "{fault:?} at {operations}: m-0 was acknowledged");
    let m1 = after(world.get("m-1").await.unwrap().state);
    if struck.is_ok() {
        assert!(m1, "{fault:?} at {operations}: m-1 was acknowledged");
    } else if fault != Fault::PowerLoss && later.as_ref().is_some_and(Result::is_ok) {
        assert!(!m1, "{fault:?} at {operations}: m-1 was refused and the provider went on");
    }
    if struck.is_ok() {
        assert_eq!(
            world.create("m-1", ("s", 1, 1)).await,
            Err(Code::FailedPrecondition),
            "its mark is there"
        );
    }
    let diverged = matches!(later, Some(Err(_)));
    match later {
        Some(Ok(_)) => assert!(after(world.get("m-2").await.unwrap().state), "m-2 was acknowledged"),
        // Only where a refused commit turned out to be on disk does the provider ask for a restart.
        Some(Err(code)) => {
            assert_eq!((code, fault, m1), (Code::Unavailable, Fault::DoneThenAway, true), "at {operations}");
        }
        None => {}
    }
    Outcome { hit, acknowledged: struck.is_ok(), diverged }
}

/// Strikes at every operation; returns how often the Create was acknowledged all the same, and how often the
/// provider asked for a restart.
async fn sweep(fault: Fault) -> (usize, usize) {
    let (mut acknowledged, mut diverged) = (0, 0);
    for operations in 0..500 {
        let outcome = strike(operations, fault).await;
        if !outcome.hit {
            assert!(operations > 3, "{fault:?}: only {operations} operations were struck");
            return (acknowledged, diverged);
        }
        acknowledged += usize::from(outcome.acknowledged);
        diverged += usize::from(outcome.diverged);
    }
    panic!("a Create takes a bounded number of disk operations");
}

#[tokio::test]
async fn a_disk_that_refuses_once_at_any_point() {
    let (_, diverged) = sweep(Fault::Refused).await;
    assert_eq!(diverged, 0, "the provider goes on by itself");
}

#[tokio::test]
async fn a_disk_that_does_it_and_says_no_at_any_point() {
    let (acknowledged, diverged) = sweep(Fault::DoneButReported).await;
    assert!(acknowledged > 0, "a commit that is there has succeeded, whatever the disk said");
    assert_eq!(diverged, 0, "the provider goes on by itself");
}

#[tokio::test]
async fn a_disk_that_goes_away_at_any_point() {
    let (_, diverged) = sweep(Fault::DoneThenAway).await;
    assert!(diverged > 0, "a refused commit that is there after all is noticed");
}

#[tokio::test]
async fn power_that_goes_at_any_point() {
    sweep(Fault::PowerLoss).await;
}
