//! The command line: `bigfleet provider sim`, and the same as a standard provider test binary.
//!
//! Exit codes: 0 stopped as asked, 1 ended by itself, 2 flags or files make no sense, 3 an address cannot be
//! listened on, 4 the state cannot be used.

pub mod fault;
mod setup;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_provider_kit::{Patience, ServeError, Server, Settings, StartError, StoreError, stop_signals};
use clap::Parser;
use thiserror::Error;
use tokio::net::TcpListener;

use crate::admin;
use crate::clock::FastClock;
use crate::sim::{OpenError, Sim};

pub use setup::UsageError;

/// Simulates a cloud: a provider whose machines do not exist.
///
/// Everything it says is made up, from one seed. With --use-fake-backend it is the standard provider test
/// binary: --seed-count slots, moves of 40 to 100 ms, and no surprises.
#[derive(Clone, Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Args {
    /// Where to answer calls; without a host, on loopback
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9000")]
    pub addr: String,
    /// The provider's name, part of machine ids and host references
    #[arg(long, value_name = "NAME", default_value = "sim")]
    pub provider: String,
    /// Be the standard provider test binary: quick moves, no surprises
    // Takes =true and =false as well: harnesses in other languages write it so.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
        action = clap::ArgAction::Set, hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    pub use_fake_backend: bool,
    /// How many healthy Speculative slots a test binary has [default: 100]
    #[arg(long, value_name = "N")]
    pub seed_count: Option<usize>,
    /// How many Idle machines a test binary has besides
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub idle_count: usize,
    /// How many slots whose Create fails a test binary has besides
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub fault_slots: usize,
    /// The file to keep state in, or a folder for it; without one, all is forgotten at the end
    #[arg(long, value_name = "PATH")]
    pub state: Option<PathBuf>,
    /// Decides every random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// How many times as fast time goes by
    #[arg(long, value_name = "1..1000", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub clock: u32,
    /// How many slots the cloud offers
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub machines: usize,
    /// The zones to spread them over
    #[arg(long, value_name = "ZONE,..", value_delimiter = ',', default_value = "zone-a,zone-b,zone-c")]
    pub zones: Vec<String>,
    /// A JSON file with settings of the models
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// Changes one setting of a model, such as spot.on=false; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// A fault from the start on, such as "stale-list by=60s"; may be repeated
    #[arg(long = "fault", value_name = "LINE")]
    pub faults: Vec<String>,
    /// A scenario file whose faults are played from the start on
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Play the scenario at once in virtual time, print its events to standard output, and end
    #[arg(long, requires = "scenario")]
    pub replay: bool,
    /// Where metrics and health are read, or none [default: 127.0.0.1:9090; any free port as a test binary]
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// Where faults are added and lifted, on loopback, or none [default: 127.0.0.1:9001; none as a test binary]
    #[arg(long, value_name = "HOST:PORT")]
    pub admin: Option<String>,
    /// A file to write every simulated event to, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Certificate for TLS (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Whom to trust: with it, callers need a certificate too (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Take calls, and show metrics, in plaintext to other machines, unguarded
    #[arg(long)]
    pub insecure: bool,
    /// Print every model, setting, fault and instance type with its default, and end
    #[arg(long, visible_alias = "show-models")]
    pub print_defaults: bool,
}

/// Why it did not run, or not to its end.
#[derive(Debug, Error)]
enum RunError {
    #[error("{0}")]
    Usage(#[from] UsageError),
    #[error("{0}")]
    Open(#[from] OpenError),
    #[error("{0}")]
    Serve(#[from] ServeError),
    #[error("cannot listen on {address} for the admin API: {source}; choose another with --admin, or none")]
    Admin { address: SocketAddr, source: std::io::Error },
    #[error("the process cannot be set up: {0}")]
    System(#[from] std::io::Error),
}

impl RunError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Serve(ServeError::Tls(_)) => 2,
            Self::Serve(ServeError::Listen { .. }) | Self::Admin { .. } => 3,
            Self::Open(_) => 4,
            Self::Serve(ServeError::Ended(_)) | Self::System(_) => 1,
        }
    }
}

/// Runs until it is told to stop. Speaks on standard error, and on standard output when asked to print.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.print_defaults {
        return match setup::defaults(args) {
            Ok(text) => Ok(print(&text).map(|()| ExitCode::SUCCESS)?),
            Err(error) => Ok(refuse(&error.into())),
        };
    }
    if args.replay {
        return Ok(played(args).unwrap_or_else(|error| refuse(&error)));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match runtime.block_on(serve(args)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Ok(refuse(&error)),
    }
}

fn refuse(error: &RunError) -> ExitCode {
    say(&format!("error: {error}"));
    ExitCode::from(error.exit_code())
}

/// Plays the scenario and prints what happened.
fn played(args: &Args) -> Result<ExitCode, RunError> {
    let (scenario, config) = setup::scenario(args)?;
    let replay = crate::replay::replay(&scenario, config)?;
    print(&replay.events)?;
    say(&format!("{}: {}", scenario.name, replay.summary));
    Ok(ExitCode::SUCCESS)
}

/// Prints an answer. A reader that has seen enough, as `head` does, is no failure.
fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn say(line: &str) {
    // Nobody may be listening; that is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}

async fn serve(args: &Args) -> Result<(), RunError> {
    let plan = setup::plan(args)?;
    let mut stop = stop_signals()?;
    let clock = Arc::new(FastClock::start(args.clock));
    let mut patience = Patience::start();
    let sim = loop {
        let (config, store, log) = (plan.config.clone(), plan.store.clone(), plan.log.clone());
        match Sim::open_with(config, store, clock.clone(), log).await {
            Err(OpenError::Start(StartError::Store(StoreError::InUse(_)))) if patience.wait().await => {}
            opened => break opened?,
        }
    };
    let settings = Settings {
        grpc: plan.grpc,
        http: plan.http,
        tls: plan.tls,
        // The kit waits on the simulated clock; a stop is waited for in real time.
        stop_grace: Duration::from_secs(2) * args.clock,
    };
    let server = loop {
        match Server::bind(sim.service(), sim.handle(), settings.clone()).await {
            Err(ServeError::Listen { .. }) if patience.wait().await => {}
            bound => break bound?,
        }
    };
    let admin = match plan.admin {
        Some(address) => {
            Some(TcpListener::bind(address).await.map_err(|source| RunError::Admin { address, source })?)
        }
        None => None,
    };
    say(&setup::banner(args, &plan.config));
    say(&format!("listening on {}", server.grpc_addr()));
    if let Some(http) = server.http_addr() {
        say(&format!("metrics on http://{http}/metrics"));
    }
    if let Some(admin) = admin {
        if let Ok(address) = admin.local_addr() {
            say(&format!("faults on {address}"));
        }
        let (control, mut stopped) = (sim.control(), stop.clone());
        let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
        tokio::spawn(admin::serve(control, admin, until));
    }
    server.run(async move { drop(stop.wait_for(|stop| *stop).await) }).await?;
    say("stopped");
    Ok(())
}
