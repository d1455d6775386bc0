//! This machine: the ports our programs use by default, and the folder of a shard.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use super::Finding;
use crate::context::Target;

/// By default: a shard, its metrics, a simulated provider, its faults.
const PORTS: [u16; 4] = [7780, 8780, 9000, 9001];

/// Which of the usual ports are free.
pub(super) fn ports(target: &Target) -> Finding {
    // Bound and let go at once. Nobody is asked who holds a taken one.
    let taken = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_err();
    let (taken, free): (Vec<u16>, Vec<u16>) = PORTS.iter().partition(|port| taken(port));
    let list = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let server = target.server.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    let others: Vec<u16> = taken.iter().copied().filter(|port| Some(*port) != server).collect();
    let says = match (taken.is_empty(), free.is_empty()) {
        (true, _) => format!("{} are free", list(&free)),
        (false, true) => format!("{} are taken", list(&taken)),
        (false, false) => format!("{} taken, {} free", list(&taken), list(&free)),
    };
    if others.is_empty() || server == Some(7780) {
        Finding::ok("ports", says)
    } else {
        let remedy = "a program started here needs other ports: --listen, --metrics, --addr, --admin-addr";
        Finding::warning("ports", says, remedy)
    }
}

/// Whether a shard could use the folder.
pub(super) fn data(folder: &Path) -> Finding {
    let shown = folder.display();
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Finding::ok("store", format!("{shown} is not there yet; a shard makes it"));
        }
        Err(error) => {
            return Finding::problem("store", format!("{shown}: {error}"), "check the path and its rights");
        }
    };
    if !metadata.is_dir() {
        return Finding::problem("store", format!("{shown} is no folder"), "name the folder of a shard");
    }
    let probe = folder.join(".bigfleet-doctor");
    if let Err(error) = fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe)) {
        let says = format!("{shown} cannot be written to: {error}");
        return Finding::problem("store", says, "give this user the right to write there");
    }
    match File::open(folder.join("lock")).map(|lock| lock.try_lock()) {
        Ok(Err(TryLockError::WouldBlock)) => {
            Finding::ok("store", format!("{shown} is in use by a running shard"))
        }
        Ok(Err(TryLockError::Error(error))) => Finding::warning(
            "store",
            format!("{shown} cannot be locked: {error}"),
            "use a local disk, not a network folder",
        ),
        Ok(Ok(())) => Finding::ok("store", format!("{shown} is writable, and no shard uses it")),
        Err(_) => Finding::ok("store", format!("{shown} is writable, and no shard has used it")),
    }
}
