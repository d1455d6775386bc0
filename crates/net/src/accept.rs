//! Accepting connections: plain or TLS, never more than a fixed number at once.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustls::server::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::clock::{Clock, Sleep};
use crate::identity::{IdentityError, Role};

/// How long a caller may take to begin: the TLS handshake, or the words with which HTTP/2 begins.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How every HTTP/2 connection begins.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long to wait for the rest of it.
const MORE: Duration = Duration::from_millis(20);
/// How many callers may be about to begin. For one more, the one that has been at it for longest is sent away.
const BEGINNERS: usize = 256;
/// How long a connection may be open without a call having been made.
const FIRST_CALL: Duration = Duration::from_secs(30);
/// How long a connection may be open after its last call has ended.
const IDLE: Duration = Duration::from_mins(15);
/// How long to wait after the system refused to accept, for example for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the stream is dropped. At most `most` are open at once, beyond those that are about to begin.
/// Where callers have certificates, some of the places are for administrators alone. Nobody counts calls, so a connection
/// that has begun is kept; servers that have a [`CallLayer`](crate::CallLayer) take theirs from it.
pub fn incoming(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    clock: Arc<dyn Clock>,
    most: usize,
) -> ReceiverStream<io::Result<Connection>> {
    accepted(listener, tls, clock, most, false)
}

/// The same; where calls are counted, a connection without any is closed.
pub(crate) fn accepted(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    clock: Arc<dyn Clock>,
    most: usize,
    counts_calls: bool,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(64);
    let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    let places = Places::new(most, acceptor.is_some(), counts_calls);
    tokio::spawn(accept(listener, acceptor, clock, sender, places));
    ReceiverStream::new(receiver)
}

/// Places for connections.
#[derive(Clone)]
struct Places {
    ordinary: Arc<Semaphore>,
    /// For administrators.
    kept: Arc<Semaphore>,
    /// Whether those who make no calls lose theirs.
    counts_calls: bool,
}

impl Places {
    fn new(most: usize, has_identities: bool, counts_calls: bool) -> Self {
        let kept = if has_identities { (most / 32).min(64) } else { 0 };
        let [ordinary, kept] = [most - kept, kept].map(|places| Arc::new(Semaphore::new(places)));
        Self { ordinary, kept, counts_calls }
    }

    /// A place for whoever this is, once there is one.
    async fn take(&self, role: Option<&Result<Role, IdentityError>>) -> io::Result<OwnedSemaphorePermit> {
        if matches!(role, Some(Ok(Role::Admin)))
            && self.ordinary.available_permits() == 0
            && let Ok(place) = self.kept.clone().try_acquire_owned()
        {
            return Ok(place);
        }
        self.ordinary.clone().acquire_owned().await.map_err(io::Error::other)
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    clock: Arc<dyn Clock>,
    sender: mpsc::Sender<io::Result<Connection>>,
    places: Places,
) {
    let mut beginners: VecDeque<oneshot::Sender<()>> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sender.closed() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                clock.sleep(PAUSE).await;
                continue;
            }
        };
        beginners.retain(|beginner| !beginner.is_closed());
        if beginners.len() >= BEGINNERS {
            // Whoever means it takes a moment to begin; whoever has not by now makes room.
            beginners.pop_front();
        }
        let (stays, sent_away) = oneshot::channel();
        beginners.push_back(stays);
        let (tls, clock, sender, places) = (tls.clone(), clock.clone(), sender.clone(), places.clone());
        tokio::spawn(async move {
            let peer = stream.peer_addr().ok();
            tokio::select! {
                opened = open(stream, tls, &clock, &places) => match opened {
                    // The server is gone if nobody takes it; then nobody is there to tell.
                    Ok(connection) => drop(sender.send(Ok(connection)).await),
                    Err(error) => tracing::info!(?peer, %error, "a connection was refused"),
                },
                () = clock.sleep(HANDSHAKE) => tracing::info!(?peer, "a caller took too long to begin"),
                _ = sent_away => tracing::info!(?peer, "a caller that had not begun made room for another"),
            }
        });
    }
}

async fn open(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    clock: &Arc<dyn Clock>,
    places: &Places,
) -> io::Result<Connection> {
    stream.set_nodelay(true)?;
    let io = match tls {
        None => {
            preface(&stream, &**clock).await?;
            Io::Plain(stream)
        }
        Some(acceptor) => Io::Tls(Box::new(acceptor.accept(stream).await?)),
    };
    let (address, role) = io.peer();
    let place = places.take(role.as_ref()).await?;
    let peer = Peer { address, role, cut: Cut::default() };
    let look = places.counts_calls.then(|| clock.sleep(FIRST_CALL));
    Ok(Connection { io, peer, clock: clock.clone(), look, _place: place })
}

/// Waits for the words with which every HTTP/2 connection begins, and leaves them to be read. A caller speaks first, so one
/// that says nothing, or only a part, must not keep a place: that the socket can be read is not enough to go by.
async fn preface(stream: &TcpStream, clock: &dyn Clock) -> io::Result<()> {
    let mut found = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut found).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Whoever speaks something else, TLS perhaps, is told so by the server and not kept by it.
        if count == PREFACE.len() || found[..count] != PREFACE[..count] {
            return Ok(());
        }
        // The system says "readable" for what is there already; what is missing has to be waited for.
        clock.sleep(MORE).await;
    }
}

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Io {
    fn peer(&self) -> (Option<SocketAddr>, Option<Result<Role, IdentityError>>) {
        let (stream, role) = match self {
            Self::Plain(stream) => (stream, None),
            Self::Tls(stream) => {
                let (stream, session) = stream.get_ref();
                (stream, session.peer_certificates().map(Role::of))
            }
        };
        (stream.peer_addr().ok(), role)
    }
}

/// An open connection and the place it takes.
pub struct Connection {
    io: Io,
    peer: Peer,
    clock: Arc<dyn Clock>,
    /// When to look whether it is still used, if anybody does.
    look: Option<Sleep>,
    _place: OwnedSemaphorePermit,
}

/// Who is at the other end, as handlers find it among a request's extensions.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where from.
    pub address: Option<SocketAddr>,
    /// Who its verified certificate says it is; none if none was asked for, and then nothing is checked.
    pub role: Option<Result<Role, IdentityError>>,
    /// Ends the connection under everything that uses it.
    pub cut: Cut,
}

/// Ends a connection whose other end does not read, when nothing polite can reach it any more.
#[derive(Clone, Debug, Default)]
pub struct Cut(Arc<Mutex<CutState>>);

#[derive(Debug, Default)]
pub(crate) struct CutState {
    is_cut: bool,
    seats: usize,
    reader: Option<Waker>,
    /// Calls under way.
    calls: usize,
    /// Calls ever.
    called: u64,
    /// Of `called`, how many there were when somebody last looked.
    seen: u64,
    /// Bytes of unfinished messages.
    pub(crate) in_flight: usize,
}

/// One call under way on a connection.
#[derive(Debug)]
pub struct Ticket(Cut);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.state().calls -= 1;
    }
}

impl Cut {
    pub(crate) fn state(&self) -> MutexGuard<'_, CutState> {
        self.0.lock().expect("no holder panics")
    }

    /// Notes a call, for as long as the ticket is kept.
    pub(crate) fn ticket(&self) -> Ticket {
        let mut state = self.state();
        state.calls += 1;
        state.called += 1;
        Ticket(self.clone())
    }

    /// Whether the connection is used or was since this was last asked; and if it is to be asked again, after how long.
    fn is_used(&self) -> Option<Duration> {
        let mut state = self.state();
        let is_used = state.calls > 0 || state.called > state.seen;
        state.seen = state.called;
        is_used.then_some(IDLE)
    }

    /// Ends the connection.
    pub fn now(&self) {
        let mut state = self.0.lock().expect("no holder panics");
        state.is_cut = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// A seat on the connection, for one of those who share it.
    pub fn seat(&self) -> Seat {
        self.0.lock().expect("no holder panics").seats += 1;
        Seat(self.clone())
    }

    /// Whether it was ended; if not, the reader is woken when it is.
    fn poll(&self, cx: &Context<'_>) -> bool {
        let mut state = self.0.lock().expect("no holder panics");
        if !state.is_cut && !state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
        state.is_cut
    }
}

/// One of those who share a connection.
#[derive(Debug)]
pub struct Seat(Cut);

impl Seat {
    /// Ends the connection unless others share it, who must not notice.
    pub fn cut_if_alone(&self) {
        let is_alone = self.0.0.lock().expect("no holder panics").seats == 1;
        if is_alone {
            self.0.now();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.0.lock().expect("no holder panics").seats -= 1;
    }
}

impl Connection {
    /// Ready if nobody uses the connection any more.
    fn poll_unused(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(look) = &mut self.look {
            if look.as_mut().poll(cx).is_pending() {
                break;
            }
            let Some(again) = self.peer.cut.is_used() else { return Poll::Ready(()) };
            self.look = Some(self.clock.sleep(again));
        }
        Poll::Pending
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().io {
            Io::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Io::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.peer.cut.poll(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if this.poll_unused(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let this = Pin::new(this);
        delegate!(this, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.io {
            Io::Plain(stream) => stream.is_write_vectored(),
            Io::Tls(stream) => stream.is_write_vectored(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_stream::StreamExt;

    use super::*;
    use crate::clock::{SystemClock, VirtualClock};

    async fn accepted(most: usize) -> (SocketAddr, ReceiverStream<io::Result<Connection>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address, incoming(listener, None, Arc::new(SystemClock::start()), most))
    }

    async fn caller(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.writable().await.unwrap();
        assert_eq!(stream.try_write(PREFACE).unwrap(), PREFACE.len(), "a caller speaks first");
        stream
    }

    #[tokio::test]
    async fn a_connection_is_cut_under_whoever_reads_it_unless_others_share_it() {
        let (address, mut connections) = accepted(2).await;
        let _caller = caller(address).await;
        let mut connection = connections.next().await.unwrap().unwrap();
        let peer = connection.connect_info();
        assert!(peer.role.is_none() && peer.address.is_some());
        let (first, second) = (peer.cut.seat(), peer.cut.seat());
        first.cut_if_alone();
        let mut word = [0; PREFACE.len()];
        connection.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, PREFACE, "the second must not notice the first");
        drop(second);
        let reading = tokio::spawn(async move { connection.read(&mut [0; 8]).await });
        tokio::task::yield_now().await;
        first.cut_if_alone();
        assert_eq!(reading.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn a_place_is_free_again_when_its_connection_is_gone() {
        let (address, mut connections) = accepted(1).await;
        let _first_caller = caller(address).await;
        let first = connections.next().await.unwrap().unwrap();
        let _second_caller = caller(address).await;
        // Long enough for a second connection to come through if there were a place for it.
        tokio::select! {
            _ = connections.next() => panic!("there is one place"),
            () = SystemClock::start().sleep(Duration::from_millis(50)) => {}
        }
        drop(first);
        assert!(connections.next().await.unwrap().is_ok());
    }

    /// Lets time pass until the other end has closed the connection.
    async fn is_closed(caller: &mut TcpStream, clock: &VirtualClock, what: &str) {
        let mut word = [0; 64];
        for _ in 0..1_000_000 {
            tokio::select! {
                biased;
                ended = caller.read(&mut word) => match ended {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                },
                () = tokio::task::yield_now() => clock.advance(Duration::from_millis(10)),
            }
        }
        panic!("{what} is kept");
    }

    #[tokio::test]
    async fn who_does_not_begin_does_not_keep_a_place() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock = Arc::new(VirtualClock::at(0));
        let mut connections = incoming(listener, None, clock.clone(), 1);
        for said in ["", "PRI * HTT"] {
            let mut caller = TcpStream::connect(address).await.unwrap();
            caller.write_all(said.as_bytes()).await.unwrap();
            is_closed(&mut caller, &clock, said).await;
        }
        let _caller = caller(address).await;
        assert!(connections.next().await.unwrap().is_ok(), "the place is free");
    }

    #[tokio::test]
    async fn whoever_begins_gets_in_although_many_do_not() {
        let (address, mut connections) = accepted(4).await;
        let mut silent = Vec::new();
        for _ in 0..BEGINNERS + 40 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let _caller = caller(address).await;
        assert!(connections.next().await.unwrap().is_ok(), "and time has not passed");
        let mut closed = 0;
        for stream in &mut silent[..40] {
            closed += usize::from(matches!(stream.read(&mut [0]).await, Ok(0) | Err(_)));
        }
        assert_eq!(closed, 40, "the oldest made room");
    }

    #[tokio::test]
    async fn a_connection_without_calls_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock = Arc::new(VirtualClock::at(0));
        let mut connections = super::accepted(listener, None, clock.clone(), 2, true);
        let _caller = caller(address).await;
        let mut connection = connections.next().await.unwrap().unwrap();
        let mut word = [0; PREFACE.len()];
        connection.read_exact(&mut word).await.unwrap();
        let ticket = connection.connect_info().cut.ticket();
        let mut word = [0; 1];
        let mut waits = async |wait: Duration| {
            clock.advance(wait);
            tokio::select! {
                biased;
                read = connection.read(&mut word) => Some(read.unwrap_err().kind()),
                () = tokio::task::yield_now() => None,
            }
        };
        assert_eq!(waits(FIRST_CALL).await, None, "a call is under way");
        assert_eq!(waits(IDLE * 4).await, None, "and still is");
        drop(ticket);
        assert_eq!(waits(IDLE).await, Some(io::ErrorKind::TimedOut));
    }

    #[tokio::test]
    async fn some_places_are_for_administrators() {
        let places = Places::new(64, true, true);
        let admin = Some(Ok(Role::Admin));
        let cluster = Some(Ok(Role::Cluster("shop".into())));
        let mut taken = Vec::new();
        for _ in 0..62 {
            taken.push(places.take(cluster.as_ref()).await.unwrap());
        }
        tokio::select! {
            biased;
            _ = places.take(cluster.as_ref()) => panic!("all ordinary places are taken"),
            () = tokio::task::yield_now() => {}
        }
        for _ in 0..2 {
            taken.push(places.take(admin.as_ref()).await.unwrap());
        }
        assert_eq!(Places::new(64, false, true).ordinary.available_permits(), 64, "nobody can be told apart");
    }

    #[test]
    fn the_page_about_security_states_these_bounds() {
        let page = include_str!("../../../docs/security.md");
        let seconds = |what: &str, wait: Duration| format!("| {what} | {} s |", wait.as_secs());
        for row in [
            seconds("time to begin: the TLS handshake, or the words with which HTTP/2 begins", HANDSHAKE),
            seconds("time from the beginning of a connection to its first call", FIRST_CALL),
            format!("is sent away | {BEGINNERS} |"),
            format!("after its last call has ended | {} min |", IDLE.as_secs() / 60),
        ] {
            assert!(page.contains(&row), "{row}");
        }
    }
}
