//! TLS from files: certificate and key, and a CA if the other side must show a certificate too.
//!
//! The leaf pair is read again when either file has changed, looked at once per handshake; while the new
//! pair is missing or does not fit together the last good one is used. The CA is read once. Everything is
//! read at the start as well, so that bad files are found then and not at the first call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use rustls::client::{ClientConfig, ResolvesClientCert};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, SignatureScheme};
use thiserror::Error;

/// Why TLS could not be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// Some of the flags without the others.
    #[error(
        "--tls-cert and --tls-key belong together, and --tls-ca needs both; give all three, the first two, or none"
    )]
    Incomplete,
    /// A file could not be read as what it should be.
    #[error("{}: {reason}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Certificate and key are not of one pair.
    #[error("the key in {} does not belong to the certificate in {}", .key.display(), .cert.display())]
    Mismatch {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// A client cannot know whom to believe.
    #[error("a client needs --tls-ca to know whose certificates to believe")]
    NoCa,
    /// rustls refused the settings.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}

/// The files TLS is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, leaf first.
    pub cert: PathBuf,
    /// The leaf's key.
    pub key: PathBuf,
    /// Whose certificates the other side must show. A server without it asks callers for none; a client needs it.
    pub ca: Option<PathBuf>,
}

impl TlsFiles {
    /// What the three flags mean together: none is plaintext, some but not enough is an error.
    pub fn from_flags(
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        ca: Option<PathBuf>,
    ) -> Result<Option<Self>, TlsError> {
        match (cert, key, ca) {
            (None, None, None) => Ok(None),
            (Some(cert), Some(key), ca) => Ok(Some(Self { cert, key, ca })),
            _ => Err(TlsError::Incomplete),
        }
    }

    /// The settings of the server. TLS 1.3 and nothing below.
    pub fn server_config(&self) -> Result<ServerConfig, TlsError> {
        let setup = |error: &dyn std::fmt::Display| TlsError::Setup(error.to_string());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| setup(&error))?;
        let builder = match &self.ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(ca)?), provider)
                    .build()
                    .map_err(|error| setup(&error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(LeafPair::load(self)?));
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }

    /// The settings of a client that shows its own certificate. TLS 1.3 and nothing below.
    pub fn client_config(&self) -> Result<ClientConfig, TlsError> {
        let ca = self.ca.as_ref().ok_or(TlsError::NoCa)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| TlsError::Setup(error.to_string()))?
            .with_root_certificates(roots(ca)?)
            .with_client_cert_resolver(Arc::new(LeafPair::load(self)?));
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

fn bad_file(path: &Path, error: impl std::fmt::Display) -> TlsError {
    TlsError::File { path: path.into(), reason: error.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| bad_file(path, error))?;
    if chain.is_empty() { Err(bad_file(path, "holds no certificate")) } else { Ok(chain) }
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| bad_file(path, error))?;
    }
    Ok(roots)
}

/// The leaf certificate and its key, kept up to date with their files.
#[derive(Debug)]
struct LeafPair {
    files: TlsFiles,
    current: Mutex<(Arc<CertifiedKey>, [Option<SystemTime>; 2])>,
}

impl LeafPair {
    fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let changed = changed(files);
        Ok(Self { files: files.clone(), current: Mutex::new((Arc::new(read_pair(files)?), changed)) })
    }

    /// The pair to present now.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut current = self.current.lock().expect("no holder panics");
        let changed = changed(&self.files);
        if changed != current.1 {
            match read_pair(&self.files) {
                Ok(pair) => *current = (Arc::new(pair), changed),
                // Not remembered as seen: the files are half replaced and will be looked at again.
                Err(error) => tracing::warn!(%error, "the last good certificate stays in use"),
            }
        }
        current.0.clone()
    }
}

impl ResolvesClientCert for LeafPair {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ResolvesServerCert for LeafPair {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

fn changed(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    [&files.cert, &files.key].map(|path| std::fs::metadata(path).and_then(|data| data.modified()).ok())
}

fn read_pair(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let chain = certificates(&files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| bad_file(&files.key, error))?;
    let key = aws_lc_rs::sign::any_supported_type(&key).map_err(|error| bad_file(&files.key, error))?;
    let pair = CertifiedKey::new(chain, key);
    let mismatch = |_| TlsError::Mismatch { cert: files.cert.clone(), key: files.key.clone() };
    pair.keys_match().map_err(mismatch)?;
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_together_or_not_at_all() {
        let path = |name: &str| Some(PathBuf::from(name));
        assert_eq!(TlsFiles::from_flags(None, None, None).unwrap(), None);
        assert!(TlsFiles::from_flags(path("c"), path("k"), None).unwrap().unwrap().ca.is_none());
        assert!(TlsFiles::from_flags(path("c"), path("k"), path("a")).unwrap().unwrap().ca.is_some());
        for (cert, key, ca) in [
            (path("c"), None, None),
            (None, path("k"), None),
            (None, None, path("a")),
            (path("c"), None, path("a")),
            (None, path("k"), path("a")),
        ] {
            assert!(matches!(TlsFiles::from_flags(cert, key, ca), Err(TlsError::Incomplete)));
        }
    }

    fn write_pair(folder: &Path, name: &str) -> String {
        let made = rcgen::generate_simple_self_signed(vec![name.into()]).unwrap();
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        made.cert.pem()
    }

    fn shown(pair: &LeafPair) -> Vec<u8> {
        pair.current().cert[0].to_vec()
    }

    fn touch_later(path: &Path, seconds: u64) {
        let later = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(2_000_000_000 + seconds);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
    }

    #[test]
    fn a_new_pair_is_picked_up_and_half_a_pair_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let files =
            TlsFiles { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem"), ca: None };
        write_pair(folder.path(), "first");
        let pair = LeafPair::load(&files).unwrap();
        let first = shown(&pair);

        let old_key = std::fs::read(&files.key).unwrap();
        write_pair(folder.path(), "second");
        let new_key = std::fs::read(&files.key).unwrap();
        std::fs::write(&files.key, old_key).unwrap();
        touch_later(&files.cert, 1);
        assert_eq!(shown(&pair), first, "the new certificate with the old key");

        std::fs::remove_file(&files.key).unwrap();
        assert_eq!(shown(&pair), first, "no key at all");

        std::fs::write(&files.key, new_key).unwrap();
        touch_later(&files.key, 2);
        assert_ne!(shown(&pair), first, "both are there and fit");
    }

    #[test]
    fn a_client_must_know_whom_to_believe() {
        let folder = tempfile::tempdir().unwrap();
        write_pair(folder.path(), "first");
        let cert = folder.path().join("cert.pem");
        let files = TlsFiles { cert: cert.clone(), key: folder.path().join("key.pem"), ca: None };
        assert!(matches!(files.client_config(), Err(TlsError::NoCa)));
        assert!(TlsFiles { ca: Some(cert), ..files.clone() }.client_config().is_ok());
        let missing = TlsFiles { ca: Some(folder.path().join("nothing.pem")), ..files };
        assert!(matches!(missing.client_config(), Err(TlsError::File { .. })));
    }

    #[test]
    fn bad_files_are_found_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let files =
            TlsFiles { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem"), ca: None };
        assert!(matches!(files.server_config(), Err(TlsError::File { .. })), "nothing there");
        write_pair(folder.path(), "first");
        assert!(files.server_config().is_ok());
        let key = std::fs::read(&files.key).unwrap();
        write_pair(folder.path(), "second");
        std::fs::write(&files.key, key).unwrap();
        assert!(matches!(files.server_config(), Err(TlsError::Mismatch { .. })));
        std::fs::write(&files.key, "not a key").unwrap();
        assert!(matches!(files.server_config(), Err(TlsError::File { .. })));
    }
}
