//! Whose a folder is, also when it is deleted under us.
//!
//! The lock is a file in the folder. If the folder is deleted and made again, the lock in it is another one, and a second
//! process could take it while the first still runs. So the *path* is claimed as well, by a name that lives in the kernel
//! and not on the disk; and the first process looks, again and again, whether the folder is still the one it took.

use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::OpenError;

/// A path that no other process of this machine can claim meanwhile.
#[derive(Debug)]
pub(super) struct Claim {
    #[cfg(target_os = "linux")]
    _name: std::os::unix::net::UnixListener,
}

impl Claim {
    /// Claims a folder that exists.
    #[cfg(target_os = "linux")]
    pub(super) fn take(folder: &Path) -> std::result::Result<Self, OpenError> {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::net::{SocketAddr, UnixListener};
        let claim = || -> Result<UnixListener> {
            let whole = folder.canonicalize()?;
            let parent = whole.parent().unwrap_or(Path::new("/")).metadata()?;
            let name = whole.file_name().unwrap_or_default();
            // The parent by its number: the same path in two containers is two places.
            let name = xxhash_rust::xxh3::xxh3_64(name.as_encoded_bytes());
            let name = format!("bigfleet-store/{}:{}/{name:016x}", parent.dev(), parent.ino());
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
        };
        match claim() {
            Ok(name) => Ok(Self { _name: name }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => Err(OpenError::InUse(folder.into())),
            Err(error) => Err(OpenError::io("claim", folder, &error)),
        }
    }

    /// Where there are no such names, the lock has to do.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(super) fn take(_: &Path) -> std::result::Result<Self, OpenError> {
        Ok(Self {})
    }
}

/// Knows a folder by its lock file.
#[derive(Clone, Debug)]
pub struct FolderWatch {
    path: PathBuf,
    device: u64,
    number: u64,
}

impl FolderWatch {
    pub(super) fn of(path: &Path, lock: &File) -> Result<Self> {
        let held = lock.metadata()?;
        Ok(Self { path: path.into(), device: held.dev(), number: held.ino() })
    }

    /// What happened to the folder, if it is no longer the one that was taken.
    pub fn lost(&self) -> Option<String> {
        let folder = self.path.parent().unwrap_or(Path::new(".")).display();
        match std::fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.number) => None,
            Ok(_) => Some(format!("data folder {folder} was replaced by another")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Some(format!("data folder {folder} was deleted or moved away"))
            }
            // A disk that does not answer is found out by the next commit.
            Err(_) => None,
        }
    }
}
