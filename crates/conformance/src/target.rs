//! The provider as a peer: connections to it, and the words for not getting one.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::ListFilter;
use bigfleet_proto::v1alpha1::capacity_provider_client::CapacityProviderClient;
use thiserror::Error;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::clock::{self, Patience};
use crate::config::{Config, Tls};

/// Calls that race should not queue behind each other on one connection.
const CONNECTIONS: usize = 4;

/// Why a run could not begin.
#[derive(Debug, Error)]
pub enum CannotRun {
    /// A setting makes no sense. Nothing was called.
    #[error("{0}")]
    Usage(String),
    /// Nobody answers at the address.
    #[error(
        "cannot reach a provider at {address}: {reason}; is it running, and is TLS set on both sides or on neither?"
    )]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What happened there.
        reason: String,
    },
}

impl CannotRun {
    /// What a program that runs the suite should end with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Unreachable { .. } => 3,
        }
    }
}

/// Connections to the provider. They are made anew by themselves after a restart.
#[derive(Debug)]
pub(crate) struct Target {
    endpoint: Endpoint,
    channels: Vec<Channel>,
    turn: AtomicUsize,
}

impl Target {
    pub(crate) fn new(config: &Config) -> Result<Self, CannotRun> {
        let endpoint = endpoint(config)?;
        let channels = (0..CONNECTIONS).map(|_| endpoint.connect_lazy()).collect();
        Ok(Self { endpoint, channels, turn: AtomicUsize::new(0) })
    }

    /// One of the connections, in turn.
    pub(crate) fn channel(&self) -> Channel {
        self.channels[self.turn.fetch_add(1, Ordering::Relaxed) % self.channels.len()].clone()
    }

    /// A connection nobody else uses.
    pub(crate) fn own_channel(&self) -> Channel {
        self.endpoint.connect_lazy()
    }

    pub(crate) fn client(&self) -> CapacityProviderClient<Channel> {
        transport::provider_client(self.channel())
    }

    /// Waits until every connection answers.
    pub(crate) async fn wait_until_reached(
        &self,
        config: &Config,
        patience: &mut Patience,
    ) -> Result<(), CannotRun> {
        for channel in &self.channels {
            loop {
                let filter = ListFilter { max_results: 1, ..ListFilter::default() };
                let mut client = transport::provider_client(channel.clone());
                let reason = match clock::within(config.limits.call, client.list(filter)).await {
                    Some(Ok(_)) => break,
                    Some(Err(status)) => {
                        format!(
                            "{}: {}",
                            bigfleet_proto::transport::code_name(status.code()),
                            status.message()
                        )
                    }
                    None => format!("no answer to List within {:?}", config.limits.call),
                };
                if !patience.wait().await {
                    return Err(CannotRun::Unreachable { address: config.address.clone(), reason });
                }
            }
        }
        Ok(())
    }
}

/// The longest status we take, with everything around it. A provider may repeat in its refusal what it refuses, and we ask
/// about ids of a megabyte; a client that breaks on the answer would hold that against a healthy provider.
const STATUS_BYTES: u32 = 8 << 20;

fn endpoint(config: &Config) -> Result<Endpoint, CannotRun> {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let wrong = |reason: &dyn std::fmt::Display| {
        CannotRun::Usage(format!("{:?} is not an address: {reason}; write HOST:PORT", config.address))
    };
    if config.address.contains("://") || !config.address.contains(':') {
        return Err(wrong(&"no host and port"));
    }
    let endpoint =
        Endpoint::from_shared(format!("{scheme}://{}", config.address)).map_err(|error| wrong(&error))?;
    let endpoint = transport::endpoint(endpoint).http2_max_header_list_size(STATUS_BYTES);
    let Some(tls) = &config.tls else { return Ok(endpoint) };
    endpoint
        .tls_config(tls_config(tls)?)
        .map_err(|error| CannotRun::Usage(format!("TLS files do not work: {error}")))
}

fn tls_config(tls: &Tls) -> Result<ClientTlsConfig, CannotRun> {
    let mut config = ClientTlsConfig::new();
    if let Some(ca) = &tls.ca {
        config = config.ca_certificate(Certificate::from_pem(read(ca)?));
    }
    match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => config = config.identity(Identity::from_pem(read(cert)?, read(key)?)),
        (None, None) => {}
        _ => {
            return Err(CannotRun::Usage(
                "a certificate needs its key and a key its certificate; give both".into(),
            ));
        }
    }
    if let Some(name) = &tls.server_name {
        config = config.domain_name(name);
    }
    Ok(config)
}

fn read(path: &Path) -> Result<Vec<u8>, CannotRun> {
    std::fs::read(path).map_err(|error| CannotRun::Usage(format!("cannot read {}: {error}", path.display())))
}
