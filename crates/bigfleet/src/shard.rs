//! `bigfleet shard`: one shard over its providers, until it is told to stop.
//!
//! Exit codes: 0 stopped as asked, 1 a part of it died, 2 flags or files make no sense, 3 an address cannot be listened
//! on, 4 the state cannot be used.

mod knobs;
mod plan;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::SystemClock;
use bigfleet_shard_server::StartError;

use crate::daemon::{CANNOT_REACH, LogFlags, StopSignals, TlsFlags, say_and_exit};
use crate::exit::{FOUND, Failure};
use crate::web::{Page, Plan};
use knobs::Knobs;

/// Exit code of state that cannot be used.
const BAD_STATE: u8 = 4;
/// How long traces that wait may take to be sent at the end.
const LAST_TRACES: Duration = Duration::from_secs(1);

/// Run a shard: it takes roll-ups from operators and drives machines through providers.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = "Examples:
  bigfleet shard --data /var/lib/bigfleet --provider metal=http://127.0.0.1:9000
  bigfleet shard --data d --provider a=https://a:9000 --provider b=https://b:9000 \\
      --listen 0.0.0.0:7780 --tls-cert shard.pem --tls-key shard.key --tls-ca ca.pem
  bigfleet shard --memory-only --dry-run --provider sim=http://127.0.0.1:9000")]
pub(crate) struct Args {
    /// The shard's name, in fencing tokens, reports and its certificate
    #[arg(long, value_name = "NAME", default_value = "shard-0", env = "BIGFLEET_SHARD_ID",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    shard_id: String,
    /// Where it remembers what must not be lost, and keeps its decision record
    #[arg(long, value_name = "DIR", required_unless_present = "memory_only", conflicts_with = "memory_only")]
    data: Option<PathBuf>,
    /// Remember nothing beyond this process; for trying things out
    #[arg(long)]
    memory_only: bool,
    /// Where operators and people call
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7780")]
    listen: SocketAddr,
    /// Where metrics and health are read, in plaintext, or none
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8780")]
    metrics: String,
    /// Where the page is served, or none; beyond loopback it needs TLS and --web-tokens
    #[arg(long, value_name = "HOST:PORT", default_value = "none", help_heading = "Page")]
    web: String,
    /// Who may open the page, one line each: a role (admin or readonly), a secret and a name
    #[arg(long, value_name = "FILE", help_heading = "Page", env = "BIGFLEET_WEB_TOKENS")]
    web_tokens: Option<PathBuf>,
    /// A provider and where it is; may be repeated
    #[arg(long = "provider", value_name = "NAME=URL", value_parser = plan::provider, required = true)]
    providers: Vec<(String, String)>,
    /// A domain this shard owns, as label and value; may be repeated. Without one it owns all its providers list.
    /// Not with a coordinator: then it owns what it is assigned
    #[arg(long = "domain", value_name = "KEY=VALUE", value_parser = plan::pair)]
    domains: Vec<(String, String)>,
    /// The coordinator, its replicas separated by commas; it is never waited for
    #[arg(long, value_name = "URLS")]
    coordinator: Option<String>,
    /// How often it reports to its coordinator
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = knobs::positive)]
    report_every: i64,
    /// Where others reach this shard, as told to the coordinator [default: --listen]
    #[arg(long, value_name = "HOST:PORT", requires = "coordinator")]
    advertise: Option<String>,
    #[command(flatten)]
    tls: TlsFlags,
    /// Take calls in plaintext from other machines, unguarded
    #[arg(long, help_heading = "TLS", conflicts_with = "tls_cert")]
    insecure: bool,
    /// Show metrics and health in plaintext to other machines
    #[arg(long, help_heading = "TLS")]
    insecure_metrics: bool,
    /// Begin without the memory if --data has an epoch and no state file
    #[arg(long, requires = "data")]
    accept_lost_memory: bool,
    #[command(flatten)]
    knobs: Knobs,
    #[command(flatten)]
    log: LogFlags,
    /// Where traces go, by OTLP over gRPC; collectors mostly listen on port 4317
    #[arg(long, value_name = "URL", help_heading = "Telemetry")]
    otlp: Option<String>,
}

/// Runs until it is told to stop.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let settings = plan::settings(args)?;
    let page = Plan::of_flags(&args.web, settings.tls.clone(), args.web_tokens.as_deref(), "--web")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(serve(args, settings, page));
    // Whatever still waits for a socket has nothing left to say.
    runtime.shutdown_background();
    done
}

async fn serve(
    args: &Args,
    settings: bigfleet_shard_server::Settings,
    page: Option<Plan>,
) -> Result<ExitCode, Failure> {
    let mut signals = StopSignals::listen()?;
    let telemetry = args.log.start(&args.shard_id, args.otlp.as_deref())?;
    let mut running = match bigfleet_shard_server::start(settings, Arc::new(SystemClock::start())).await {
        Ok(running) => running,
        Err(error) => return Ok(say_and_exit(&error, code_of(&error))),
    };
    let page = match page {
        None => None,
        Some(page) => {
            match page.serve(vec![bigfleet_web::Shard::local(&args.shard_id, running.view())]).await {
                Ok(page) => Some(page),
                Err(error) => {
                    let _ = running.stop().await;
                    return Ok(say_and_exit(&format!("{error:#}"), CANNOT_REACH));
                }
            }
        }
    };
    announce(&running, page.as_ref())?;
    let ended = tokio::select! {
        ended = running.ended() => Some(ended),
        () = signals.stop() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => running.stop().await,
    };
    // Sending the last traces waits for a socket; this thread has nothing else to do.
    let _ = tokio::task::spawn_blocking(move || telemetry.stop(LAST_TRACES)).await;
    Ok(match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => say_and_exit(&error, FOUND),
    })
}

/// Says where it listens on standard output: somebody may wait for the line.
fn announce(running: &bigfleet_shard_server::Running, page: Option<&Page>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on {}", running.grpc)?;
    if let Some(http) = running.http {
        writeln!(out, "metrics on http://{http}/metrics")?;
    }
    if let Some(page) = page {
        writeln!(out, "page on {}", page.url)?;
    }
    out.flush()
}

fn code_of(error: &StartError) -> u8 {
    match error {
        StartError::Listen { .. } => CANNOT_REACH,
        StartError::Store(_) | StartError::Record(_) => BAD_STATE,
        StartError::Thread { .. } => FOUND,
        StartError::TwoProviders(_)
        | StartError::TooManyProviders(_)
        | StartError::Dial { .. }
        | StartError::Tls(_) => 2,
    }
}
