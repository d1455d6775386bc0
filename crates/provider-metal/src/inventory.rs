//! The inventory: one YAML file that says which hosts there are, how to reach them and what they cost.
//!
//! It is taken whole or not at all. [`read`] returns either hosts that can be offered as they stand, or every
//! finding with its line; nothing in between. Secrets are only named here ([`SecretRef`]), never held.

mod lint;
mod raw;
mod secret;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bigfleet_provider_kit::{CapacityType, Offering};
use serde::{Deserialize, Serialize};

pub use secret::{Secret, SecretError, SecretRef};

/// The largest inventory file that is read.
pub const FILE_LIMIT_BYTES: u64 = 16 << 20;
/// The most hosts one provider takes; more belong to a second one.
pub const HOST_LIMIT: usize = 5000;
/// The label a rack becomes.
pub const RACK_LABEL: &str = "topology.bigfleet/rack";
/// Findings that are shown before the rest is only counted.
const SHOWN_FINDINGS: usize = 50;

/// Everything an inventory file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Inventory {
    /// The provider's name in host references.
    pub provider: String,
    /// By name.
    pub hosts: BTreeMap<String, Host>,
    /// What runs on a host at each step.
    pub hooks: Hooks,
    /// How much may go on at once, and for how long.
    pub bounds: Bounds,
    /// How often hosts are looked at.
    pub watch: Watch,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its machine id.
    pub name: String,
    /// How it is reached.
    pub ssh: SshAccess,
    /// How it is powered, if anything but a person can do that.
    pub bmc: Option<Bmc>,
    /// Whether it runs from the start: then it is offered Idle, otherwise Speculative.
    pub always_on: bool,
    /// Where it stands; bounds hold per rack.
    pub rack: String,
    instance_type: String,
    zone: String,
    labels: BTreeMap<String, String>,
    resources: BTreeMap<String, String>,
    allocatable: Option<BTreeMap<String, String>>,
    price_usd_per_hour: f64,
    is_reserved: bool,
}

/// How a host is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshAccess {
    /// Name or IP address.
    pub address: String,
    /// Where sshd listens.
    pub port: u16,
    /// Whom to log in as.
    pub user: String,
    /// Whether to become root by `sudo -n`.
    pub sudo: bool,
    /// The private key, if not one the SSH configuration names.
    pub key_file: Option<PathBuf>,
    /// An OpenSSH client configuration (jump hosts, certificates); none is read otherwise.
    pub config_file: Option<PathBuf>,
    /// The host key it must show.
    pub host_key: HostKey,
    /// The folder on the host that is ours.
    pub work_folder: String,
}

/// Which key a host must show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostKey {
    /// The one it shows first; kept from then on.
    FirstUse,
    /// This one, `type base64`.
    Pinned(String),
    /// One of those in an OpenSSH `known_hosts` file.
    KnownHosts(PathBuf),
}

/// The controller that powers a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bmc {
    /// `https://host[:port]`, or `http://` where the network is trusted.
    pub url: String,
    /// The path of the system; the only one of the service if it is not given.
    pub system: Option<String>,
    /// Whom to log in as.
    pub user: Option<String>,
    /// Their password.
    pub password: Option<SecretRef>,
    /// Certificates to trust: a CA, or the controller's own.
    pub ca_file: Option<PathBuf>,
}

/// Scripts that run on a host. Each is `sh` unless it opens with `#!`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// Runs the bootstrap data, whose file is `$BIGFLEET_BOOTSTRAP`.
    pub join: String,
    /// Exits with 0 once the node is seen Ready in its cluster.
    pub ready: String,
    /// Takes the node out of its cluster and the cluster off the host.
    pub reset: String,
    /// Exits with 0 if no trace of a cluster is left.
    pub clean: String,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            join: include_str!("hooks/join.sh").into(),
            ready: include_str!("hooks/ready.sh").into(),
            reset: include_str!("hooks/reset.sh").into(),
            clean: include_str!("hooks/clean.sh").into(),
        }
    }
}

/// How much may go on at once, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Moves under way in all.
    pub parallel: usize,
    /// Moves under way in one rack.
    pub parallel_per_rack: usize,
    /// The longest wait for a place among those.
    pub queue: Duration,
    /// From power on to an answer over SSH.
    pub create: Duration,
    /// From the bootstrap data to a Ready node.
    pub configure: Duration,
    /// For the reset, on top of the grace.
    pub drain: Duration,
    /// For powering off.
    pub delete: Duration,
    /// The grace of a drain that we begin ourselves, for a host that left the file.
    pub leave_grace: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self {
            parallel: 128,
            parallel_per_rack: 64,
            queue: minutes(60),
            create: minutes(15),
            configure: minutes(15),
            drain: minutes(15),
            delete: minutes(5),
            leave_grace: minutes(10),
        }
    }
}

/// How often hosts are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Whether SSH answers.
    pub ssh: Duration,
    /// The boot id, by logging in.
    pub boot_id: Duration,
    /// Power and health, by Redfish.
    pub redfish: Duration,
}

impl Default for Watch {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self { ssh: secs(30), boot_id: secs(300), redfish: secs(60) }
    }
}

impl Host {
    /// The slot this host is.
    pub fn offering(&self) -> Offering {
        let mut offering = Offering::new(&self.name, &self.instance_type, &self.zone);
        offering.capacity_type =
            if self.is_reserved { CapacityType::Reserved } else { CapacityType::BareMetal };
        offering.price_usd_per_hour = self.price_usd_per_hour;
        offering.resources = self.resources.clone();
        offering.allocatable.clone_from(&self.allocatable);
        offering.labels = self.labels.clone();
        if !self.rack.is_empty() {
            offering.labels.entry(RACK_LABEL.into()).or_insert_with(|| self.rack.clone());
        }
        offering.host = self.always_on.then(|| self.name.clone());
        offering
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line in the file, from 1; 0 if it concerns the whole file.
    pub line: u64,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.reason),
            line => write!(f, "line {line}: {}", self.reason),
        }
    }
}

/// A file that was refused, with all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which file.
    pub path: PathBuf,
    /// At least one, by line.
    pub findings: Vec<Finding>,
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "inventory {} is refused, nothing of it was taken:", self.path.display())?;
        for finding in self.findings.iter().take(SHOWN_FINDINGS) {
            write!(f, "\n  {finding}")?;
        }
        match self.findings.len().saturating_sub(SHOWN_FINDINGS) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// Reads and checks a file.
pub fn read(path: &Path) -> Result<Inventory, Refused> {
    let refused = |findings| Refused { path: path.into(), findings };
    let text =
        read_text(path).map_err(|error| refused(vec![Finding { line: 0, reason: error.to_string() }]))?;
    parse(&text).map_err(refused)
}

/// The text of an inventory file, if it is not too large.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_LIMIT_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_LIMIT_BYTES {
        return Err(std::io::Error::other(format!("it has more than {FILE_LIMIT_BYTES} bytes")));
    }
    Ok(text)
}

/// Checks the text of a file: all of it is right, or here is all that is wrong.
pub fn parse(text: &str) -> Result<Inventory, Vec<Finding>> {
    lint::check(raw::parse(text)?, Missing::Refused).map(|(inventory, _)| inventory)
}

/// Hosts that do not say their resources: name and line.
pub(crate) type Unknown = Vec<(String, u64)>;

/// What to do about hosts that do not say their resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// They are findings.
    Refused,
    /// They are listed, to be asked over SSH.
    Listed,
}

/// As [`parse`], but hosts without resources are only listed: name and line.
pub(crate) fn parse_to_discover(text: &str) -> Result<(Inventory, Unknown), Vec<Finding>> {
    lint::check(raw::parse(text)?, Missing::Listed)
}

#[cfg(test)]
mod tests;
