//! The shard's verdicts on this cluster's needs, over the connection the session already uses.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::Backoff;
use bigfleet_net::Clock;
use bigfleet_view::{cluster_view_client, v1};
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::news::News;

/// How long until a shard that does not tell verdicts is asked again: it may have been replaced by one that does.
const ASK_AGAIN: Duration = Duration::from_mins(5);
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), limit: Duration::from_secs(30) };

/// Listens until nobody does. A shard without this service is said once, and asked again now and then.
pub(crate) async fn listen(
    channel: Channel,
    cluster: String,
    who: u64,
    clock: Arc<dyn Clock>,
    news: mpsc::Sender<News>,
) {
    let mut failures = 0;
    loop {
        let begun = clock.now_unix_nanos();
        let Err(status) = one(&channel, &cluster, &news).await else { return };
        let lacks_it = matches!(status.code(), Code::Unimplemented | Code::PermissionDenied);
        if news.send(News::NoVerdicts(status.to_string())).await.is_err() {
            return;
        }
        if lacks_it {
            tracing::warn!(%status, "the shard tells no verdicts: requests show Accepted, and nothing about Covered and Joined");
            clock.sleep(ASK_AGAIN).await;
            continue;
        }
        failures = if clock.now_unix_nanos() - begun > bigfleet_net::nanos(BACKOFF.limit) {
            1
        } else {
            failures + 1
        };
        clock.sleep(BACKOFF.wait(failures, who)).await;
    }
}

async fn one(channel: &Channel, cluster: &str, news: &mpsc::Sender<News>) -> Result<(), Status> {
    let mut client = cluster_view_client(channel.clone());
    let request = v1::WatchVerdictsRequest { cluster_id: cluster.into(), min_interval_millis: 0 };
    let mut verdicts = client.watch_verdicts(request).await?.into_inner();
    while let Some(next) = verdicts.message().await? {
        if news.send(News::Verdicts(next)).await.is_err() {
            return Ok(());
        }
    }
    Err(Status::unavailable("the shard ended the verdicts"))
}

/// Tells the shard what the cluster sees of its nodes. What is lost is said again with the next change.
pub(crate) async fn report(channel: Channel, report: v1::NodeReport) {
    if let Err(status) = cluster_view_client(channel).report_nodes(report).await {
        tracing::debug!(%status, "the shard did not take the report about nodes");
    }
}
