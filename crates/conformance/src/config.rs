//! What to run, against whom, and how patiently.

use std::path::PathBuf;
use std::time::Duration;

use crate::behaviour::{Behaviour, Group, Level};
use crate::catalogue::catalogue;
use crate::clock;
use crate::restart::Restart;

/// Settings of one run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the provider listens, as `HOST:PORT`.
    pub address: String,
    /// How to speak to it; plaintext without.
    pub tls: Option<Tls>,
    /// Which behaviours to try.
    pub selection: Selection,
    /// Decides every random choice.
    pub seed: u64,
    /// Part of every shard id of the run, so that marks left by an earlier run fence nobody.
    pub run_name: String,
    /// How the provider is restarted; without, durability is skipped.
    pub restart: Restart,
    /// How patiently and how much.
    pub limits: Limits,
}

impl Config {
    /// The whole suite against a plaintext provider, with a seed and a name taken from the clock.
    pub fn new(address: impl Into<String>) -> Self {
        let now = clock::unix_nanos();
        Self {
            address: address.into(),
            tls: None,
            selection: Selection::default(),
            seed: now,
            run_name: format!("{now:x}"),
            restart: Restart::Never,
            limits: Limits::default(),
        }
    }
}

/// Files for a TLS connection, all PEM.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Whom to trust.
    pub ca: Option<PathBuf>,
    /// Our certificate, if the provider asks for one.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// The name in the provider's certificate, if it is not the host's.
    pub server_name: Option<String>,
}

/// How patiently and how much.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long one answer may take before it counts as none.
    pub call: Duration,
    /// How long a move may take to come to its end.
    pub transition: Duration,
    /// How long a restarted provider may take to answer.
    pub restart: Duration,
    /// How long nothing is done to see that the revision stands still.
    pub quiet: Duration,
    /// How long the soak checks go on, each.
    pub soak: Duration,
    /// How many random calls a model check makes at most.
    pub model_steps: usize,
    /// How long a model check goes on at most.
    pub model: Duration,
    /// How many machines the scale checks move at most.
    pub max_scale: usize,
    /// How many checks run beside each other.
    pub parallel: usize,
    /// The longest wait between two looks at a move under way.
    pub poll: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(30),
            transition: Duration::from_mins(3),
            restart: Duration::from_mins(1),
            quiet: Duration::from_secs(2),
            soak: Duration::from_secs(20),
            model_steps: 400,
            model: Duration::from_mins(2),
            max_scale: 100,
            parallel: 4,
            poll: Duration::from_millis(250),
        }
    }
}

/// Which behaviours to try.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Ids or groups; none means all.
    pub only: Vec<String>,
    /// Ids or groups to leave out.
    pub except: Vec<String>,
    /// Leave out what is not of this level.
    pub level: Option<Level>,
}

impl Selection {
    /// Whether the behaviour is among those to try.
    pub fn holds(&self, behaviour: &Behaviour) -> bool {
        let named = |names: &[String]| names.iter().any(|name| matches(name, behaviour));
        (self.only.is_empty() || named(&self.only))
            && !named(&self.except)
            && self.level.is_none_or(|level| level == behaviour.level)
    }

    /// The names that are neither an id nor a group.
    pub fn unknown(&self) -> Vec<&str> {
        let known = |name: &&String| {
            Group::ALL.iter().any(|group| group.name().eq_ignore_ascii_case(name))
                || catalogue().iter().any(|behaviour| behaviour.id.eq_ignore_ascii_case(name))
        };
        self.only.iter().chain(&self.except).filter(|name| !known(name)).map(String::as_str).collect()
    }
}

fn matches(name: &str, behaviour: &Behaviour) -> bool {
    name.eq_ignore_ascii_case(behaviour.id) || name.eq_ignore_ascii_case(behaviour.group.name())
}
