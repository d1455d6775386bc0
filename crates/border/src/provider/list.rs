//! Listing a provider: as a stream if it can, in one answer if that fits, else in pieces by state.
//!
//! ```text
//!   MachineStream.List ── UNIMPLEMENTED ──► List ── too large ──► List by state, piece by piece
//! ```
//!
//! Whatever the way, records reach the shard in parts, one at a time, with the end after the last. A stream or a series
//! of pieces that breaks off has told something true about the machines it named and nothing about the others: the
//! shard keeps the one, and takes no machine away before it has seen an end.
//!
//! A [`ListCall`] is one listing under way. Whoever has the sockets does what [`ListCall::ask`] says, hands in what came
//! back, passes the [`Batch`]es on, and asks again until there is nothing left to ask.

use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::provider_v1;
use bigfleet_proto::v1alpha1::ListFilter;
use bigfleet_shard::{CallError, CallId, Event, ListEnd};
use bytes::Bytes;
use prost::Message;
use tonic::{Code, Status};

use super::listing::{Care, DigestKey, Listing, Splitter};
use super::status::{is_of_the_connection, is_too_large, meaning};
use crate::wire::Malformed;

/// How many records the shard is handed at once, so that others get a turn in between.
const RECORDS_PER_PART: usize = 2048;
/// How many machines a stream may name. It has no other bound than this and its deadline.
const MOST_RECORDS: u64 = 1 << 23;
/// How long a provider is taken not to stream, or to need pieces, before it is tried again. It may have been replaced by
/// a newer one without a call of ours breaking.
const REMEMBERED_NANOS: i64 = 10 * 60 * 1_000_000_000;

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

/// What was learned about a provider on its present connection, over all its listings.
#[derive(Clone)]
pub struct Lister {
    way: Way,
    since_unix_nanos: i64,
    care: Care,
    digests: DigestKey,
}

impl Lister {
    /// Of a provider that nobody has listed yet.
    pub fn new(digests: DigestKey) -> Self {
        // The first listing has nothing but news.
        Self { way: Way::Stream, since_unix_nanos: 0, care: Care::Scan, digests }
    }

    /// What splits the next answer.
    pub fn splitter(&self) -> Splitter {
        Splitter { key: self.digests.clone(), care: self.care }
    }

    /// A listing failed: what to tell the shard. If the connection broke, who answers next may be somebody else, and what
    /// was learned is forgotten.
    pub fn failed(&mut self, status: &Status) -> CallError {
        if is_of_the_connection(status) {
            self.way = Way::Stream;
        }
        meaning(status)
    }

    /// The shard has taken a listing in: learns how much of it had to be looked into.
    pub fn handed(&mut self, listing: &Listing) {
        self.care = self.care.after(listing.asked(), listing.len());
    }

    fn way(&mut self, now: i64) -> Way {
        if now.saturating_sub(self.since_unix_nanos) >= REMEMBERED_NANOS {
            self.way = Way::Stream;
        }
        self.way
    }

    fn learn(&mut self, way: Way, now: i64) {
        (self.way, self.since_unix_nanos) = (way, now);
    }
}

/// What to ask a provider, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `MachineStream.List`. Each chunk is handed to [`ListCall::chunk`], then the status to [`ListCall::ended`].
    Stream(Bytes),
    /// `CapacityProvider.List`. The answer is handed to [`ListCall::answered`].
    Unary(Bytes),
}

impl Ask {
    /// The gRPC path.
    pub fn path(&self) -> &'static str {
        match self {
            Self::Stream(_) => "/bigfleet.provider.v1.MachineStream/List",
            Self::Unary(_) => "/bigfleet.v1alpha1.CapacityProvider/List",
        }
    }
}

/// Records for the shard.
#[derive(Debug)]
pub struct Batch {
    /// The records.
    pub listing: Listing,
    /// Present on the last batch of a listing.
    pub end: Option<ListEnd>,
}

impl Batch {
    /// The batch in parts small enough for one turn of the shard, in order; the end is with the last.
    pub fn into_parts(self, call: CallId) -> impl Iterator<Item = Event> {
        let Self { listing, mut end } = self;
        let mut start = Some(0);
        std::iter::from_fn(move || {
            let from = start?;
            let next = (from + RECORDS_PER_PART).min(listing.len());
            let is_last = next == listing.len();
            start = (!is_last).then_some(next);
            let end = if is_last { end.take() } else { None };
            Some(Event::Listed { call, records: Box::new(listing.part(from..next)), end })
        })
    }
}

/// Where a listing stands.
#[derive(Clone, Debug)]
enum Stage {
    /// In a stream.
    Stream {
        /// Records so far.
        named: u64,
        /// The last chunk, kept until the stream is over: nothing may follow it.
        last: Option<(Listing, ListEnd)>,
    },
    /// One answer will be all.
    Whole,
    /// Piece by piece.
    Piece {
        /// Which state is asked for.
        state: usize,
        /// The revision of the first piece.
        first: Option<Arc<[u8]>>,
    },
    /// All pieces are there; a last one tells what moved meanwhile.
    Moved {
        /// The revision to go on from.
        since: Arc<[u8]>,
    },
    /// It is over.
    Over,
}

/// One listing under way.
#[derive(Clone, Debug)]
pub struct ListCall {
    since: Arc<[u8]>,
    /// The listing began with the knowledge that one answer is too much.
    needs_pieces: bool,
    began_unix_nanos: i64,
    stage: Stage,
}

impl ListCall {
    /// A listing of what changed since a revision, or of everything.
    pub fn begin(lister: &mut Lister, since: Arc<[u8]>, now_unix_nanos: i64) -> Self {
        let way = lister.way(now_unix_nanos);
        let mut call = Self {
            since,
            needs_pieces: way == Way::Pieces,
            began_unix_nanos: now_unix_nanos,
            stage: Stage::Stream { named: 0, last: None },
        };
        if way != Way::Stream {
            call.without_stream();
        }
        call
    }

    fn without_stream(&mut self) {
        // Changes are few; only everything is known to be too much.
        let pieces = self.needs_pieces && self.since.is_empty();
        self.stage = if pieces { Stage::Piece { state: 0, first: None } } else { Stage::Whole };
    }

    /// What to ask next; nothing once the listing is over.
    pub fn ask(&self) -> Option<Ask> {
        let unary = |filter: ListFilter| Some(Ask::Unary(filter.encode_to_vec().into()));
        match &self.stage {
            Stage::Stream { .. } => {
                let request = provider_v1::ListRequest { since_revision: self.since.to_vec().into() };
                Some(Ask::Stream(request.encode_to_vec().into()))
            }
            Stage::Whole => {
                unary(ListFilter { since_revision: self.since.to_vec(), ..ListFilter::default() })
            }
            Stage::Piece { state, .. } => {
                let states = vec![MachineState::ALL[*state].to_wire()];
                unary(ListFilter { states, ..ListFilter::default() })
            }
            Stage::Moved { since } => {
                unary(ListFilter { since_revision: since.to_vec(), ..ListFilter::default() })
            }
            Stage::Over => None,
        }
    }

    /// A chunk of the stream that was asked for. The last one is kept back until the stream is over.
    pub fn chunk(&mut self, chunk: Result<Listing, Malformed>) -> Result<Option<Batch>, Status> {
        let Stage::Stream { named, last } = &mut self.stage else {
            return Err(bad("nobody asked for a chunk"));
        };
        if last.is_some() {
            return Err(bad("a chunk follows the last one"));
        }
        let mut chunk = chunk.map_err(bad)?;
        *named += chunk.len() as u64;
        if *named > MOST_RECORDS {
            return Err(Status::out_of_range(format!(
                "the stream names more than {MOST_RECORDS} machines; one shard cannot have so many"
            )));
        }
        let Some(tail) = chunk.tail.take() else { return Ok(Some(Batch { listing: chunk, end: None })) };
        let end = provider_v1::ListEnd::decode(tail)
            .map_err(|error| bad(format!("its end is malformed: {error}")))?;
        if end.machines != *named {
            let said = end.machines;
            return Err(bad(format!("its end speaks of {said} machines and {named} came")));
        }
        *last = Some((chunk, ListEnd { revision: end.revision.as_ref().into(), is_pieced: false }));
        Ok(None)
    }

    /// The stream is over, well or not.
    pub fn ended(
        &mut self,
        lister: &mut Lister,
        status: Result<(), Status>,
    ) -> Result<Option<Batch>, Status> {
        let Stage::Stream { named, last } = &mut self.stage else {
            return Err(bad("nobody asked for a stream"));
        };
        let is_untouched = *named == 0;
        match (status, last.take()) {
            // A service that is not there sends no chunk.
            (Err(status), _) if status.code() == Code::Unimplemented && is_untouched => {
                lister.learn(Way::Whole, self.began_unix_nanos);
                self.without_stream();
                Ok(None)
            }
            (Err(status), _) => Err(status),
            (Ok(()), None) => Err(bad("it stops before its end")),
            (Ok(()), Some((listing, end))) => {
                self.stage = Stage::Over;
                Ok(Some(Batch { listing, end: Some(end) }))
            }
        }
    }

    /// The answer to a List.
    ///
    /// In pieces, machines change state between two of them. One that is named twice is taken twice, and its newer word
    /// comes later, because a piece is asked for after the one before it was handed over. One that is named in no piece
    /// has moved from a state not listed yet to one already listed. A provider that counts revisions tells it in a last
    /// piece: whatever changed since the first one was answered. For all others the end says that this listing was
    /// pieced together, and the shard asks about a machine before it takes it for lost.
    ///
    /// The revision to go on from is that of the first piece: what is told again does no harm.
    pub fn answered(
        &mut self,
        lister: &mut Lister,
        answer: Result<Result<Listing, Malformed>, Status>,
    ) -> Result<Option<Batch>, Status> {
        let answer = match answer {
            Err(status) if is_too_large(&status) => return self.too_large(lister, status),
            answer => answer?.map_err(bad)?,
        };
        let revision = || -> Arc<[u8]> { answer.tail.as_deref().unwrap_or_default().into() };
        let end = match &mut self.stage {
            Stage::Whole => {
                let revision = revision();
                self.stage = Stage::Over;
                Some(ListEnd { revision, is_pieced: false })
            }
            Stage::Piece { state, first } => {
                first.get_or_insert_with(revision);
                *state += 1;
                if *state < MachineState::ALL.len() {
                    None
                } else {
                    match first.take().filter(|revision| !revision.is_empty()) {
                        Some(since) => {
                            self.stage = Stage::Moved { since };
                            None
                        }
                        None => Some(self.pieced(Arc::default())),
                    }
                }
            }
            Stage::Moved { since } => {
                let since = since.clone();
                Some(self.pieced(since))
            }
            Stage::Stream { .. } | Stage::Over => return Err(bad("nobody asked for it")),
        };
        Ok(Some(Batch { listing: answer, end }))
    }

    fn pieced(&mut self, revision: Arc<[u8]>) -> ListEnd {
        self.stage = Stage::Over;
        ListEnd { revision, is_pieced: true }
    }

    fn too_large(&mut self, lister: &mut Lister, status: Status) -> Result<Option<Batch>, Status> {
        match &self.stage {
            Stage::Whole => {
                lister.learn(Way::Pieces, self.began_unix_nanos);
                self.stage = Stage::Piece { state: 0, first: None };
                Ok(None)
            }
            Stage::Piece { state, .. } => Err(Status::out_of_range(format!(
                "the machines in state {} alone are too much for one answer ({}); the provider must serve \
                 bigfleet.provider.v1.MachineStream, as those made with our kit do",
                MachineState::ALL[*state],
                status.message()
            ))),
            _ => Err(status),
        }
    }
}

fn bad(why: impl std::fmt::Display) -> Status {
    Status::data_loss(format!("the answer to List is no list of machines: {why}"))
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::{Machine, MachineList};

    use super::*;

    fn lister() -> Lister {
        Lister::new(DigestKey::new(|index| index as u64))
    }

    fn machine(id: &str) -> Machine {
        Machine { id: id.into(), state: 1, ..Machine::default() }
    }

    fn list(ids: &[&str], revision: &[u8]) -> Result<Listing, Malformed> {
        let machines = ids.iter().map(|id| machine(id)).collect();
        let list = MachineList { machines, revision: revision.to_vec() };
        lister().splitter().split(&list.encode_to_vec().into())
    }

    fn chunk(ids: &[&str], end: Option<(&'static [u8], u64)>) -> Result<Listing, Malformed> {
        let machines = ids.iter().map(|id| machine(id).encode_to_vec().into()).collect();
        let end =
            end.map(|(revision, machines)| provider_v1::ListEnd { revision: revision.into(), machines });
        lister().splitter().split(&provider_v1::ListChunk { machines, end }.encode_to_vec().into())
    }

    fn filter(call: &ListCall) -> ListFilter {
        match call.ask() {
            Some(Ask::Unary(bytes)) => ListFilter::decode(bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    const NOT_THERE: fn() -> Status = || Status::unimplemented("no such service");
    const TOO_LARGE: fn() -> Status = || Status::out_of_range("too large");

    #[test]
    fn a_stream_ends_with_its_last_chunk_and_nothing_after() {
        let mut lister = lister();
        let mut call = ListCall::begin(&mut lister, [7].into(), 5);
        assert!(matches!(call.ask(), Some(Ask::Stream(_))));
        let batch = call.chunk(chunk(&["a", "b"], None)).unwrap().unwrap();
        assert!(batch.end.is_none() && batch.listing.len() == 2);
        let mut babbling = call.clone();
        let mut cut = call.clone();
        assert!(call.chunk(chunk(&["c"], Some((b"r", 3)))).unwrap().is_none(), "kept until it is over");
        let last = call.ended(&mut lister, Ok(())).unwrap().unwrap();
        assert_eq!((&*last.end.unwrap().revision, last.listing.len(), call.ask()), (&b"r"[..], 1, None));

        babbling.chunk(chunk(&[], Some((b"r", 2)))).unwrap();
        let why = babbling.chunk(chunk(&["d"], None)).unwrap_err();
        assert!(why.message().contains("follows the last one"), "{why}");
        let why = cut.clone().chunk(chunk(&[], Some((b"r", 3)))).unwrap_err();
        assert!(why.message().contains("speaks of 3 machines and 2 came"), "{why}");
        let why = cut.ended(&mut lister, Ok(())).unwrap_err();
        assert!(why.message().contains("stops before its end"), "{why}");
    }

    #[test]
    fn what_does_not_stream_is_asked_for_one_answer_and_what_is_too_large_for_pieces() {
        let mut lister = lister();
        let mut call = ListCall::begin(&mut lister, Arc::default(), 5);
        assert!(call.ended(&mut lister, Err(NOT_THERE())).unwrap().is_none());
        assert_eq!(filter(&call), ListFilter::default());
        assert!(call.answered(&mut lister, Err(TOO_LARGE())).unwrap().is_none());
        for state in MachineState::ALL {
            assert_eq!(filter(&call).states, [state.to_wire()]);
            let batch = call.answered(&mut lister, Ok(list(&["a"], b"r1"))).unwrap().unwrap();
            assert!(batch.end.is_none());
        }
        assert_eq!(filter(&call).since_revision, b"r1", "what moved meanwhile");
        let last = call.answered(&mut lister, Ok(list(&[], b"r9"))).unwrap().unwrap();
        let end = last.end.unwrap();
        assert_eq!((&*end.revision, end.is_pieced, call.ask()), (&b"r1"[..], true, None));

        // Remembered: pieces for everything, one answer for what changed.
        let whole = ListCall::begin(&mut lister, Arc::default(), 6);
        assert_eq!(filter(&whole).states, [MachineState::ALL[0].to_wire()]);
        let changes = ListCall::begin(&mut lister, [1].into(), 6);
        assert_eq!((filter(&changes).states.len(), &*filter(&changes).since_revision), (0, &[1][..]));
        // And forgotten: with time, and with the connection.
        let broken = Status::from_error(Box::new(std::io::Error::other("connection reset")));
        let mut other = lister.clone();
        other.failed(&broken);
        for lister in [&mut lister, &mut other] {
            let call = ListCall::begin(lister, Arc::default(), 5 + REMEMBERED_NANOS);
            assert!(matches!(call.ask(), Some(Ask::Stream(_))));
        }
    }

    #[test]
    fn a_provider_without_revisions_is_pieced_together_and_the_end_says_so() {
        let mut lister = lister();
        let mut call = ListCall::begin(&mut lister, Arc::default(), 5);
        call.ended(&mut lister, Err(NOT_THERE())).unwrap();
        call.answered(&mut lister, Err(TOO_LARGE())).unwrap();
        for _ in MachineState::ALL {
            let batch = call.answered(&mut lister, Ok(list(&[], b""))).unwrap().unwrap();
            assert_eq!(batch.end.is_some(), call.ask().is_none());
        }
        assert!(call.ask().is_none());
        let mut call = ListCall::begin(&mut lister, Arc::default(), 6);
        let why = call.answered(&mut lister, Err(TOO_LARGE())).unwrap_err();
        assert!(why.message().contains("must serve bigfleet.provider.v1.MachineStream"), "{why}");
    }

    #[test]
    fn a_batch_is_handed_over_in_parts_with_the_end_at_the_end() {
        let ids: Vec<String> = (0..=RECORDS_PER_PART * 2).map(|id| id.to_string()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        for (ids, parts) in [(&ids[..], 3), (&ids[..RECORDS_PER_PART], 1), (&ids[..0], 1)] {
            let batch = Batch { listing: list(ids, b"").unwrap(), end: Some(ListEnd::default()) };
            let ends: Vec<bool> = batch
                .into_parts(CallId(1))
                .map(|event| matches!(event, Event::Listed { end: Some(_), .. }))
                .collect();
            assert_eq!((ends.len(), ends.iter().position(|end| *end)), (parts, Some(parts - 1)));
        }
    }
}
