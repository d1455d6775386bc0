//! An etcd of three members on loopback.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_coordinator_server::store::{Etcd, EtcdSettings, Store};
use bigfleet_kube_testbed::{Assets, Program};
use bigfleet_net::{Clock, SystemClock};
use tempfile::TempDir;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Three members. Dropping it ends them.
pub(crate) struct Members {
    programs: Vec<Option<Program>>,
    ports: Vec<[u16; 2]>,
    folder: TempDir,
    assets: Assets,
}

impl Members {
    pub(crate) fn start() -> Self {
        let assets = Assets::find().unwrap_or_else(|error| panic!("{error}"));
        let free = || {
            let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
            listener.local_addr().expect("an address").port()
        };
        let ports = (0..3).map(|_| [free(), free()]).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let mut members = Self { programs: vec![None, None, None], ports, folder, assets };
        for member in 0..3 {
            members.begin(member);
        }
        members
    }

    /// Starts a member with what it had.
    pub(crate) fn begin(&mut self, member: usize) {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let peers =
            self.ports.iter().enumerate().map(|(place, [_, peer])| format!("m{place}={}", url(*peer)));
        let peers = peers.collect::<Vec<_>>().join(",");
        let [client, peer] = self.ports[member].map(url);
        let folder = self.folder.path().join(format!("m{member}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let arguments = vec![
            format!("--name=m{member}"),
            format!("--data-dir={}", folder.join("data").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster={peers}"),
            // Many elections on few cores: patient ones.
            "--heartbeat-interval=200".into(),
            "--election-timeout=2000".into(),
            "--log-level=error".into(),
        ];
        let program = Program::start(&self.assets.program("etcd"), arguments, &folder).expect("etcd starts");
        self.programs[member] = Some(program);
    }

    pub(crate) fn kill(&mut self, member: usize) {
        if let Some(mut program) = self.programs[member].take() {
            program.kill();
        }
    }

    pub(crate) fn freeze(&self, member: usize) {
        self.programs[member].as_ref().expect("it runs").freeze().expect("a signal");
    }

    pub(crate) fn go_on(&self, member: usize) {
        self.programs[member].as_ref().expect("it runs").go_on().expect("a signal");
    }

    pub(crate) fn settings(&self, prefix: &str) -> EtcdSettings {
        EtcdSettings {
            members: self.ports.iter().map(|[client, _]| format!("http://127.0.0.1:{client}")).collect(),
            tls: None,
            prefix: format!("/bigfleet-test/{prefix}/"),
            lease: Duration::from_secs(5),
            patience: Duration::from_secs(10),
        }
    }

    pub(crate) fn store(&self, prefix: &str) -> Store {
        Store::Etcd(Arc::new(Etcd::new(self.settings(prefix), clock()).expect("addresses")))
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::start())
}

/// Waits until something is so.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let clock = SystemClock::start();
    let begun = clock.now_unix_nanos();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        let waited = clock.now_unix_nanos() - begun;
        assert!(waited < bigfleet_net::nanos(PATIENCE), "{what}: not after {PATIENCE:?}");
        clock.sleep(Duration::from_millis(50)).await;
    }
}
