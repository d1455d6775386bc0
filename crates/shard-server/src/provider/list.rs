//! Listing a provider: as a stream if it can, in one answer if that fits, else in pieces by state.
//!
//! ```text
//!   MachineStream.List ── UNIMPLEMENTED ──► List ── too large ──► List by state, piece by piece
//! ```
//!
//! Whatever the way, records reach the shard in parts, one at a time, with the end after the last. A stream or a series
//! of pieces that breaks off has told something true about the machines it named and nothing about the others: the
//! shard keeps the one, and takes no machine away before it has seen an end.

use std::sync::{Arc, Mutex};

use bigfleet_model::machine::MachineState;
use bigfleet_proto::provider_v1;
use bigfleet_proto::transport::{CHUNK_LIMIT_BYTES, MESSAGE_LIMIT_BYTES};
use bigfleet_proto::v1alpha1::ListFilter;
use bigfleet_shard::{CallId, Event, ListEnd};
use bytes::Bytes;
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::Provider;
use super::status::{is_of_the_connection, is_too_large};
use crate::listing::{Care, Listing};
use crate::raw::Raw;

/// How many records the shard is handed at once, so that others get a turn in between.
const RECORDS_PER_PART: usize = 2048;
/// How many machines a stream may name. It has no other bound than this and its deadline.
const MOST_RECORDS: u64 = 1 << 23;
/// From this size on an answer is split on a thread of its own: a whole fleet takes as long as many small calls.
const LARGE_BYTES: usize = 4 << 20;
/// How long a provider is taken not to stream, or to need pieces, before it is tried again. It may have been replaced by
/// a newer one without a call of ours breaking.
const REMEMBERED_NANOS: i64 = 10 * 60 * 1_000_000_000;

const LIST: PathAndQuery = PathAndQuery::from_static("/bigfleet.v1alpha1.CapacityProvider/List");
const STREAM: PathAndQuery = PathAndQuery::from_static("/bigfleet.provider.v1.MachineStream/List");

/// How a provider is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    /// In chunks.
    #[default]
    Stream,
    /// In one answer.
    Whole,
    /// In one answer for each state.
    Pieces,
}

/// What was learned about a provider on its present connection.
pub(super) struct Ways(Mutex<Learned>);

#[derive(Clone, Copy)]
struct Learned {
    way: Way,
    since_unix_nanos: i64,
    care: Care,
}

impl Default for Ways {
    fn default() -> Self {
        // The first listing has nothing but news.
        Self(Mutex::new(Learned { way: Way::Stream, since_unix_nanos: 0, care: Care::Scan }))
    }
}

impl Ways {
    fn with<T>(&self, change: impl FnOnce(&mut Learned) -> T) -> T {
        change(&mut self.0.lock().expect("no holder panics"))
    }

    fn way(&self, now: i64) -> Way {
        self.with(|learned| {
            if now.saturating_sub(learned.since_unix_nanos) >= REMEMBERED_NANOS {
                learned.way = Way::Stream;
            }
            learned.way
        })
    }

    fn learn(&self, way: Way, now: i64) {
        self.with(|learned| (learned.way, learned.since_unix_nanos) = (way, now));
    }

    /// The connection is gone: who answers next may be somebody else.
    fn forget(&self) {
        self.with(|learned| learned.way = Way::Stream);
    }
}

/// Nobody is left to hand records to, because the shard stops.
struct Gone;

/// Why a listing gave nothing, or no more.
enum Broken {
    Gone,
    Refused(Status),
}

impl From<Gone> for Broken {
    fn from(Gone: Gone) -> Self {
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
        let listed = self.list_somehow(call, &since, timeout_nanos).await;
        if let Err(Broken::Refused(status)) = listed {
            if is_of_the_connection(&status) {
                self.0.ways.forget();
            }
            let error = self.failed("List", &status);
            self.tell(Event::Failed { call, error }).await;
        }
    }

    async fn list_somehow(&self, call: CallId, since: &[u8], timeout_nanos: i64) -> Result<(), Broken> {
        let now = self.0.clock.now_unix_nanos();
        let way = self.0.ways.way(now);
        if way == Way::Stream {
            match self.stream(call, since, timeout_nanos).await {
                // Nothing was handed over: a service that is not there sends no chunk.
                Err(Broken::Refused(status)) if status.code() == Code::Unimplemented => {
                    self.0.ways.learn(Way::Whole, now);
                }
                done => return done,
            }
        }
        // Changes are few; only everything is known to be too much.
        if way != Way::Pieces || !since.is_empty() {
            match self.whole(since, timeout_nanos).await {
                Err(status) if is_too_large(&status) => self.0.ways.learn(Way::Pieces, now),
                Err(status) => return Err(status.into()),
                Ok(body) => {
                    let listing = self.split(body).await?;
                    let revision = listing.tail.as_deref().unwrap_or_default().into();
                    return Ok(self
                        .hand(call, listing, Some(ListEnd { revision, is_pieced: false }))
                        .await?);
                }
            }
        }
        self.pieces(call, timeout_nanos).await
    }

    /// All machines in chunks, each handed on before the next is asked for.
    async fn stream(&self, call: CallId, since: &[u8], timeout_nanos: i64) -> Result<(), Broken> {
        let mut gone = false;
        let streamed = async {
            let mut client = self.client(CHUNK_LIMIT_BYTES).await?;
            let request = provider_v1::ListRequest { since_revision: since.to_vec().into() };
            let codec = Raw::<provider_v1::ListRequest>::default();
            let answer = client.server_streaming(tonic::Request::new(request), STREAM, codec).await?;
            let mut chunks = answer.into_inner();
            let mut named = 0_u64;
            while let Some(chunk) = chunks.message().await? {
                let mut chunk = self.split(chunk).await?;
                named += chunk.len() as u64;
                if named > MOST_RECORDS {
                    return Err(Status::out_of_range(format!(
                        "the stream names more than {MOST_RECORDS} machines; one shard cannot have so many"
                    )));
                }
                let end = match chunk.tail.take() {
                    None => None,
                    Some(tail) => {
                        let end = provider_v1::ListEnd::decode(tail)
                            .map_err(|error| bad(format!("its end is malformed: {error}")))?;
                        if end.machines != named {
                            let said = end.machines;
                            return Err(bad(format!("its end speaks of {said} machines and {named} came")));
                        }
                        Some(ListEnd { revision: end.revision.as_ref().into(), is_pieced: false })
                    }
                };
                let is_last = end.is_some();
                if is_last && chunks.message().await?.is_some() {
                    return Err(bad("a chunk follows the last one"));
                }
                if self.hand(call, chunk, end).await.is_err() {
                    gone = true;
                    return Ok(());
                }
                if is_last {
                    return Ok(());
                }
            }
            Err(bad("it stops before its end"))
        };
        let done = self.within("MachineStream.List", timeout_nanos, streamed).await;
        if gone { Err(Broken::Gone) } else { Ok(done?) }
    }

    /// All machines, or what changed, in one answer.
    async fn whole(&self, since: &[u8], timeout_nanos: i64) -> Result<Bytes, Status> {
        let filter = ListFilter { since_revision: since.to_vec(), ..ListFilter::default() };
        self.within("List", timeout_nanos, self.fetch(filter)).await
    }

    /// All machines, state by state.
    ///
    /// Machines change state between two pieces. One that is named twice is taken twice, and its newer word comes
    /// later, because a piece is asked for after the one before it was handed over. One that is named in no piece has
    /// moved from a state not listed yet to one already listed. A provider that counts revisions tells it in a last
    /// piece: whatever changed since the first one was answered. For all others the end says that this listing was
    /// pieced together, and the shard asks about a machine before it takes it for lost.
    ///
    /// The revision to go on from is that of the first piece: what is told again does no harm.
    async fn pieces(&self, call: CallId, timeout_nanos: i64) -> Result<(), Broken> {
        let mut first: Option<Arc<[u8]>> = None;
        for state in MachineState::ALL {
            let filter = ListFilter { states: vec![state.to_wire()], ..ListFilter::default() };
            let body = match self.within("List", timeout_nanos, self.fetch(filter)).await {
                Err(status) if is_too_large(&status) => return Err(too_large_a_piece(state, &status).into()),
                body => body?,
            };
            let piece = self.split(body).await?;
            first.get_or_insert_with(|| piece.tail.as_deref().unwrap_or_default().into());
            self.hand(call, piece, None).await?;
        }
        let revision = first.unwrap_or_default();
        if !revision.is_empty() {
            let changed = self.split(self.whole(&revision, timeout_nanos).await?).await?;
            self.hand(call, changed, None).await?;
        }
        Ok(self.hand(call, Listing::empty(), Some(ListEnd { revision, is_pieced: true })).await?)
    }

    /// Hands records to the shard, and the end with the last of them.
    async fn hand(&self, call: CallId, listing: Listing, mut end: Option<ListEnd>) -> Result<(), Gone> {
        let mut start = 0;
        loop {
            let next = (start + RECORDS_PER_PART).min(listing.len());
            let is_last = next == listing.len();
            let end = if is_last { end.take() } else { None };
            let event = Event::Listed { call, records: Box::new(listing.part(start..next)), end };
            // One part at a time: a large listing must not fill the queue that sessions use as well.
            self.0.core.tell_and_wait(event).await.map_err(|_| Gone)?;
            if is_last {
                let (asked, all) = (listing.asked(), listing.len());
                self.0.ways.with(|learned| learned.care = learned.care.after(asked, all));
                return Ok(());
            }
            start = next;
        }
    }

    async fn client(&self, limit_bytes: usize) -> Result<Grpc<Channel>, Status> {
        let mut client = Grpc::new(self.0.channel.clone()).max_decoding_message_size(limit_bytes);
        client.ready().await.map_err(|error| Status::from_error(error.into()))?;
        Ok(client)
    }

    async fn fetch(&self, filter: ListFilter) -> Result<Bytes, Status> {
        let mut client = self.client(MESSAGE_LIMIT_BYTES).await?;
        let request = tonic::Request::new(filter);
        Ok(client.unary(request, LIST, Raw::<ListFilter>::default()).await?.into_inner())
    }

    async fn split(&self, body: Bytes) -> Result<Listing, Status> {
        let care = self.0.ways.with(|learned| learned.care);
        if body.len() < LARGE_BYTES {
            return Listing::split(&body, &self.0.digests, care).map_err(bad);
        }
        let key = self.0.digests.clone();
        match tokio::task::spawn_blocking(move || Listing::split(&body, &key, care)).await {
            Ok(split) => split.map_err(bad),
            Err(error) => Err(bad(error)),
        }
    }
}

fn bad(why: impl std::fmt::Display) -> Status {
    Status::data_loss(format!("the answer to List is no list of machines: {why}"))
}

fn too_large_a_piece(state: MachineState, status: &Status) -> Status {
    Status::out_of_range(format!(
        "the machines in state {state} alone are too much for one answer ({}); the provider must serve \
         bigfleet.provider.v1.MachineStream, as those made with our kit do",
        status.message()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_is_forgotten_with_time_and_with_the_connection() {
        let ways = Ways::default();
        assert_eq!(ways.way(5), Way::Stream);
        ways.learn(Way::Pieces, 5);
        assert_eq!((ways.way(6), ways.way(4 + REMEMBERED_NANOS)), (Way::Pieces, Way::Pieces));
        assert_eq!(ways.way(5 + REMEMBERED_NANOS), Way::Stream);
        ways.learn(Way::Whole, 7);
        assert_eq!(ways.way(8), Way::Whole);
        ways.forget();
        assert_eq!(ways.way(9), Way::Stream);
    }
}
