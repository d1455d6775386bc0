//! The event log: what happened in the simulated cloud, one JSON object a line.
//!
//! In virtual time the same seed and the same calls give the same bytes; that is how runs are compared.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Mutex;

use serde::Serialize;

/// Events kept in memory; older ones are only in the file, if there is one.
const KEPT: usize = 100_000;

/// One event. Everything in it is simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// When, on the cloud's clock.
    pub at_unix_nanos: i64,
    /// What kind of event.
    pub event: &'static str,
    /// Which machine, pool or fault it is about.
    pub about: String,
    /// In words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// All events of a run.
#[derive(Default)]
pub struct EventLog(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    kept: VecDeque<Event>,
    count: u64,
    sink: Option<Box<dyn Write + Send>>,
}

impl std::fmt::Debug for EventLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EventLog({} events)", self.count())
    }
}

impl EventLog {
    /// A log that also writes every event, such as to a file.
    pub fn writing_to(sink: Box<dyn Write + Send>) -> Self {
        Self(Mutex::new(Inner { sink: Some(sink), ..Inner::default() }))
    }

    pub(crate) fn push(
        &self,
        at_unix_nanos: i64,
        event: &'static str,
        about: &str,
        detail: impl Into<String>,
    ) {
        let event = Event { at_unix_nanos, event, about: about.into(), detail: detail.into() };
        let mut inner = self.0.lock().expect("no holder panics");
        inner.count += 1;
        if let Some(sink) = &mut inner.sink
            && let Err(error) = writeln!(sink, "{}", line(&event))
        {
            tracing::error!(%error, "the event log can no longer be written; the cloud goes on without it");
            inner.sink = None;
        }
        if inner.kept.len() == KEPT {
            inner.kept.pop_front();
        }
        inner.kept.push_back(event);
    }

    /// How many events there were.
    pub fn count(&self) -> u64 {
        self.0.lock().expect("no holder panics").count
    }

    /// The events still in memory, oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().expect("no holder panics").kept.iter().cloned().collect()
    }

    /// The events still in memory as JSON lines.
    pub fn lines(&self) -> String {
        self.0.lock().expect("no holder panics").kept.iter().map(|event| line(event) + "\n").collect()
    }
}

fn line(event: &Event) -> String {
    serde_json::to_string(event).expect("an event is plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_events_are_kept_and_all_are_counted() {
        let log = EventLog::default();
        for at in 0..=i64::try_from(KEPT).expect("it is small") {
            log.push(at, "x", "m", "");
        }
        assert_eq!(
            (log.count(), log.events().len(), log.events()[0].at_unix_nanos),
            (KEPT as u64 + 1, KEPT, 1)
        );
        assert!(log.lines().starts_with("{\"at_unix_nanos\":1,\"event\":\"x\",\"about\":\"m\"}\n"));
    }
}
