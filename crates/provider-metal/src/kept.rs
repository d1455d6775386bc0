//! What the provider remembers beside the kit's store: the hosts it last knew how to reach, and what they were
//! last seen to be. Both can be lost without harm: hosts are in the inventory and facts are learned again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bigfleet_provider_kit::replace_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::inventory::Host;

/// What a host was last seen to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Changes with every start.
    pub(crate) boot_id: String,
    /// Changes with every installation.
    pub(crate) machine_id: String,
}

/// What the last Configure of a host printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configured {
    pub(crate) format: u32,
    pub(crate) operation: String,
    pub(crate) cluster: String,
    pub(crate) outcome: String,
    pub(crate) ended_unix_nanos: i64,
    pub(crate) output: String,
}

/// The newest form of [`Configured`].
pub(crate) const CONFIGURED_FORMAT: u32 = 1;
/// The output of a job is not more than 64 KiB; as JSON each of its bytes may need six.
const MOST_CONFIGURED_BYTES: u64 = 1 << 20;

/// The provider's own small files.
pub(crate) struct Kept {
    folder: PathBuf,
    facts: Mutex<BTreeMap<String, Facts>>,
}

impl Kept {
    /// Reads what is in the folder.
    pub(crate) fn open(folder: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder.join("output"))?;
        let facts = read(&folder.join("facts.json"));
        Ok(Self { folder: folder.into(), facts: Mutex::new(facts) })
    }

    /// The hosts of the last inventory that was accepted, and those still leaving.
    pub(crate) fn hosts(&self) -> BTreeMap<String, Host> {
        read(&self.folder.join("hosts.json"))
    }

    pub(crate) fn keep_hosts(&self, hosts: &BTreeMap<String, Host>) -> std::io::Result<()> {
        replace_file(
            &self.folder.join("hosts.json"),
            &serde_json::to_vec(hosts).expect("hosts are plain data"),
        )
    }

    pub(crate) fn facts(&self, name: &str) -> Option<Facts> {
        self.facts.lock().expect("no holder panics").get(name).cloned()
    }

    /// Remembers what a host is. Hosts rarely change, so each change is written at once.
    pub(crate) fn learn(&self, name: &str, seen: Facts) {
        let text = {
            let mut facts = self.facts.lock().expect("no holder panics");
            if facts.get(name) == Some(&seen) {
                return;
            }
            facts.insert(name.into(), seen);
            serde_json::to_vec(&*facts).expect("facts are plain data")
        };
        if let Err(error) = replace_file(&self.folder.join("facts.json"), &text) {
            tracing::warn!(%error, "facts about hosts could not be written down; a restart forgets them");
        }
    }

    /// Keeps the output of a host's last Configure, whatever is done to the host afterwards.
    pub(crate) fn keep_configured(&self, name: &str, configured: &Configured) {
        let text = serde_json::to_vec(configured).expect("it is plain data");
        if let Err(error) = replace_file(&self.configured_path(name), &text) {
            tracing::warn!(host = name, %error, "the output of a Configure could not be kept");
        }
    }

    /// The output of a host's last Configure, if one was kept.
    pub(crate) fn configured(&self, name: &str) -> std::io::Result<Option<Configured>> {
        let path = self.configured_path(name);
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(found) if found.len() > MOST_CONFIGURED_BYTES => return Ok(None),
            Ok(_) => {}
        }
        let kept: Configured = serde_json::from_slice(&std::fs::read(path)?)?;
        Ok(Some(kept).filter(|kept| kept.format == CONFIGURED_FORMAT))
    }

    /// Beside the host's `.log`, and never of that name, whatever the host is called.
    fn configured_path(&self, name: &str) -> PathBuf {
        self.folder.join("output").join(format!("{name}.configured"))
    }

    /// Keeps the output of a host's last job for people to read.
    pub(crate) fn keep_output(&self, name: &str, heading: &str, output: &str) {
        let path = self.folder.join("output").join(format!("{name}.log"));
        if let Err(error) = std::fs::write(&path, format!("{heading}\n{output}\n")) {
            tracing::warn!(host = name, %error, "the output of a job could not be kept");
        }
    }
}

/// A file that is missing or damaged is as good as empty here; the second is said.
fn read<T: DeserializeOwned + Default>(path: &Path) -> T {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return T::default(),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot be read and is done without");
            return T::default();
        }
    };
    serde_json::from_slice(&text).unwrap_or_else(|error| {
        tracing::warn!(path = %path.display(), %error, "is damaged and is done without");
        T::default()
    })
}
