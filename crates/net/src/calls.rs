//! Calls under way: how long a caller may take to say what it wants, and how many of its bytes may wait meanwhile.
//!
//! A message of gRPC announces its length and then arrives in pieces. Whoever announces sixty megabytes and sends half of
//! them keeps what was sent in our memory for as long as he likes, on as many streams as he likes. So every request passes
//! through here first: nothing is set aside for what was only announced, what has arrived is counted (by connection, by
//! identity, in all), a message that was begun must be finished in time, and only whole messages are passed on.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use rustls::server::ServerConfig;
use tokio::net::TcpListener;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::accept::{Terms, accepted};
use crate::budget::{Budget, InFlight, Lease, OverBudget, Purse};
use crate::clock::{Clock, Sleep, SystemClock};
use crate::connection::{Connection, Peer, Ticket};

/// How long a message may take from its first byte to its last, and a call until its first message is whole.
pub(crate) const MESSAGE: Duration = Duration::from_mins(1);
/// How long a connection may be open after its last call has ended.
pub(crate) const IDLE: Duration = Duration::from_mins(15);
/// A message of gRPC begins with a flag and four bytes of length.
const HEAD: usize = 5;

/// Puts every call of a server under a budget and the clock, and lets its connection know that it is in use.
#[derive(Clone, Debug)]
pub struct CallLayer {
    budget: Budget,
    clock: Arc<dyn Clock>,
}

impl CallLayer {
    /// Time is that of callers.
    pub fn new(budget: Budget, clock: Arc<dyn Clock>) -> Self {
        Self { budget, clock }
    }

    /// With the usual bounds, for servers that show nobody how much is held.
    pub fn usual() -> Self {
        Self::new(Budget::new(InFlight::default()), Arc::new(SystemClock::start()))
    }

    /// Accepts the connections of a server with this layer: at most so many at once, and none that makes no calls.
    pub fn incoming(
        &self,
        listener: TcpListener,
        tls: Option<ServerConfig>,
        most: usize,
    ) -> ReceiverStream<io::Result<Connection>> {
        accepted(listener, tls, self.clock.clone(), Terms { most, idle: IDLE })
    }
}

impl<S> Layer<S> for CallLayer {
    type Service = Calls<S>;

    fn layer(&self, inner: S) -> Calls<S> {
        Calls { inner, layer: self.clone() }
    }
}

/// A service whose calls are counted.
#[derive(Clone, Debug)]
pub struct Calls<S> {
    inner: S,
    layer: CallLayer,
}

impl<S> Service<Request<Body>> for Calls<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let peer = request.extensions().get::<Peer>();
        let ticket = peer.map(|peer| peer.cut.ticket());
        let purse = Purse::new(&self.layer.budget, peer);
        let lease = purse.lease();
        let clock = &self.layer.clock;
        let mut request = request.map(|body| Body::new(Whole::new(body, lease, clock.clone())));
        request.extensions_mut().insert(purse);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let Ok(response) = answer.await;
            Ok(response.map(|body| Body::new(During { body, _ticket: ticket })))
        })
    }
}

/// An answer that is being given: as long as it is, its connection is in use.
struct During {
    body: Body,
    _ticket: Option<Ticket>,
}

impl HttpBody for During {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request, of which only whole messages are passed on.
struct Whole {
    body: Body,
    lease: Lease,
    clock: Arc<dyn Clock>,
    /// When the message under way must be whole.
    deadline: Option<Sleep>,
    /// What has arrived and was not passed on.
    held: VecDeque<Bytes>,
    /// How much of it is whole messages.
    ready: usize,
    /// How much of it is not.
    part: usize,
    /// What was passed on, and is being read.
    passed: usize,
    head: Head,
    is_over: bool,
}

/// How far the message under way has come.
#[derive(Default)]
struct Head {
    bytes: [u8; HEAD],
    len: usize,
    /// What is missing of the message after its head.
    missing: usize,
}

impl Head {
    /// Takes bytes; how many of them end the message under way, if they do.
    fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let of_head = (HEAD - self.len).min(bytes.len());
        self.bytes[self.len..self.len + of_head].copy_from_slice(&bytes[..of_head]);
        self.len += of_head;
        if self.len < HEAD {
            return None;
        }
        if of_head > 0 {
            let [_, length @ ..] = self.bytes;
            self.missing = u32::from_be_bytes(length) as usize;
        }
        let of_message = self.missing.min(bytes.len() - of_head);
        self.missing -= of_message;
        if self.missing > 0 {
            return None;
        }
        *self = Self::default();
        Some(of_head + of_message)
    }
}

impl Whole {
    fn new(body: Body, lease: Lease, clock: Arc<dyn Clock>) -> Self {
        let deadline = Some(clock.sleep(MESSAGE));
        Self {
            body,
            lease,
            clock,
            deadline,
            held: VecDeque::new(),
            ready: 0,
            part: 0,
            passed: 0,
            head: Head::default(),
            is_over: false,
        }
    }

    fn take(&mut self, bytes: Bytes) -> Result<(), OverBudget> {
        self.lease.grow(bytes.len())?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            if let Some(end) = self.head.take(rest) {
                self.ready += self.part + end;
                self.part = 0;
                rest = &rest[end..];
            } else {
                self.part += rest.len();
                rest = &[];
            }
        }
        if self.part == 0 {
            self.deadline = None;
        } else if self.deadline.is_none() || self.ready > 0 {
            self.deadline = Some(self.clock.sleep(MESSAGE));
        }
        self.held.push_back(bytes);
        Ok(())
    }

    /// The next bytes of whole messages.
    fn next(&mut self) -> Option<Bytes> {
        let first = self.held.front_mut().filter(|_| self.ready > 0)?;
        let len = first.len().min(self.ready);
        let bytes = first.split_to(len);
        if !first.has_remaining() {
            self.held.pop_front();
        }
        self.ready -= len;
        self.passed += len;
        Some(bytes)
    }
}

impl HttpBody for Whole {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        loop {
            if let Some(bytes) = this.next() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if this.is_over {
                return Poll::Ready(None);
            }
            // Whoever asks for more has read what was passed on.
            this.lease.shrink(std::mem::take(&mut this.passed));
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => {
                        if let Err(over) = this.take(bytes) {
                            this.is_over = true;
                            this.held.clear();
                            this.lease.shrink(usize::MAX);
                            return Poll::Ready(Some(Err(over.into())));
                        }
                    }
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                Poll::Ready(Some(Err(status))) => {
                    this.is_over = true;
                    return Poll::Ready(Some(Err(status)));
                }
                Poll::Ready(None) => {
                    // A message that is cut off is passed on as it is: whoever reads it says so.
                    this.is_over = true;
                    this.ready += std::mem::take(&mut this.part);
                }
                Poll::Pending => {
                    let late = this.deadline.as_mut().is_some_and(|late| late.as_mut().poll(cx).is_ready());
                    if !late {
                        return Poll::Pending;
                    }
                    this.is_over = true;
                    this.held.clear();
                    this.lease.shrink(usize::MAX);
                    let why = format!("no whole message came within {MESSAGE:?}");
                    return Poll::Ready(Some(Err(Status::deadline_exceeded(why))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && (self.is_over || self.body.is_end_stream())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::sync::mpsc;

    use super::*;
    use crate::clock::VirtualClock;

    /// A body that says what it is told to.
    struct Told(mpsc::UnboundedReceiver<Bytes>);

    impl HttpBody for Told {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.get_mut().0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    fn message(len: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((len as u32).to_be_bytes());
        bytes.resize(HEAD + len, 7);
        bytes
    }

    const MOST: InFlight = InFlight { connection_bytes: 3000, identity_bytes: 2500, all_bytes: 4096 };

    struct Stage {
        say: mpsc::UnboundedSender<Bytes>,
        whole: Whole,
        clock: Arc<VirtualClock>,
        budget: Budget,
    }

    fn stage() -> Stage {
        let clock = Arc::new(VirtualClock::at(0));
        let budget = Budget::new(MOST);
        let (say, told) = mpsc::unbounded_channel();
        let lease = Purse::new(&budget, None).lease();
        Stage { say, whole: Whole::new(Body::new(Told(told)), lease, clock.clone()), clock, budget }
    }

    impl Stage {
        fn say(&self, bytes: &[u8]) {
            self.say.send(Bytes::copy_from_slice(bytes)).unwrap();
        }

        /// What is passed on now, or the status.
        async fn heard(&mut self) -> Result<Option<usize>, Status> {
            // Or the runtime thinks that this test has had its share.
            tokio::task::yield_now().await;
            let next = poll_fn(|cx| {
                Poll::Ready(match Pin::new(&mut self.whole).poll_frame(cx) {
                    Poll::Pending => Ok(None),
                    Poll::Ready(Some(frame)) => frame.map(|frame| Some(frame.into_data().unwrap().len())),
                    Poll::Ready(None) => Ok(Some(0)),
                })
            });
            next.await
        }
    }

    #[tokio::test]
    async fn only_whole_messages_are_passed_on_however_they_are_cut() {
        for cut in 1..60 {
            let mut stage = stage();
            let sent = [message(0), message(20), message(3), message(40)].concat();
            let mut heard = 0;
            for piece in sent.chunks(cut) {
                stage.say(piece);
                while let Some(len) = stage.heard().await.unwrap() {
                    heard += len;
                }
                let ends = [HEAD, 2 * HEAD + 20, 3 * HEAD + 23, 4 * HEAD + 63];
                assert!(heard == 0 || ends.contains(&heard), "cut {cut}: {heard}");
            }
            assert_eq!(heard, sent.len());
            assert_eq!(stage.budget.in_flight(), 0, "all was read");
        }
    }

    #[tokio::test]
    async fn what_was_only_announced_costs_nothing_and_what_arrived_is_bounded() {
        let mut stage = stage();
        stage.say(&message(60_000_000)[..HEAD]);
        assert_eq!(stage.heard().await.unwrap(), None);
        assert_eq!(stage.budget.in_flight(), HEAD);
        for _ in 0..2 {
            stage.say(&[7; 1000]);
            assert_eq!(stage.heard().await.unwrap(), None);
        }
        stage.say(&[7; 1000]);
        let status = stage.heard().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        assert_eq!(
            (status.message().contains("3000 bytes"), stage.budget.in_flight()),
            (true, 0),
            "{status}"
        );
    }

    #[tokio::test]
    async fn a_message_that_was_begun_must_be_finished_in_time() {
        let mut stage = stage();
        stage.say(&message(8));
        assert_eq!(stage.heard().await.unwrap(), Some(HEAD + 8));
        assert_eq!(stage.heard().await.unwrap(), None);
        stage.clock.advance(MESSAGE * 10);
        assert_eq!(stage.heard().await.unwrap(), None, "between messages there is no hurry");
        stage.say(&message(8)[..9]);
        assert_eq!(stage.heard().await.unwrap(), None);
        stage.clock.advance(MESSAGE);
        assert_eq!(stage.heard().await.unwrap_err().code(), tonic::Code::DeadlineExceeded);
        let mut silent = self::stage();
        assert_eq!(silent.heard().await.unwrap(), None);
        silent.clock.advance(MESSAGE);
        assert!(silent.heard().await.is_err(), "a call says something");
    }

    #[test]
    fn the_page_about_security_states_these_bounds() {
        let page = include_str!("../../../docs/security.md").replace(',', "");
        let InFlight { connection_bytes, identity_bytes, all_bytes } = InFlight::default();
        for row in [
            format!("of one connection | {connection_bytes} |"),
            format!("over all its connections | {identity_bytes} |"),
            format!("the same of everybody | {all_bytes} |"),
            format!("and from a call to its first message | {} s |", MESSAGE.as_secs()),
        ] {
            assert!(page.contains(&row.replace(',', "")), "{row}");
        }
        assert_eq!(InFlight::default().small_bytes(), 1 << 20);
    }
}
