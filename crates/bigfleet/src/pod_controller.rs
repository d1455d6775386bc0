//! `bigfleet pod-controller`: turns the pods of a cluster into capacity requests, until it is told to stop.
//!
//! Exit codes: 0 stopped as asked, 2 flags or kubeconfig make no sense, 3 an address cannot be listened on.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use bigfleet_kube_common::{Connection, ElectionSettings, Timing};
use bigfleet_net::{Clock, SystemClock};
use bigfleet_pod_controller::translate::{MachineTaint, Policy};
use bigfleet_pod_controller::{Settings, StartError};
use bigfleet_shard_server::telemetry::{LogForm, Telemetry, TelemetrySettings};
use clap::ValueEnum;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Failure;

/// Exit code of an address that is taken.
const CANNOT_LISTEN: u8 = 3;

/// Turn the pods of a cluster into capacity requests, one each.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet pod-controller --kubeconfig ~/.kube/config --no-leader-election
  bigfleet pod-controller --metrics 0.0.0.0:8080 --machine-taint dedicated=ml:NoSchedule@pool=ml \\
      --node-label kubernetes.io/os=linux")]
pub(crate) struct Args {
    /// The cluster, if not that of KUBECONFIG, ~/.kube/config or this pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Where metrics and health are read, in plaintext, or none
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    metrics: String,
    /// A scheduler whose pods ask for capacity; may be repeated
    #[arg(
        long = "scheduler",
        value_name = "NAME",
        default_value = "default-scheduler",
        help_heading = "Pods"
    )]
    schedulers: Vec<String>,
    /// Machines with this label are nodes with this taint, as KEY[=VALUE]:EFFECT@LABEL[=VALUE]; may be repeated
    #[arg(long = "machine-taint", value_name = "TAINT@LABEL", help_heading = "Pods")]
    machine_taints: Vec<MachineTaint>,
    /// A label that every node has, whether or not its machine is listed with it; may be repeated
    #[arg(long = "node-label", value_name = "KEY=VALUE", value_parser = pair, help_heading = "Pods")]
    node_labels: Vec<(String, String)>,
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
    /// Its name
    #[arg(
        long,
        value_name = "NAME",
        default_value = "bigfleet-pod-controller",
        help_heading = "Leader election"
    )]
    lease_name: String,
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

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    pair.map(|(key, value)| (key.to_owned(), value.to_owned())).ok_or_else(|| "write it as KEY=VALUE".into())
}

/// Runs until it is told to stop.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let clock = Arc::new(SystemClock::start());
    let settings = settings(args, &*clock)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(serve(args, settings, clock));
    // Whatever still waits for a socket has nothing left to say.
    runtime.shutdown_background();
    done
}

fn settings(args: &Args, clock: &dyn Clock) -> Result<Settings, anyhow::Error> {
    let metrics: Option<SocketAddr> = match args.metrics.as_str() {
        "none" => None,
        address => Some(address.parse().with_context(|| {
            format!("--metrics {address:?} is neither an address such as 127.0.0.1:8080 nor none")
        })?),
    };
    let election = (!args.no_leader_election).then(|| ElectionSettings {
        namespace: args.lease_namespace.clone(),
        name: args.lease_name.clone(),
        identity: identity(clock),
        timing: Timing::default(),
    });
    Ok(Settings {
        connection: Connection { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() },
        policy: Policy {
            schedulers: args.schedulers.clone(),
            machine_taints: args.machine_taints.clone(),
            node_labels: BTreeMap::from_iter(args.node_labels.clone()),
        },
        election,
        metrics,
    })
}

/// A name that no other process has, nor a later one on this machine.
fn identity(clock: &dyn Clock) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}_{:x}", host.trim(), std::process::id(), clock.now_unix_nanos())
}

async fn serve(args: &Args, settings: Settings, clock: Arc<SystemClock>) -> Result<ExitCode, Failure> {
    // Before anything is started: a stop at any later moment is an orderly one.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let telemetry = Telemetry::start(&TelemetrySettings {
        form: if args.log == Log::Json { LogForm::Json } else { LogForm::Text },
        filter: args.log_filter.clone(),
        otlp: None,
        shard_id: String::new(),
    });
    let _telemetry = telemetry.context("--log-filter")?;
    let running = match bigfleet_pod_controller::run(settings, clock).await {
        Ok(running) => running,
        Err(StartError::Connect(error)) => return Err(anyhow::Error::from(error).into()),
        Err(error @ StartError::Listen { .. }) => {
            let _ = writeln!(std::io::stderr(), "bigfleet: {error}");
            return Ok(ExitCode::from(CANNOT_LISTEN));
        }
    };
    if let Some(address) = running.metrics {
        // Somebody may wait for the line.
        let mut out = std::io::stdout().lock();
        writeln!(out, "metrics on http://{address}/metrics")?;
        out.flush()?;
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    running.stop().await;
    Ok(ExitCode::SUCCESS)
}
