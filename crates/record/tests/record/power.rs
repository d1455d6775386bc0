//! A disk that fails at every possible operation, and power that goes at every possible operation.
//!
//! When the power goes, some of what was not synced is on the medium and some is not, in no particular order.

use bigfleet_record::{OpenError, Opened, Store};
use bigfleet_shard::{Fact, MachineMemo};
use bigfleet_testkit::{Disk, Fault};

const NOW: i64 = 1_800_000_000_000_000_000;

fn open(disk: &Disk, folder: &std::path::Path) -> Result<Opened, OpenError> {
    let backend = disk.clone();
    let existed = !disk.is_empty();
    Store::open_by(folder, NOW, existed, move |builder| builder.create_with_backend(backend.clone()))
}

fn facts(number: u64) -> Vec<Fact> {
    let memo =
        |since: u64| Some(MachineMemo { idle_since: Some(since.cast_signed()), ..MachineMemo::default() });
    let mut facts = vec![Fact::Cycle(number)];
    facts.extend((0..30).map(|n| Fact::Machine(format!("machine-{n:03}").into(), memo(number))));
    facts
}

/// Commits, with a fault `operations` into the second commit; then, unless the power went, the same facts again and newer
/// ones; then a new life. Tells whether the fault came.
fn strike(operations: u64, fault: Fault) -> bool {
    let folder = crate::folder();
    let disk = Disk::default();
    let mut opened = open(&disk, folder.path()).unwrap();
    let epoch = opened.epoch;
    opened.store.commit(&facts(1)).unwrap();
    disk.arm(operations, fault);
    let struck = opened.store.commit(&facts(2));
    let hit;
    let mut least = if struck.is_ok() { 2 } else { 1 };
    let mut most = 2;
    if matches!(fault, Fault::PowerLoss | Fault::PowerLossInTheMiddle(_)) {
        drop(opened);
        hit = disk.mend(fault);
    } else {
        hit = disk.mend(fault);
        if struck.is_err() {
            opened
                .store
                .commit(&facts(2))
                .unwrap_or_else(|error| panic!("{fault:?} at {operations}: {error}"));
        }
        opened.store.commit(&facts(3)).unwrap_or_else(|error| panic!("{fault:?} at {operations}: {error}"));
        (least, most) = (3, 3);
        drop(opened);
    }
    let opened =
        open(&disk, folder.path()).unwrap_or_else(|error| panic!("{fault:?} at {operations}: {error}"));
    assert!(opened.epoch > epoch);
    let cycle = opened.memory.cycle;
    assert!(
        (least..=most).contains(&cycle),
        "{fault:?} at {operations}: {struck:?}, and commit {cycle} was found"
    );
    assert_eq!(opened.memory.machines.len(), 30);
    for memo in opened.memory.machines.values() {
        assert_eq!(
            memo.idle_since,
            Some(cycle.cast_signed()),
            "{fault:?} at {operations}: a commit is all or nothing"
        );
    }
    hit
}

/// Strikes at every operation of a commit.
fn sweep(fault: Fault) {
    for operations in 0..500 {
        if !strike(operations, fault) {
            assert!(operations > 3, "{fault:?}: only {operations} operations were struck");
            return;
        }
    }
    panic!("a commit takes a bounded number of disk operations");
}

#[test]
fn a_disk_that_refuses_once_at_any_point() {
    sweep(Fault::Refused);
}

#[test]
fn a_disk_that_does_it_and_says_no_at_any_point() {
    sweep(Fault::DoneButReported);
}

#[test]
fn a_disk_that_goes_away_at_any_point() {
    sweep(Fault::DoneThenAway);
}

#[test]
fn power_that_goes_at_any_point() {
    sweep(Fault::PowerLoss);
    for seed in 0..30 {
        sweep(Fault::PowerLossInTheMiddle(seed));
    }
}

/// The same while a life begins: the epoch that was given out before is never given out again.
#[test]
fn power_that_goes_while_a_life_begins() {
    for fault in [
        Fault::PowerLoss,
        Fault::PowerLossInTheMiddle(1),
        Fault::PowerLossInTheMiddle(2),
        Fault::DoneThenAway,
    ] {
        for operations in 0..500 {
            let folder = crate::folder();
            let disk = Disk::default();
            let mut opened = open(&disk, folder.path()).unwrap();
            opened.store.commit(&facts(1)).unwrap();
            let mut epoch = opened.epoch;
            drop(opened);
            disk.arm(operations, fault);
            if let Ok(opened) = open(&disk, folder.path()) {
                assert!(opened.epoch > epoch);
                epoch = opened.epoch;
                drop(opened);
            }
            let hit = disk.mend(fault);
            let opened = open(&disk, folder.path())
                .unwrap_or_else(|error| panic!("{fault:?} at {operations}: {error}"));
            assert!(opened.epoch > epoch, "{fault:?} at {operations}");
            assert_eq!(opened.memory.cycle, 1, "{fault:?} at {operations}");
            if !hit {
                assert!(operations > 10);
                break;
            }
            assert!(operations < 499, "opening takes a bounded number of disk operations");
        }
    }
}
