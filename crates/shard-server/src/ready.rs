//! Whether the shard does its work: the truth, both ways, with the reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bigfleet_net::{Budget, Clock, nanos};
use bigfleet_shard::{ProviderId, Shard};

use crate::core::Core;
use crate::metrics::{Metrics, Snapshot, Survey};
use crate::session::Sessions;

/// How long the core thread may take to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// How long the disk may take for one commit.
const COMMIT: Duration = Duration::from_secs(10);

/// Answers the questions of the HTTP port.
#[derive(Clone)]
pub(crate) struct Observer {
    pub(crate) core: Core,
    pub(crate) clock: Arc<dyn Clock>,
    /// Real time, in which those who ask live.
    pub(crate) callers: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) sessions: Sessions,
    pub(crate) budget: Budget,
    pub(crate) is_stopping: Arc<AtomicBool>,
}

impl Observer {
    /// Ready, or why not.
    pub(crate) async fn readiness(self) -> Result<(), String> {
        if self.is_stopping.load(Ordering::SeqCst) {
            return Err("the shard is stopping".into());
        }
        if let Some(since) = self.metrics.committing_since() {
            let age = self.clock.now_unix_nanos().saturating_sub(since);
            if age > nanos(COMMIT) {
                return Err(format!("the disk has not finished a commit for {} s", age / 1_000_000_000));
            }
        }
        tokio::select! {
            troubles = self.core.look(troubles) => match troubles {
                Ok(troubles) if troubles.is_empty() => Ok(()),
                Ok(troubles) => Err(troubles.join("; ")),
                Err(gone) => Err(gone.to_string()),
            },
            () = self.callers.sleep(ANSWER) => Err(format!("the shard did not answer within {ANSWER:?}")),
        }
    }

    /// The text Prometheus reads. Without the shard's numbers if it does not answer: old ones would be lies.
    pub(crate) async fn scrape(self) -> String {
        let snapshot = tokio::select! {
            snapshot = self.snapshot() => snapshot,
            () = self.callers.sleep(ANSWER) => None,
        };
        self.metrics.scrape(snapshot.as_ref())
    }

    async fn snapshot(&self) -> Option<Snapshot> {
        let snapshot = self.core.look(Snapshot::of).await.ok()?;
        let (mut survey, mut from) = (Survey::default(), Some(0));
        while let Some(place) = from {
            let next = move |shard: &Shard, _| {
                let next = survey.take(shard, place);
                (survey, next)
            };
            (survey, from) = self.core.look(next).await.ok()?;
        }
        let snapshot = snapshot.with_survey(survey).with_sessions(self.sessions.depths());
        Some(snapshot.with_in_flight(self.budget.in_flight()))
    }
}

/// Why the shard cannot do its work, as far as it knows.
fn troubles(shard: &Shard, now: i64) -> Vec<String> {
    let troubled = shard.providers().iter().enumerate().filter_map(|(index, provider)| {
        let name = &provider.name;
        let error = if provider.last_error.is_empty() {
            String::new()
        } else {
            format!(", last error: {}", provider.last_error)
        };
        match provider.age_nanos(now) {
            None => Some(format!("provider {name} has not been listed yet{error}")),
            Some(age) if !shard.is_provider_fresh(ProviderId(index as u16), now) => {
                let secs = age / 1_000_000_000;
                Some(format!("the listing of provider {name} is {secs} s old{error}"))
            }
            Some(_) => None,
        }
    });
    troubled.collect()
}
