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
    page: String,
    data: Option<tempfile::TempDir>,
    // Ended in this order.
    shard_process: Process,
    provider_process: Process,
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

    /// The same with machines that take some seconds to be made and some to join, and a shard that keeps a record.
    pub(crate) fn slow(machines: usize) -> Self {
        let provider = format!("127.0.0.1:{}", free_port());
        let count = machines.to_string();
        let mut arguments: Vec<String> = ["provider", "sim", "--use-fake-backend", "--seed-count", &count]
            .into_iter()
            .chain(["--addr", &provider, "--http", "none"])
            .map(str::to_owned)
            .collect();
        // Each must agree with those set before it.
        for (what, secs) in [("p99", 6), ("median", 4), ("least", 3)] {
            for step in ["create", "configure"] {
                arguments.extend(["--set".into(), format!("latency.{step}.{what}={secs}s")]);
            }
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let process = Process::start("provider", &arguments);
        let data = tempfile::tempdir().unwrap();
        let memory = ["--data".to_owned(), data.path().join("shard").display().to_string()];
        Self { data: Some(data), ..Self::with("sim", process, &provider, &memory) }
    }

    /// Whether its shard keeps a record.
    pub(crate) fn keeps_a_record(&self) -> bool {
        self.data.is_some()
    }

    /// Starts a shard behind a provider that was started.
    pub(crate) fn behind(name: &str, process: Process, provider: &str) -> Self {
        Self::with(name, process, provider, &["--memory-only".to_owned()])
    }

    fn with(name: &str, process: Process, provider: &str, memory: &[String]) -> Self {
        let listen = format!("127.0.0.1:{}", free_port());
        let page = format!("127.0.0.1:{}", free_port());
        let cloud = format!("{name}=http://{provider}");
        let memory: Vec<&str> = memory.iter().map(String::as_str).collect();
        let arguments = ["shard", "--metrics", "none", "--listen", &listen, "--provider", &cloud];
        let web = ["--web", &page];
        let shard = Process::start("shard", &[&arguments[..], &memory, &web, &QUICK].concat());
        Self {
            provider: format!("http://{provider}"),
            shard: format!("http://{listen}"),
            page: format!("http://{page}"),
            data: None,
            shard_process: shard,
            provider_process: process,
        }
    }

    /// Where the shard is.
    pub(crate) fn shard(&self) -> &str {
        &self.shard
    }

    /// Its processes by name.
    pub(crate) fn processes(&self) -> [(String, u32); 2] {
        [("shard".into(), self.shard_process.id()), ("provider".into(), self.provider_process.id())]
    }

    /// Where the shard's page is.
    pub(crate) fn page(&self) -> &str {
        &self.page
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
