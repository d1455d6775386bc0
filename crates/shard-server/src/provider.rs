//! One provider: calls to it, their deadlines, and what its answers mean.
//!
//! Nothing is retried here. The shard decides what to try again, with a new sequence number; whoever calls twice with
//! one number gets the call fenced off.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_border::provider::{DigestKey, Lister, Outgoing, Token, meaning, outgoing};
use bigfleet_net::Clock;
use bigfleet_proto::transport::{MESSAGE_LIMIT_BYTES, code_name};
use bigfleet_shard::{CallError, CallId, Event, Request};
use bytes::Bytes;
use tonic::Status;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tracing::Instrument;

use crate::core::Core;
use crate::metrics::Metrics;
use crate::raw::Raw;

mod list;
mod output;

pub(crate) use output::Asker;

/// A provider as its clients see it.
#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

struct Inner {
    name: Arc<str>,
    shard_id: String,
    epoch: i64,
    channel: Mutex<Channel>,
    core: Core,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    lister: Mutex<Lister>,
}

impl Provider {
    pub(crate) fn new(
        name: Arc<str>,
        (shard_id, epoch): (&str, i64),
        channel: Channel,
        core: Core,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
    ) -> Self {
        Self(Arc::new(Inner {
            name,
            shard_id: shard_id.into(),
            epoch,
            channel: Mutex::new(channel),
            core,
            clock,
            metrics,
            lister: Mutex::new(Lister::new(digest_key())),
        }))
    }

    /// Calls about one machine.
    pub(crate) async fn call(self, call: CallId, request: Request, sequence: i64, timeout_nanos: i64) {
        let name = request.name();
        let Inner { shard_id, epoch, .. } = &*self.0;
        let Outgoing { path, body } = outgoing(request, Token { shard_id, epoch: *epoch, sequence });
        let answered = self.within(name, timeout_nanos, self.unary(path, body)).await;
        let event = match answered.and_then(|bytes| Outgoing::answer(path, &bytes)) {
            Ok(machine) => Event::Answered { call, machine },
            Err(status) => {
                let error = meaning(&status);
                self.failed(name, &error);
                Event::Failed { call, error }
            }
        };
        self.tell(event).await;
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// It serves elsewhere from now on. Calls under way end where they began.
    pub(crate) fn moved_to(&self, channel: Channel) {
        *self.0.channel.lock().expect("no holder panics") = channel;
    }

    async fn client(&self, limit_bytes: usize) -> Result<Grpc<Channel>, Status> {
        let channel = self.0.channel.lock().expect("no holder panics").clone();
        let mut client = Grpc::new(channel).max_decoding_message_size(limit_bytes);
        client.ready().await.map_err(|error| Status::from_error(error.into()))?;
        Ok(client)
    }

    async fn unary(&self, path: &'static str, body: Bytes) -> Result<Bytes, Status> {
        let mut client = self.client(MESSAGE_LIMIT_BYTES).await?;
        let path = PathAndQuery::from_static(path);
        Ok(client.unary(tonic::Request::new(body), path, Raw).await?.into_inner())
    }

    /// An answer, or why there is none, within a deadline; measured.
    async fn within<T>(
        &self,
        method: &'static str,
        timeout_nanos: i64,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let Inner { name, clock, metrics, .. } = &*self.0;
        let begun = clock.now_unix_nanos();
        let timeout = Duration::from_nanos(timeout_nanos.max(0).unsigned_abs());
        let span =
            tracing::info_span!("provider_call", provider = &**name, method, code = tracing::field::Empty);
        let answered = async {
            tokio::select! {
                answered = answer => answered,
                () = clock.sleep(timeout) => Err(Status::deadline_exceeded(format!("no answer within {timeout:?}"))),
            }
        };
        let answered = answered.instrument(span.clone()).await;
        let code = answered.as_ref().map_or_else(Status::code, |_| tonic::Code::Ok);
        span.record("code", code_name(code));
        metrics.called(name, method, code_name(code), clock.now_unix_nanos() - begun);
        answered
    }

    /// Tells whoever reads logs that a call failed.
    fn failed(&self, method: &'static str, error: &CallError) {
        tracing::info!(provider = &*self.0.name, method, %error, "a call to a provider failed");
    }

    async fn tell(&self, event: Event) {
        // A shard that stops needs no answers any more; the next life asks again.
        let _ = self.0.core.tell(event).await;
    }
}

/// Chosen at random for each provider and life.
fn digest_key() -> DigestKey {
    #[expect(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "whoever could foresee it could hide a change; what is decided does not depend on it"
    )]
    let random = std::hash::RandomState::new();
    DigestKey::new(|index| random.hash_one(index))
}
