//! Mutual TLS: who may speak for which cluster, and certificates that change.

use std::path::Path;

use bigfleet_net::TlsFiles;
use bigfleet_provider_kit::{Server, Settings as Serving};
use bigfleet_shard_server::{ProviderAddress, Running, Settings};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use tonic::Code;

use crate::house::{anywhere, cloud, hasty, listed_often, scrape, series, start, until_ready};
use crate::operator::Operator;

/// An authority, and files of certificates it issued.
struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        std::fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    /// Issues files under a name, for the loopback and these URIs.
    fn issue(&self, name: &str, uris: &[&str]) -> TlsFiles {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.subject_alt_names.extend(uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (cert, key_file) = (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        std::fs::write(&cert, certificate.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        TlsFiles { cert, key: key_file, ca: Some(self.path("ca.pem")) }
    }
}

async fn operator(running: &Running, files: &TlsFiles, cluster: &str) -> Operator {
    let channel = bigfleet_net::dial(&format!("https://{}", running.grpc), Some(files)).unwrap();
    let operator = Operator::silent(channel, cluster).await;
    operator.hello().await;
    operator
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_speaks_for_its_own_cluster_only() {
    let authority = Authority::new();
    let ours = authority.issue("shard", &["bigfleet://shard/s1"]);
    let running = start(Settings { tls: Some(ours), ..Settings::local(hasty(), vec![]) }).await;

    let shop = authority.issue("shop", &["bigfleet://cluster/shop", "spiffe://mesh/shop"]);
    assert_eq!(operator(&running, &shop, "shop").await.ack().await, "hello");

    let two = authority.issue("two", &["bigfleet://cluster/shop", "bigfleet://cluster/web"]);
    let none = authority.issue("none", &[]);
    let admin = authority.issue("admin", &["bigfleet://admin"]);
    for (files, cluster, part) in [
        (&shop, "web", "the certificate is of bigfleet://cluster/shop, not of bigfleet://cluster/web"),
        (&two, "shop", "carries 2 bigfleet:// URIs"),
        (&none, "shop", "carries no bigfleet:// URI"),
        (&admin, "shop", "the certificate is of bigfleet://admin"),
    ] {
        let status = operator(&running, files, cluster).await.end().await.unwrap();
        assert_eq!(status.code(), Code::PermissionDenied);
        assert!(status.message().contains(part), "{status}");
    }
    let text = scrape(&running).await;
    assert_eq!(series(&text, "bigfleet_shard_session_identity_rejected_total"), Some(4.0));

    let other = Authority::new();
    let stranger = other.issue("shop", &["bigfleet://cluster/shop"]);
    let stranger = TlsFiles { ca: Some(authority.path("ca.pem")), ..stranger };
    let channel = bigfleet_net::dial(&format!("https://{}", running.grpc), Some(&stranger)).unwrap();
    let mut client = bigfleet_proto::transport::shard_client(channel);
    assert!(client.session(tokio_stream::pending()).await.is_err(), "another authority's certificate");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn providers_are_dialled_with_our_certificate() {
    let authority = Authority::new();
    let theirs = authority.issue("provider", &[]);
    let ours = authority.issue("shard", &["bigfleet://shard/s1"]);
    let sim = cloud("sim", 8).await;
    let serving = Serving { tls: Some(theirs), ..Serving::plain(anywhere()) };
    let server = Server::bind(sim.service(), sim.handle(), serving).await.unwrap();
    let address = server.grpc_addr();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(server.run(async { drop(stopped.await) }));

    let provider = listed_often("sim", format!("https://{address}"));
    let settings = Settings { tls: Some(ours.clone()), ..Settings::local(hasty(), vec![provider]) };
    let running = start(settings).await;
    until_ready(&running).await;
    running.stop().await.unwrap();

    let plain = ProviderAddress::new("sim", format!("https://{address}"));
    let refused =
        bigfleet_shard_server::start(Settings::local(hasty(), vec![plain]), crate::house::clock()).await;
    assert!(refused.is_err(), "https without files is not spoken in the clear");
    drop(stop);
    let _ = served.await;
}
