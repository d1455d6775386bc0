//! A disk that fails at every possible operation, and power that goes at every possible operation.
//!
//! What is written lies in a cache until it is synced. When the power goes, some of the cache is on the medium and some
//! is not, in no particular order.

use std::sync::{Arc, Mutex};

use bigfleet_record::{OpenError, Opened, Store};
use bigfleet_scenario::seed::Seed;
use bigfleet_shard::{Fact, MachineMemo};
use redb::{BackendError, StorageBackend};

const NOW: i64 = 1_800_000_000_000_000_000;

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It fails and does nothing.
    Refused,
    /// It is done, and reported as failed.
    DoneButReported,
    /// It is done and reported as failed, and the disk is away until it is put back.
    DoneThenAway,
    /// The power goes: nothing more happens, and what was not synced is lost.
    PowerLoss,
    /// The power goes, and a part of what was not synced is on the medium all the same.
    PowerLossInTheMiddle(u64),
}

#[derive(Debug, Default)]
struct Medium {
    cached: Vec<u8>,
    synced: Vec<u8>,
    /// What was written since the last sync, in order.
    pending: Vec<(usize, Vec<u8>)>,
    countdown: Option<(u64, Fault)>,
    away: bool,
    hit: bool,
}

#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<Medium>>);

impl Disk {
    fn open(&self, folder: &std::path::Path) -> Result<Opened, OpenError> {
        let disk = self.clone();
        let existed = !self.0.lock().unwrap().cached.is_empty();
        Store::open_by(folder, NOW, existed, move |builder| builder.create_with_backend(disk.clone()))
    }

    fn arm(&self, operations: u64, fault: Fault) {
        self.0.lock().unwrap().countdown = Some((operations, fault));
    }

    /// Whether the fault has come; the disk works again from here on.
    fn mend(&self, fault: Fault) -> bool {
        let medium = &mut *self.0.lock().unwrap();
        medium.countdown = None;
        medium.away = false;
        if let Fault::PowerLossInTheMiddle(seed) = fault {
            let mut seed = Seed::new(seed);
            let most = medium.cached.len().max(medium.synced.len());
            medium.synced.resize(most, 0);
            for (at, bytes) in std::mem::take(&mut medium.pending) {
                // Sectors arrive whole, each on its own.
                for (index, sector) in bytes.chunks(512).enumerate() {
                    let start = at + index * 512;
                    if seed.below(2) == 0
                        && let Some(place) = medium.synced.get_mut(start..start + sector.len())
                    {
                        place.copy_from_slice(sector);
                    }
                }
            }
        }
        if matches!(fault, Fault::PowerLoss | Fault::PowerLossInTheMiddle(_)) {
            medium.cached.clone_from(&medium.synced);
        }
        medium.pending.clear();
        medium.hit
    }

    /// Does `operation`, unless it is the one that fails.
    fn run<T>(&self, operation: impl FnOnce(&mut Medium) -> std::io::Result<T>) -> std::io::Result<T> {
        let mut medium = self.0.lock().unwrap();
        if medium.away {
            return Err(std::io::Error::other("the disk is away"));
        }
        let fault = match &mut medium.countdown {
            Some((0, fault)) => Some(*fault),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        };
        let Some(fault) = fault else { return operation(&mut medium) };
        medium.countdown = None;
        medium.hit = true;
        medium.away = !matches!(fault, Fault::Refused | Fault::DoneButReported);
        if matches!(fault, Fault::DoneButReported | Fault::DoneThenAway) {
            operation(&mut medium)?;
        }
        Err(std::io::Error::other("the disk has failed"))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> std::io::Result<u64> {
        self.run(|medium| Ok(medium.cached.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.run(|medium| {
            let start = offset as usize;
            let bytes =
                medium.cached.get(start..start + out.len()).ok_or(std::io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.run(|medium| {
            medium.cached.resize(len as usize, 0);
            Ok(())
        })
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.run(|medium| {
            medium.synced.clone_from(&medium.cached);
            medium.pending.clear();
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.run(|medium| {
            let start = offset as usize;
            let place =
                medium.cached.get_mut(start..start + data.len()).ok_or(std::io::ErrorKind::UnexpectedEof)?;
            place.copy_from_slice(data);
            medium.pending.push((start, data.to_vec()));
            Ok(())
        })
    }

    fn try_lock_range(&self, _: std::ops::Bound<u64>, _: std::ops::Bound<u64>) -> Result<bool, BackendError> {
        Err(BackendError::Unsupported)
    }
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
    let mut opened = disk.open(folder.path()).unwrap();
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
        disk.open(folder.path()).unwrap_or_else(|error| panic!("{fault:?} at {operations}: {error}"));
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
            let mut opened = disk.open(folder.path()).unwrap();
            opened.store.commit(&facts(1)).unwrap();
            let mut epoch = opened.epoch;
            drop(opened);
            disk.arm(operations, fault);
            if let Ok(opened) = disk.open(folder.path()) {
                assert!(opened.epoch > epoch);
                epoch = opened.epoch;
                drop(opened);
            }
            let hit = disk.mend(fault);
            let opened =
                disk.open(folder.path()).unwrap_or_else(|error| panic!("{fault:?} at {operations}: {error}"));
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
