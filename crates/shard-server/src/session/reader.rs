//! What operators send: `Shard.Session` on the wire, and the task that reads it. The service is written by hand because the
//! generated server decodes every frame before anybody can look at it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bigfleet_border::session::{Rollups, Session, Taken};
use bigfleet_model::limits::FRAME_BYTES;
use bigfleet_net::{Peer, Purse, Role};
use bigfleet_shard::Event;
use bytes::Bytes;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Code, Request, Response, Status, Streaming};

use super::line::Frames;
use super::rollups::Desk;
use super::{Line, Sessions};
use crate::core::Gone;
use crate::raw::Raw;

/// How long an operator may take to say hello.
const HELLO: Duration = Duration::from_secs(10);

/// The service.
#[derive(Clone)]
pub(crate) struct SessionService(pub(crate) Sessions);

impl NamedService for SessionService {
    const NAME: &'static str = "bigfleet.v1alpha1.Shard";
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Service<http::Request<Body>> for SessionService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            if request.uri().path() != "/bigfleet.v1alpha1.Shard/Session" {
                return Ok(Status::unimplemented("there is only Session").into_http());
            }
            let mut grpc = Grpc::new(Raw).max_decoding_message_size(FRAME_BYTES);
            Ok(grpc.streaming(service, request).await)
        })
    }
}

impl StreamingService<Bytes> for SessionService {
    type Response = Bytes;
    type ResponseStream = Frames;
    type Future = BoxFuture<Result<Response<Frames>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let Self(sessions) = self.clone();
        Box::pin(async move {
            let line = sessions.add()?;
            let peer = request.extensions().get::<Peer>().cloned();
            if let Some(peer) = &peer {
                line.sits_on(peer.cut.seat());
            }
            let frames = Frames::new(Arc::clone(&line), sessions.clone());
            let purse = request.extensions().get::<Purse>().cloned();
            // The answer begins at once: some operators wait for its head before they say hello.
            tokio::spawn(read(sessions, line, peer, purse, request.into_inner()));
            Ok(Response::new(frames))
        })
    }
}

/// Reads until the session is over, and says so to the shard.
async fn read(
    sessions: Sessions,
    line: Arc<Line>,
    peer: Option<Peer>,
    purse: Option<Purse>,
    mut inbound: impl Stream<Item = Result<Bytes, Status>> + Unpin,
) {
    let inner = &sessions.0;
    let mut session = Session::new(line.id);
    let opened = tokio::select! {
        opened = open(&sessions, &line, &mut session, peer.as_ref(), &mut inbound) => opened,
        () = line.is_over() => Err(None),
        () = inner.callers.sleep(HELLO) => {
            Err(Some(Status::invalid_argument(format!("no hello came within {HELLO:?}; send it first"))))
        }
    };
    match opened {
        Ok(cluster) => {
            tracing::info!(session = line.id.0, cluster = &*cluster, "an operator connected");
            let rollups = Rollups::new(line.id, cluster.clone());
            let desk = Desk::new(rollups, purse, &sessions);
            let ended = tokio::select! {
                ended = follow(&sessions, &mut session, &desk, &mut inbound) => ended,
                () = line.is_over() => None,
            };
            tracing::info!(session = line.id.0, cluster = &*cluster, status = ?ended, "a session is over");
            line.end(ended);
            // A shard that stops has ended all sessions itself.
            let _ = inner.core.tell(Event::Closed { session: line.id }).await;
        }
        Err(status) => {
            if let Some(status) = &status {
                inner.metrics.session_ended("refused");
                tracing::info!(session = line.id.0, %status, "a session was refused");
            }
            line.end(status);
        }
    }
    sessions.remove(line.id);
}

/// The first frame must be a hello, from somebody who may speak for that cluster.
async fn open(
    sessions: &Sessions,
    line: &Line,
    session: &mut Session,
    peer: Option<&Peer>,
    inbound: &mut (impl Stream<Item = Result<Bytes, Status>> + Unpin),
) -> Result<Arc<str>, Option<Status>> {
    let about_the_frame = |status| Some(status).filter(is_about_the_frame);
    let first = inbound.next().await.ok_or(None)?.map_err(about_the_frame)?;
    let taken = session.take(&first, |cluster| vouch(peer, cluster)).inspect_err(|status| {
        if status.code() == Code::PermissionDenied {
            sessions.0.metrics.identity_rejected();
        }
    })?;
    let (Taken::Tell(event), Some(cluster)) = (taken, session.cluster()) else {
        return Err(Some(Status::internal("a session is open that has not said hello")));
    };
    if let Some(bindings) = &sessions.0.bindings
        && let Some(refusal) = bindings.refuse(cluster).await
    {
        return Err(Some(refusal));
    }
    line.speaks_for(cluster.clone());
    sessions.0.core.tell(event).await.map_err(stopping)?;
    Ok(cluster.clone())
}

/// Whether whoever sits at the other end may speak for this cluster.
fn vouch(peer: Option<&Peer>, cluster: &str) -> Result<(), String> {
    let Some(Some(role)) = peer.map(|peer| &peer.role) else { return Ok(()) };
    let wanted = Role::Cluster(cluster.into());
    match role {
        Ok(role) if *role == wanted => Ok(()),
        Ok(role) => Err(format!("the certificate is of {role}, not of {wanted}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Takes frames until the stream ends; the status to end ours with.
async fn follow(
    sessions: &Sessions,
    session: &mut Session,
    desk: &Desk,
    inbound: &mut (impl Stream<Item = Result<Bytes, Status>> + Unpin),
) -> Option<Status> {
    while let Some(frame) = inbound.next().await {
        // A connection that broke needs no status; one that sends nonsense gets one.
        let frame = match frame {
            Ok(frame) => frame,
            Err(status) if is_about_the_frame(&status) => return Some(status),
            Err(_) => return None,
        };
        if let Err(status) = take(sessions, session, desk, &frame).await {
            return Some(status);
        }
    }
    None
}

/// Whether the other end is still there and must be told what is wrong with what it sends: too large, too much, too slow.
fn is_about_the_frame(status: &Status) -> bool {
    matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted | Code::DeadlineExceeded)
}

async fn take(sessions: &Sessions, session: &mut Session, desk: &Desk, frame: &Bytes) -> Result<(), Status> {
    let inner = &sessions.0;
    // It was vouched for when it opened, and speaks for no other cluster.
    match session.take(frame, |_| Ok(()))? {
        Taken::Tell(event) => inner.core.tell(event).await.map_err(stopping)?,
        Taken::Rollup(bytes) => desk.take(bytes, inner.clock.now_unix_nanos())?,
        Taken::Ignored => inner.metrics.frame_ignored(),
    }
    Ok(())
}

fn stopping(gone: Gone) -> Status {
    Status::unavailable(gone.to_string())
}
