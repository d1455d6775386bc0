//! A provider on a socket: the service, health, reflection, metrics, and an orderly end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bigfleet_net::{Budget, CallLayer, InFlight, SystemClock, TlsError, TlsFiles, http, reflection, until};
use bigfleet_proto::v1alpha1::capacity_provider_server::{CapacityProvider, CapacityProviderServer};
use bigfleet_proto::{STREAM_FILE_DESCRIPTOR_SET, transport};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic_reflection::server::Builder;

use crate::handle::Handle;
use crate::list::Lister;
use crate::output::{Asked, Outputs};
use crate::stream::Streamed;

/// How many connections may be open at once.
const CONNECTIONS: usize = 1024;

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the calls come in; port 0 takes any free one.
    pub grpc: SocketAddr,
    /// Where metrics and health are read, if anywhere.
    pub http: Option<SocketAddr>,
    /// TLS, if not plaintext.
    pub tls: Option<TlsFiles>,
    /// How long a stop waits for calls, and then for moves, to end.
    pub stop_grace: Duration,
}

impl Settings {
    /// Plaintext calls on this address and nothing else.
    pub fn plain(grpc: SocketAddr) -> Self {
        Self { grpc, http: None, tls: None, stop_grace: Duration::from_secs(10) }
    }
}

/// Why a provider could not serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}; is another process there? choose another address")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// TLS could not be set up.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The server ended by itself.
    #[error("the server has ended: {0}")]
    Ended(String),
}

/// A service bound to its sockets, not yet answering.
pub struct Server<S> {
    service: S,
    handle: Handle,
    settings: Settings,
    tls: Option<rustls::server::ServerConfig>,
    grpc: TcpListener,
    http: Option<TcpListener>,
}

impl<S: CapacityProvider + Lister + Outputs> Server<S> {
    /// Takes the sockets. `service` is a [`Provider`](crate::Provider), perhaps [meddled](crate::Meddled)
    /// with; `handle` is the provider's.
    pub async fn bind(service: S, handle: Handle, settings: Settings) -> Result<Self, ServeError> {
        let tls = settings.tls.as_ref().map(TlsFiles::server_config).transpose()?;
        let grpc = listen(settings.grpc).await?;
        let http = match settings.http {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        Ok(Self { service, handle, settings, tls, grpc, http })
    }

    /// Where the calls come in.
    pub fn grpc_addr(&self) -> SocketAddr {
        self.grpc.local_addr().unwrap_or(self.settings.grpc)
    }

    /// Where metrics are read.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop`, then lets calls and moves end within the grace, and lets go of the store.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), ServeError> {
        let clock = self.handle.clock();
        let ready = Arc::new(AtomicBool::new(true));
        let (halt, halted) = watch::channel(false);

        let (reporter, health) = tonic_health::server::health_reporter();
        reporter.set_serving::<CapacityProviderServer<S>>().await;
        let service = Arc::new(self.service);
        let outputs = transport::output_server(Asked(service.clone()));
        let (calls, listings) = transport::provider_servers(service.clone(), Streamed(service));
        let files = [STREAM_FILE_DESCRIPTOR_SET];
        // Callers live in real time, however fast the provider's clock runs.
        let callers = Arc::new(SystemClock::start());
        let layer = CallLayer::new(Budget::new(InFlight::default()), callers);
        let routes = transport::server()
            .layer(layer.clone())
            .add_service(calls)
            .add_service(listings)
            .add_service(outputs)
            .add_service(health)
            .add_service(reflection(&files, Builder::build_v1))
            .add_service(reflection(&files, Builder::build_v1alpha));
        let connections = layer.incoming(self.grpc, self.tls, CONNECTIONS);
        let mut calls = tokio::spawn(routes.serve_with_incoming_shutdown(connections, until(halted.clone())));
        if let Some(listener) = self.http {
            let (handle, ready) = (self.handle.clone(), ready.clone());
            let readiness = move || {
                let is_ready = ready.load(Ordering::SeqCst);
                async move { if is_ready { Ok(()) } else { Err("not taking calls".to_owned()) } }
            };
            let scrape = move || {
                let handle = handle.clone();
                async move { handle.scrape() }
            };
            tokio::spawn(http::serve(listener, http::router(readiness, scrape), until(halted.clone())));
        }

        let ended = tokio::select! {
            () = stop => None,
            ended = &mut calls => Some(ended),
        };
        ready.store(false, Ordering::SeqCst);
        reporter.set_not_serving::<CapacityProviderServer<S>>().await;
        let _ = halt.send(true);
        let outcome = match ended {
            Some(Ok(Ok(()))) => Err(ServeError::Ended("nothing accepts connections any more".into())),
            Some(Ok(Err(error))) => Err(ServeError::Ended(error.to_string())),
            Some(Err(error)) => Err(ServeError::Ended(error.to_string())),
            None => {
                // A caller that keeps a health watch open would keep the server for ever.
                tokio::select! {
                    _ = &mut calls => {}
                    () = clock.sleep(self.settings.stop_grace) => calls.abort(),
                }
                Ok(())
            }
        };
        self.handle.stop(self.settings.stop_grace).await;
        outcome
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}
