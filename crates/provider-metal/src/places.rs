//! Places: how many hosts may be worked on at once, in all and in one rack.
//!
//! A rack has one uplink and one power feed; a fleet has one image registry. So a move waits for a place in its
//! rack, then for one in all. In that order, so that those who wait for a busy rack hold nothing others need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_net::Clock;
use bigfleet_provider_kit::Failure;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places there are.
pub(crate) struct Places {
    all: Arc<Semaphore>,
    racks: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    per_rack: usize,
    clock: Arc<dyn Clock>,
}

/// A place that is held until it is dropped.
pub(crate) struct Place {
    _rack: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Places {
    pub(crate) fn new(all: usize, per_rack: usize, clock: Arc<dyn Clock>) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), racks: Mutex::default(), per_rack, clock }
    }

    /// Waits for a place, at most so long.
    pub(crate) async fn take(&self, rack: &str, longest: Duration) -> Result<Place, Failure> {
        let in_rack = {
            let mut racks = self.racks.lock().expect("no holder panics");
            racks.entry(rack.into()).or_insert_with(|| Arc::new(Semaphore::new(self.per_rack))).clone()
        };
        let both = async {
            let rack = in_rack.acquire_owned().await.expect("it is never closed");
            let all = self.all.clone().acquire_owned().await.expect("it is never closed");
            Place { _rack: rack, _all: all }
        };
        tokio::select! {
            biased;
            place = both => Ok(place),
            () = self.clock.sleep(longest) => Err(Failure(format!(
                "waited {} s for a place: {} moves may be under way in a rack, here {rack:?}, and {} are free in all",
                longest.as_secs(), self.per_rack, self.all.available_permits(),
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_net::VirtualClock;

    use super::*;

    #[tokio::test]
    async fn a_full_rack_makes_its_own_wait_and_nobody_else() {
        let clock = Arc::new(VirtualClock::at(0));
        let places = Places::new(2, 1, clock.clone());
        let first = places.take("a", Duration::from_secs(9)).await.expect("free");
        let waits = places.take("a", Duration::from_secs(9));
        tokio::pin!(waits);
        let other = tokio::select! {
            biased;
            _ = &mut waits => panic!("the rack is full"),
            other = places.take("b", Duration::from_secs(9)) => other.expect("another rack has room"),
        };
        clock.advance(Duration::from_secs(9));
        let reason = waits.await.err().expect("too long").0;
        assert!(reason.starts_with("waited 9 s for a place"), "{reason}");
        drop((first, other));
        places.take("a", Duration::ZERO).await.expect("free again");
    }
}
