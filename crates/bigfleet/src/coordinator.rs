//! `bigfleet coordinator`: runs one, saves what it keeps, and puts it back.
//!
//! Exit codes of a run: 0 stopped as asked, 1 its store holds what it cannot read, 2 flags or files make no sense, 3 an
//! address cannot be listened on.

mod ask;
mod change;
mod list;
mod registry;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use bigfleet_coordinator_server::store::{Embedded, Etcd, EtcdSettings, Store};
use bigfleet_coordinator_server::{Export, Settings, StartError, snapshot, start};
use bigfleet_net::{Clock, SystemClock, TlsFiles};
use bigfleet_proto::v1alpha1::SnapshotSaveRequest;
use bigfleet_proto::v1alpha1::snapshot_save_chunk::Payload;
use bigfleet_shard_server::telemetry::{LogForm, Telemetry, TelemetrySettings};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use change::{AssignArgs, BindArgs, QuotaArgs, RemoveShardArgs, UnassignArgs, UnbindArgs};
pub(crate) use change::{assign, bind, quota, remove_shard, unassign, unbind};
pub(crate) use list::{Kind, ListArgs, list};
pub(crate) use registry::{RemoveProviderArgs, SetProviderArgs, remove_provider, set_provider};

use crate::at::nanos;
use crate::exit::{FOUND, Failure};
use crate::output::note;
use crate::reach::block_on;
use ask::{Coordinator, Whom};

/// Exit code of an address that cannot be listened on.
const CANNOT_LISTEN: u8 = 3;

/// Say which shard owns which domain, and what it may hold.
///
/// Shards decide and act without it. One replica keeps the fleet in a file; several keep it in an etcd and elect a leader.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet coordinator run --data /var/lib/bigfleet/coordinator
  bigfleet coordinator run --etcd https://etcd-0:2379,https://etcd-1:2379,https://etcd-2:2379 \\
      --etcd-tls-cert c.pem --etcd-tls-key c.key --etcd-tls-ca ca.pem --listen 0.0.0.0:7790 \\
      --tls-cert t.pem --tls-key t.key --tls-ca ca.pem
  bigfleet get shards
  bigfleet assign topology.kubernetes.io/zone=eu-west-1a --to eu-1
  bigfleet coordinator save fleet.jsonl")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Run(Box<RunArgs>),
    Save(SaveArgs),
    Restore(RestoreArgs),
}

/// Where a fleet is kept.
#[derive(clap::Args)]
struct KeepArgs {
    /// Keep the fleet in this folder, for one replica
    #[arg(long, value_name = "FOLDER", required_unless_present = "etcd")]
    data: Option<PathBuf>,
    /// Keep it in this etcd, for several; its members, separated by commas
    #[arg(long, value_name = "URLS", value_delimiter = ',', conflicts_with = "data")]
    etcd: Vec<String>,
    /// Before every key in etcd
    #[arg(long, value_name = "PREFIX", default_value = "/bigfleet/", help_heading = "etcd")]
    etcd_prefix: String,
    /// How long a leader that says nothing stays leader
    #[arg(long, value_name = "SECONDS", default_value_t = 10, help_heading = "etcd",
        value_parser = clap::value_parser!(u64).range(2..=600))]
    etcd_lease_secs: u64,
    /// Certificate for etcd (PEM)
    #[arg(long, value_name = "FILE", help_heading = "etcd")]
    etcd_tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", help_heading = "etcd")]
    etcd_tls_key: Option<PathBuf>,
    /// Whose certificates the members must show (PEM)
    #[arg(long, value_name = "FILE", help_heading = "etcd")]
    etcd_tls_ca: Option<PathBuf>,
}

/// Run a coordinator until it is told to stop.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct RunArgs {
    #[command(flatten)]
    keep: KeepArgs,
    /// Where shards and people call
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7790")]
    listen: SocketAddr,
    /// Where others reach this replica [default: --listen]
    #[arg(long, value_name = "HOST:PORT", default_value = "", hide_default_value = true)]
    advertise: String,
    /// Where metrics and health are read, in plaintext, or none
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8790")]
    metrics: String,
    /// Take calls in plaintext from other machines, unguarded
    #[arg(long)]
    insecure: bool,
    /// Show metrics and health in plaintext to other machines
    #[arg(long)]
    insecure_metrics: bool,
    /// Leave etcd's past and its unused room to somebody else
    #[arg(long, help_heading = "etcd")]
    no_etcd_compaction: bool,
    /// Write a snapshot into this folder every now and then, as `save` does; whoever leads writes
    #[arg(long, value_name = "FOLDER", help_heading = "Export")]
    export_to: Option<PathBuf>,
    /// How often
    #[arg(long, value_name = "SPAN", default_value = "1h", value_parser = span, help_heading = "Export")]
    export_every: i64,
    /// How many are kept
    #[arg(long, value_name = "N", default_value_t = 48, help_heading = "Export",
        value_parser = clap::value_parser!(u32).range(1..))]
    export_keep: u32,
    /// Certificate of this coordinator (PEM)
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    tls_key: Option<PathBuf>,
    /// Whose certificates callers must show (PEM)
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    tls_ca: Option<PathBuf>,
    /// Write messages as JSON
    #[arg(long, help_heading = "Telemetry")]
    log_json: bool,
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

/// Save what a coordinator keeps into one file.
#[derive(clap::Args)]
struct SaveArgs {
    /// The file; written whole or not at all
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    whom: Whom,
}

/// Put a saved fleet into an empty store, while no coordinator runs.
#[derive(clap::Args)]
struct RestoreArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    keep: KeepArgs,
}

fn span(text: &str) -> anyhow::Result<i64> {
    let span = nanos(text)?;
    ensure!(span > 0, "it must be longer than nothing");
    Ok(span)
}

/// Does what the verb says.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.verb {
        Verb::Run(args) => serve(args),
        Verb::Save(args) => block_on(save(args)),
        Verb::Restore(args) => block_on(restore(args)),
    }
}

impl KeepArgs {
    fn open(&self, clock: &Arc<dyn Clock>) -> Result<Store, anyhow::Error> {
        if let Some(folder) = &self.data {
            return Ok(Store::Embedded(Arc::new(Embedded::open(folder)?)));
        }
        ensure!(
            self.etcd_prefix.ends_with('/') && self.etcd_prefix.len() > 1,
            "--etcd-prefix {:?} must end with a slash and say something before it, as /bigfleet/ does",
            self.etcd_prefix
        );
        let files = [&self.etcd_tls_cert, &self.etcd_tls_key, &self.etcd_tls_ca].map(Clone::clone);
        let [cert, key, ca] = files;
        let settings = EtcdSettings {
            members: self.etcd.clone(),
            tls: TlsFiles::from_flags(cert, key, ca)
                .context("--etcd-tls-cert, --etcd-tls-key, --etcd-tls-ca")?,
            prefix: self.etcd_prefix.clone(),
            lease: Duration::from_secs(self.etcd_lease_secs),
            patience: Duration::from_secs(5),
        };
        let etcd = Etcd::new(settings, clock.clone()).map_err(|error| anyhow!("--etcd: {error}"))?;
        Ok(Store::Etcd(Arc::new(etcd)))
    }
}

fn serve(args: &RunArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(serve_until_told(args));
    runtime.shutdown_background();
    done
}

fn settings(args: &RunArgs) -> Result<Settings, anyhow::Error> {
    let tls = TlsFiles::from_flags(args.tls_cert.clone(), args.tls_key.clone(), args.tls_ca.clone())?;
    ensure!(
        tls.is_some() || args.insecure || args.listen.ip().is_loopback(),
        "--listen {} takes calls from other machines, and without certificates anybody there could give domains away; \
         give --tls-cert, --tls-key and --tls-ca, or say --insecure",
        args.listen
    );
    let http = match args.metrics.as_str() {
        "none" => None,
        address => Some(address.parse::<SocketAddr>().with_context(|| {
            format!("--metrics {address:?} is neither an address such as 127.0.0.1:8790 nor none")
        })?),
    };
    ensure!(
        args.insecure || args.insecure_metrics || http.is_none_or(|address| address.ip().is_loopback()),
        "--metrics {} is read in plaintext by other machines; put it behind something that guards it, or say \
         --insecure-metrics",
        args.metrics
    );
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    Ok(Settings {
        listen: args.listen,
        advertise: args.advertise.clone(),
        http,
        tls,
        store: args.keep.open(&clock)?,
        tidies: !args.no_etcd_compaction,
        export: args.export_to.clone().map(|folder| Export {
            folder,
            every: Duration::from_nanos(args.export_every.unsigned_abs()),
            keep: usize::try_from(args.export_keep).unwrap_or(usize::MAX),
        }),
    })
}

async fn serve_until_told(args: &RunArgs) -> Result<ExitCode, Failure> {
    // Before anything is started: a stop at any later moment is an orderly one.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let telemetry = Telemetry::start(&TelemetrySettings {
        form: if args.log_json { LogForm::Json } else { LogForm::Text },
        filter: args.log_filter.clone(),
        otlp: None,
        shard_id: String::new(),
    });
    let _telemetry = telemetry.context("--log-filter")?;
    let mut running = match start(settings(args)?).await {
        Ok(running) => running,
        Err(error @ StartError::Tls(_)) => return Err(anyhow::Error::from(error).into()),
        Err(error @ StartError::Listen { .. }) => {
            note(&format!("bigfleet: {error}"));
            return Ok(ExitCode::from(CANNOT_LISTEN));
        }
    };
    // Somebody may wait for the line.
    writeln!(std::io::stdout(), "coordinator on {}", running.address)?;
    std::io::stdout().flush()?;
    tokio::select! {
        ended = running.ended() => {
            let why = ended.err().map_or_else(|| "it ended by itself".to_owned(), |error| error.to_string());
            note(&format!("bigfleet: {why}"));
            return Ok(ExitCode::from(FOUND));
        }
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    running.stop().await.map_err(|error| anyhow!("{error}"))?;
    Ok(ExitCode::SUCCESS)
}

async fn save(args: &SaveArgs) -> Result<ExitCode, Failure> {
    let coordinator = Coordinator::new(&args.whom)?;
    let chunks =
        coordinator.ask_wire(|mut client| async move { client.snapshot_save(SnapshotSaveRequest {}).await });
    let mut chunks = chunks.await?;
    let (mut meta, mut data) = (Vec::new(), Vec::new());
    while let Some(chunk) = chunks.message().await.map_err(|status| coordinator.trouble(&status))? {
        match chunk.payload {
            Some(Payload::MetaJson(bytes)) => meta = bytes,
            Some(Payload::Data(bytes)) => data.extend(bytes),
            None => {}
        }
        if data.len() > snapshot::LIMIT_BYTES {
            return Err(anyhow!("the coordinator sends more than {} bytes", snapshot::LIMIT_BYTES).into());
        }
    }
    let file = snapshot::Snapshot { meta, data }.to_file();
    // What cannot be read again is no snapshot.
    let (read, _) = snapshot::read(&file).map_err(|error| anyhow!("what the coordinator sent: {error}"))?;
    bigfleet_durable::replace(&args.file, &file).with_context(|| format!("{}", args.file.display()))?;
    note(&format!("saved {} entries of term {} to {}", read.entries, read.term, args.file.display()));
    Ok(ExitCode::SUCCESS)
}

async fn restore(args: &RestoreArgs) -> Result<ExitCode, Failure> {
    let shown = args.file.display();
    let size = std::fs::metadata(&args.file).with_context(|| shown.to_string())?.len();
    if size > snapshot::LIMIT_BYTES as u64 {
        return Err(anyhow!("{shown} has {size} bytes; at most {} are read", snapshot::LIMIT_BYTES).into());
    }
    let file = std::fs::read(&args.file).with_context(|| shown.to_string())?;
    let (meta, fleet) = snapshot::read(&file).map_err(|error| anyhow!("{shown}: {error}"))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let store = args.keep.open(&clock)?;
    let leadership = tokio::select! {
        leadership = store.lead("restore", &clock) => leadership.map_err(|error| anyhow!("{error}"))?,
        // A lease that nobody refreshes would have ended by now.
        () = clock.sleep(Duration::from_secs(args.keep.etcd_lease_secs * 2)) => return Err(still_led()),
    };
    snapshot::restore(&fleet, &store, &leadership).await.map_err(|error| anyhow!("{error}"))?;
    note(&format!("restored {} entries; start the coordinators again", meta.entries));
    Ok(ExitCode::SUCCESS)
}

fn still_led() -> Failure {
    let refused =
        || -> anyhow::Result<()> { bail!("a coordinator runs on this store; stop all of them first") };
    refused().expect_err("it is refused").into()
}
