//! Clouds and shards to test with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::{Clock, SystemClock};
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_provider_kit::{Handle, Lister, Outputs, ServeError, Server, Settings as Serving, Store};
use bigfleet_provider_sim::{Config as Cloud, Sim};
use bigfleet_shard::{Config, ProviderConfig, SECOND};
use bigfleet_shard_server::{ProviderAddress, Running, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longer than anything takes; a test that gets here has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::start())
}

/// Waits for something, or fails the test.
pub(crate) async fn soon<T>(what: &str, wanted: impl Future<Output = T>) -> T {
    tokio::select! {
        got = wanted => got,
        () = clock().sleep(PATIENCE) => panic!("waited too long for {what}"),
    }
}

/// Asks again and again until the answer is yes.
pub(crate) async fn until<Fut: Future<Output = bool>>(what: &str, mut is: impl FnMut() -> Fut) {
    let asking = async {
        while !is().await {
            clock().sleep(Duration::from_millis(20)).await;
        }
    };
    soon(what, asking).await;
}

/// A provider on a socket.
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), ServeError>>,
}

impl Provider {
    pub(crate) async fn serve(
        service: impl CapacityProvider + Lister + Outputs,
        handle: Handle,
        address: SocketAddr,
    ) -> Self {
        let settings = Serving { stop_grace: Duration::from_millis(200), ..Serving::plain(address) };
        let server = Server::bind(service, handle, settings).await.unwrap();
        let address = server.grpc_addr();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(server.run(async { drop(stopped.await) }));
        Self { address, stop, ended }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        soon("the provider to stop", self.ended).await.unwrap().unwrap();
    }
}

/// A cloud of so many machines, quick and without surprises.
pub(crate) async fn cloud(name: &str, machines: usize) -> Sim {
    Sim::open(Cloud::for_test_suites(name, machines), Store::memory(), clock()).await.unwrap()
}

pub(crate) fn anywhere() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A shard that is in a hurry.
pub(crate) fn hasty() -> Config {
    let mut config = Config::new("s1", 0, Vec::new());
    config.pace.tick = SECOND;
    config.pace.min_spacing = SECOND / 50;
    config.patience.retry_first = SECOND / 10;
    config
}

/// A provider that is listed often.
pub(crate) fn listed_often(name: &str, address: String) -> ProviderAddress {
    let config =
        ProviderConfig { list_every: SECOND / 5, stale_after: SECOND, ..ProviderConfig::named(name) };
    ProviderAddress { config, address }
}

pub(crate) async fn start(settings: Settings) -> Running {
    bigfleet_shard_server::start(settings, clock()).await.unwrap()
}

/// A shard over one cloud.
pub(crate) async fn shard_over(provider: &Provider) -> Running {
    start(Settings::local(hasty(), vec![listed_often("sim", provider.url())])).await
}

/// The status line and the body of an answer.
pub(crate) async fn http_get(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

/// What `/readyz` says: nothing if ready, else the reason.
pub(crate) async fn unready(running: &Running) -> Option<String> {
    let (status, body) = http_get(running.http.unwrap(), "/readyz").await;
    if status.contains("200") {
        None
    } else {
        assert!(status.contains("503"), "{status}");
        Some(body)
    }
}

pub(crate) async fn until_ready(running: &Running) {
    until("the shard to be ready", || async { unready(running).await.is_none() }).await;
}

pub(crate) async fn scrape(running: &Running) -> String {
    http_get(running.http.unwrap(), "/metrics").await.1
}

/// The value of one series; none if it is not there.
pub(crate) fn series(text: &str, name: &str) -> Option<f64> {
    // Every series says whose it is; the tests have one shard.
    let text = text.replace("{shard=\"s1\"}", "").replace("{shard=\"s1\",", "{");
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}
