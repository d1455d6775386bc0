//! A listener for callers who may be slow, but not for ever, and not too many of them at once.
//!
//! The HTTP port is asked short questions. A caller that begins one and does not go on keeps a place and a file descriptor;
//! enough of them would keep out everybody else, and then operators too. So there are few places, and a connection on which
//! nothing comes for a while, or that is as old as no question is, gives its place up.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::{Clock, Sleep};

/// How many connections may be open at once. Further ones wait in the system's queue.
const PLACES: usize = 128;
/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(30);
/// How old a connection may be. Whoever scrapes over a kept connection opens another.
const AGE: Duration = Duration::from_mins(5);
/// How long to wait after the system refused to accept.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Patient {
    listener: TcpListener,
    places: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
}

impl Patient {
    pub(crate) fn new(listener: TcpListener, clock: Arc<dyn Clock>) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(PLACES)), clock }
    }
}

impl Listener for Patient {
    type Io = Watched;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Watched, SocketAddr) {
        let place = self.places.clone().acquire_owned().await.expect("nobody closes the places");
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let (silence, age) = (self.clock.sleep(SILENCE), self.clock.sleep(AGE));
                    let clock = self.clock.clone();
                    return (Watched { stream, clock, silence, age, _place: place }, address);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    self.clock.sleep(PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection whose time is counted.
pub(crate) struct Watched {
    stream: TcpStream,
    clock: Arc<dyn Clock>,
    silence: Sleep,
    age: Sleep,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.age.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.silence = self.clock.sleep(SILENCE);
            return read;
        }
        match self.silence.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::clock::VirtualClock;

    #[tokio::test]
    async fn half_requests_give_their_places_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock = Arc::new(VirtualClock::at(0));
        let app = Router::new().route("/healthz", get(|| async { "ok\n" }));
        let patient = Patient::new(listener, clock.clone());
        let serving = tokio::spawn(async move { axum::serve(patient, app).await });
        let mut half = Vec::new();
        for _ in 0..PLACES {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost:").await.unwrap();
            half.push(stream);
        }
        let mut whole = TcpStream::connect(address).await.unwrap();
        whole.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        let mut waited = 0;
        loop {
            tokio::select! {
                biased;
                read = whole.read_exact(&mut answer) => {
                    read.unwrap();
                    break;
                }
                () = tokio::task::yield_now() => clock.advance(Duration::from_millis(10)),
            }
            waited += 1;
            assert!(waited < 1_000_000, "whoever asks a whole question is kept out for ever");
        }
        assert_eq!(&answer, b"HTTP/1.1 200");
        serving.abort();
    }
}
