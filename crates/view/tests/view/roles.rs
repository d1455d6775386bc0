//! Roles, with certificates over real sockets.

use std::path::Path;

use bigfleet_net::{CallLayer, TlsFiles, dial};
use bigfleet_proto::transport::{shard_read_client, shard_read_server};
use bigfleet_proto::v1alpha1::InspectNeedsRequest;
use bigfleet_view::{cluster_view_client, cluster_view_server, v1, view_client, view_server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use tokio::net::TcpListener;
use tonic::Code;
use tonic::transport::Server;

use crate::lists::small;

/// Writes a certificate that carries these names.
fn issue(ca: &CertifiedIssuer<'_, KeyPair>, folder: &Path, name: &str, uris: &[&str]) -> TlsFiles {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.subject_alt_names.extend(uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())));
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, ca).unwrap();
    let path = |kind: &str| folder.join(format!("{name}.{kind}"));
    std::fs::write(path("crt"), certificate.pem()).unwrap();
    std::fs::write(path("key"), key.serialize_pem()).unwrap();
    TlsFiles { cert: path("crt"), key: path("key"), ca: Some(folder.join("ca.crt")) }
}

#[tokio::test]
async fn certificates_decide_who_may_look_and_who_may_touch() {
    let folder = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.path().join("ca.crt"), ca.pem()).unwrap();
    let server = issue(&ca, folder.path(), "server", &["bigfleet://shard/s1"]);

    let (_driver, view) = small();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let layer = CallLayer::usual();
    let connections = layer.incoming(listener, Some(server.server_config().unwrap()), 16);
    let services = Server::builder()
        .layer(layer)
        .add_service(view_server(view.clone()))
        .add_service(cluster_view_server(view.clone()))
        .add_service(shard_read_server(view));
    tokio::spawn(services.serve_with_incoming(connections));

    for (name, uris, reads, commands) in [
        ("admin", &["bigfleet://admin"][..], Some("admin"), true),
        ("readonly", &["bigfleet://readonly"], Some("readonly"), false),
        ("operator", &["bigfleet://cluster/shop"], None, false),
        ("nobody", &[], None, false),
        ("both", &["bigfleet://admin", "bigfleet://readonly"], None, false),
    ] {
        let files = issue(&ca, folder.path(), name, uris);
        let channel = dial(&address, Some(&files)).unwrap();
        let mut client = view_client(channel.clone());
        let version = client.get_version(v1::GetVersionRequest {}).await;
        let listed = client.list_needs(v1::ListNeedsRequest::default()).await.map(drop);
        let inspected =
            shard_read_client(channel.clone()).inspect_needs(InspectNeedsRequest::default()).await.map(drop);
        match reads {
            Some(role) => {
                assert_eq!(version.unwrap().into_inner().role, role);
                assert!(listed.is_ok() && inspected.is_ok(), "{name}");
            }
            None => {
                for refused in [version.map(drop).unwrap_err(), listed.unwrap_err(), inspected.unwrap_err()] {
                    assert_eq!(refused.code(), Code::PermissionDenied, "{name}: {refused}");
                    assert!(
                        refused.message().starts_with(
                            "reading needs the role bigfleet://readonly or bigfleet://admin; the certificate "
                        ),
                        "{refused}"
                    );
                }
            }
        }
        // What is a cluster's own is open to it alone, and to those who may see all.
        for (cluster, own) in [("shop", reads.is_some() || name == "operator"), ("batch", reads.is_some())] {
            let request = v1::WatchVerdictsRequest { cluster_id: cluster.into(), min_interval_millis: 0 };
            let mut own_view = cluster_view_client(channel.clone());
            let watched = own_view.watch_verdicts(request).await;
            assert_eq!(watched.is_ok(), own, "{name} watches {cluster}");
            let report = v1::NodeReport { cluster_id: cluster.into(), ..Default::default() };
            let may_report = name == "admin" || (name == "operator" && cluster == "shop");
            assert_eq!(
                own_view.report_nodes(report).await.is_ok(),
                may_report,
                "{name} reports for {cluster}"
            );
        }
        let request = v1::PauseRequest { reason: "drill".into(), author: "ann".into(), ..Default::default() };
        let paused = client.pause(request).await;
        if commands {
            assert_eq!(paused.unwrap().into_inner().pause.unwrap().author, "ann (admin)");
            client.resume(v1::ResumeRequest::default()).await.unwrap();
        } else {
            let refused = paused.unwrap_err();
            assert_eq!(refused.code(), Code::PermissionDenied, "{name}");
            assert!(refused.message().starts_with("this needs the role bigfleet://admin; "), "{refused}");
        }
    }
}
