//! From flags to a cloud: reads files, checks everything, and says what will be simulated.

use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bigfleet_provider_kit::{Store, TlsError, TlsFiles};
use thiserror::Error;

use super::Args;
use crate::admin::is_private;
use crate::catalogue;
use crate::event::EventLog;
use crate::fault::{FaultError, KINDS, Line};
use crate::inventory::{FAULT_SLOTS, Inventory};
use crate::models::{Models, SettingError, describe};
use crate::scenario::{Problems, Scenario};
use crate::sim::Config;

/// Machines of a test binary if nobody says how many.
const SEED_COUNT: usize = 100;
/// The most slots a cloud may have.
const MACHINES_LIMIT: usize = 5_000_000;

/// Why flags or files make no sense.
#[derive(Debug, Error)]
pub enum UsageError {
    /// Not an address.
    #[error("{flag}: {text:?} is no address ({reason}); write HOST:PORT")]
    Address {
        /// Which flag.
        flag: &'static str,
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The admin API is not for everybody.
    #[error(
        "--admin: {0} can be reached from other machines; the admin API breaks things on purpose, use 127.0.0.1"
    )]
    PublicAdmin(SocketAddr),
    /// Plaintext for everybody was not asked for.
    #[error(
        "{flag}: {address} can be reached from other machines in plaintext; give --tls-cert, --tls-key and --tls-ca for \
         calls, use 127.0.0.1, or say --insecure"
    )]
    Public {
        /// Which flag.
        flag: &'static str,
        /// Which address.
        address: SocketAddr,
    },
    /// A file cannot be read or written.
    #[error("{flag}: {}: {source}", .path.display())]
    File {
        /// Which flag.
        flag: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A setting is no good.
    #[error("{0}")]
    Setting(#[from] SettingError),
    /// A fault is no good.
    #[error("--fault: {0}")]
    Fault(#[from] FaultError),
    /// A scenario is no good.
    #[error("--scenario: the file has problems\n{0}")]
    Scenario(#[from] Problems),
    /// The TLS flags do not go together.
    #[error("--tls-cert, --tls-key, --tls-ca: {0}")]
    Tls(#[from] TlsError),
    /// Something else.
    #[error("{0}")]
    Flag(String),
}

/// Everything that flags and files say.
pub(super) struct Plan {
    pub(super) config: Config,
    pub(super) store: Store,
    pub(super) log: Arc<EventLog>,
    pub(super) grpc: SocketAddr,
    pub(super) http: Option<SocketAddr>,
    pub(super) admin: Option<SocketAddr>,
    pub(super) tls: Option<TlsFiles>,
}

pub(super) fn plan(args: &Args) -> Result<Plan, UsageError> {
    let test = is_test_binary(args);
    let grpc = address("--addr", &args.addr)?;
    let http = optional("--http", args.http.as_deref(), if test { "127.0.0.1:0" } else { "127.0.0.1:9090" })?;
    let admin = optional("--admin", args.admin.as_deref(), if test { "none" } else { "127.0.0.1:9001" })?;
    if let Some(public) = admin.filter(|address| !is_private(address)) {
        return Err(UsageError::PublicAdmin(public));
    }
    let (cert, key, ca) = (args.tls_cert.clone(), args.tls_key.clone(), args.tls_ca.clone());
    let tls = TlsFiles::from_flags(cert, key, ca)?;
    let guarded = |address: &SocketAddr| args.insecure || is_private(address);
    let public = |flag, address| Err(UsageError::Public { flag, address });
    if tls.is_none() && !guarded(&grpc) {
        return public("--addr", grpc);
    }
    if let Some(address) = http.filter(|address| !guarded(address)) {
        return public("--http", address);
    }
    let mut config = config(args)?;
    let store = match &args.state {
        None => Store::memory(),
        Some(path) => {
            let file = state_file(path)?;
            let mut faults = file.clone().into_os_string();
            faults.push(".faults");
            config.kept_faults = Some(faults.into());
            Store::file(file)
        }
    };
    let log = match &args.events {
        None => Arc::default(),
        Some(path) => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let file =
                file.map_err(|source| UsageError::File { flag: "--events", path: path.clone(), source })?;
            Arc::new(EventLog::writing_to(Box::new(file)))
        }
    };
    Ok(Plan { config, store, log, grpc, http, admin, tls })
}

fn is_test_binary(args: &Args) -> bool {
    args.use_fake_backend || args.seed_count.is_some()
}

fn config(args: &Args) -> Result<Config, UsageError> {
    let test = is_test_binary(args);
    let mut models = match (&args.models, test) {
        (Some(path), _) => Models::from_json(&read("--models", path)?)?,
        (None, true) => Models::for_test_suites(),
        (None, false) => Models::default(),
    };
    for setting in &args.settings {
        models.set(setting)?;
    }
    let mut faults = args.faults.iter().map(|line| line.parse()).collect::<Result<Vec<Line>, _>>()?;
    let mut seed = args.seed;
    if let Some(path) = &args.scenario {
        let scenario = Scenario::from_json(&read("--scenario", path)?)?;
        seed = scenario.seed;
        faults.extend(scenario.faults);
    }
    if args.provider.is_empty() || args.provider.len() > 200 {
        return Err(UsageError::Flag("--provider: a name has 1 to 200 bytes".into()));
    }
    if args.zones.iter().any(String::is_empty) {
        return Err(UsageError::Flag("--zones: a zone has no name; write zone-a,zone-b".into()));
    }
    let count = if test { args.seed_count.unwrap_or(SEED_COUNT) } else { args.machines };
    let all = count.saturating_add(args.idle_count).saturating_add(args.fault_slots);
    if all > MACHINES_LIMIT {
        return Err(UsageError::Flag(format!("{all} machines are too many; at most {MACHINES_LIMIT}")));
    }
    if !test && args.idle_count + args.fault_slots > 0 {
        return Err(UsageError::Flag("--idle-count and --fault-slots are for --use-fake-backend".into()));
    }
    let inventory = if test {
        Inventory::Slots { speculative: count, idle: args.idle_count, faults: args.fault_slots }
    } else {
        Inventory::Fleet { machines: count, zones: args.zones.clone() }
    };
    Ok(Config { name: args.provider.clone(), seed, inventory, models, faults, kept_faults: None })
}

/// The scenario that is to be replayed, and the cloud to replay it on.
pub(super) fn scenario(args: &Args) -> Result<(Scenario, Config), UsageError> {
    let path =
        args.scenario.as_ref().ok_or_else(|| UsageError::Flag("--replay needs --scenario FILE".into()))?;
    Ok((Scenario::from_json(&read("--scenario", path)?)?, config(args)?))
}

fn read(flag: &'static str, path: &Path) -> Result<String, UsageError> {
    std::fs::read_to_string(path).map_err(|source| UsageError::File { flag, path: path.into(), source })
}

/// The file for a `--state` path, which may also be a folder. The store makes its file but not the folder.
fn state_file(path: &Path) -> Result<PathBuf, UsageError> {
    if path.is_dir() {
        return Ok(path.join("provider-sim.redb"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        std::fs::create_dir_all(folder).map_err(|source| UsageError::File {
            flag: "--state",
            path: folder.into(),
            source,
        })?;
    }
    Ok(path.into())
}

fn optional(
    flag: &'static str,
    given: Option<&str>,
    default: &str,
) -> Result<Option<SocketAddr>, UsageError> {
    match given.unwrap_or(default) {
        "none" => Ok(None),
        text => address(flag, text).map(Some),
    }
}

/// HOST:PORT; without a host, loopback.
fn address(flag: &'static str, text: &str) -> Result<SocketAddr, UsageError> {
    let wrong = |reason: String| UsageError::Address { flag, text: text.into(), reason };
    let full = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_string() };
    let mut found: Vec<SocketAddr> =
        full.to_socket_addrs().map_err(|error| wrong(error.to_string()))?.collect();
    found.sort_by_key(|address| !address.is_ipv4());
    found.first().copied().ok_or_else(|| wrong("the host has no address".into()))
}

/// What is said at the start.
pub(super) fn banner(args: &Args, config: &Config) -> String {
    let mut text =
        String::from("SIMULATED CLOUD: no machine of this provider exists, and no price is a real one.\n");
    let what = match &config.inventory {
        Inventory::TestMachines(count) => format!("{count} test machines and {FAULT_SLOTS} that fail"),
        Inventory::Slots { speculative, idle, faults } => {
            format!("{speculative} slots, {idle} Idle machines, {faults} slots that fail")
        }
        Inventory::Fleet { machines, zones } => format!("{machines} slots in {}", zones.join(", ")),
    };
    let state = args
        .state
        .as_ref()
        .map_or("in memory, forgotten at the end".into(), |path| path.display().to_string());
    let _ = writeln!(
        text,
        "provider {}: {what}; seed {}, clock x{}, state {state}",
        config.name, config.seed, args.clock
    );
    let _ = write!(text, "models:\n{}", describe(&config.models));
    for line in &config.faults {
        let _ = writeln!(text, "fault: {line}");
    }
    text.push_str("lies and faults: off unless added; see --print-defaults");
    text
}

/// Everything with its default.
pub(super) fn defaults(args: &Args) -> Result<String, UsageError> {
    let config = config(args)?;
    let mut text = String::from("Models of the simulated cloud (change with --set NAME=VALUE):\n");
    text.push_str(&describe(&config.models));
    text.push_str("\nFaults and lies, all off by default (add with --fault LINE or the admin API):\n");
    for info in &KINDS {
        let _ = writeln!(text, "  {}\n      {}", info.usage(), info.help);
    }
    let _ = writeln!(text, "\nInstance types and prices, made up, as of {}:", catalogue::AS_OF);
    for kind in &catalogue::CATALOGUE {
        let _ = writeln!(
            text,
            "  {:<10} {:>4} cpus {:>5} GiB {:>2} gpus  {:>8.3} USD/h on demand",
            kind.name, kind.cpus, kind.memory_gib, kind.gpus, kind.usd_per_hour
        );
    }
    Ok(text)
}
