//! What a simulated world remembers of itself: its seed, its time, and what people fixed by hand.
//!
//! The cloud and the shard keep their own state. This is the rest, so that a world that is started again goes on where it
//! stood: time must not run backwards under machines that remember it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, bail};
use bigfleet_net::Clock;
use serde::{Deserialize, Serialize};

/// The seed of a new world.
pub(crate) const DEFAULT_SEED: u64 = 42;

/// When every new world begins: Monday, 5 January 2026, 08:00 UTC. The same for all, so that one seed is one story.
pub(crate) const BEGIN_UNIX_NANOS: i64 = 1_767_600_000 * 1_000_000_000;

/// A process that was killed has not written down its last moments; a new one begins this much later, in real time.
const UNWRITTEN_NANOS: i64 = 2_000_000_000;

const FILE: &str = "world.json";

/// What is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) seed: u64,
    pub(crate) begun_unix_nanos: i64,
    now_unix_nanos: i64,
    /// Whether the process ended in order.
    ended: bool,
    /// What people fixed: by cluster and work.
    #[serde(default)]
    pub(crate) fixed: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Kept {
    /// A world that begins now.
    fn new(seed: u64) -> Self {
        let begin = BEGIN_UNIX_NANOS;
        Self { seed, begun_unix_nanos: begin, now_unix_nanos: begin, ended: true, fixed: BTreeMap::new() }
    }

    /// What its clock shows when it goes on at this speed.
    pub(crate) fn resumes_at(&self, speed: u32) -> i64 {
        let unwritten = if self.ended { 0 } else { UNWRITTEN_NANOS.saturating_mul(speed.into()) };
        self.now_unix_nanos.saturating_add(unwritten)
    }
}

/// The world of `folder`, or a new one. A seed that is asked for must be the folder's.
pub(crate) fn open(folder: Option<&Path>, seed: Option<u64>) -> anyhow::Result<Kept> {
    let new = || Kept::new(seed.unwrap_or(DEFAULT_SEED));
    let Some(folder) = folder else { return Ok(new()) };
    let path = folder.join(FILE);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            return Ok(new());
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let kept: Kept = serde_json::from_slice(&text).with_context(|| {
        format!("{} is damaged; remove {} to begin a new world", path.display(), folder.display())
    })?;
    match seed {
        Some(seed) if seed != kept.seed => bail!(
            "{} holds a world of seed {}, not {seed}; leave --seed out to go on with it, or give another folder",
            folder.display(),
            kept.seed
        ),
        _ => Ok(kept),
    }
}

/// Writes down what the world remembers while it runs.
#[derive(Clone)]
pub(crate) struct World {
    path: Option<PathBuf>,
    kept: Arc<Mutex<Kept>>,
    clock: Arc<dyn Clock>,
}

impl World {
    /// A world that runs on this clock, and remembers in `folder` if there is one.
    pub(crate) fn new(kept: Kept, folder: Option<&Path>, clock: Arc<dyn Clock>) -> Self {
        Self { path: folder.map(|folder| folder.join(FILE)), kept: Arc::new(Mutex::new(kept)), clock }
    }

    /// Remembers what somebody fixed, or that the curve decides again.
    pub(crate) fn fix(&self, cluster: &str, wanted: &[(String, Option<u64>)]) -> io::Result<()> {
        let kept = {
            let mut kept = self.kept.lock().expect("no holder panics");
            let fixed = kept.fixed.entry(cluster.into()).or_default();
            for (work, count) in wanted {
                match count {
                    Some(count) => fixed.insert(work.clone(), *count),
                    None => fixed.remove(work),
                };
            }
            kept.clone()
        };
        self.write(kept, false)
    }

    /// Writes down what time it is; `ended` if this is the last word.
    pub(crate) fn note(&self, ended: bool) -> io::Result<()> {
        let kept = self.kept.lock().expect("no holder panics").clone();
        self.write(kept, ended)
    }

    fn write(&self, kept: Kept, ended: bool) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let kept = Kept { now_unix_nanos: self.clock.now_unix_nanos(), ended, ..kept };
        bigfleet_durable::replace(path, &serde_json::to_vec_pretty(&kept)?)
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_net::VirtualClock;

    use super::*;

    #[test]
    fn a_world_goes_on_where_it_stood() {
        let folder = tempfile::tempdir().unwrap();
        let place = Some(folder.path());
        let kept = open(place, Some(7)).unwrap();
        assert_eq!((kept.seed, kept.resumes_at(60)), (7, BEGIN_UNIX_NANOS));
        let clock = Arc::new(VirtualClock::at(BEGIN_UNIX_NANOS + 5));
        let world = World::new(kept, place, clock);
        world.fix("shop", &[("web".into(), Some(40)), ("api".into(), Some(1))]).unwrap();
        world.fix("shop", &[("api".into(), None)]).unwrap();
        let killed = open(place, None).unwrap();
        assert_eq!(
            killed.resumes_at(60),
            BEGIN_UNIX_NANOS + 5 + 120_000_000_000,
            "its last moments are unknown"
        );
        world.note(true).unwrap();
        let ended = open(place, Some(7)).unwrap();
        assert_eq!((ended.seed, ended.resumes_at(60)), (7, BEGIN_UNIX_NANOS + 5));
        assert_eq!(ended.fixed["shop"], BTreeMap::from([("web".to_owned(), 40)]));
    }

    #[test]
    fn another_seed_or_a_damaged_file_is_refused_with_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let place = Some(folder.path());
        let clock = Arc::new(VirtualClock::at(0));
        World::new(open(place, None).unwrap(), place, clock).note(true).unwrap();
        let text = open(place, Some(1)).unwrap_err().to_string();
        assert!(text.contains("a world of seed 42, not 1; leave --seed out"), "{text}");
        fs::write(folder.path().join(FILE), "{").unwrap();
        let text = open(place, None).unwrap_err().to_string();
        assert!(text.contains("is damaged; remove"), "{text}");
    }
}
