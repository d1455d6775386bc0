//! `bigfleet operator`: speaks for one cluster, until it is told to stop.
//!
//! Exit codes: 0 stopped as asked, 1 a part of it died or another replica took over, 2 flags, files or kubeconfig make
//! no sense, 3 an address cannot be listened on or the API server cannot be reached.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use bigfleet_kube_common::Election;
use bigfleet_net::{Clock, SystemClock, http};
use bigfleet_operator::template::Template;
use bigfleet_operator_kube::{Health, Settings, StartError, WATCH_FOR};
use tokio::net::TcpListener;

use crate::daemon::{
    ApiFlags, CANNOT_REACH, ElectionFlags, LogFlags, StopSignals, TlsFlags, announce_metrics,
    metrics_address, say_and_exit,
};
use crate::exit::{FOUND, Failure};

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
    #[command(flatten)]
    api: ApiFlags,
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
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    election: ElectionFlags,
    #[command(flatten)]
    log: LogFlags,
}

/// Runs until it is told to stop.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let settings = settings(args)?;
    let metrics = metrics_address(&args.metrics, "127.0.0.1:8770")?;
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
    Ok(Settings {
        cluster: args.cluster.clone(),
        shard: args.shard.clone(),
        tls: args.tls.files()?,
        template,
        blob_ttl: Duration::from_secs(args.bootstrap_ttl_secs),
        interval: seconds("--rollup-interval-secs", args.rollup_interval_secs, 0.1, 3600.0)?,
        debounce: seconds("--debounce-secs", args.debounce_secs, 0.0, 60.0)?,
        settle: seconds("--settle-secs", args.settle_secs, 1.0, 3600.0)?,
        subtract_existing: !args.ignore_existing_nodes,
        watch_for: WATCH_FOR,
    })
}

fn seconds(flag: &str, secs: f64, least: f64, most: f64) -> Result<Duration, anyhow::Error> {
    if (least..=most).contains(&secs) {
        return Ok(Duration::from_secs_f64(secs));
    }
    anyhow::bail!("{flag} {secs} is not from {least} to {most}")
}

async fn serve(args: &Args, settings: Settings, metrics: Option<SocketAddr>) -> Result<ExitCode, Failure> {
    let mut signals = StopSignals::listen()?;
    let _telemetry = args.log.start("", None)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let client = args.api.connection().client().await.map_err(anyhow::Error::from)?;
    let listener = match metrics {
        Some(address) => match TcpListener::bind(address).await {
            Ok(listener) => Some(listener),
            Err(error) => return Ok(say_and_exit(&format!("--metrics {address}: {error}"), CANNOT_REACH)),
        },
        None => None,
    };
    // A replica that waits for its turn answers too, and is as ready as it can be: an update waits for that.
    let health: Arc<OnceLock<Health>> = Arc::default();
    if let Some(listener) = listener {
        announce_metrics(listener.local_addr()?)?;
        let (ready, scraped) = (health.clone(), health.clone());
        let app = http::router(
            move || std::future::ready(ready.get().map_or(Ok(()), Health::ready)),
            move || std::future::ready(scraped.get().map_or_else(|| "# EOF\n".to_owned(), Health::metrics)),
        );
        tokio::spawn(http::serve(listener, app, std::future::pending()));
    }
    let election = args.election.settings("bigfleet-operator", &*clock);
    let mut election = election.map(|settings| Election::new(client.clone(), settings, clock.clone()));
    if let Some(election) = &mut election {
        tokio::select! {
            () = election.acquire() => {}
            () = signals.stop() => return Ok(ExitCode::SUCCESS),
        }
    }
    let mut running = match bigfleet_operator_kube::start(settings, client, clock).await {
        Ok(running) => running,
        Err(error @ StartError::Dial(_)) => return Err(anyhow::Error::from(error).into()),
        Err(error @ StartError::Api(_)) => return Ok(say_and_exit(&error, CANNOT_REACH)),
    };
    let _ = health.set(running.health());
    let lost = async {
        match &mut election {
            Some(election) => election.hold().await,
            None => std::future::pending().await,
        }
    };
    let code = tokio::select! {
        part = running.ended() => say_and_exit(&format!("{part} ended by itself"), FOUND),
        why = lost => say_and_exit(&format!("no longer the leader: {why}"), FOUND),
        () = signals.stop() => ExitCode::SUCCESS,
    };
    drop(running);
    if let Some(election) = &mut election {
        // If that fails the lease ends by itself.
        let _ = election.release().await;
    }
    Ok(code)
}
