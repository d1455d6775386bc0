//! Accepting connections: plain or TLS, never more than a fixed number at once.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::server::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::clock::Clock;

/// How many connections may be open; further ones wait in the system's queue.
const CONNECTIONS: usize = 1024;
/// How long a caller may take to begin: the TLS handshake, or the first byte in plaintext.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long to wait after the system refused to accept, for example for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the stream is dropped.
pub(crate) fn incoming(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    clock: Arc<dyn Clock>,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(64);
    let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    tokio::spawn(accept(listener, acceptor, clock, sender));
    ReceiverStream::new(receiver)
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    clock: Arc<dyn Clock>,
    sender: mpsc::Sender<io::Result<Connection>>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
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
                    Ok(io) => drop(sender.send(Ok(Connection { io, _place: place })).await),
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
pub(crate) struct Connection {
    io: Io,
    _place: OwnedSemaphorePermit,
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        match &self.io {
            Io::Plain(stream) => stream.connect_info(),
            Io::Tls(stream) => stream.get_ref().0.connect_info(),
        }
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
