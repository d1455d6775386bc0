//! A replica that serves: listens, runs, and stops when told.

use std::net::SocketAddr;
use std::sync::Arc;

use bigfleet_net::{CallLayer, Clock, SystemClock, TlsError, TlsFiles, http, reflection, until};
use bigfleet_proto::transport;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic_reflection::server::Builder;

use crate::export::{self, Export};
use crate::metrics::Metrics;
use crate::replica::{ReplicaError, Running as Replica, replica};
use crate::service::Service;
use crate::store::Store;

/// How many connections are open at once: shards, and people who look.
const MOST_CONNECTIONS: usize = 10_000;

/// What a coordinator runs with.
#[derive(Debug)]
pub struct Settings {
    /// Where it serves.
    pub listen: SocketAddr,
    /// Where others reach it, as host:port or a URL; empty: where it listens.
    pub advertise: String,
    /// Where metrics and health are read.
    pub http: Option<SocketAddr>,
    /// Certificates, for both sides.
    pub tls: Option<TlsFiles>,
    /// Where the fleet is kept.
    pub store: Store,
    /// Whether the leader has etcd forget its past and give room back.
    pub tidies: bool,
    /// Snapshots on a schedule.
    pub export: Option<Export>,
}

/// Why a coordinator does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("{address} cannot be listened on: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A coordinator that serves.
#[derive(Debug)]
pub struct Running {
    /// Where.
    pub address: SocketAddr,
    /// Where metrics and health are read.
    pub http: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    replica: JoinHandle<Result<(), ReplicaError>>,
    calls: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Running {
    /// Waits for its end: it was stopped, or its store cannot be used.
    pub async fn ended(&mut self) -> Result<(), ReplicaError> {
        match (&mut self.replica).await {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Ends streams, answers what was asked, gives the leadership up.
    pub async fn stop(mut self) -> Result<(), ReplicaError> {
        self.stop.send_replace(true);
        let _ = (&mut self.calls).await;
        // With the last handler gone nobody can call, and the replica ends.
        self.ended().await
    }
}

/// Starts on the present runtime.
pub async fn start(settings: Settings) -> Result<Running, StartError> {
    start_by(settings, Arc::new(SystemClock::start())).await
}

/// The same, by a clock of the caller's.
pub async fn start_by(settings: Settings, clock: Arc<dyn Clock>) -> Result<Running, StartError> {
    let tls = settings.tls.as_ref().map(TlsFiles::server_config).transpose()?;
    let listener = listen(settings.listen).await?;
    let address = listener.local_addr().unwrap_or(settings.listen);
    let metrics = Metrics::default();
    let (stop, stops) = watch::channel(false);
    let (caller, calls) = replica();
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let advertised = match settings.advertise.as_str() {
        "" => format!("{scheme}://{address}"),
        given if given.contains("://") => given.to_owned(),
        given => format!("{scheme}://{given}"),
    };
    let running = Replica {
        store: settings.store.clone(),
        address: advertised,
        tidies: settings.tidies,
        clock: clock.clone(),
        metrics: metrics.clone(),
    };
    let replica = tokio::spawn(running.run(calls));
    if let Some(export) = settings.export {
        tokio::spawn(export::run(export, caller.clone(), clock, stops.clone()));
    }
    let http_address = match settings.http {
        None => None,
        Some(address) => {
            let listener = listen(address).await?;
            let bound = listener.local_addr().unwrap_or(address);
            tokio::spawn(serve_http(listener, caller.clone(), metrics.clone(), stops.clone()));
            Some(bound)
        }
    };
    let store = settings.store.name();
    let service = Service { replica: caller, metrics, store, is_stopping: stops.clone() };
    let files = &[bigfleet_proto::FLEET_FILE_DESCRIPTOR_SET];
    let layer = CallLayer::usual();
    let routes = transport::server()
        .layer(layer.clone())
        .add_service(transport::coordinator_server(service.clone()))
        .add_service(transport::fleet_server(service))
        .add_service(reflection(files, Builder::build_v1));
    let connections = layer.incoming(listener, tls, MOST_CONNECTIONS);
    let calls = tokio::spawn(routes.serve_with_incoming_shutdown(connections, until(stops)));
    tracing::info!(%address, store, "the coordinator is up");
    Ok(Running { address, http: http_address, stop, replica, calls })
}

async fn serve_http(
    listener: TcpListener,
    replica: crate::replica::Replica,
    metrics: Metrics,
    stops: watch::Receiver<bool>,
) {
    let ready = move || {
        let replica = replica.clone();
        // A replica is ready when it knows what is stored, whether it leads or not.
        async move {
            match replica.look(|state| state.is_loaded).await {
                Ok(true) => Ok(()),
                Ok(false) => Err("the store has not answered yet".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        }
    };
    let scrape = move || {
        let metrics = metrics.clone();
        async move { metrics.text() }
    };
    if let Err(error) = http::serve(listener, http::router(ready, scrape), until(stops)).await {
        tracing::error!(%error, "metrics and health are not served any more");
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })
}
