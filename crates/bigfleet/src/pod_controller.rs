//! `bigfleet pod-controller`: turns the pods of a cluster into capacity requests, until it is told to stop.
//!
//! Exit codes: 0 stopped as asked, 2 flags or kubeconfig make no sense, 3 an address cannot be listened on.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use bigfleet_net::{Clock, SystemClock};
use bigfleet_pod_controller::translate::{MachineTaint, Policy};
use bigfleet_pod_controller::{Settings, StartError};

use crate::daemon::{
    ApiFlags, CANNOT_REACH, ElectionFlags, LogFlags, StopSignals, announce_metrics, metrics_address,
    say_and_exit,
};
use crate::exit::Failure;

/// Turn the pods of a cluster into capacity requests, one each.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet pod-controller --kubeconfig ~/.kube/config --no-leader-election
  bigfleet pod-controller --metrics 0.0.0.0:8080 --machine-taint dedicated=ml:NoSchedule@pool=ml \\
      --node-label kubernetes.io/os=linux")]
pub(crate) struct Args {
    #[command(flatten)]
    api: ApiFlags,
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
    #[command(flatten)]
    election: ElectionFlags,
    #[command(flatten)]
    log: LogFlags,
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
    Ok(Settings {
        connection: args.api.connection(),
        policy: Policy {
            schedulers: args.schedulers.clone(),
            machine_taints: args.machine_taints.clone(),
            node_labels: BTreeMap::from_iter(args.node_labels.clone()),
        },
        election: args.election.settings("bigfleet-pod-controller", clock),
        metrics: metrics_address(&args.metrics, "127.0.0.1:8080")?,
    })
}

async fn serve(args: &Args, settings: Settings, clock: Arc<SystemClock>) -> Result<ExitCode, Failure> {
    let mut signals = StopSignals::listen()?;
    let _telemetry = args.log.start("", None)?;
    let running = match bigfleet_pod_controller::run(settings, clock).await {
        Ok(running) => running,
        Err(StartError::Connect(error)) => return Err(anyhow::Error::from(error).into()),
        Err(error @ StartError::Listen { .. }) => return Ok(say_and_exit(&error, CANNOT_REACH)),
    };
    if let Some(address) = running.metrics {
        announce_metrics(address)?;
    }
    signals.stop().await;
    running.stop().await;
    Ok(ExitCode::SUCCESS)
}
