//! The fleet's side: `bigfleet provider sim` and `bigfleet shard`, as processes.

use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{ListFilter, Machine};
use tonic::transport::Endpoint;

use crate::process::{Process, free_port};

/// What is held back for minutes in earnest is held back for moments here.
const QUICK: [&str; 18] = [
    "--tick",
    "1s",
    "--min-spacing",
    "50ms",
    "--list-every",
    "1s",
    "--list-while-moving",
    "200ms",
    "--reclaim-window",
    "1s",
    "--reclaim-fraction",
    "0.3",
    "--guard-spacing",
    "1s",
    "--on-demand-hold",
    "3s",
    "--spot-hold",
    "3s",
];

/// A shard with a simulated cloud behind it.
pub(crate) struct Fleet {
    provider: String,
    shard: String,
    // Ended in this order.
    _shard: Process,
    _provider: Process,
}

impl Fleet {
    /// Starts both, with so many slots of the types that test suites have, and three whole hosts that are there already.
    pub(crate) fn start(machines: usize) -> Self {
        let provider = format!("127.0.0.1:{}", free_port());
        let count = machines.to_string();
        let arguments =
            ["provider", "sim", "--use-fake-backend", "--seed-count", &count, "--idle-count", "3"];
        let places = ["--addr", &provider, "--http", "none"];
        Self::behind("sim", Process::start("provider", &[&arguments[..], &places].concat()), &provider)
    }

    /// Starts a shard behind a provider that was started.
    pub(crate) fn behind(name: &str, process: Process, provider: &str) -> Self {
        let listen = format!("127.0.0.1:{}", free_port());
        let cloud = format!("{name}=http://{provider}");
        let arguments =
            ["shard", "--memory-only", "--metrics", "none", "--listen", &listen, "--provider", &cloud];
        let shard = Process::start("shard", &[&arguments[..], &QUICK].concat());
        Self {
            provider: format!("http://{provider}"),
            shard: format!("http://{listen}"),
            _shard: shard,
            _provider: process,
        }
    }

    /// Where the shard is.
    pub(crate) fn shard(&self) -> &str {
        &self.shard
    }

    /// All machines as the provider has them; none if it does not answer.
    pub(crate) async fn machines(&self) -> Vec<Machine> {
        let Ok(endpoint) = Endpoint::from_shared(self.provider.clone()) else { return Vec::new() };
        let Ok(channel) = endpoint.connect().await else { return Vec::new() };
        let list = transport::provider_client(channel).list(ListFilter::default()).await;
        list.map_or(Vec::new(), |list| list.into_inner().machines)
    }

    /// The state of a machine, as a wire number.
    pub(crate) async fn state(&self, machine: &str) -> Option<i32> {
        self.machines().await.into_iter().find(|one| one.id == machine).map(|one| one.state)
    }
}
