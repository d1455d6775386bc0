//! What a server is told at its start, and why it may not start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bigfleet_net::{DialError, InFlight, TlsError, TlsFiles};
use bigfleet_record::tape::{Limits, TapeError};
use bigfleet_record::{LostMemory, OpenError};
use bigfleet_shard::{Config, ProviderConfig};
use thiserror::Error;

/// A provider and where it is.
#[derive(Clone, Debug)]
pub struct ProviderAddress {
    /// What the shard is told of it.
    pub config: ProviderConfig,
    /// Where to dial, as a URL.
    pub address: String,
}

impl ProviderAddress {
    /// A provider under this name at this address.
    pub fn new(name: &str, address: impl Into<String>) -> Self {
        Self { config: ProviderConfig::named(name), address: address.into() }
    }
}

/// Where a shard remembers.
#[derive(Clone, Debug)]
pub enum Keep {
    /// In a folder: facts, epoch, and the decision record under `record/`.
    Folder {
        /// Which.
        path: PathBuf,
        /// How much of the past is kept.
        record: Limits,
    },
    /// Nowhere: everything but what providers keep is forgotten at the end. For tests and demonstrations.
    Nothing,
}

/// The folder of the decision record, within that of the store.
pub(crate) const RECORD: &str = "record";

impl Keep {
    /// Where the decision record lies, if there is one.
    pub fn record_folder(&self) -> Option<PathBuf> {
        match self {
            Self::Folder { path, .. } => Some(path.join(RECORD)),
            Self::Nothing => None,
        }
    }
}

/// Everything a server is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the shard is told. Its epoch and its providers are filled in from here.
    pub shard: Config,
    /// The providers.
    pub providers: Vec<ProviderAddress>,
    /// Where it remembers.
    pub keep: Keep,
    /// What to do if the memory that should be there is not.
    pub lost_memory: LostMemory,
    /// Where operators and people call; port 0 takes any free one.
    pub grpc: SocketAddr,
    /// Where metrics and health are read, if anywhere.
    pub http: Option<SocketAddr>,
    /// TLS on every edge, served and dialled, if not plaintext.
    pub tls: Option<TlsFiles>,
    /// How many sessions may be open at once.
    pub most_sessions: usize,
    /// How many bytes of unfinished messages callers may have us hold.
    pub in_flight: InFlight,
    /// The coordinator, if there is one.
    pub coordinator: Option<Reporting>,
    /// Whether the machines are not real, so that whoever shows them can say so.
    pub simulated: bool,
    /// How long a stop may take.
    pub stop_grace: Duration,
}

/// Reports to a coordinator.
#[derive(Clone, Debug)]
pub struct Reporting {
    /// Where to dial, as a URL.
    pub address: String,
    /// Where others reach this shard; where it listens if empty.
    pub shard_address: String,
    /// How often to report.
    pub every: Duration,
}

impl Reporting {
    /// Reports every 30 seconds.
    pub fn to(address: impl Into<String>) -> Self {
        Self { address: address.into(), shard_address: String::new(), every: Duration::from_secs(30) }
    }
}

impl Settings {
    /// A server in plaintext on any free loopback ports, that remembers nothing.
    pub fn local(shard: Config, providers: Vec<ProviderAddress>) -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            shard,
            providers,
            keep: Keep::Nothing,
            lost_memory: LostMemory::Refuse,
            grpc: anywhere,
            http: Some(anywhere),
            tls: None,
            most_sessions: 20_000,
            in_flight: InFlight::default(),
            coordinator: None,
            simulated: false,
            stop_grace: Duration::from_secs(5),
        }
    }
}

/// Why a server could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Two providers of one name.
    #[error("two providers are called {0:?}; give each a name of its own")]
    TwoProviders(String),
    /// More providers than there are numbers.
    #[error("{0} providers are too many; a shard takes at most 65535")]
    TooManyProviders(usize),
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}; is another process there? choose another address")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// An address cannot be dialled.
    #[error("{whom}: {source}")]
    Dial {
        /// Whose.
        whom: String,
        /// What is wrong with it.
        source: DialError,
    },
    /// TLS could not be set up.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The store could not be opened.
    #[error("{0}")]
    Store(#[from] OpenError),
    /// The decision record could not be opened.
    #[error("decision record: {0}")]
    Record(#[from] TapeError),
    /// The system gave no thread.
    #[error("cannot start the {name} thread: {source}")]
    Thread {
        /// Which.
        name: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Why a server that ran has ended.
#[derive(Debug, Error)]
pub enum RunError {
    /// The disk failed.
    #[error("{0}")]
    Keep(#[from] crate::commit::KeepError),
    /// Its folder is no longer there.
    #[error(
        "{0}; the shard stops, because what it remembers is no longer where the next life would look for it. Put the \
         folder back and start it again"
    )]
    FolderLost(String),
    /// A part of it died.
    #[error("{part} has ended: {why}; the shard stops, so that whoever watches it starts a new one")]
    Died {
        /// Which part.
        part: &'static str,
        /// Why, as far as known.
        why: String,
    },
    /// It did not stop in time.
    #[error(
        "the stop took longer than {0:?}; what was promised is on disk, but the decision record may lack its end"
    )]
    SlowStop(Duration),
}
