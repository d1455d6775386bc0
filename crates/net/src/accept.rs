//! Accepting connections: plain or TLS, never more than a fixed number at once.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustls::server::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::clock::Clock;
use crate::identity::{IdentityError, Role};

/// How long a caller may take to begin: the TLS handshake, or the first byte in plaintext.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long to wait after the system refused to accept, for example for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the stream is dropped. At most `most` are open at once; further ones wait in the system's
/// queue.
pub fn incoming(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    clock: Arc<dyn Clock>,
    most: usize,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(64);
    let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    tokio::spawn(accept(listener, acceptor, clock, sender, most));
    ReceiverStream::new(receiver)
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    clock: Arc<dyn Clock>,
    sender: mpsc::Sender<io::Result<Connection>>,
    most: usize,
) {
    let places = Arc::new(Semaphore::new(most));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
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
        let (tls, clock, sender) = (tls.clone(), clock.clone(), sender.clone());
        tokio::spawn(async move {
            let peer = stream.peer_addr().ok();
            tokio::select! {
                opened = open(stream, tls) => match opened {
                    // The server is gone if nobody takes it; then nobody is there to tell.
                    Ok(io) => drop(sender.send(Ok(Connection::new(io, place))).await),
                    Err(error) => tracing::info!(?peer, %error, "a connection was refused"),
                },
                () = clock.sleep(HANDSHAKE) => tracing::info!(?peer, "a handshake took too long"),
            }
        });
    }
}

async fn open(stream: TcpStream, tls: Option<TlsAcceptor>) -> io::Result<Io> {
    stream.set_nodelay(true)?;
    Ok(match tls {
        None => {
            // A caller speaks first in HTTP/2; one that says nothing must not keep a place.
            stream.readable().await?;
            Io::Plain(stream)
        }
        Some(acceptor) => Io::Tls(Box::new(acceptor.accept(stream).await?)),
    })
}

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// An open connection and the place it takes.
pub struct Connection {
    io: Io,
    peer: Peer,
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
struct CutState {
    is_cut: bool,
    seats: usize,
    reader: Option<Waker>,
}

impl Cut {
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
    fn new(io: Io, place: OwnedSemaphorePermit) -> Self {
        let (stream, role) = match &io {
            Io::Plain(stream) => (stream, None),
            Io::Tls(stream) => {
                let (stream, session) = stream.get_ref();
                (stream, session.peer_certificates().map(Role::of))
            }
        };
        let peer = Peer { address: stream.peer_addr().ok(), role, cut: Cut::default() };
        Self { io, peer, _place: place }
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
        if self.peer.cut.poll(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        delegate!(self, stream => stream.poll_read(cx, buf))
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
    use tokio::io::AsyncReadExt;
    use tokio_stream::StreamExt;

    use super::*;
    use crate::clock::SystemClock;

    async fn accepted(most: usize) -> (SocketAddr, ReceiverStream<io::Result<Connection>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address, incoming(listener, None, Arc::new(SystemClock::start()), most))
    }

    async fn caller(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.writable().await.unwrap();
        assert_eq!(stream.try_write(b"hello").unwrap(), 5, "a caller speaks first");
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
        let mut word = [0; 5];
        connection.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"hello", "the second must not notice the first");
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
}
