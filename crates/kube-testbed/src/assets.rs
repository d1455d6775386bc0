//! Where the programs are.

use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

/// A folder with the programs of a control plane, and their version.
#[derive(Clone, Debug)]
pub struct Assets {
    folder: PathBuf,
    minor: u32,
}

/// Why there are no programs.
#[derive(Debug, Error)]
pub enum AssetsError {
    /// Neither the variable nor the cache has them.
    #[error(
        "no Kubernetes programs in {0}; run scripts/kube-assets (once, some minutes) or set KUBEBUILDER_ASSETS"
    )]
    Missing(PathBuf),
    /// The API server does not say which it is.
    #[error("{0} does not say its version: {1}")]
    Version(PathBuf, String),
}

impl Assets {
    /// Those of `KUBEBUILDER_ASSETS`, else those in the user's cache.
    pub fn find() -> Result<Self, AssetsError> {
        let folder = match std::env::var_os("KUBEBUILDER_ASSETS") {
            Some(folder) if !folder.is_empty() => folder.into(),
            _ => cache().join("bigfleet/kube/bin"),
        };
        if ["etcd", "kube-apiserver"].iter().any(|name| !folder.join(name).is_file()) {
            return Err(AssetsError::Missing(folder));
        }
        let minor = minor_version(&folder.join("kube-apiserver"))?;
        Ok(Self { folder, minor })
    }

    /// The path of a program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether the folder has this program.
    pub fn has(&self, name: &str) -> bool {
        self.program(name).is_file()
    }

    /// The Kubernetes minor version, 20 for 1.20.
    pub fn minor(&self) -> u32 {
        self.minor
    }
}

fn cache() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map_or_else(home, PathBuf::from)
}

/// Reads the answer to `--version`, like `Kubernetes v1.20.2`.
fn minor_version(api_server: &Path) -> Result<u32, AssetsError> {
    let unknown = |said: String| AssetsError::Version(api_server.to_owned(), said);
    let output =
        Command::new(api_server).arg("--version").output().map_err(|error| unknown(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let minor = said.split('.').nth(1).and_then(|minor| minor.parse().ok());
    minor.ok_or_else(|| unknown(said))
}
