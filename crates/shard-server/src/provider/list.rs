//! Listing a provider over its connection. What is asked and what answers mean, [`ListCall`] knows.

use std::sync::Arc;

use bigfleet_border::provider::{Ask, Batch, ListCall, Lister, Listing};
use bigfleet_border::wire::Malformed;
use bigfleet_proto::transport::CHUNK_LIMIT_BYTES;
use bigfleet_shard::{CallId, Event};
use bytes::Bytes;
use tonic::Status;
use tonic::codegen::http::uri::PathAndQuery;

use super::Provider;
use crate::core::Gone;
use crate::raw::Raw;

/// From this size on an answer is split on a thread of its own: a whole fleet takes as long as many small calls.
const LARGE_BYTES: usize = 4 << 20;

/// Why a listing gave nothing, or no more.
enum Broken {
    /// Nobody is left to hand records to, because the shard stops.
    Gone,
    Refused(Status),
}

impl From<Gone> for Broken {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<Status> for Broken {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

impl Provider {
    /// Lists the machines and hands them to the shard in parts.
    pub(crate) async fn list(self, call: CallId, since: Arc<[u8]>, timeout_nanos: i64) {
        let now = self.0.clock.now_unix_nanos();
        let listing = self.lister(|lister| ListCall::begin(lister, since, now));
        if let Err(Broken::Refused(status)) = self.follow(listing, call, timeout_nanos).await {
            let error = self.lister(|lister| lister.failed(&status));
            self.failed("List", &error);
            self.tell(Event::Failed { call, error }).await;
        }
    }

    /// Asks what there is to ask until the listing is over.
    async fn follow(&self, mut listing: ListCall, call: CallId, timeout_nanos: i64) -> Result<(), Broken> {
        while let Some(ask) = listing.ask() {
            let path = ask.path();
            match ask {
                Ask::Stream(request) => self.stream(&mut listing, call, path, request, timeout_nanos).await?,
                Ask::Unary(request) => {
                    let answer = match self.within("List", timeout_nanos, self.unary(path, request)).await {
                        Ok(body) => Ok(self.split(body).await?),
                        Err(status) => Err(status),
                    };
                    let batch = self.lister(|lister| listing.answered(lister, answer))?;
                    self.hand(call, batch).await?;
                }
            }
        }
        Ok(())
    }

    /// All machines in chunks, each handed on before the next is asked for.
    async fn stream(
        &self,
        listing: &mut ListCall,
        call: CallId,
        path: &'static str,
        request: Bytes,
        timeout_nanos: i64,
    ) -> Result<(), Broken> {
        let mut is_gone = false;
        let streamed = async {
            let mut client = self.client(CHUNK_LIMIT_BYTES).await?;
            let (request, path) = (tonic::Request::new(request), PathAndQuery::from_static(path));
            let mut chunks = client.server_streaming(request, path, Raw).await?.into_inner();
            while let Some(chunk) = chunks.message().await? {
                let batch = listing.chunk(self.split(chunk).await?)?;
                is_gone = self.hand(call, batch).await.is_err();
                if is_gone {
                    break;
                }
            }
            Ok(())
        };
        let done = self.within("MachineStream.List", timeout_nanos, streamed).await;
        if is_gone {
            return Err(Broken::Gone);
        }
        let last = self.lister(|lister| listing.ended(lister, done))?;
        Ok(self.hand(call, last).await?)
    }

    /// Hands records to the shard. One part at a time: a large listing must not fill the queue that sessions use as well.
    async fn hand(&self, call: CallId, batch: Option<Batch>) -> Result<(), Gone> {
        let Some(batch) = batch else { return Ok(()) };
        let listing = batch.listing.clone();
        for event in batch.into_parts(call) {
            self.0.core.tell_and_wait(event).await?;
        }
        self.lister(|lister| lister.handed(&listing));
        Ok(())
    }

    async fn split(&self, body: Bytes) -> Result<Result<Listing, Malformed>, Status> {
        let splitter = self.lister(|lister| lister.splitter());
        if body.len() < LARGE_BYTES {
            return Ok(splitter.split(&body));
        }
        let split = tokio::task::spawn_blocking(move || splitter.split(&body)).await;
        split.map_err(|error| Status::internal(format!("the answer to List could not be split: {error}")))
    }

    fn lister<T>(&self, look: impl FnOnce(&mut Lister) -> T) -> T {
        look(&mut self.0.lister.lock().expect("no holder panics"))
    }
}
