//! A disk that fails at a chosen operation, in each of several ways, and forgets what was not synced when the power goes.

use std::sync::{Arc, Mutex};

use bigfleet_scenario::seed::Seed;
use redb::{BackendError, StorageBackend};

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It fails and does nothing.
    Refused,
    /// It is done, and reported as failed.
    DoneButReported,
    /// It is done and reported as failed, and the disk is away until it is put back.
    DoneThenAway,
    /// The power goes: nothing more happens, and what was not synced is lost.
    PowerLoss,
    /// The power goes, and a part of what was not synced is on the medium all the same; the number chooses which.
    PowerLossInTheMiddle(u64),
}

#[derive(Debug, Default)]
struct Medium {
    cached: Vec<u8>,
    synced: Vec<u8>,
    /// What was written since the last sync, in order.
    pending: Vec<(usize, Vec<u8>)>,
    /// Operations until the fault.
    countdown: Option<(u64, Fault)>,
    away: bool,
    hit: bool,
}

/// A disk in memory: what is written lies in a cache until it is synced. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<Mutex<Medium>>);

impl Disk {
    fn medium(&self) -> std::sync::MutexGuard<'_, Medium> {
        self.0.lock().expect("no operation panics")
    }

    /// Whether nothing was ever written to it.
    pub fn is_empty(&self) -> bool {
        self.medium().cached.is_empty()
    }

    /// Lets this fault come after so many more operations.
    pub fn arm(&self, operations: u64, fault: Fault) {
        self.medium().countdown = Some((operations, fault));
    }

    /// Whether the fault has come; the disk works again from here on.
    pub fn mend(&self, fault: Fault) -> bool {
        let medium = &mut *self.medium();
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
        let mut medium = self.medium();
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
