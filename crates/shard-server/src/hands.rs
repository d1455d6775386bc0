//! What carries out effects: each is passed to whoever does it, and nobody waits.

use std::sync::mpsc::TrySendError;

use bigfleet_model::text::shown;
use bigfleet_shard::{Effect, ProviderId, Urgency};
use tokio::runtime::Handle;

use crate::commit::Hands;
use crate::core::Core;
use crate::metrics::Metrics;
use crate::provider::Provider;
use crate::recorder;
use crate::session::Sessions;

/// Everybody who does something for the shard.
pub(crate) struct Staff {
    pub(crate) runtime: Handle,
    pub(crate) core: Core,
    pub(crate) providers: Vec<Provider>,
    pub(crate) sessions: Sessions,
    pub(crate) recorder: Option<recorder::Queue>,
    pub(crate) metrics: Metrics,
}

impl Staff {
    fn provider(&self, ProviderId(index): ProviderId) -> Provider {
        self.providers[usize::from(index)].clone()
    }
}

impl Hands for Staff {
    fn begin(&self, effect: Effect) {
        match effect {
            Effect::List { call, provider, since, timeout_nanos } => {
                self.runtime.spawn(self.provider(provider).list(call, since, timeout_nanos));
            }
            Effect::Call { call, provider, request, sequence, timeout_nanos } => {
                self.runtime.spawn(self.provider(provider).call(call, request, sequence, timeout_nanos));
            }
            Effect::Send { session, frame } => self.sessions.send(session, frame),
            Effect::HangUp { session, why } => self.sessions.hang_up(session, why),
            Effect::Record(record) => {
                let Some(recorder) = &self.recorder else { return };
                match recorder.try_send(record) {
                    Ok(()) => {}
                    Err(TrySendError::Full(record)) => {
                        self.metrics.record_lost();
                        tracing::warn!(
                            cycle = record.cycle,
                            "the decision record cannot keep up and has a gap"
                        );
                        ask_for_full(&self.runtime, &self.core);
                    }
                    // The thread has died, and the server is about to end with that word.
                    Err(TrySendError::Disconnected(record)) => {
                        self.metrics.record_lost();
                        tracing::error!(cycle = record.cycle, "nobody writes the decision record any more");
                    }
                }
            }
            Effect::Say(notice) => {
                self.metrics.said(&notice);
                // Names and errors in it came from outside; a log is read on terminals.
                let (code, text) = (notice.code, shown(&notice.text));
                match notice.urgency {
                    Urgency::Info => tracing::info!(code, "{text}"),
                    Urgency::Warning => tracing::warn!(code, "{text}"),
                    Urgency::Alarm => tracing::error!(code, alarm = true, "{text}"),
                }
            }
        }
    }
}

/// Asks the shard to put its whole input on the record.
pub(crate) fn ask_for_full(runtime: &Handle, core: &Core) {
    let core = core.clone();
    // A shard that stops records nothing any more.
    runtime.spawn(async move { core.act(|shard, _, _| shard.want_full_record()).await });
}
