//! TLS is spoken if it is asked for, with a certificate of our own if the provider wants one.

use std::path::PathBuf;
use std::time::Duration;

use bigfleet_conformance::report::Skips;
use bigfleet_conformance::{CannotRun, Config, Silent, Tls, run};
use bigfleet_proto::transport;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

#[expect(dead_code, reason = "only the right provider is used here")]
mod provider;

struct Files {
    _folder: tempfile::TempDir,
    cert: PathBuf,
    key: PathBuf,
}

#[tokio::test]
async fn a_provider_that_wants_certificates_is_reached_with_one() {
    let pair = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let (cert, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(&cert, &key))
        .client_ca_root(Certificate::from_pem(&cert));
    let server = transport::server().tls_config(tls).expect("a sound identity");
    let (address, _provider) = provider::start_on(server, None).await;
    let files = write(&cert, &key);

    let mut config = Config::new(address.to_string());
    config.selection.only = vec!["LIFE-002".into(), "HEALTH".into()];
    config.limits.call = Duration::from_secs(5);
    let mut without = config.clone();
    without.limits.call = Duration::from_millis(300);
    assert!(matches!(run(without, &Silent).await, Err(CannotRun::Unreachable { .. })));

    let (ca, cert) = (Some(files.cert.clone()), Some(files.cert.clone()));
    let server_name = Some("localhost".into());
    config.tls = Some(Tls { ca, cert, key: Some(files.key.clone()), server_name });
    let report = run(config, &Silent).await.expect("the provider is reached");
    assert_eq!(report.exit_code(Skips::Refused), 0, "{:?}", report.results);
}

#[tokio::test]
async fn a_certificate_without_its_key_is_refused() {
    let mut config = Config::new("localhost:1");
    config.tls = Some(Tls { cert: Some("/nowhere".into()), ..Tls::default() });
    let error = run(config, &Silent).await.expect_err("half a pair");
    assert_eq!(
        (error.exit_code(), error.to_string().as_str()),
        (2, "a certificate needs its key and a key its certificate; give both")
    );
}

fn write(cert: &str, key: &str) -> Files {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files =
        Files { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem"), _folder: folder };
    std::fs::write(&files.cert, cert).expect("a file can be written");
    std::fs::write(&files.key, key).expect("a file can be written");
    files
}
