//! Serving pages, and small questions over HTTP: the same accepting as for calls, on shorter terms.
//!
//! A caller that begins a request and does not go on keeps a place and a file descriptor; enough of them would keep out
//! everybody else. So a connection without a whole request is closed, what a request carries must arrive in time, and how
//! much of it may wait is bounded.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use rustls::server::ServerConfig;
use tokio::net::TcpListener;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::accept::{Terms, accepted};
use crate::budget::{Budget, InFlight, Lease, Purse};
use crate::calls::MESSAGE;
use crate::clock::{Clock, Sleep, SystemClock};
use crate::connection::{Connection, Peer, Ticket};

/// How long a connection may be open after its last answer was given. Whoever asks over a kept connection opens another.
const IDLE: Duration = Duration::from_mins(1);

/// Serves pages until `stop`: at most so many connections at once, and none that does not go on with what it began.
pub async fn serve(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    most: usize,
    app: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    serve_by(Arc::new(SystemClock::start()), listener, tls, most, app, stop).await
}

async fn serve_by(
    clock: Arc<dyn Clock>,
    listener: TcpListener,
    tls: Option<ServerConfig>,
    most: usize,
    app: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let connections = accepted(listener, tls, clock.clone(), Terms { most, idle: IDLE });
    let counts = Counts { budget: Budget::new(InFlight::default()), clock };
    let app = app.layer(middleware::from_fn_with_state(counts, counted));
    let service = app.into_make_service_with_connect_info::<Peer>();
    axum::serve(Callers { address, connections }, service).with_graceful_shutdown(stop).await
}

/// Connections as axum wants them.
struct Callers {
    address: SocketAddr,
    connections: ReceiverStream<io::Result<Connection>>,
}

impl Listener for Callers {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.connections.next().await {
                Some(Ok(connection)) => {
                    let address = connection.peer().address.unwrap_or(self.address);
                    return (connection, address);
                }
                Some(Err(error)) => tracing::warn!(%error, "a connection could not be accepted"),
                // The acceptor is gone only with the runtime.
                None => std::future::pending().await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Connected<IncomingStream<'_, Callers>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Callers>) -> Self {
        stream.io().peer().clone()
    }
}

/// What requests are counted with.
#[derive(Clone)]
struct Counts {
    budget: Budget,
    clock: Arc<dyn Clock>,
}

/// Lets the connection know that it is in use, and bounds what the request carries.
async fn counted(
    State(counts): State<Counts>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let ticket = peer.cut.ticket();
    let Counts { budget, clock } = counts;
    let lease = Purse::new(&budget, Some(&peer)).lease();
    let late = clock.sleep(MESSAGE);
    let request = request.map(|body| Body::new(Carried { body, lease, late, is_over: false }));
    next.run(request).await.map(|body| Body::new(Given { body, _ticket: ticket }))
}

/// What a request carries: counted while anybody has it, and in time.
struct Carried {
    body: Body,
    lease: Lease,
    late: Sleep,
    is_over: bool,
}

impl HttpBody for Carried {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        let status = match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let grown = this.lease.grow(frame.data_ref().map_or(0, Bytes::len));
                match grown {
                    Ok(()) => return Poll::Ready(Some(Ok(frame))),
                    Err(over) => Status::from(over),
                }
            }
            Poll::Pending if this.late.as_mut().poll(cx).is_ready() => {
                Status::deadline_exceeded(format!("the request did not arrive within {MESSAGE:?}"))
            }
            other => return other,
        };
        this.is_over = true;
        Poll::Ready(Some(Err(axum::Error::new(status))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer that is being given: as long as it is, its connection is in use.
struct Given {
    body: Body,
    _ticket: Ticket,
}

impl HttpBody for Given {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::clock::VirtualClock;

    const PLACES: usize = 16;

    async fn served() -> (SocketAddr, Arc<VirtualClock>, JoinHandle<io::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock = Arc::new(VirtualClock::at(0));
        let echo = async |said: String| said;
        let app = Router::new().route("/healthz", get(|| async { "ok\n" })).route("/say", post(echo));
        let serving = serve_by(clock.clone(), listener, None, PLACES, app, std::future::pending());
        (address, clock, tokio::spawn(serving))
    }

    async fn says(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Lets time pass until something is answered, or the connection is closed.
    async fn answer(stream: &mut TcpStream, clock: &VirtualClock) -> String {
        let mut answer = vec![0; 512];
        for _ in 0..1_000_000 {
            tokio::select! {
                biased;
                read = stream.read(&mut answer) => {
                    answer.truncate(read.unwrap_or(0));
                    return String::from_utf8(answer).unwrap();
                }
                () = tokio::task::yield_now() => clock.advance(Duration::from_millis(10)),
            }
        }
        panic!("nothing comes for ever")
    }

    #[tokio::test]
    async fn half_requests_give_their_places_up() {
        let (address, clock, serving) = served().await;
        let mut half = Vec::new();
        for _ in 0..PLACES {
            half.push(says(address, "GET /healthz HTTP/1.1\r\nhost:").await);
        }
        // Whoever finds no place within the time to begin comes back, as anybody would.
        for tries in 0.. {
            let mut whole =
                says(address, "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
            let answer = answer(&mut whole, &clock).await;
            if answer.starts_with("HTTP/1.1 200") {
                break;
            }
            assert!(tries < 10 && answer.is_empty(), "kept out for ever: {answer}");
        }
        serving.abort();
    }

    #[tokio::test]
    async fn whoever_has_asked_once_keeps_a_place_for_a_moment() {
        let (address, clock, serving) = served().await;
        let mut caller = says(address, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer(&mut caller, &clock).await.starts_with("HTTP/1.1 200"));
        caller.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert!(answer(&mut caller, &clock).await.starts_with("HTTP/1.1 200"));
        assert_eq!(answer(&mut caller, &clock).await, "", "it is closed");
        serving.abort();
    }

    #[tokio::test]
    async fn what_a_request_carries_arrives_in_time_or_is_not_waited_for() {
        let (address, clock, serving) = served().await;
        let head = "POST /say HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\n";
        let mut whole = says(address, &format!("{head}word")).await;
        assert!(answer(&mut whole, &clock).await.ends_with("word"));
        let mut half = says(address, &format!("{head}wo")).await;
        assert!(answer(&mut half, &clock).await.starts_with("HTTP/1.1 400"));
        serving.abort();
    }

    #[test]
    fn the_page_about_security_states_these_bounds() {
        let page = include_str!("../../../docs/security.md");
        let row = format!("after its last answer was given | {} s |", IDLE.as_secs());
        assert!(page.contains(&row), "{row}");
    }
}
