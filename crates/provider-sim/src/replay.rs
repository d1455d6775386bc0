//! Replays a scenario in virtual time: hours in seconds, and the same events every time.
//!
//! The load is put on the cloud by the simplest buyer that could work: it takes the cheapest machines that hold
//! what is missing and gives back what is too much. It is no autoscaler; it is there so that a scenario can be
//! seen, compared and reproduced without one.

mod buyer;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_provider_kit::{Clock as _, Store, VirtualClock};

use crate::event::EventLog;
use crate::scenario::Scenario;
use crate::sim::{Config, OpenError, Sim};
use crate::span::Span;

use buyer::Buyer;
pub use buyer::Summary;

/// When replays begin: 2026-11-15 00:00 UTC.
pub const START_UNIX_NANOS: i64 = 1_794_700_800_000_000_000;
/// How often the buyer looks.
const LOOK: Span = Span::from_secs(10);
/// How often everybody gets a turn before time moves on. Work that is ready runs to its next wait in one turn;
/// the longest chain of tasks waking each other is far shorter.
const TURNS: usize = 64;

/// Lets a span of virtual time go by, moment by moment. Needs a runtime of one thread, whose tasks all wait for
/// this clock or for each other: then the order of events depends on nothing else.
pub async fn pass(clock: &VirtualClock, span: Duration) {
    let end = clock.now_unix_nanos().saturating_add(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX));
    loop {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
        let now = clock.now_unix_nanos();
        let next = clock.next_wake_unix_nanos().map_or(end, |wake| wake.min(end));
        if next > now {
            clock.advance(Duration::from_nanos(next.abs_diff(now)));
        } else if now >= end {
            return;
        }
    }
}

/// What a replay gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Every event, as JSON lines.
    pub events: String,
    /// What it came to.
    pub summary: Summary,
}

/// Plays a scenario from beginning to end. The scenario's seed and faults take the place of the configuration's.
pub fn replay(scenario: &Scenario, config: Config) -> Result<Replay, OpenError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime needs only memory");
    runtime.block_on(async {
        let clock = Arc::new(VirtualClock::at(START_UNIX_NANOS));
        let config = Config { seed: scenario.seed, faults: scenario.faults.clone(), ..config };
        let events = Pages::default();
        let log = Arc::new(EventLog::writing_to(Box::new(events.clone())));
        let sim = Sim::open_with(config, Store::memory(), clock.clone(), log).await?;
        let mut buyer = Buyer::new(&sim, &scenario.load);
        let mut at = Span::default();
        while at < scenario.lasts {
            buyer.look(at).await;
            let step = Span::from_nanos((scenario.lasts.nanos() - at.nanos()).min(LOOK.nanos()));
            pass(&clock, step.duration()).await;
            buyer.pay(step);
            at = Span::from_nanos(at.nanos() + step.nanos());
        }
        Ok(Replay { events: events.text(), summary: buyer.summary(at) })
    })
}

/// Everything that was written, however long.
#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Vec<u8>>>);

impl Pages {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no holder panics")).into_owned()
    }
}

impl Write for Pages {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no holder panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
