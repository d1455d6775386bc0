//! Commands on a host, through the system's `ssh`. Why not a crate: ADR 0025.
//!
//! One command is one process with its own connection. It reads no configuration that the inventory does not
//! name, asks nobody anything, and is held to a time and an amount of output; a host that talks without end,
//! hangs or shows another key costs one command and is named in the error.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::text::Quoted;
use bigfleet_net::Clock;
use bigfleet_provider_kit::replace_file;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::inventory::{Host, HostKey, SshAccess};

/// The most `ssh` may say about a connection; a part of it is kept.
const STDERR_LIMIT_BYTES: usize = 1 << 20;
const STDERR_KEPT_BYTES: usize = 4 << 10;
/// How long a connection may take, up to the host's greeting.
const CONNECT_SECS: u64 = 10;
/// What a host may say before its greeting.
const GREETING_LIMIT_BYTES: usize = 4 << 10;

/// Why a command did not run, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SshError {
    /// Nobody answers, or the connection broke.
    #[error("{address} does not answer over SSH: {reason}")]
    Unreachable {
        /// Where.
        address: String,
        /// What `ssh` said.
        reason: String,
    },
    /// The host shows another key than the one it is known by.
    #[error(
        "{address} shows another host key than the one it is known by, so nothing was sent ({reason}). If the host \
         was re-imaged on purpose, {remedy}; otherwise somebody is in between"
    )]
    OtherKey {
        /// Where.
        address: String,
        /// What `ssh` said.
        reason: String,
        /// How to accept the new key.
        remedy: String,
    },
    /// The host does not let us in.
    #[error("{address} does not let user {user} in: {reason}")]
    Denied {
        /// Where.
        address: String,
        /// As whom.
        user: String,
        /// What `ssh` said.
        reason: String,
    },
    /// It took too long.
    #[error("{address} did not end a command within {secs} s")]
    TimedOut {
        /// Where.
        address: String,
        /// The limit.
        secs: u64,
    },
    /// It printed too much.
    #[error("{address} printed more than {limit} bytes; the command was cut off")]
    TooMuch {
        /// Where.
        address: String,
        /// The limit.
        limit: usize,
    },
    /// The command ran and failed, or its answer makes no sense.
    #[error("{address}: {reason}")]
    Failed {
        /// Where.
        address: String,
        /// What it said.
        reason: String,
    },
    /// There is no `ssh`.
    #[error("`ssh` cannot be run here: {0}; install the OpenSSH client")]
    NoClient(String),
}

impl SshError {
    /// Whether the next try may go better.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. })
    }
}

/// How much a connection is worth protecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// As the system's `ssh` prefers: against the listeners of tomorrow, at several times the cost.
    Preferred,
    /// X25519 first: for questions whose answers are no secret.
    Quick,
}

/// What a command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run, connecting included.
    pub time: Duration,
    /// How much it may print.
    pub bytes: usize,
}

/// The system's `ssh`.
#[derive(Clone, Debug)]
pub struct Ssh {
    /// Where the keys of hosts are kept, a file for each.
    known_hosts: PathBuf,
    clock: Arc<dyn Clock>,
}

impl Ssh {
    /// Keeps host keys below `state`.
    pub fn new(state: &Path, clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let known_hosts = state.join("known_hosts");
        std::fs::create_dir_all(&known_hosts)?;
        Ok(Self { known_hosts, clock })
    }

    /// The clock time-outs run on.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Runs `command` on the host with this standard input, and returns what it prints.
    pub async fn run(
        &self,
        host: &Host,
        exchange: Exchange,
        command: &str,
        input: &[u8],
        limits: Limits,
    ) -> Result<Vec<u8>, SshError> {
        let address = shown(&host.ssh);
        let failed = |reason: String| SshError::Failed { address: address.clone(), reason };
        let arguments =
            self.arguments(host, exchange).map_err(|error| failed(format!("host keys: {error}")))?;
        let mut child = Command::new("ssh")
            .args(arguments)
            .args(["--", &host.ssh.address, command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0) // a ^C at our terminal is for us
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| SshError::NoClient(error.to_string()))?;
        let mut stdin = child.stdin.take().expect("it is piped");
        let stdout = child.stdout.take().expect("it is piped");
        let stderr = child.stderr.take().expect("it is piped");
        let talk = async {
            let write = async {
                // A host that hangs up early says why on another channel.
                let _ = stdin.write_all(input).await;
                drop(stdin);
                Ok(())
            };
            tokio::try_join!(write, read_all(stdout, limits.bytes), read_start(stderr))
        };
        let (output, said) = tokio::select! {
            talked = talk => match talked {
                Ok(((), output, said)) => (output, said),
                Err(TooMuch(limit)) => return Err(SshError::TooMuch { address, limit }),
            },
            () = self.clock.sleep(limits.time) => {
                return Err(SshError::TimedOut { address, secs: limits.time.as_secs() });
            }
        };
        let status = child.wait().await.map_err(|error| failed(error.to_string()))?;
        if status.success() { Ok(output) } else { Err(self.explained(host, status, &output, &said)) }
    }

    /// Whether an SSH server answers, without logging in. Behind an SSH configuration only a login can tell.
    pub async fn answers(&self, host: &Host, limit: Duration) -> Result<(), SshError> {
        if host.ssh.config_file.is_some() {
            return self
                .run(host, Exchange::Quick, "exit 0", b"", Limits { time: limit, bytes: 4 << 10 })
                .await
                .map(drop);
        }
        let address = shown(&host.ssh);
        let unreachable = |reason: String| SshError::Unreachable { address: address.clone(), reason };
        let greet = async {
            let mut stream = TcpStream::connect((host.ssh.address.as_str(), host.ssh.port)).await?;
            greeting(&mut stream).await
        };
        tokio::select! {
            greeted = greet => greeted.map_err(|error| unreachable(error.to_string())),
            () = self.clock.sleep(limit) => Err(unreachable(format!("no greeting within {} s", limit.as_secs()))),
        }
    }

    /// Forgets the key a host was first seen with.
    pub fn forget_key(&self, name: &str) -> std::io::Result<()> {
        match std::fs::remove_file(self.known_hosts.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn arguments(&self, host: &Host, exchange: Exchange) -> std::io::Result<Vec<String>> {
        let access = &host.ssh;
        let config = access.config_file.as_deref().unwrap_or(Path::new("/dev/null"));
        let mut words: Vec<String> = vec!["-F".into(), config.display().to_string()];
        words.extend(["-T".into(), "-p".into(), access.port.to_string(), "-l".into(), access.user.clone()]);
        let mut option = |text: String| words.extend(["-o".into(), text]);
        for fixed in [
            "BatchMode=yes",
            "CheckHostIP=no",
            "ClearAllForwardings=yes",
            "ControlMaster=no",
            "ControlPath=none",
            "ForwardAgent=no",
            "GlobalKnownHostsFile=/dev/null",
            "HashKnownHosts=no",
            "LogLevel=ERROR",
            "PermitLocalCommand=no",
            "ServerAliveCountMax=3",
            "ServerAliveInterval=5",
            "UpdateHostKeys=no",
        ] {
            option(fixed.into());
        }
        option(format!("ConnectTimeout={CONNECT_SECS}"));
        if exchange == Exchange::Quick {
            option("KexAlgorithms=^curve25519-sha256".into());
        }
        let own = self.known_hosts.join(&host.name);
        let (file, strict) = match &access.host_key {
            HostKey::FirstUse => (own.as_path(), "accept-new"),
            HostKey::KnownHosts(file) => (file.as_path(), "yes"),
            HostKey::Pinned(key) => {
                let line = format!("{} {key}\n", host.name);
                if std::fs::read(&own).ok().as_deref() != Some(line.as_bytes()) {
                    replace_file(&own, line.as_bytes())?;
                }
                (own.as_path(), "yes")
            }
        };
        if !matches!(access.host_key, HostKey::KnownHosts(_)) {
            option(format!("HostKeyAlias={}", host.name));
        }
        option(format!("StrictHostKeyChecking={strict}"));
        option(format!("UserKnownHostsFile=\"{}\"", file.display().to_string().replace('%', "%%")));
        if let Some(key) = &access.key_file {
            option("IdentitiesOnly=yes".into());
            option(format!("IdentityFile=\"{}\"", key.display().to_string().replace('%', "%%")));
        }
        Ok(words)
    }

    /// What a failure means. `ssh` ends with 255 when the connection is at fault; our commands never do.
    fn explained(&self, host: &Host, status: ExitStatus, output: &[u8], said: &[u8]) -> SshError {
        let address = shown(&host.ssh);
        let said = String::from_utf8_lossy(said);
        let reason = last_lines(&said);
        if status.code() != Some(255) {
            let printed = String::from_utf8_lossy(output);
            let error = printed.lines().find_map(|line| line.strip_prefix("bigfleet-error "));
            let reason = match error {
                Some(error) => error.chars().filter(|c| !c.is_control()).take(500).collect(),
                None => format!("the command failed ({status}): {reason}"),
            };
            return SshError::Failed { address, reason };
        }
        let another =
            ["REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed", "host key is known"];
        if another.iter().any(|sign| said.contains(sign)) {
            let remedy = match &host.ssh.host_key {
                HostKey::FirstUse => format!("delete {}", self.known_hosts.join(&host.name).display()),
                HostKey::Pinned(_) => "change its host_key in the inventory".into(),
                HostKey::KnownHosts(file) => format!("change its line in {}", file.display()),
            };
            let shown = said
                .lines()
                .find(|line| line.contains("SHA256:"))
                .map_or(reason, |line| Quoted(line.trim()).to_string());
            return SshError::OtherKey { address, reason: shown, remedy };
        }
        if said.contains("Permission denied") || said.contains("Too many authentication failures") {
            return SshError::Denied { address, user: host.ssh.user.clone(), reason };
        }
        SshError::Unreachable { address, reason }
    }
}

/// Ours, so that two limits do not need two errors.
struct TooMuch(usize);

async fn read_all(mut from: impl AsyncRead + Unpin, limit: usize) -> Result<Vec<u8>, TooMuch> {
    let mut all = Vec::new();
    // A read that fails is a connection that broke: the exit status tells.
    let _ = (&mut from).take(limit as u64 + 1).read_to_end(&mut all).await;
    if all.len() > limit { Err(TooMuch(limit)) } else { Ok(all) }
}

/// Reads on to the end, and keeps the start.
async fn read_start(mut from: impl AsyncRead + Unpin) -> Result<Vec<u8>, TooMuch> {
    let (mut kept, mut total, mut buffer) = (Vec::new(), 0, [0; 1024]);
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        total += count;
        if total > STDERR_LIMIT_BYTES {
            return Err(TooMuch(STDERR_LIMIT_BYTES));
        }
        let room = STDERR_KEPT_BYTES - kept.len();
        kept.extend_from_slice(&buffer[..count.min(room)]);
    }
    Ok(kept)
}

/// Reads up to the line an SSH server opens with. It may say other things first, though not many.
async fn greeting(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    let (mut seen, mut buffer) = (Vec::new(), [0; 512]);
    loop {
        if seen.starts_with(b"SSH-") || seen.windows(5).any(|part| part == b"\nSSH-") {
            return Ok(());
        }
        if seen.len() > GREETING_LIMIT_BYTES {
            return Err(std::io::Error::other("it talks, but not SSH"));
        }
        match stream.read(&mut buffer).await? {
            0 => return Err(std::io::Error::other("it hangs up without a greeting")),
            count => seen.extend_from_slice(&buffer[..count]),
        }
    }
}

fn shown(access: &SshAccess) -> String {
    format!("{} port {}", access.address, access.port)
}

/// The end of what `ssh` said, as one short line.
fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let end = lines[lines.len().saturating_sub(2)..].join("; ");
    if end.is_empty() { "it ended without a word".into() } else { Quoted(&end).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_an_ssh_server_greets() {
        for (said, is_ssh) in [
            (&b"SSH-2.0-OpenSSH_9.2\r\n"[..], true),
            (b"welcome\r\nSSH-2.0-x\r\n", true),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", false),
            (b"", false),
            (b"xSSH-2.0", false),
        ] {
            assert_eq!(greeting(&mut &said[..]).await.is_ok(), is_ssh, "{}", said.escape_ascii());
        }
        let flood = vec![b'x'; 1 << 20];
        let mut rest = &flood[..];
        let error = greeting(&mut rest).await.expect_err("a flood");
        assert_eq!(error.to_string(), "it talks, but not SSH");
        assert!(rest.len() > (1 << 20) - 8192, "most of the flood is never read");
    }

    #[tokio::test]
    async fn what_is_read_has_a_bound() {
        assert_eq!(read_all(&b"four"[..], 4).await.map_err(|_| ()), Ok(b"four".to_vec()));
        assert!(read_all(&b"fiver"[..], 4).await.is_err());
        let much = vec![b'x'; STDERR_LIMIT_BYTES];
        assert_eq!(read_start(&much[..]).await.map_err(|_| ()).map(|kept| kept.len()), Ok(STDERR_KEPT_BYTES));
        assert!(read_start(&vec![b'x'; STDERR_LIMIT_BYTES + 1][..]).await.is_err());
    }
}
