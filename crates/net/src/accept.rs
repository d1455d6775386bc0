//! Accepting connections: plain or TLS, never more than a fixed number at once, some of the places for administrators.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::server::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;

use crate::clock::Clock;
use crate::connection::{Connection, Io};
use crate::identity::{IdentityError, Role};

/// How long a caller may take to begin: the TLS handshake, or the words with which HTTP/2 begins.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How every HTTP/2 connection begins.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long to wait for the rest of it.
const MORE: Duration = Duration::from_millis(20);
/// How many callers may be about to begin. For one more, the one that has been at it for longest is sent away.
const BEGINNERS: usize = 256;
/// How long to wait after the system refused to accept, for example for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// On which terms connections are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// How many are open at once, beyond those that are about to begin.
    pub(crate) most: usize,
    /// How long one may be open after its last call has ended.
    pub(crate) idle: Duration,
}

/// Accepts connections until the stream is dropped. Where callers have certificates, some of the places are for
/// administrators alone. A connection without calls is closed; whoever serves calls takes a ticket for each.
pub(crate) fn accepted(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    clock: Arc<dyn Clock>,
    terms: Terms,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(64);
    let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    let places = Places::new(terms.most, acceptor.is_some());
    tokio::spawn(accept(listener, acceptor, clock, sender, (places, terms.idle)));
    ReceiverStream::new(receiver)
}

/// Places for connections.
#[derive(Clone)]
struct Places {
    ordinary: Arc<Semaphore>,
    /// For administrators.
    kept: Arc<Semaphore>,
}

impl Places {
    fn new(most: usize, has_identities: bool) -> Self {
        let kept = if has_identities { (most / 32).min(64) } else { 0 };
        let [ordinary, kept] = [most - kept, kept].map(|places| Arc::new(Semaphore::new(places)));
        Self { ordinary, kept }
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
    (places, idle): (Places, Duration),
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
                opened = open(stream, tls, &clock, &places, idle) => match opened {
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
    idle: Duration,
) -> io::Result<Connection> {
    stream.set_nodelay(true)?;
    let io = match tls {
        None => {
            preface(&stream, &**clock).await?;
            Io::Plain(stream)
        }
        Some(acceptor) => Io::Tls(Box::new(acceptor.accept(stream).await?)),
    };
    let (_, role) = io.peer();
    let place = places.take(role.as_ref()).await?;
    Ok(Connection::new(io, clock.clone(), idle, place))
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

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_stream::StreamExt;
    use tonic::transport::server::Connected as _;

    use super::*;
    use crate::clock::{SystemClock, VirtualClock};
    use crate::connection::FIRST_CALL;

    const IDLE: Duration = crate::calls::IDLE;

    fn incoming(
        listener: TcpListener,
        clock: Arc<dyn Clock>,
        most: usize,
    ) -> ReceiverStream<io::Result<Connection>> {
        super::accepted(listener, None, clock, Terms { most, idle: IDLE })
    }

    async fn accepted(most: usize) -> (SocketAddr, ReceiverStream<io::Result<Connection>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address, incoming(listener, Arc::new(SystemClock::start()), most))
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
        let mut connections = incoming(listener, clock.clone(), 1);
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
        let mut connections = incoming(listener, clock.clone(), 2);
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
        let places = Places::new(64, true);
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
        assert_eq!(Places::new(64, false).ordinary.available_permits(), 64, "nobody can be told apart");
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
