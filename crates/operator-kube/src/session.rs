//! The session with the shard: dialled by us, opened again whenever it ends.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::Backoff;
use bigfleet_net::Clock;
use bigfleet_proto::v1alpha1::operator_message::Payload as Saying;
use bigfleet_proto::v1alpha1::shard_message::Payload as Heard;
use bigfleet_proto::v1alpha1::{Hello, OperatorMessage, ShardMessage};
use bigfleet_proto::{PROTOCOL_VERSION_ACKS_DONE, transport};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::metrics::Metrics;
use crate::news::News;

/// Frames that may wait to be sent.
const QUEUE: usize = 256;
/// How long the shard may take to answer the hello.
const PATIENCE: Duration = Duration::from_secs(15);
/// A session that lived this long was a good one: the next failure is the first again.
const GOOD: Duration = Duration::from_secs(30);
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), limit: Duration::from_secs(30) };

/// Keeps a session open until nobody listens. `who` spreads the waits of many operators.
pub(crate) async fn keep(
    channel: Channel,
    cluster: String,
    who: u64,
    clock: Arc<dyn Clock>,
    news: mpsc::Sender<News>,
    metrics: Metrics,
) {
    let mut failures = 0;
    loop {
        let begun = clock.now_unix_nanos();
        let ended = one(&channel, &cluster, &*clock, &news).await;
        let Err(status) = ended else { return };
        let lived = clock.now_unix_nanos().saturating_sub(begun);
        failures = if lived >= bigfleet_net::nanos(GOOD) { 1 } else { failures + 1 };
        metrics.session_ended();
        let wait = BACKOFF.wait(failures, who);
        tracing::warn!(%status, failures, wait_millis = wait.as_millis() as u64, "the session with the shard ended; dialling again");
        if news.send(News::Disconnected(status.message().to_owned())).await.is_err() {
            return;
        }
        clock.sleep(wait).await;
    }
}

/// One session, until it breaks, which is an error, or until nobody listens.
async fn one(
    channel: &Channel,
    cluster: &str,
    clock: &dyn Clock,
    news: &mpsc::Sender<News>,
) -> Result<(), Status> {
    let (out, frames) = mpsc::channel::<Saying>(QUEUE);
    let hello = Hello { cluster_id: cluster.into(), protocol_version: PROTOCOL_VERSION_ACKS_DONE.into() };
    // There is room: nothing was sent before.
    let _ = out.try_send(Saying::Hello(hello));
    let frames = ReceiverStream::new(frames).map(|payload| OperatorMessage { payload: Some(payload) });
    let mut client = transport::shard_client(channel.clone());
    let late = || Status::deadline_exceeded("the shard does not answer");
    let opened = tokio::select! {
        opened = client.session(frames) => opened?,
        () = clock.sleep(PATIENCE) => return Err(late()),
    };
    let mut heard = opened.into_inner();
    let first = tokio::select! {
        first = next(&mut heard) => first?,
        () = clock.sleep(PATIENCE) => return Err(late()),
    };
    if !matches!(&first, Heard::Ack(ack) if ack.echo == "hello") {
        return Err(Status::internal("the shard did not answer the hello"));
    }
    if news.send(News::Connected(out)).await.is_err() {
        return Ok(());
    }
    loop {
        let frame = next(&mut heard).await?;
        if news.send(News::Heard(frame)).await.is_err() {
            return Ok(());
        }
    }
}

/// The next frame that says something.
async fn next(frames: &mut Streaming<ShardMessage>) -> Result<Heard, Status> {
    loop {
        match frames.message().await? {
            Some(ShardMessage { payload: Some(heard) }) => return Ok(heard),
            // A frame of a newer build.
            Some(ShardMessage { payload: None }) => {}
            None => return Err(Status::unavailable("the shard ended the session")),
        }
    }
}
