//! A private control plane, from nothing to ready and back.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bigfleet_net::{Clock as _, SystemClock};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;
use thiserror::Error;

use crate::assets::{Assets, AssetsError};
use crate::certificates::{Authority, Identity, Pair};
use crate::process::Program;

/// How often a question is asked again that was answered with "not yet".
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// How often a request is sent again that the API server did not take: half a minute, and longer where connecting itself waits.
const ASKED_AT_MOST: usize = 600;
/// How long the whole may take to be ready, on a machine that does many other things.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// How often another set of ports is tried when somebody else was quicker.
const TRIES: usize = 3;

/// Which programs run beside etcd and the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// None: objects are kept, and nothing happens to them.
    ApiServer,
    /// kube-controller-manager: garbage collection, service accounts, deployments.
    Controllers,
    /// That and kube-scheduler: pods are bound.
    All,
}

/// Why a control plane did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The programs are not there.
    #[error(transparent)]
    Assets(#[from] AssetsError),
    /// A file or process could not be made.
    #[error("cannot start a control plane: {0}")]
    Io(#[from] std::io::Error),
    /// A program ended, or did not answer in time.
    #[error("{program} is not ready: {reason}; its last words:\n{last_words}")]
    NotReady {
        /// Which.
        program: String,
        /// What was seen of it.
        reason: String,
        /// The end of its log.
        last_words: String,
    },
}

/// A running control plane. Dropping it ends its programs, the API server before etcd, and removes its files.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order.
    programs: Mutex<Vec<Program>>,
    api_server: Mutex<Program>,
    etcd: Mutex<Program>,
    plan: Plan,
    namespaces: AtomicU32,
}

/// What is fixed for the life of a control plane.
struct Plan {
    assets: Assets,
    authority: Authority,
    api_port: u16,
    etcd_ports: [u16; 2],
    clock: SystemClock,
    // Last: the files go when nobody needs them.
    folder: TempDir,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan")
            .field("folder", &self.folder.path())
            .field("api_port", &self.api_port)
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts one and waits until it is ready.
    pub async fn start(parts: Parts) -> Result<Self, StartError> {
        let assets = Assets::find()?;
        let mut tries = 1;
        loop {
            match Self::try_start(assets.clone(), parts).await {
                Err(StartError::NotReady { last_words, .. })
                    if tries < TRIES && last_words.contains("address already in use") =>
                {
                    tries += 1;
                }
                done => return done,
            }
        }
    }

    async fn try_start(assets: Assets, parts: Parts) -> Result<Self, StartError> {
        let folder = tempfile::Builder::new().prefix("bigfleet-kube-").tempdir()?;
        let [api_port, client, peer] = free_ports()?;
        let plan = Plan {
            assets,
            authority: Authority::new(folder.path())?,
            api_port,
            etcd_ports: [client, peer],
            clock: SystemClock::start(),
            folder,
        };
        let etcd = plan.start_etcd()?;
        let api_server = plan.start_api_server()?;
        let plane = Self {
            programs: Mutex::default(),
            api_server: Mutex::new(api_server),
            etcd: Mutex::new(etcd),
            plan,
            namespaces: AtomicU32::new(0),
        };
        plane.ready().await?;
        let mut programs = Vec::new();
        if parts != Parts::ApiServer {
            programs.push(plane.plan.start_controllers()?);
        }
        if parts == Parts::All {
            programs.push(plane.plan.start_scheduler()?);
        }
        let controlled = !programs.is_empty();
        *plane.programs.lock().expect("no holder panics") = programs;
        if controlled {
            plane.takes_pods("default").await?;
        }
        Ok(plane)
    }

    /// The Kubernetes minor version, 20 for 1.20.
    pub fn minor(&self) -> u32 {
        self.plan.assets.minor()
    }

    /// Where its files are: logs, certificates, kubeconfigs.
    pub fn folder(&self) -> &Path {
        self.plan.folder.path()
    }

    /// The path of another program in the folder of programs, if it is there.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.plan.assets.has(name).then(|| self.plan.assets.program(name))
    }

    /// A client that may do everything.
    pub async fn client(&self) -> Client {
        self.client_of(&Identity::admin()).await
    }

    /// A client that is somebody, by certificate.
    pub async fn client_of(&self, identity: &Identity) -> Client {
        client(&self.config_of(identity).await)
    }

    /// How somebody connects, by certificate.
    pub async fn config_of(&self, identity: &Identity) -> Config {
        let pair = self.plan.authority.client(identity);
        config(&self.plan.kubeconfig(&Credentials::Certificate(&pair))).await
    }

    /// How a service account connects, by a token the server issues for an hour.
    pub async fn config_of_account(&self, namespace: &str, name: &str) -> Config {
        let token = self.token(namespace, name).await;
        config(&self.plan.kubeconfig(&Credentials::Token(&token))).await
    }

    /// Writes a kubeconfig for somebody, for programs of their own.
    pub fn kubeconfig_file(&self, name: &str, identity: &Identity) -> std::io::Result<PathBuf> {
        let pair = self.plan.authority.client(identity);
        self.plan.write_kubeconfig(name, &Credentials::Certificate(&pair))
    }

    /// Writes a kubeconfig for a service account.
    pub async fn kubeconfig_file_of_account(&self, namespace: &str, name: &str) -> std::io::Result<PathBuf> {
        let token = self.token(namespace, name).await;
        self.plan.write_kubeconfig(name, &Credentials::Token(&token))
    }

    async fn token(&self, namespace: &str, name: &str) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let issued = accounts.create_token_request(name, &PostParams::default(), &request).await;
        issued.expect("a token is issued").status.expect("a token was issued").token
    }

    /// Makes a namespace with a name that no other test has, and waits until pods can be made in it.
    pub async fn namespace(&self, prefix: &str) -> String {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}-{number}");
        let namespaces: Api<Namespace> = Api::all(self.client().await);
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        // A scenario before this one may have restarted the API server, and a busy machine takes a while to answer.
        let mut made = namespaces.create(&PostParams::default(), &namespace).await;
        for _ in 0..ASKED_AT_MOST {
            if !matches!(&made, Err(kube::Error::Service(_) | kube::Error::HyperError(_))) {
                break;
            }
            self.plan.clock.sleep(ASK_AGAIN).await;
            made = namespaces.create(&PostParams::default(), &namespace).await;
        }
        match made {
            Ok(_) => {}
            // Made by a try whose answer was lost.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("a namespace can be made: {error:?}"),
        }
        if !self.programs.lock().expect("no holder panics").is_empty() {
            self.takes_pods(&name).await.expect("the namespace takes pods");
        }
        name
    }

    /// Ends the API server; nobody answers until [`Self::start_api_server`].
    pub fn kill_api_server(&self) {
        self.api_server.lock().expect("no holder panics").kill();
    }

    /// Starts the API server again, at the same address, and waits until it answers.
    pub async fn start_api_server(&self) -> Result<(), StartError> {
        let program = self.plan.start_api_server()?;
        *self.api_server.lock().expect("no holder panics") = program;
        self.ready().await
    }

    /// Ends etcd; the API server is there and can do nothing until [`Self::start_etcd`].
    pub fn kill_etcd(&self) {
        self.etcd.lock().expect("no holder panics").kill();
    }

    /// Starts etcd again with what it had, and waits until the API server can use it.
    pub async fn start_etcd(&self) -> Result<(), StartError> {
        let program = self.plan.start_etcd()?;
        *self.etcd.lock().expect("no holder panics") = program;
        self.ready().await
    }

    /// Does something with the API server's process: freeze it, let it go on, ask for its size.
    pub fn with_api_server<T>(&self, what: impl FnOnce(&mut Program) -> T) -> T {
        what(&mut self.api_server.lock().expect("no holder panics"))
    }

    /// How long each of its programs has had a processor, by name.
    pub fn processor_secs(&self) -> Vec<(String, f64)> {
        let (etcd, api_server) = (self.etcd.lock(), self.api_server.lock());
        let programs = self.programs.lock().expect("no holder panics");
        let first = [etcd.expect("no holder panics"), api_server.expect("no holder panics")];
        let all = first.iter().map(|program| &**program).chain(programs.iter());
        all.filter_map(|program| Some((program.name().to_owned(), program.processor_secs().ok()?))).collect()
    }

    /// What the programs say at the end of their logs, for a test that failed.
    pub fn last_words(&self) -> String {
        let mut text = String::new();
        let api_server = self.api_server.lock().expect("no holder panics");
        let programs = self.programs.lock().expect("no holder panics");
        for program in programs.iter().chain([&*api_server]) {
            text += &["--- ", program.name(), "\n", &program.last_words(), "\n"].concat();
        }
        text
    }

    /// Waits until the API server says that it is ready, which includes etcd.
    async fn ready(&self) -> Result<(), StartError> {
        let client = self.client().await;
        let deadline = self.plan.deadline();
        loop {
            let request = get("/readyz");
            let reason = match client.request_text(request).await {
                Ok(_) => return Ok(()),
                Err(error) => error.to_string(),
            };
            still_running(&self.etcd)?;
            still_running(&self.api_server)?;
            if self.plan.clock.now_unix_nanos() > deadline {
                let api_server = self.api_server.lock().expect("no holder panics");
                return Err(not_ready(&api_server, reason));
            }
            self.plan.clock.sleep(ASK_AGAIN).await;
        }
    }

    /// Waits until a pod would be accepted: a new namespace refuses them until its service account has been made.
    async fn takes_pods(&self, namespace: &str) -> Result<(), StartError> {
        let pods: Api<Pod> = Api::namespaced(self.client().await, namespace);
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "probe"},
            "spec": {"containers": [{"name": "c", "image": "none"}]},
        }))
        .expect("a pod");
        let deadline = self.plan.deadline();
        loop {
            let dry = PostParams { dry_run: true, ..PostParams::default() };
            let Err(error) = pods.create(&dry, &pod).await else { return Ok(()) };
            for program in self.programs.lock().expect("no holder panics").iter_mut() {
                if !program.is_running() {
                    return Err(not_ready(program, "it has ended".into()));
                }
            }
            if self.plan.clock.now_unix_nanos() > deadline {
                let programs = self.programs.lock().expect("no holder panics");
                return Err(not_ready(&programs[0], error.to_string()));
            }
            self.plan.clock.sleep(ASK_AGAIN).await;
        }
    }
}

/// How somebody proves who he is.
enum Credentials<'a> {
    Certificate(&'a Pair),
    Token(&'a str),
}

impl Plan {
    fn deadline(&self) -> i64 {
        self.clock.now_unix_nanos() + bigfleet_net::nanos(READY_WITHIN)
    }

    fn path(&self, name: &str) -> String {
        self.authority.file(name).display().to_string()
    }

    fn start(&self, program: &str, arguments: Vec<String>) -> std::io::Result<Program> {
        Program::start(&self.assets.program(program), arguments, self.folder.path())
    }

    fn start_etcd(&self) -> std::io::Result<Program> {
        let [client, peer] = self.etcd_ports.map(|port| format!("http://127.0.0.1:{port}"));
        let arguments = vec![
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // What a test wrote is worth nothing after a power loss.
            "--unsafe-no-fsync".into(),
            "--log-level=warn".into(),
        ];
        self.start("etcd", arguments)
    }

    fn start_api_server(&self) -> std::io::Result<Program> {
        let arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_ports[0]),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.api_port),
            format!("--tls-cert-file={}", self.path("server.crt")),
            format!("--tls-private-key-file={}", self.path("server.key")),
            format!("--client-ca-file={}", self.path("ca.crt")),
            format!("--cert-dir={}", self.path("apiserver")),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
            "--service-account-issuer=https://127.0.0.1".into(),
            format!("--service-account-key-file={}", self.path("tokens.pub")),
            format!("--service-account-signing-key-file={}", self.path("tokens.key")),
            "--allow-privileged=true".into(),
        ];
        self.start("kube-apiserver", arguments)
    }

    fn start_controllers(&self) -> std::io::Result<Program> {
        let mut arguments = vec![
            format!("--kubeconfig={}", self.admin_kubeconfig("controllers")?),
            format!("--service-account-private-key-file={}", self.path("tokens.key")),
            format!("--root-ca-file={}", self.path("ca.crt")),
        ];
        arguments.extend(self.alone());
        self.start("kube-controller-manager", arguments)
    }

    fn start_scheduler(&self) -> std::io::Result<Program> {
        let mut arguments = vec![format!("--kubeconfig={}", self.admin_kubeconfig("scheduler")?)];
        arguments.extend(self.alone());
        self.start("kube-scheduler", arguments)
    }

    /// What the two have in common: no port, no election, and no brake meant for large clusters.
    fn alone(&self) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["--leader-elect=false", "--secure-port=0", "--kube-api-qps=300", "--kube-api-burst=600"]
                .map(String::from)
                .into();
        if self.assets.minor() < 24 {
            // Older ones would listen on a plaintext port on all addresses.
            arguments.push("--port=0".into());
        }
        arguments
    }

    fn admin_kubeconfig(&self, name: &str) -> std::io::Result<String> {
        let pair = self.authority.client(&Identity::admin());
        Ok(self.write_kubeconfig(name, &Credentials::Certificate(&pair))?.display().to_string())
    }

    fn write_kubeconfig(&self, name: &str, credentials: &Credentials<'_>) -> std::io::Result<PathBuf> {
        let path = self.authority.file(&format!("{name}.kubeconfig"));
        // Somebody may be reading the one before.
        let mut whole = tempfile::NamedTempFile::new_in(self.folder.path())?;
        whole.write_all(self.kubeconfig(credentials).as_bytes())?;
        whole.persist(&path)?;
        Ok(path)
    }

    /// A kubeconfig as JSON, which is YAML too.
    fn kubeconfig(&self, credentials: &Credentials<'_>) -> String {
        let user = match credentials {
            Credentials::Certificate(pair) => serde_json::json!({
                "client-certificate-data": base64(&pair.certificate), "client-key-data": base64(&pair.key),
            }),
            Credentials::Token(token) => serde_json::json!({ "token": token }),
        };
        let server = format!("https://127.0.0.1:{}", self.api_port);
        let authority = base64(&self.authority.certificate());
        serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        })
        .to_string()
    }
}

/// Asks until the answer is yes. A test that waits too long is ended by its runner, with the name of what it waited for
/// in the log.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let clock = SystemClock::start();
    let deadline = clock.now_unix_nanos() + bigfleet_net::nanos(READY_WITHIN);
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(clock.now_unix_nanos() < deadline, "still waiting: {what}");
        clock.sleep(ASK_AGAIN).await;
    }
}

fn client(config: &Config) -> Client {
    Client::try_from(config.clone()).expect("the configuration is ours")
}

async fn config(kubeconfig: &str) -> Config {
    let parsed = Kubeconfig::from_yaml(kubeconfig).expect("the kubeconfig is ours");
    Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .expect("the kubeconfig is ours")
}

fn base64(text: &str) -> String {
    let bytes = k8s_openapi::ByteString(text.as_bytes().to_vec());
    serde_json::to_value(bytes)
        .ok()
        .and_then(|value| Some(value.as_str()?.to_owned()))
        .expect("bytes are text in JSON")
}

fn get(path: &str) -> http::Request<Vec<u8>> {
    http::Request::get(path).body(Vec::new()).expect("a request")
}

fn still_running(program: &Mutex<Program>) -> Result<(), StartError> {
    let mut program = program.lock().expect("no holder panics");
    if program.is_running() { Ok(()) } else { Err(not_ready(&program, "it has ended".into())) }
}

fn not_ready(program: &Program, reason: String) -> StartError {
    StartError::NotReady { program: program.name().into(), reason, last_words: program.last_words() }
}

/// Ports that nobody has just now. Somebody may take one before we do; then the start is tried again.
pub(crate) fn free_ports<const N: usize>() -> std::io::Result<[u16; N]> {
    // All are held until all are known, so that they differ.
    let mut held = Vec::with_capacity(N);
    for _ in 0..N {
        held.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
    }
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
