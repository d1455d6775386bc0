//! One provider: calls to it, their deadlines, and what its answers mean.
//!
//! Nothing is retried here. The shard decides what to try again, with a new sequence number; whoever calls twice with
//! one number gets the call fenced off.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::Clock;
use bigfleet_proto::transport::{self, MESSAGE_LIMIT_BYTES};
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineRef,
};
use bigfleet_shard::{CallError, CallErrorKind, CallId, Event, ListEnd, Request};
use bytes::Bytes;
use tonic::Status;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tracing::Instrument;

use crate::core::Core;
use crate::listing::{Listing, told};
use crate::metrics::Metrics;
use crate::raw::RawAnswer;

mod status;

pub(crate) use bigfleet_proto::transport::code_name;
pub(crate) use status::meaning;

/// How many records the shard is handed at once, so that others get a turn in between.
const RECORDS_PER_PART: usize = 2048;
const LIST: PathAndQuery = PathAndQuery::from_static("/bigfleet.v1alpha1.CapacityProvider/List");

/// From this size on an answer is split on a thread of its own: a whole fleet takes as long as many small calls.
const LARGE_BYTES: usize = 1 << 20;

/// A provider as its clients see it.
#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

struct Inner {
    name: Arc<str>,
    shard_id: String,
    epoch: i64,
    channel: Channel,
    core: Core,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
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
        Self(Arc::new(Inner { name, shard_id: shard_id.into(), epoch, channel, core, clock, metrics }))
    }

    /// Lists the machines and hands them to the shard in parts.
    pub(crate) async fn list(self, call: CallId, since: Arc<[u8]>, timeout_nanos: i64) {
        let filter = ListFilter { since_revision: since.to_vec(), ..ListFilter::default() };
        let listed = self.within("List", timeout_nanos, self.fetch(filter)).await;
        let split = match listed {
            Ok(body) => split(body).await,
            Err(error) => Err(error),
        };
        let listing = match split {
            Ok(listing) => listing,
            Err(error) => return self.tell(Event::Failed { call, error }).await,
        };
        let mut start = 0;
        loop {
            let next = (start + RECORDS_PER_PART).min(listing.len());
            let is_last = next == listing.len();
            let event = Event::Listed {
                call,
                records: Box::new(listing.part(start..next)),
                end: is_last.then(|| ListEnd { revision: listing.revision.clone() }),
            };
            // One part at a time: a large listing must not fill the queue that sessions use as well.
            if self.0.core.tell_and_wait(event).await.is_err() || is_last {
                return;
            }
            start = next;
        }
    }

    async fn fetch(&self, filter: ListFilter) -> Result<Bytes, Status> {
        let mut client =
            tonic::client::Grpc::new(self.0.channel.clone()).max_decoding_message_size(MESSAGE_LIMIT_BYTES);
        client.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let request = tonic::Request::new(filter);
        Ok(client.unary(request, LIST, RawAnswer::default()).await?.into_inner())
    }

    /// Calls about one machine.
    pub(crate) async fn call(self, call: CallId, request: Request, sequence: i64, timeout_nanos: i64) {
        let name = request.name();
        let event = match self.within(name, timeout_nanos, self.ask(request, sequence)).await {
            Ok(machine) => Event::Answered { call, machine: machine.as_ref().map(told) },
            Err(error) => Event::Failed { call, error },
        };
        self.tell(event).await;
    }

    async fn ask(&self, request: Request, sequence_number: i64) -> Result<Option<Machine>, Status> {
        let Inner { shard_id, epoch, channel, .. } = &*self.0;
        let (shard_id, shard_epoch) = (shard_id.clone(), *epoch);
        let mut client = transport::provider_client(channel.clone());
        let ack = match request {
            Request::Get { machine } => {
                return client.get(MachineRef { id: machine.into() }).await.map(|got| Some(got.into_inner()));
            }
            Request::Create { machine } => {
                let machine_id = machine.into();
                client.create(CreateRequest { machine_id, shard_id, shard_epoch, sequence_number }).await?
            }
            Request::Configure { machine, cluster, blob, metadata } => {
                let request = ConfigureRequest {
                    machine_id: machine.into(),
                    cluster_id: cluster.to_string(),
                    bootstrap_blob: blob.to_vec(),
                    shard_id,
                    shard_epoch,
                    sequence_number,
                    shard_metadata: metadata,
                };
                client.configure(request).await?
            }
            Request::Drain { machine, grace_secs } => {
                let request = DrainRequest {
                    machine_id: machine.into(),
                    grace_period_seconds: grace_secs,
                    shard_id,
                    shard_epoch,
                    sequence_number,
                };
                client.drain(request).await?
            }
            Request::Delete { machine } => {
                let machine_id = machine.into();
                client.delete(DeleteRequest { machine_id, shard_id, shard_epoch, sequence_number }).await?
            }
        };
        Ok(ack.into_inner().machine)
    }

    /// An answer, or what its absence means, within a deadline; measured.
    async fn within<T>(
        &self,
        method: &'static str,
        timeout_nanos: i64,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, CallError> {
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
        answered.map_err(|status| {
            let error = meaning(&status);
            tracing::info!(provider = &**name, method, %error, "a call to a provider failed");
            error
        })
    }

    async fn tell(&self, event: Event) {
        // A shard that stops needs no answers any more; the next life asks again.
        let _ = self.0.core.tell(event).await;
    }
}

async fn split(body: Bytes) -> Result<Listing, CallError> {
    let refused = |why: &dyn std::fmt::Display| CallError {
        kind: CallErrorKind::Refused,
        text: format!("the answer to List is no list of machines: {why}"),
    };
    if body.len() < LARGE_BYTES {
        return Listing::split(&body).map_err(|malformed| refused(&malformed));
    }
    match tokio::task::spawn_blocking(move || Listing::split(&body)).await {
        Ok(split) => split.map_err(|malformed| refused(&malformed)),
        Err(error) => Err(refused(&error)),
    }
}
