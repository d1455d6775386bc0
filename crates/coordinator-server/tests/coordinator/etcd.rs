//! Stores on an etcd of three members.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_coordinator_server::store::{Etcd, EtcdSettings, Store};
use bigfleet_kube_testbed::EtcdMembers;
use bigfleet_net::{Clock, SystemClock};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Three members. Dropping it ends them.
pub(crate) struct Members(EtcdMembers);

impl Members {
    pub(crate) fn start() -> Self {
        Self(EtcdMembers::start().unwrap_or_else(|error| panic!("{error}")))
    }

    pub(crate) fn begin(&mut self, member: usize) {
        self.0.begin(member).expect("etcd starts");
    }

    pub(crate) fn kill(&mut self, member: usize) {
        self.0.kill(member);
    }

    pub(crate) fn freeze(&self, member: usize) {
        self.0.freeze(member).expect("a signal");
    }

    pub(crate) fn go_on(&self, member: usize) {
        self.0.go_on(member).expect("a signal");
    }

    /// How large the file of a member is.
    pub(crate) fn database_bytes(&self, member: usize) -> u64 {
        let file = self.0.folder(member).join("data/member/snap/db");
        file.metadata().expect("it has a file").len()
    }

    pub(crate) fn settings(&self, prefix: &str) -> EtcdSettings {
        EtcdSettings {
            members: self.0.urls(),
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
