//! `bigfleet operator`: speaks for one cluster, until it is told to stop.
//!
//! Exit codes: 0 stopped as asked, 1 a part of it died or another replica took over, 2 flags, files or kubeconfig make
//! no sense, 3 an address cannot be listened on or the API server cannot be reached.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bigfleet_kube_common::{Connection, Election, ElectionSettings, Timing};
use bigfleet_net::{Clock, SystemClock, TlsFiles, http};
use bigfleet_operator::template::Template;
use bigfleet_operator_kube::{Settings, StartError};
use bigfleet_shard_server::telemetry::{LogForm, Telemetry, TelemetrySettings};
use clap::ValueEnum;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{FOUND, Failure};

/// Exit code of something that cannot be reached or listened on.
const CANNOT_REACH: u8 = 3;

/// Speak for a cluster: report its demand to a shard, show what comes of it, drain what is taken back.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet operator --cluster shop --shard http://127.0.0.1:7780 --bootstrap-template-file join.tmpl \\
      --kubeconfig ~/.kube/config --no-leader-election
  bigfleet operator --cluster shop --shard https://shard:7780 --bootstrap-template-file /etc/bigfleet/bootstrap.tmpl \\
      --tls-cert shop.pem --tls-key shop.key --tls-ca ca.pem")]
pub(crate) struct Args {
    /// The cluster's name, as in its certificate
    #[arg(long, value_name = "NAME", env = "BIGFLEET_CLUSTER",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    cluster: String,
    /// The shard to dial
    #[arg(long, value_name = "URL", env = "BIGFLEET_SHARD")]
    shard: String,
    /// What new machines are given to join with: text with {{ .`ClusterID` }}, {{ .`JoinToken` }} and
    /// {{ range .Requirements }}
    #[arg(long, value_name = "FILE")]
    bootstrap_template_file: PathBuf,
    /// How long that is good for
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(30..=86_400))]
    bootstrap_ttl_secs: u64,
    /// The cluster's API server, if not that of KUBECONFIG, ~/.kube/config or this pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Where metrics and health are read, in plaintext, or none
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8770")]
    metrics: String,
    /// How often the whole demand is told again
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, help_heading = "Pace")]
    rollup_interval_secs: f64,
    /// How long changes are gathered before they are told
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, help_heading = "Pace")]
    debounce_secs: f64,
    /// How long pods must have been without a place on settled machines before more is asked for
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0, help_heading = "Pace")]
    settle_secs: f64,
    /// Ask also for pods that run on nodes which are not the fleet's
    #[arg(long)]
    ignore_existing_nodes: bool,
    /// Certificate of the cluster, <bigfleet://cluster/NAME> (PEM)
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires_all = ["tls_key", "tls_ca"])]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires_all = ["tls_cert", "tls_ca"])]
    tls_key: Option<PathBuf>,
    /// Whose certificate the shard must show (PEM)
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires_all = ["tls_cert", "tls_key"])]
    tls_ca: Option<PathBuf>,
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
    #[arg(long, value_name = "NAME", default_value = "bigfleet-operator", help_heading = "Leader election")]
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

/// Runs until it is told to stop.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let settings = settings(args)?;
    let metrics = metrics_address(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(serve(args, settings, metrics));
    // Whatever still waits for a socket has nothing left to say.
    runtime.shutdown_background();
    done
}

fn settings(args: &Args) -> Result<Settings, anyhow::Error> {
    let file = &args.bootstrap_template_file;
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("--bootstrap-template-file {}", file.display()))?;
    let template = Template::parse(&text)
        .map_err(|error| anyhow::anyhow!("--bootstrap-template-file {}: {error}", file.display()))?;
    let tls = match (&args.tls_cert, &args.tls_key, &args.tls_ca) {
        (Some(cert), Some(key), Some(ca)) => {
            Some(TlsFiles { cert: cert.clone(), key: key.clone(), ca: Some(ca.clone()) })
        }
        _ => None,
    };
    Ok(Settings {
        cluster: args.cluster.clone(),
        shard: args.shard.clone(),
        tls,
        template,
        blob_ttl: Duration::from_secs(args.bootstrap_ttl_secs),
        interval: seconds("--rollup-interval-secs", args.rollup_interval_secs, 0.1, 3600.0)?,
        debounce: seconds("--debounce-secs", args.debounce_secs, 0.0, 60.0)?,
        settle: seconds("--settle-secs", args.settle_secs, 1.0, 3600.0)?,
        subtract_existing: !args.ignore_existing_nodes,
    })
}

fn seconds(flag: &str, secs: f64, least: f64, most: f64) -> Result<Duration, anyhow::Error> {
    if (least..=most).contains(&secs) {
        return Ok(Duration::from_secs_f64(secs));
    }
    anyhow::bail!("{flag} {secs} is not from {least} to {most}")
}

fn metrics_address(args: &Args) -> Result<Option<SocketAddr>, anyhow::Error> {
    match args.metrics.as_str() {
        "none" => Ok(None),
        address => Ok(Some(address.parse().with_context(|| {
            format!("--metrics {address:?} is neither an address such as 127.0.0.1:8770 nor none")
        })?)),
    }
}

/// A name that no other process has, nor a later one on this machine.
fn identity(clock: &dyn Clock) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}_{:x}", host.trim(), std::process::id(), clock.now_unix_nanos())
}

async fn serve(args: &Args, settings: Settings, metrics: Option<SocketAddr>) -> Result<ExitCode, Failure> {
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
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let connection = Connection { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
    let client = connection.client().await.map_err(anyhow::Error::from)?;
    let listener = match metrics {
        Some(address) => match TcpListener::bind(address).await {
            Ok(listener) => Some(listener),
            Err(error) => return Ok(say_and_exit(&format!("--metrics {address}: {error}"), CANNOT_REACH)),
        },
        None => None,
    };
    let mut election = (!args.no_leader_election).then(|| {
        let settings = ElectionSettings {
            namespace: args.lease_namespace.clone(),
            name: args.lease_name.clone(),
            identity: identity(&*clock),
            timing: Timing::default(),
        };
        Election::new(client.clone(), settings, clock.clone())
    });
    if let Some(election) = &mut election {
        tokio::select! {
            () = election.acquire() => {}
            _ = terminate.recv() => return Ok(ExitCode::SUCCESS),
            _ = interrupt.recv() => return Ok(ExitCode::SUCCESS),
        }
    }
    let mut running = match bigfleet_operator_kube::start(settings, client, clock).await {
        Ok(running) => running,
        Err(error @ StartError::Dial(_)) => return Err(anyhow::Error::from(error).into()),
        Err(error @ StartError::Api(_)) => return Ok(say_and_exit(&error, CANNOT_REACH)),
    };
    if let Some(listener) = listener {
        let health = running.health();
        // Somebody may wait for the line.
        writeln!(std::io::stdout(), "metrics on http://{}/metrics", listener.local_addr()?)?;
        std::io::stdout().flush()?;
        let scraped = health.clone();
        let app = http::router(
            move || std::future::ready(health.ready()),
            move || std::future::ready(scraped.metrics()),
        );
        tokio::spawn(http::serve(listener, app, std::future::pending()));
    }
    let lost = async {
        match &mut election {
            Some(election) => election.hold().await,
            None => std::future::pending().await,
        }
    };
    let code = tokio::select! {
        part = running.ended() => say_and_exit(&format!("{part} ended by itself"), FOUND),
        why = lost => say_and_exit(&format!("no longer the leader: {why}"), FOUND),
        _ = terminate.recv() => ExitCode::SUCCESS,
        _ = interrupt.recv() => ExitCode::SUCCESS,
    };
    drop(running);
    if let Some(election) = &mut election {
        // If that fails the lease ends by itself.
        let _ = election.release().await;
    }
    Ok(code)
}

fn say_and_exit(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    // Nothing is left to be done if even this cannot be written.
    let _ = writeln!(std::io::stderr(), "bigfleet: {error}");
    ExitCode::from(code)
}
