//! One open connection: who is at the other end, whether it is still used, and how it is ended.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::clock::{Clock, Sleep};
use crate::identity::{IdentityError, Role};

/// How long a connection may be open without a call having been made.
pub(crate) const FIRST_CALL: Duration = Duration::from_secs(30);

pub(crate) enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Io {
    pub(crate) fn peer(&self) -> (Option<SocketAddr>, Option<Result<Role, IdentityError>>) {
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
    /// When to look whether it is still used.
    look: Sleep,
    /// How long it may be open after its last call has ended.
    idle: Duration,
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
pub(crate) struct Ticket(Cut);

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

    /// Whether the connection is used or was since this was last asked.
    fn is_used(&self) -> bool {
        let mut state = self.state();
        let is_used = state.calls > 0 || state.called > state.seen;
        state.seen = state.called;
        is_used
    }

    /// Ends the connection.
    pub fn now(&self) {
        let mut state = self.state();
        state.is_cut = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// A seat on the connection, for one of those who share it.
    pub fn seat(&self) -> Seat {
        self.state().seats += 1;
        Seat(self.clone())
    }

    /// Whether it was ended; if not, the reader is woken when it is.
    fn poll(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state();
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
        let is_alone = self.0.state().seats == 1;
        if is_alone {
            self.0.now();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.state().seats -= 1;
    }
}

impl Connection {
    /// One that has just begun.
    pub(crate) fn new(io: Io, clock: Arc<dyn Clock>, idle: Duration, place: OwnedSemaphorePermit) -> Self {
        let (address, role) = io.peer();
        let peer = Peer { address, role, cut: Cut::default() };
        let look = clock.sleep(FIRST_CALL);
        Self { io, peer, clock, look, idle, _place: place }
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Ready if nobody uses the connection any more.
    fn poll_unused(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.look.as_mut().poll(cx).is_ready() {
            if !self.peer.cut.is_used() {
                return Poll::Ready(());
            }
            self.look = self.clock.sleep(self.idle);
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
