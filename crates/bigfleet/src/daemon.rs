//! What programs that run until they are told to stop have in common: flags for TLS, metrics, messages and the cluster, and how
//! they stop.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bigfleet_kube_common::{Connection, ElectionSettings, Timing};
use bigfleet_net::{Clock, TlsError, TlsFiles};
use bigfleet_shard_server::telemetry::{LogForm, Telemetry, TelemetrySettings};
use clap::ValueEnum;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of something that cannot be reached or listened on.
pub(crate) const CANNOT_REACH: u8 = 3;

/// Who we are to others, and who they must be.
#[derive(clap::Args)]
pub(crate) struct TlsFlags {
    /// Certificate to show, on every edge served and dialled (PEM)
    #[arg(id = "tls_cert", long = "tls-cert", value_name = "FILE", help_heading = "TLS", requires_all = ["tls_key", "tls_ca"])]
    cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(id = "tls_key", long = "tls-key", value_name = "FILE", help_heading = "TLS", requires_all = ["tls_cert", "tls_ca"])]
    key: Option<PathBuf>,
    /// Whose certificates the other side must show (PEM)
    #[arg(id = "tls_ca", long = "tls-ca", value_name = "FILE", help_heading = "TLS", requires_all = ["tls_cert", "tls_key"])]
    ca: Option<PathBuf>,
}

impl TlsFlags {
    /// The files, if there are any.
    pub(crate) fn files(&self) -> Result<Option<TlsFiles>, TlsError> {
        TlsFiles::from_flags(self.cert.clone(), self.key.clone(), self.ca.clone())
    }
}

/// What is said on standard error.
#[derive(clap::Args)]
pub(crate) struct LogFlags {
    /// How messages are written to standard error
    #[arg(long, value_enum, default_value_t = Log::Text, help_heading = "Telemetry")]
    log: Log,
    /// Which messages: error, warn, info, debug, or by module as `tracing` filters have it
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "BIGFLEET_LOG",
        help_heading = "Telemetry"
    )]
    log_filter: String,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Log {
    /// One line of text each
    Text,
    /// One JSON object each
    Json,
}

impl LogFlags {
    /// Begins to speak; traces go to the collector, if there is one.
    pub(crate) fn start(&self, shard_id: &str, otlp: Option<&str>) -> anyhow::Result<Telemetry> {
        let telemetry = Telemetry::start(&TelemetrySettings {
            form: if self.log == Log::Json { LogForm::Json } else { LogForm::Text },
            filter: self.log_filter.clone(),
            otlp: otlp.map(str::to_owned),
            shard_id: shard_id.into(),
        });
        telemetry.context(if otlp.is_some() { "--log-filter and --otlp" } else { "--log-filter" })
    }
}

/// Which API server.
#[derive(clap::Args)]
pub(crate) struct ApiFlags {
    /// The cluster's API server, if not that of KUBECONFIG, ~/.kube/config or this pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ApiFlags {
    /// How it is reached.
    pub(crate) fn connection(&self) -> Connection {
        Connection { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }
}

/// Which of several replicas works.
#[derive(clap::Args)]
pub(crate) struct ElectionFlags {
    /// This is the only replica
    #[arg(long, help_heading = "Leader election")]
    no_leader_election: bool,
    /// Where the replicas' lease is
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = "bigfleet-system",
        help_heading = "Leader election"
    )]
    lease_namespace: String,
    /// Its name, if not that of the program
    #[arg(long, value_name = "NAME", help_heading = "Leader election")]
    lease_name: Option<String>,
}

impl ElectionFlags {
    /// Our part in it, if there is one. The lease is called `program` unless a flag says otherwise.
    pub(crate) fn settings(&self, program: &str, clock: &dyn Clock) -> Option<ElectionSettings> {
        (!self.no_leader_election).then(|| ElectionSettings {
            namespace: self.lease_namespace.clone(),
            name: self.lease_name.clone().unwrap_or_else(|| program.into()),
            identity: identity(clock),
            timing: Timing::default(),
        })
    }
}

/// A name that no other process has, nor a later one on this machine.
fn identity(clock: &dyn Clock) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}_{:x}", host.trim(), std::process::id(), clock.now_unix_nanos())
}

/// What `--metrics` says: an address, or none.
pub(crate) fn metrics_address(text: &str, usual: &str) -> anyhow::Result<Option<SocketAddr>> {
    match text {
        "none" => Ok(None),
        address => Ok(Some(address.parse().with_context(|| {
            format!("--metrics {address:?} is neither an address such as {usual} nor none")
        })?)),
    }
}

/// Says where metrics are on standard output: somebody may wait for the line.
pub(crate) fn announce_metrics(address: SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "metrics on http://{address}/metrics")?;
    out.flush()
}

/// The two ways in which people and machines say stop.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Listens from now on. Before anything is started, so that a stop at any later moment is an orderly one.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Ends when one of them came.
    pub(crate) async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Says why it ends.
pub(crate) fn say_and_exit(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    // Nothing is left to be done if even this cannot be written.
    let _ = writeln!(std::io::stderr(), "bigfleet: {error}");
    ExitCode::from(code)
}
