//! The line questions go over: to a server, or to a decision record on this disk, which answers in this very process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use anyhow::{Context as _, bail};
use bigfleet_net::SystemClock;
use bigfleet_record::tape::Reader;
use bigfleet_shard::{Config, Memory, Shard, Step};
use bigfleet_view::v1::view_server::ViewServer;
use bigfleet_view::{About, Gone, Shards, View, view_server};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, StdError, http};
use tonic::transport::Channel;

/// Where questions go.
#[derive(Clone)]
pub(crate) enum Line {
    Wire(Channel),
    Record(ViewServer<View<Stopped>>),
}

impl Service<http::Request<Body>> for Line {
    type Response = http::Response<Body>;
    type Error = StdError;
    type Future = BoxFuture<Self::Response, StdError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        match self {
            Self::Wire(channel) => channel.poll_ready(cx).map_err(Into::into),
            Self::Record(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        match self {
            Self::Wire(channel) => {
                let answer = channel.call(request);
                Box::pin(async move { answer.await.map_err(Into::into) })
            }
            Self::Record(server) => {
                let answer = server.call(request);
                Box::pin(async move { answer.await.map_err(|never| match never {}) })
            }
        }
    }
}

/// A shard that runs no more: of it there is only the record.
pub(crate) struct Stopped {
    shard: Mutex<Shard>,
    now_unix_nanos: i64,
    cycles: watch::Sender<u64>,
}

impl Shards for Stopped {
    async fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&Shard, i64) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        Ok(look(&self.shard.lock().expect("no holder panics"), self.now_unix_nanos))
    }

    async fn command<R: Send + 'static>(
        &self,
        _: impl FnOnce(&mut Shard, i64, &mut Step) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        Err(Gone)
    }

    fn cycles(&self) -> watch::Receiver<u64> {
        self.cycles.subscribe()
    }
}

/// The folder of a record: it, or the one inside of a data folder.
pub(crate) fn folder(path: &Path) -> anyhow::Result<PathBuf> {
    let inside = path.join("record");
    let folder = if inside.is_dir() { inside } else { path.to_owned() };
    if !folder.is_dir() {
        bail!("{} is no folder; give a data folder of a shard, or the record in it", path.display());
    }
    Ok(folder)
}

impl Line {
    /// A line to a record on this disk.
    pub(crate) fn to_record(path: &Path) -> anyhow::Result<Self> {
        let folder = folder(path)?;
        let reader = Reader::open(&folder).with_context(|| format!("the record in {}", folder.display()))?;
        let Some(last) = reader.last()? else { bail!("the record in {} is empty", folder.display()) };
        let now = last.now_unix_nanos;
        let shard = Shard::new(Config::new("record", 1, Vec::new()), Memory::default(), now);
        let stopped = Stopped { shard: Mutex::new(shard), now_unix_nanos: now, cycles: watch::channel(0).0 };
        let about = About {
            server_version: env!("CARGO_PKG_VERSION").into(),
            simulated: false,
            record_dir: Some(folder),
            record_only: true,
            clock: Arc::new(SystemClock::start()),
        };
        Ok(Self::Record(view_server(View::new(Arc::new(stopped), about))))
    }
}
