//! Dialling: a channel that connects when it is needed and again after it broke, plain or with our certificate.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bigfleet_proto::transport;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

use crate::tls::{TlsError, TlsFiles};

/// Why an address cannot be dialled, whoever listens there.
#[derive(Debug, Error)]
pub enum DialError {
    /// Not a URL with a host.
    #[error(
        "{address:?} is not an address to dial: {reason}; write http://host:port, or https://host:port with TLS"
    )]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// TLS could not be set up.
    #[error("{0}")]
    Tls(#[from] TlsError),
}

/// A channel to `address`. Nothing is connected yet; each call connects if need be. With TLS files every address is
/// dialled with TLS; without them `https` is refused rather than spoken in the clear.
pub fn dial(address: &str, tls: Option<&TlsFiles>) -> Result<Channel, DialError> {
    let bad = |reason: &str| DialError::Address { address: address.into(), reason: reason.into() };
    let uri: Uri = address.parse().map_err(|error| bad(&format!("{error}")))?;
    let host = uri.host().ok_or_else(|| bad("it names no host"))?.to_owned();
    let endpoint = transport::endpoint(Endpoint::from(uri.clone()));
    match (uri.scheme_str(), tls) {
        (Some("http" | "https"), Some(files)) => {
            let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
                .map_err(|_| bad("its host is neither a name nor an address"))?;
            let tls = TlsConnector::from(Arc::new(files.client_config()?));
            // Only our connector may see to TLS: the scheme would make tonic look for settings of its own.
            let plain = address.replacen("https://", "http://", 1);
            let plain: Uri = plain.parse().map_err(|error| bad(&format!("{error}")))?;
            let endpoint = transport::endpoint(Endpoint::from(plain));
            Ok(endpoint.connect_with_connector_lazy(TlsDialler { tls, name }))
        }
        (Some("http"), None) => Ok(endpoint.connect_lazy()),
        (Some("https"), None) => Err(bad("https needs --tls-cert, --tls-key and --tls-ca")),
        _ => Err(bad("the scheme is neither http nor https")),
    }
}

/// Connects and shakes hands, with the certificate as it is at that moment.
#[derive(Clone)]
struct TlsDialler {
    tls: TlsConnector,
    name: ServerName<'static>,
}

impl Service<Uri> for TlsDialler {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { tls, name } = self.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(443))).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(tls.connect(name, stream).await?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_are_checked_before_anything_is_dialled() {
        assert!(dial("http://127.0.0.1:9000", None).is_ok());
        for (address, part) in [
            ("127.0.0.1:9000", "is not an address to dial"),
            ("", "is not an address to dial"),
            ("ftp://host:1", "neither http nor https"),
            ("https://host:1", "https needs --tls-cert"),
            ("/path", "names no host"),
        ] {
            let text = dial(address, None).unwrap_err().to_string();
            assert!(text.contains(part), "{address}: {text}");
        }
    }
}
