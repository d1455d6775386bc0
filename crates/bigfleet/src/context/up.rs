//! The file by which other commands find a `bigfleet up` that runs on this machine.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::places::Places;

/// What a running `bigfleet up` tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Up {
    /// The URL of its shard.
    pub(crate) server: String,
    /// host:port of metrics and health.
    #[serde(default)]
    pub(crate) metrics: String,
    /// host:port where its simulated cloud takes faults.
    #[serde(default)]
    pub(crate) admin: String,
    /// Its process.
    #[serde(default)]
    pub(crate) pid: u32,
}

impl Up {
    /// What the last one left, if anything. A file that cannot be read counts as none: it is a convenience.
    pub(crate) fn read(places: &Places) -> Option<Self> {
        serde_json::from_slice(&fs::read(places.up()).ok()?).ok()
    }

    /// Tells other commands about this process until the answer is dropped. A file of an earlier one is replaced:
    /// the newest is found.
    pub(crate) fn announce(&self, places: &Places) -> io::Result<Announced> {
        let path = places.up();
        let folder = path.parent().expect("the file lies in a folder");
        fs::create_dir_all(folder)?;
        bigfleet_durable::replace(&path, &serde_json::to_vec(self)?)?;
        Ok(Announced { path, up: self.clone(), places: places.clone() })
    }
}

/// Takes the file away when it goes.
#[derive(Debug)]
pub(crate) struct Announced {
    path: PathBuf,
    up: Up,
    places: Places,
}

impl Drop for Announced {
    fn drop(&mut self) {
        // A later one has put its own there: that one stays.
        if Up::read(&self.places).as_ref() == Some(&self.up) {
            // A file that is left behind only costs the next command a better error message.
            let _ = fs::remove_file(&self.path);
        }
    }
}
