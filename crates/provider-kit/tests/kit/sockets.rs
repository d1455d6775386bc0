//! Over real sockets: calls, racing calls, TLS, health, reflection, metrics, and an orderly end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::capacity_provider_client::CapacityProviderClient;
use bigfleet_proto::v1alpha1::{CreateRequest, ListFilter, MachineRef};
use bigfleet_provider_kit::{Handle, Options, Provider, ServeError, Server, Settings, Store, TlsFiles};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::cloud::Cloud;

struct Running {
    grpc: SocketAddr,
    http: SocketAddr,
    cloud: Cloud,
    handle: Handle,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), ServeError>>,
}

fn anywhere() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

async fn serve(slots: usize, store: Store, tls: Option<TlsFiles>) -> Running {
    let cloud = Cloud::of(slots);
    let provider = Provider::open(cloud.clone(), store, Options::default()).await.unwrap();
    let handle = provider.handle();
    let settings = Settings { http: Some(anywhere()), tls, ..Settings::plain(anywhere()) };
    let server = Server::bind(provider, handle.clone(), settings).await.unwrap();
    let (grpc, http) = (server.grpc_addr(), server.http_addr().unwrap());
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async { drop(stopped.await) }));
    Running { grpc, http, cloud, handle, stop, ended }
}

async fn dial(address: SocketAddr) -> CapacityProviderClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    transport::provider_client(transport::endpoint(endpoint).connect().await.unwrap())
}

fn create(id: &str) -> CreateRequest {
    CreateRequest { machine_id: id.into(), ..CreateRequest::default() }
}

async fn http_get(address: SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_health_reflection_and_metrics_over_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let running = serve(5000, Store::file(folder.path().join("store")), None).await;
    let mut client = dial(running.grpc).await;
    client.create(create("m-0")).await.unwrap();
    running.handle.wait_for("m-0", |machine| machine.state == MachineState::Idle.to_wire()).await;
    let machine = client.get(MachineRef { id: "m-0".into() }).await.unwrap().into_inner();
    assert_eq!(machine.state, MachineState::Idle.to_wire());
    let list = client.list(ListFilter::default()).await.unwrap().into_inner();
    assert_eq!(list.machines.len(), 5000);
    assert_eq!(client.create(create("nobody")).await.unwrap_err().code(), Code::NotFound);

    let channel = Endpoint::from_shared(format!("http://{}", running.grpc)).unwrap().connect().await.unwrap();
    for service in ["", "bigfleet.v1alpha1.CapacityProvider"] {
        let request = HealthCheckRequest { service: service.into() };
        let status = HealthClient::new(channel.clone()).check(request).await.unwrap().into_inner().status;
        assert_eq!(status, 1, "{service:?} is serving");
    }
    assert!(reflected(channel).await.contains(&"bigfleet.v1alpha1.CapacityProvider".to_string()));

    assert!(http_get(running.http, "/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(http_get(running.http, "/readyz").await.starts_with("HTTP/1.1 200"));
    let metrics = http_get(running.http, "/metrics").await;
    for line in [
        r#"bigfleet_provider_machines{state="Idle"} 1"#,
        r#"bigfleet_provider_machines{state="Speculative"} 4999"#,
        r#"bigfleet_provider_calls_total{method="Create",code="OK"} 1"#,
        r#"bigfleet_provider_calls_total{method="Create",code="NOT_FOUND"} 1"#,
        r#"bigfleet_provider_transitions_total{kind="Create",outcome="ok"} 1"#,
        "bigfleet_provider_call_duration_seconds_bucket",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    running.stop.send(()).unwrap();
    running.ended.await.unwrap().unwrap();
}

async fn reflected(channel: Channel) -> Vec<String> {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let request = ServerReflectionRequest { host: String::new(), message_request };
    let mut client = ServerReflectionClient::new(channel);
    let mut answers =
        client.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
    match answers.message().await.unwrap().unwrap().message_response {
        Some(MessageResponse::ListServicesResponse(list)) => {
            list.service.into_iter().map(|s| s.name).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_racing_callers_share_one_operation() {
    let folder = tempfile::tempdir().unwrap();
    let running = serve(20, Store::file(folder.path().join("store")), None).await;
    for round in 0..20 {
        let id = format!("m-{round}");
        let mut callers = Vec::new();
        for _ in 0..16 {
            let (address, request) = (running.grpc, create(&id));
            callers.push(tokio::spawn(async move { dial(address).await.create(request).await }));
        }
        let mut operations = std::collections::BTreeSet::new();
        for caller in callers {
            operations.insert(caller.await.unwrap().unwrap().into_inner().operation_id);
        }
        assert_eq!(operations.len(), 1, "round {round}");
        running.handle.wait_for(&id, |machine| machine.state == MachineState::Idle.to_wire()).await;
        let calls = running.cloud.mood().calls.iter().filter(|call| **call == format!("Create {id}")).count();
        assert_eq!(calls, 1, "round {round}: made once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_an_error_that_names_it() {
    let running = serve(1, Store::memory(), None).await;
    let provider = Provider::open(Cloud::of(1), Store::memory(), Options::default()).await.unwrap();
    let handle = provider.handle();
    let Err(error) = Server::bind(provider, handle, Settings::plain(running.grpc)).await else {
        panic!("two servers on one port")
    };
    assert!(error.to_string().contains(&running.grpc.to_string()), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_lets_moves_end_and_frees_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let running = serve(2, Store::file(&path), None).await;
    let mut client = dial(running.grpc).await;
    running.cloud.hold();
    client.create(create("m-0")).await.unwrap();
    running.stop.send(()).unwrap();
    running.cloud.release();
    running.ended.await.unwrap().unwrap();
    assert_eq!(running.handle.get("m-0").unwrap().state, MachineState::Idle.to_wire());
    assert!(client.create(create("m-1")).await.is_err(), "nobody listens any more");
    let again = serve(2, Store::file(&path), None).await;
    assert_eq!(again.handle.get("m-0").unwrap().state, MachineState::Idle.to_wire());
}

/// A CA, and certificates it has signed, as files.
struct Authority {
    certificate: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = rcgen::CertificateParams::new(vec![]).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        Self { certificate: rcgen::CertifiedIssuer::self_signed(parameters, key).unwrap() }
    }

    fn sign(&self, name: &str) -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec![name.into()]).unwrap();
        let leaf = parameters.signed_by(&key, &self.certificate).unwrap();
        (leaf.pem(), key.serialize_pem())
    }

    fn write(&self, folder: &Path, with_ca: bool) -> TlsFiles {
        let (cert, key) = self.sign("localhost");
        let files = TlsFiles {
            cert: folder.join("cert.pem"),
            key: folder.join("key.pem"),
            ca: with_ca.then(|| folder.join("ca.pem")),
        };
        std::fs::write(&files.cert, cert).unwrap();
        std::fs::write(&files.key, key).unwrap();
        std::fs::write(folder.join("ca.pem"), self.certificate.pem()).unwrap();
        files
    }

    async fn dial(&self, address: SocketAddr, identity: Option<(String, String)>) -> Result<usize, ()> {
        let mut tls = ClientTlsConfig::new()
            .domain_name("localhost")
            .ca_certificate(Certificate::from_pem(self.certificate.pem()));
        if let Some((cert, key)) = identity {
            tls = tls.identity(Identity::from_pem(cert, key));
        }
        let endpoint = Endpoint::from_shared(format!("https://{address}")).unwrap().tls_config(tls).unwrap();
        let channel = transport::endpoint(endpoint).connect().await.map_err(drop)?;
        let list = transport::provider_client(channel).list(ListFilter::default()).await.map_err(drop)?;
        Ok(list.into_inner().machines.len())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutual_tls_admits_only_whom_the_ca_knows() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::new(), Authority::new());
    let running = serve(3, Store::memory(), Some(ours.write(folder.path(), true))).await;
    assert_eq!(ours.dial(running.grpc, Some(ours.sign("shard"))).await, Ok(3));
    assert_eq!(ours.dial(running.grpc, None).await, Err(()), "no certificate");
    assert_eq!(
        ours.dial(running.grpc, Some(theirs.sign("shard"))).await,
        Err(()),
        "somebody else's certificate"
    );
    assert_eq!(
        theirs.dial(running.grpc, Some(ours.sign("shard"))).await,
        Err(()),
        "not the server they know"
    );
    assert!(dial_plain(running.grpc).await.is_err(), "plaintext");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_ca_callers_need_no_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new();
    let running = serve(3, Store::memory(), Some(ours.write(folder.path(), false))).await;
    assert_eq!(ours.dial(running.grpc, None).await, Ok(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_used_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new(), Authority::new());
    let running = serve(1, Store::memory(), Some(old.write(folder.path(), false))).await;
    assert_eq!(old.dial(running.grpc, None).await, Ok(1));
    let files = new.write(folder.path(), false);
    // Files written within one tick of the file system's clock would look unchanged.
    let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(2_000_000_000);
    std::fs::File::options().write(true).open(&files.cert).unwrap().set_modified(later).unwrap();
    assert_eq!(new.dial(running.grpc, None).await, Ok(1));
    assert_eq!(old.dial(running.grpc, None).await, Err(()));
}

async fn dial_plain(address: SocketAddr) -> Result<(), tonic::Status> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let channel = endpoint.connect().await.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
    transport::provider_client(channel).list(ListFilter::default()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_on_the_socket_harms_nobody() {
    let running = serve(1, Store::memory(), None).await;
    for noise in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 5000], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff"]
    {
        let mut stream = tokio::net::TcpStream::connect(running.grpc).await.unwrap();
        let _ = stream.write_all(noise).await;
        drop(stream);
    }
    let shared = Arc::new(running);
    assert!(dial(shared.grpc).await.list(ListFilter::default()).await.is_ok());
}
