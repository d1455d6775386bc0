//! Several hosts on one machine: network namespaces, each pair joined by a link of its own that can be cut and mended.
//!
//! A link is cut by sending its frames to an address that nobody has: they vanish without a word, as they do between machines
//! that lost each other. No rule of a firewall and no right beyond one's own namespaces is needed.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::Program;

/// Says to a test that it is in a network of its own.
const INSIDE: &str = "BIGFLEET_TEST_IN_OWN_NETWORK";
/// An address that no host has.
const NOBODY: &str = "02:00:00:00:00:99";
/// How often a namespace is looked for, a hundredth of a second apart.
const TRIES: u32 = 1000;

/// Runs a test with a network and mounts of its own, by calling its program again. Where the system allows no namespaces, says
/// so and does nothing.
pub fn in_own_network(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.expect("ip(8) was there just now").success(), "the loopback of a new network");
        return body();
    }
    let new = ["--user", "--map-root-user", "--net", "--mount", "--"];
    let possible = Command::new("unshare").args(new).args(["ip", "link", "set", "lo", "up"]).output();
    if !possible.as_ref().is_ok_and(|done| done.status.success()) {
        let why = possible.map_or_else(|error| error.to_string(), |done| text(&done.stderr));
        eprintln!("SKIPPED {test}: no namespaces for it here: {why}");
        return;
    }
    let program = std::env::current_exe().expect("a test has a program");
    let status = Command::new("unshare")
        .args(new)
        // If whoever calls is killed, so is this.
        .args(["setpriv", "--pdeathsig", "KILL"])
        .arg(program)
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare(1) was there just now");
    assert!(status.success(), "{test}, in a network of its own: {status}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// Where a program runs: its address, and what to put before its command.
#[derive(Clone, Debug)]
pub struct Place {
    /// The address that others reach it by.
    pub address: Ipv4Addr,
    /// The words before its command; none on our own host.
    pub enter: Vec<String>,
}

impl Place {
    /// Here, on loopback.
    pub fn here() -> Self {
        Self { address: Ipv4Addr::LOCALHOST, enter: Vec::new() }
    }
}

/// Hosts that reach one another. Host 0 is whoever calls. Dropping it ends them.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Program>,
    _folder: TempDir,
}

impl Network {
    /// So many hosts beside ours. Call it within [`in_own_network`].
    pub fn of(hosts: usize) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let start = |host: usize| {
            let own = folder.path().join(format!("host-{host}"));
            std::fs::create_dir(&own)?;
            Program::start(Path::new("unshare"), ["--net", "sleep", "infinity"], &own)
        };
        let hosts = (1..=hosts).map(start).collect::<io::Result<Vec<_>>>()?;
        let network = Self { hosts, _folder: folder };
        for host in 1..=network.hosts.len() {
            network.until_apart(host)?;
        }
        for host in 1..=network.hosts.len() {
            network.run(host, "ip link set lo up")?;
        }
        for one in 0..=network.hosts.len() {
            for other in one + 1..=network.hosts.len() {
                network.join(one, other)?;
            }
        }
        Ok(network)
    }

    /// Where a host is.
    pub fn place(&self, host: usize) -> Place {
        let enter = host.checked_sub(1).map(|index| {
            let id = self.hosts[index].id().map_or_else(|_| "0".into(), |id| id.to_string());
            ["nsenter", "--target", &id, "--net", "--"].map(String::from).into()
        });
        Place { address: address(host), enter: enter.unwrap_or_default() }
    }

    /// What one of the two says to the other vanishes from now on.
    pub fn cut(&self, one: usize, other: usize) -> io::Result<()> {
        for (from, to) in [(one, other), (other, one)] {
            let (to, link) = (address(to), link(from, to));
            self.run(from, &format!("ip neigh replace {to} lladdr {NOBODY} nud permanent dev {link}"))?;
        }
        Ok(())
    }

    /// They hear each other again.
    pub fn mend(&self, one: usize, other: usize) -> io::Result<()> {
        for (from, to) in [(one, other), (other, one)] {
            self.run(from, &format!("ip neigh del {} dev {}", address(to), link(from, to)))?;
        }
        Ok(())
    }

    fn join(&self, one: usize, other: usize) -> io::Result<()> {
        let (here, there) = (link(one, other), link(other, one));
        let id = self.hosts[other - 1].id()?;
        self.run(one, &format!("ip link add {here} type veth peer name {there} netns {id}"))?;
        for (from, to) in [(one, other), (other, one)] {
            let (own, its, link) = (address(from), address(to), link(from, to));
            self.run(from, &format!("ip addr add {own} peer {its} dev {link} && ip link set {link} up"))?;
        }
        Ok(())
    }

    fn until_apart(&self, host: usize) -> io::Result<()> {
        let id = loop_until(|| self.hosts[host - 1].id().ok())?;
        loop_until(|| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
            line.starts_with(b"sleep\0").then_some(())
        })
    }

    fn run(&self, host: usize, line: &str) -> io::Result<()> {
        let enter = self.place(host).enter;
        let words = enter.iter().map(String::as_str).chain(["sh", "-ec", line]);
        let words: Vec<&str> = words.collect();
        let Output { status, stderr, .. } = Command::new(words[0]).args(&words[1..]).output()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("{line}: {}", text(&stderr)))) }
    }
}

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, u8::try_from(host + 1).expect("a handful of hosts"))
}

/// The end of a link at the first of two hosts.
fn link(at: usize, to: usize) -> String {
    format!("bf{at}to{to}")
}

#[expect(clippy::disallowed_methods, reason = "nobody tells when a process has become another")]
fn loop_until<T>(mut look: impl FnMut() -> Option<T>) -> io::Result<T> {
    for _ in 0..TRIES {
        if let Some(found) = look() {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other("a namespace does not come to be"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_is_cut_hears_nothing_until_it_is_mended() {
        in_own_network("network::tests::what_is_cut_hears_nothing_until_it_is_mended", || {
            let network = Network::of(2).unwrap();
            let listener = TcpListener::bind((network.place(0).address, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            std::thread::spawn(move || {
                for mut caller in listener.incoming().map_while(Result::ok) {
                    let _ = caller.write_all(b"here");
                }
            });
            // A host of its own calls us, by a shell that knows sockets.
            let line = format!("timeout 2 bash -c 'cat </dev/tcp/{}/{port}' | grep -q here", address(0));
            assert!(network.run(1, &line).is_ok());
            network.cut(0, 1).unwrap();
            assert!(network.run(1, &line).is_err(), "the link was cut");
            assert!(network.run(2, &line).is_ok(), "the other was not");
            network.mend(0, 1).unwrap();
            assert!(network.run(1, &line).is_ok());
            // And nobody outside is reached, nor reaches us.
            let outside = SocketAddr::from(([192, 0, 2, 1], 9));
            assert!(TcpStream::connect_timeout(&outside, Duration::from_secs(1)).is_err());
            let mut own = TcpStream::connect((address(0), port)).unwrap();
            let mut said = String::new();
            own.read_to_string(&mut said).unwrap();
            assert_eq!(said, "here");
        });
    }
}
