//! The operator of one cluster at work.
//!
//! ```text
//!   API server ──► watches ──┐                       ┌──► hands ──► API server
//!   shard ──► session ───────┼──► news ──► desk ─────┤
//!   shard ──► verdicts ──────┘             │         └──► session ──► shard
//!                                 decisions: bigfleet-operator
//! ```
//!
//! The desk owns all that the operator knows and decides with the pure code of `bigfleet-operator`. Everything around it
//! is a task that owns nothing; every queue between them has a bound. Nothing here listens but the port for metrics and
//! health: the shard is dialled, the API server is dialled.

mod amounts;
mod desk;
mod hands;
mod metrics;
mod news;
mod picture;
mod seen;
mod server_clock;
mod session;
mod status;
mod token;
mod upcoming;
mod verdicts;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use bigfleet_crds::{CapacityRequest, UpcomingNode};
use bigfleet_kube_common::server_unix_nanos;
use bigfleet_net::{Clock, DialError, TlsFiles, dial};
use bigfleet_operator::template::Template;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::{Client, ResourceExt as _};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use xxhash_rust::xxh3::xxh3_64;

use desk::Desk;
use hands::Hands;
use metrics::Metrics;
pub use metrics::specimen as metrics_specimen;
use news::News;
use seen::{NodeSeen, PodSeen, RequestSeen, UpcomingSeen};
pub use seen::{asked, counts_as_demand};

/// News that may wait for the desk.
const QUEUE: usize = 4096;

/// How an operator works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cluster it speaks for.
    pub cluster: String,
    /// Where the shard is.
    pub shard: String,
    /// The certificate, if the shard asks for one.
    pub tls: Option<TlsFiles>,
    /// What new machines are told.
    pub template: Template,
    /// How long bootstrap data is good for.
    pub blob_ttl: Duration,
    /// How often the whole demand is told again.
    pub interval: Duration,
    /// How long news is gathered before it is told.
    pub debounce: Duration,
    /// How long the cluster must be quiet before stuck pods raise a need.
    pub settle: Duration,
    /// Whether pods on nodes that are not the fleet's are left out of the demand.
    pub subtract_existing: bool,
    /// How long the API server keeps a watch open before it ends it and is asked to go on, in whole seconds.
    pub watch_for: Duration,
}

/// [`Settings::watch_for`] unless somebody says otherwise: less than the five minutes after which proxies lose patience.
pub const WATCH_FOR: Duration = Duration::from_secs(290);

/// Why an operator does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The shard's address.
    #[error("--shard: {0}")]
    Dial(#[from] DialError),
    /// The API server does not answer.
    #[error("the API server cannot be asked what it knows: {0}")]
    Api(#[from] kube::Error),
}

/// A running operator. Dropping it stops it.
pub struct Running {
    tasks: JoinSet<&'static str>,
    metrics: Metrics,
}

impl Running {
    /// Ends when a part of it has ended, which none should; says which.
    pub async fn ended(&mut self) -> &'static str {
        match self.tasks.join_next().await {
            Some(Ok(part)) => part,
            Some(Err(_)) => "a part that panicked",
            None => "everything",
        }
    }

    /// A handle on what it measures, for the HTTP port.
    pub fn health(&self) -> Health {
        Health(self.metrics.clone())
    }
}

/// What an operator says about itself.
#[derive(Clone)]
pub struct Health(Metrics);

impl Health {
    /// The metrics as text.
    pub fn metrics(&self) -> String {
        self.0.text()
    }

    /// Whether it has read the cluster once and reported it.
    pub fn ready(&self) -> Result<(), String> {
        if self.0.is_ready() { Ok(()) } else { Err("the cluster has not been read and reported yet".into()) }
    }
}

/// Starts an operator. The client must not try calls again by itself: a 429 is how an eviction is refused.
pub async fn start(settings: Settings, client: Client, clock: Arc<dyn Clock>) -> Result<Running, StartError> {
    let channel = dial(&settings.shard, settings.tls.as_ref())?;
    let hands = Hands::new(client.clone()).await?;
    let metrics = Metrics::new();
    let (news, inbox) = mpsc::channel(QUEUE);
    let mut tasks = JoinSet::new();
    let who = xxh3_64(settings.cluster.as_bytes());

    let (cluster, m) = (settings.cluster.clone(), metrics.clone());
    let watch_secs = u32::try_from(settings.watch_for.as_secs()).unwrap_or(u32::MAX);
    let session =
        session::keep(channel.clone(), cluster.clone(), who, clock.clone(), news.clone(), m.clone());
    tasks.spawn(async move {
        session.await;
        "session"
    });
    let verdicts = verdicts::listen(channel.clone(), cluster, who, clock.clone(), news.clone());
    tasks.spawn(async move {
        verdicts.await;
        "verdicts"
    });
    let requests = watch::watch::<DeserializeGuard<CapacityRequest>, _>(
        "requests",
        Api::all(client.clone()),
        |request| Some((key(request), Some(RequestSeen::read(request)))),
        News::Request,
        news.clone(),
        m.clone(),
        watch_secs,
    );
    tasks.spawn(async move {
        requests.await;
        "watch of requests"
    });
    let nodes = watch::watch::<Node, _>(
        "nodes",
        Api::all(client.clone()),
        |node| Some((node.name_any(), Some(NodeSeen::read(node)))),
        News::Node,
        news.clone(),
        m.clone(),
        watch_secs,
    );
    tasks.spawn(async move {
        nodes.await;
        "watch of nodes"
    });
    let pods = watch::watch::<Pod, _>(
        "pods",
        Api::all(client.clone()),
        |pod| Some((pod.uid()?, PodSeen::read(pod))),
        News::Pod,
        news.clone(),
        m.clone(),
        watch_secs,
    );
    tasks.spawn(async move {
        pods.await;
        "watch of pods"
    });
    let upcoming = watch::watch::<UpcomingNode, _>(
        "upcoming nodes",
        Api::all(client.clone()),
        |upcoming| Some((upcoming.name_any(), UpcomingSeen::read(upcoming))),
        News::Upcoming,
        news.clone(),
        m.clone(),
        watch_secs,
    );
    tasks.spawn(async move {
        upcoming.await;
        "watch of upcoming nodes"
    });
    let mut desk = Desk::new(settings, client.clone(), hands, channel, clock.clone(), news, metrics.clone());
    // Before anything is judged by the age of what the server made.
    desk.server_clock.note(server_unix_nanos(&client).await, clock.now_unix_nanos());
    tasks.spawn(async move {
        desk.run(inbox).await;
        "desk"
    });
    Ok(Running { tasks, metrics })
}

/// `namespace/name`.
fn key(request: &DeserializeGuard<CapacityRequest>) -> String {
    format!("{}/{}", request.namespace().unwrap_or_default(), request.name_any())
}
