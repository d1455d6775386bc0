//! Snapshots on a schedule, so that a fleet outlives its store. The leader writes them; older ones than so many are removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::Clock;
use tokio::sync::watch;

use crate::replica::Replica;
use crate::snapshot;

/// Where snapshots go, and how often.
#[derive(Clone, Debug)]
pub struct Export {
    /// The folder; nothing else should be in it.
    pub folder: PathBuf,
    /// How often.
    pub every: Duration,
    /// How many are kept.
    pub keep: usize,
}

/// What files of ours are called: then comes the time, and they sort by it.
const PREFIX: &str = "fleet-";
const SUFFIX: &str = ".jsonl";

/// Exports for as long as the server runs.
pub(crate) async fn run(
    export: Export,
    replica: Replica,
    clock: Arc<dyn Clock>,
    mut is_stopping: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            () = clock.sleep(export.every) => {}
            _ = is_stopping.changed() => return,
        }
        // A follower has nothing to add.
        let looked = replica.look(|state| state.is_leading.then(|| snapshot::save(&state.fleet))).await;
        let Ok(Some(snapshot)) = looked else { continue };
        let (to, now) = (export.clone(), clock.now_unix_nanos());
        let written = tokio::task::spawn_blocking(move || write(&to, now, &snapshot.to_file())).await;
        match written.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())) {
            Ok(path) => tracing::info!(file = %path.display(), "the fleet was exported"),
            Err(error) => tracing::error!(
                folder = %export.folder.display(), %error,
                "the fleet could not be exported; the next try follows, make room or mend the folder"
            ),
        }
    }
}

/// Writes one, whole or not at all, and removes the oldest beyond those that are kept.
fn write(export: &Export, now: i64, file: &[u8]) -> std::io::Result<PathBuf> {
    bigfleet_durable::private_folder(&export.folder)?;
    let path = export.folder.join(format!("{PREFIX}{now:020}{SUFFIX}"));
    bigfleet_durable::replace(&path, file)?;
    let mut ours: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(&export.folder)? {
        ours.extend(Some(entry?.path()).filter(|path| is_ours(path)));
    }
    ours.sort_unstable();
    for old in &ours[..ours.len().saturating_sub(export.keep.max(1))] {
        std::fs::remove_file(old)?;
    }
    Ok(path)
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
        .is_some_and(|time| !time.is_empty() && time.bytes().all(|letter| letter.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_what_is_not_ours_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let export = Export { folder: folder.path().join("exports"), every: Duration::from_secs(1), keep: 2 };
        for now in [5, 1_700_000_000_000_000_000, 70] {
            write(&export, now, b"a fleet").expect("there is room");
        }
        std::fs::write(export.folder.join("fleet-notes.jsonl"), b"mine").expect("there is room");
        write(&export, 1_700_000_000_000_000_001, b"a fleet").expect("there is room");
        let mut names: Vec<_> = std::fs::read_dir(&export.folder)
            .expect("it is there")
            .map(|entry| entry.expect("it can be read").file_name().into_string().expect("text"))
            .collect();
        names.sort_unstable();
        let kept =
            ["fleet-01700000000000000000.jsonl", "fleet-01700000000000000001.jsonl", "fleet-notes.jsonl"];
        assert_eq!(names, kept);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_and_no_panic() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let export = Export { folder: file.path().into(), every: Duration::from_secs(1), keep: 2 };
        assert!(write(&export, 1, b"a fleet").is_err());
    }
}
