//! One provider: calls to it, their deadlines, and what its answers mean.
//!
//! Nothing is retried here. The shard decides what to try again, with a new sequence number; whoever calls twice with
//! one number gets the call fenced off.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::Clock;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, Machine, MachineRef,
};
use bigfleet_shard::{CallError, CallId, Event, Request};
use tonic::Status;
use tonic::transport::Channel;
use tracing::Instrument;

use crate::core::Core;
use crate::listing::{DigestKey, told};
use crate::metrics::Metrics;

mod list;
mod status;

pub(crate) use bigfleet_proto::transport::code_name;
pub(crate) use status::meaning;

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
    digests: DigestKey,
    ways: list::Ways,
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
            channel,
            core,
            clock,
            metrics,
            digests: DigestKey::random(),
            ways: list::Ways::default(),
        }))
    }

    /// Calls about one machine.
    pub(crate) async fn call(self, call: CallId, request: Request, sequence: i64, timeout_nanos: i64) {
        let name = request.name();
        let event = match self.within(name, timeout_nanos, self.ask(request, sequence)).await {
            Ok(machine) => Event::Answered { call, machine: machine.as_ref().map(told) },
            Err(status) => Event::Failed { call, error: self.failed(name, &status) },
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

    /// What a call that failed means, told to whoever reads logs.
    fn failed(&self, method: &'static str, status: &Status) -> CallError {
        let error = meaning(status);
        tracing::info!(provider = &*self.0.name, method, %error, "a call to a provider failed");
        error
    }

    async fn tell(&self, event: Event) {
        // A shard that stops needs no answers any more; the next life asks again.
        let _ = self.0.core.tell(event).await;
    }
}
