//! The task that reads what one operator sends.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::limits::CLUSTER_NAME_BYTES;
use bigfleet_net::{Peer, Role};
use bigfleet_proto::v1alpha1::{BootstrapBlobResponse, Hello};
use bigfleet_shard::{Blob, Event};
use bytes::Bytes;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use super::frames::from_hex;
use super::inbound::Inbound;
use super::rollup::Rollups;
use super::{Line, Sessions};
use crate::core::Gone;

/// How long an operator may take to say hello.
const HELLO: Duration = Duration::from_secs(10);

/// Reads until the session is over, and says so to the shard.
pub(crate) async fn read(
    sessions: Sessions,
    line: Arc<Line>,
    peer: Option<Peer>,
    mut inbound: impl Stream<Item = Result<Bytes, Status>> + Unpin,
) {
    let inner = &sessions.0;
    let opened = tokio::select! {
        opened = open(&sessions, &line, peer.as_ref(), &mut inbound) => opened,
        () = line.is_over() => Err(None),
        () = inner.callers.sleep(HELLO) => {
            Err(Some(Status::invalid_argument(format!("no hello came within {HELLO:?}; send it first"))))
        }
    };
    match opened {
        Ok(cluster) => {
            tracing::info!(session = line.id.0, cluster = &*cluster, "an operator connected");
            let rollups = Rollups::new(line.id, cluster.clone(), inner.core.clone(), inner.metrics.clone());
            let ended = tokio::select! {
                ended = follow(&sessions, &line, &rollups, &mut inbound) => ended,
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
    peer: Option<&Peer>,
    inbound: &mut (impl Stream<Item = Result<Bytes, Status>> + Unpin),
) -> Result<Arc<str>, Option<Status>> {
    let first = inbound.next().await.ok_or(None)?.map_err(|_| None)?;
    let Inbound::Hello(hello) = read_frame(&first)? else {
        return Err(Some(Status::invalid_argument("the first frame must be a hello")));
    };
    check_name(&hello.cluster_id)?;
    if let Some(Some(role)) = peer.map(|peer| &peer.role) {
        let wanted = Role::Cluster(hello.cluster_id.as_str().into());
        let refused = match role {
            Ok(role) if *role == wanted => None,
            Ok(role) => Some(format!("the certificate is of {role}, not of {wanted}")),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = refused {
            sessions.0.metrics.identity_rejected();
            return Err(Some(Status::permission_denied(why)));
        }
    }
    let cluster: Arc<str> = hello.cluster_id.as_str().into();
    line.says_hello(&cluster);
    greet(sessions, line, &cluster, hello).await.map_err(stopping)?;
    Ok(cluster)
}

async fn greet(sessions: &Sessions, line: &Line, cluster: &Arc<str>, hello: Hello) -> Result<(), Gone> {
    let protocol = hello.protocol_version.into();
    sessions.0.core.tell(Event::Opened { session: line.id, cluster: cluster.clone(), protocol }).await
}

fn check_name(cluster: &str) -> Result<(), Status> {
    if cluster.is_empty() {
        return Err(Status::invalid_argument("the hello names no cluster; set cluster_id"));
    }
    if cluster.len() > CLUSTER_NAME_BYTES {
        let why = format!("cluster_id is longer than {CLUSTER_NAME_BYTES} bytes");
        return Err(Status::invalid_argument(why));
    }
    Ok(())
}

/// Takes frames until the stream ends; the status to end ours with.
async fn follow(
    sessions: &Sessions,
    line: &Line,
    rollups: &Rollups,
    inbound: &mut (impl Stream<Item = Result<Bytes, Status>> + Unpin),
) -> Option<Status> {
    while let Some(frame) = inbound.next().await {
        // A connection that broke needs no status; one that sends nonsense gets one.
        let frame = match frame {
            Ok(frame) => frame,
            Err(status) if status.code() == tonic::Code::OutOfRange => return Some(status),
            Err(_) => return None,
        };
        if let Err(status) = take(sessions, line, rollups, &frame).await {
            return Some(status);
        }
    }
    None
}

async fn take(sessions: &Sessions, line: &Line, rollups: &Rollups, frame: &Bytes) -> Result<(), Status> {
    let inner = &sessions.0;
    let session = line.id;
    let event = match read_frame(frame)? {
        Inbound::Rollup(bytes) => {
            rollups.take(bytes, inner.clock.now_unix_nanos());
            return Ok(());
        }
        Inbound::Hello(hello) => {
            let cluster: Arc<str> = hello.cluster_id.as_str().into();
            if !line.says_hello(&cluster) {
                let why =
                    format!("this session speaks for {:?}; open another for {cluster:?}", line.cluster());
                return Err(Status::invalid_argument(why));
            }
            return greet(sessions, line, &cluster, hello).await.map_err(stopping);
        }
        Inbound::Blob(response) => from_hex(&response.request_id).map(|request| Event::Blob {
            session,
            request,
            blob: blob(response),
        }),
        Inbound::Reclaim(ack) => from_hex(&ack.instruction_id).map(|instruction| Event::ReclaimAcked {
            session,
            instruction,
            nodes_started: ack.nodes_started,
        }),
        Inbound::Unknown => None,
    };
    let Some(event) = event else {
        // Answers to what we never asked, or frames of a newer protocol: harmless.
        inner.metrics.frame_ignored();
        return Ok(());
    };
    inner.core.tell(event).await.map_err(stopping)
}

fn blob(response: BootstrapBlobResponse) -> Result<Blob, String> {
    if response.error.is_empty() {
        Ok(Blob { user_data: response.user_data.into(), ttl_secs: response.ttl_seconds })
    } else {
        Err(response.error)
    }
}

fn read_frame(frame: &Bytes) -> Result<Inbound, Status> {
    Inbound::read(frame).map_err(|error| Status::invalid_argument(format!("a frame is no message: {error}")))
}

fn stopping(gone: Gone) -> Status {
    Status::unavailable(gone.to_string())
}
