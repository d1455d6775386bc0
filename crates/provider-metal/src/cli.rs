//! The command line: `bigfleet provider metal`.
//!
//! Exit codes: 0 as asked, 1 ended by itself or something was found, 2 flags or the inventory make no sense, 3 an
//! address cannot be listened on, 4 the state cannot be used.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::text::Quoted;
use bigfleet_provider_kit::{
    Clock, Options, Patience, Provider, ServeError, Server, Settings, StartError, Store, StoreError,
    SystemClock, Timeouts, TlsError, TlsFiles, replace_file, stop_signals,
};
use clap::{Parser, Subcommand};
use thiserror::Error;

use crate::backend::Metal;
use crate::inventory::{self, Refused};
use crate::shared::Shared;
use crate::ssh::Ssh;
use crate::{discover, rebuild, reload};

/// Offers the hosts of an inventory file: real machines, by SSH and Redfish.
///
/// Without a command it serves. The file is read again when it changes or at SIGHUP.
#[derive(Clone, Debug, Parser)]
#[command(args_conflicts_with_subcommands = false)]
pub struct Args {
    /// The hosts, as YAML; docs/metal.md describes it
    #[arg(long, value_name = "FILE", global = true, default_value = "inventory.yaml")]
    pub inventory: PathBuf,
    /// The folder to keep state in: machines, host keys, outputs
    #[arg(long, value_name = "FOLDER", global = true, default_value = "metal-state")]
    pub state: PathBuf,
    /// Where to answer calls
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9000")]
    pub addr: SocketAddr,
    /// Where metrics and health are read [default: nowhere]
    #[arg(long, value_name = "IP:PORT")]
    pub http: Option<SocketAddr>,
    /// Certificate for TLS (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Whom to trust: with it, callers need a certificate too (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Which log lines to write
    #[arg(long, value_name = "FILTER", default_value = "info", env = "BIGFLEET_LOG")]
    pub log: String,
    /// What else to do than to serve
    #[command(subcommand)]
    pub command: Option<Verb>,
}

/// What else to do than to serve.
#[derive(Clone, Debug, Subcommand)]
pub enum Verb {
    /// Check the inventory and say all that is wrong with it
    Check,
    /// Ask hosts without resources what they have, and show it as a diff
    Discover {
        /// Write it into the inventory
        #[arg(long)]
        apply: bool,
    },
    /// Compare the state with what the hosts say, after the state was lost; the provider must not run
    Rebuild {
        /// Take over what the hosts say
        #[arg(long)]
        apply: bool,
    },
    /// Print what the last job of a host printed
    Output {
        /// Which host
        host: String,
    },
}

/// Why it did not run, or not to its end.
#[derive(Debug, Error)]
enum RunError {
    #[error("{0}")]
    Refused(#[from] Refused),
    #[error("{0}")]
    Flags(String),
    #[error("{0}")]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Start(#[from] StartError),
    #[error("state folder {}: {source}", .path.display())]
    State { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    Serve(#[from] ServeError),
    #[error("{0}")]
    Other(String),
    #[error("the process cannot be set up: {0}")]
    System(#[from] std::io::Error),
}

impl RunError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::Flags(_) | Self::Tls(_) | Self::Serve(ServeError::Tls(_)) => 2,
            Self::Serve(ServeError::Listen { .. }) => 3,
            Self::Start(_) | Self::State { .. } => 4,
            Self::Serve(ServeError::Ended(_)) | Self::Other(_) | Self::System(_) => 1,
        }
    }
}

/// Does what is asked. Speaks on standard error, and on standard output when asked to print.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let filter = tracing_subscriber::EnvFilter::try_new(&args.log)?;
    // Colours are for eyes: a file or a collector would keep them as rubbish.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let coloured = std::io::stderr().is_terminal() && !no_color;
    let logs = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(coloured);
    let logs = logs.with_target(false).with_env_filter(filter);
    // Whoever runs us in process may have logs of their own.
    let _ = logs.try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        match &args.command {
            None => serve(args).await.map(|()| ExitCode::SUCCESS),
            Some(Verb::Check) => check(args),
            Some(Verb::Discover { apply }) => discovered(args, *apply).await,
            Some(Verb::Rebuild { apply }) => rebuilt(args, *apply).await,
            Some(Verb::Output { host }) => output(args, host),
        }
    });
    // What still waits for a host is not waited for.
    runtime.shutdown_background();
    Ok(done.unwrap_or_else(|error| {
        say(&format!("error: {error}"));
        ExitCode::from(error.exit_code())
    }))
}

fn say(line: &str) {
    // Nobody may be listening; that is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn print(text: &str) -> Result<(), RunError> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn check(args: &Args) -> Result<ExitCode, RunError> {
    let inventory = inventory::read(&args.inventory)?;
    let free = inventory.hosts.values().filter(|host| host.always_on).count();
    let hosts = inventory.hosts.len();
    print(&format!("{}: {hosts} hosts, {free} of them always on\n", args.inventory.display()))?;
    Ok(ExitCode::SUCCESS)
}

async fn discovered(args: &Args, apply: bool) -> Result<ExitCode, RunError> {
    let refused = |findings| Refused { path: args.inventory.clone(), findings };
    let text = inventory::read_text(&args.inventory)?;
    let ssh = Ssh::new(&state_folder(args)?, Arc::new(SystemClock::start()))?;
    let discovery = discover::discover(&ssh, &text).await.map_err(refused)?;
    print(&discovery.diff(&text))?;
    if apply {
        let new = discovery.applied(&text).map_err(RunError::Other)?;
        replace_file(&args.inventory, new.as_bytes())?;
    }
    Ok(if discovery.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn rebuilt(args: &Args, apply: bool) -> Result<ExitCode, RunError> {
    use std::fmt::Write as _;
    let (shared, provider) = open(args, false).await?;
    let handle = provider.handle();
    let compared = rebuild::compare(&shared, &handle).await;
    let name = shared.inventory().provider.clone();
    let mut text = String::new();
    for comparison in &compared {
        let _ = writeln!(text, "{comparison}");
    }
    let changes: Vec<_> = compared.iter().filter(|comparison| comparison.is_change()).collect();
    print(&text)?;
    for comparison in changes.iter().filter(|_| apply) {
        rebuild::apply(&handle, &name, comparison).await.map_err(RunError::Other)?;
    }
    handle.stop(Duration::ZERO).await;
    say(&format!(
        "{} of {} hosts differ{}",
        changes.len(),
        compared.len(),
        match (apply, changes.is_empty()) {
            (_, true) => "",
            (true, false) =>
                "; the store now says what the hosts say. Restart the shards, so that they use a new epoch",
            (false, false) => "; nothing was changed. With --apply the store takes over what the hosts say",
        }
    ));
    Ok(ExitCode::SUCCESS)
}

fn output(args: &Args, host: &str) -> Result<ExitCode, RunError> {
    let is_name =
        host.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) && !host.starts_with('.');
    if !is_name {
        return Err(RunError::Flags(format!("{} is no name of a host", Quoted(host))));
    }
    let path = args.state.join("output").join(format!("{host}.log"));
    let text = std::fs::read_to_string(&path)
        .map_err(|error| RunError::Other(format!("{}: {error}", path.display())))?;
    let shown: String =
        text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect();
    print(&shown)?;
    Ok(ExitCode::SUCCESS)
}

/// The state folder, made if it is not there, for us alone.
fn state_folder(args: &Args) -> Result<PathBuf, RunError> {
    let failed = |source| RunError::State { path: args.state.clone(), source };
    bigfleet_durable::private_folder(&args.state).map_err(failed)?;
    std::fs::canonicalize(&args.state).map_err(failed)
}

/// Reads the inventory and opens the store.
async fn open(args: &Args, recovers: bool) -> Result<(Arc<Shared>, Provider<Metal>), RunError> {
    let inventory = inventory::read(&args.inventory)?;
    let state = state_folder(args)?;
    let failed = |source| RunError::State { path: state.clone(), source };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let name = inventory.provider.clone();
    let shared = Arc::new(Shared::open(inventory, &state, clock.clone()).map_err(failed)?);
    let seed = clock.now_unix_nanos().unsigned_abs();
    // Our own limits end a move, with the reason; the kit's only catch what they do not.
    let timeouts = Timeouts::all(Duration::from_hours(96));
    let options = Options { timeouts, ..Options::new(clock, seed) };
    let mut patience = Patience::start();
    let provider = loop {
        let backend = Metal { shared: shared.clone(), name: name.clone(), recovers };
        match Provider::open(backend, Store::file(state.join("provider.redb")), options.clone()).await {
            Err(StartError::Store(StoreError::InUse(_))) if patience.wait().await => {}
            opened => break opened?,
        }
    };
    assert!(shared.handle.set(provider.handle()).is_ok(), "a store is opened once");
    Ok((shared, provider))
}

async fn serve(args: &Args) -> Result<(), RunError> {
    let tls = TlsFiles::from_flags(args.tls_cert.clone(), args.tls_key.clone(), args.tls_ca.clone())?;
    let mut stop = stop_signals()?;
    let (shared, provider) = open(args, true).await?;
    let handle = provider.handle();
    let settings = Settings { grpc: args.addr, http: args.http, tls, stop_grace: Duration::from_secs(5) };
    let mut patience = Patience::start();
    let server = loop {
        match Server::bind(provider.clone(), handle.clone(), settings.clone()).await {
            Err(ServeError::Listen { .. }) if patience.wait().await => {}
            bound => break bound?,
        }
    };
    reload::settle(&shared, None).await;
    let (followed, path) = (shared.clone(), args.inventory.clone());
    tokio::spawn(async move {
        if let Err(error) = reload::follow(followed, Path::new(&path)).await {
            tracing::error!(%error, "the inventory is not followed");
        }
    });
    if args.tls_cert.is_none() && !server.grpc_addr().ip().is_loopback() {
        say(
            "warning: calls come in as plaintext from other machines; --tls-cert, --tls-key and --tls-ca prevent that",
        );
    }
    say(&format!("{} hosts of {}", shared.inventory().hosts.len(), args.inventory.display()));
    say(&format!("listening on {}", server.grpc_addr()));
    if let Some(http) = server.http_addr() {
        say(&format!("metrics on http://{http}/metrics"));
    }
    server.run(async move { drop(stop.wait_for(|stop| *stop).await) }).await?;
    say("stopped");
    Ok(())
}
