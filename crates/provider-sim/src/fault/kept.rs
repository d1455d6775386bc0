//! Faults that were added while the cloud ran outlive it, in a small file beside its state.
//!
//! Whoever was told that a fault is on finds it on after a restart. Faults from flags are not kept: the flags
//! are there again. The file is written anew each time, under another name, synced, and then put in its place.

use std::path::PathBuf;

use bigfleet_provider_kit::replace_file;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Entry, Line};

const FORMAT: u32 = 1;

/// Why kept faults could not be read.
#[derive(Debug, Error)]
#[error("the faults in {} cannot be read: {reason}; move the file away to start without them", .path.display())]
pub struct KeptError {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct KeptFaults(pub(crate) PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    saved_unix_nanos: i64,
    faults: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: u64,
    line: Line,
    from_unix_nanos: i64,
    until_unix_nanos: Option<i64>,
    happened: bool,
}

impl KeptFaults {
    /// What was kept; nothing if there is no file.
    pub(crate) fn read(&self, now_unix_nanos: i64) -> Result<Vec<Entry>, KeptError> {
        let wrong = |reason: String| KeptError { path: self.0.clone(), reason };
        let text = match std::fs::read_to_string(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|error| wrong(error.to_string()))?,
        };
        let file: File = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if file.format != FORMAT {
            return Err(wrong(format!("it has format {}, this build reads {FORMAT}", file.format)));
        }
        // A clock that ran fast was ahead; then time goes on from where the file was written.
        let shift = now_unix_nanos.saturating_sub(file.saved_unix_nanos).min(0);
        let entry = |row: Row| Entry {
            id: row.id,
            fault: row.line.fault,
            from_unix_nanos: row.from_unix_nanos.saturating_add(shift),
            until_unix_nanos: row.until_unix_nanos.map(|until| until.saturating_add(shift)),
            happened: row.happened,
            kept: true,
        };
        Ok(file.faults.into_iter().map(entry).collect())
    }

    /// Writes down every fault that is to be kept.
    pub(crate) fn write(&self, entries: &[Entry], now_unix_nanos: i64) -> std::io::Result<()> {
        let row = |entry: &Entry| Row {
            id: entry.id,
            line: entry.line_since(entry.from_unix_nanos),
            from_unix_nanos: entry.from_unix_nanos,
            until_unix_nanos: entry.until_unix_nanos,
            happened: entry.happened,
        };
        let faults = entries.iter().filter(|entry| entry.kept).map(row).collect();
        let file = File { format: FORMAT, saved_unix_nanos: now_unix_nanos, faults };
        replace_file(&self.0, &serde_json::to_vec_pretty(&file).expect("faults are plain data"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Board;

    #[test]
    fn what_is_written_is_read_and_what_is_damaged_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = KeptFaults(folder.path().join("faults"));
        assert!(file.read(0).expect("no file, no faults").is_empty());
        let mut board = Board::default();
        for line in ["zone-outage zone-b --for 10m --after 5s", "host-loss count=3", "api-outage p=0.5"] {
            board.add(&line.parse().expect(line), 100).expect("room");
        }
        board.keep_all();
        board.take_due(100);
        file.write(board.entries(), 100).expect("written");
        let read = file.read(200).expect("read");
        assert_eq!(format!("{read:?}"), format!("{:?}", board.entries()));
        let earlier = file.read(40).expect("read");
        assert_eq!(earlier[2].from_unix_nanos, 40, "a clock that was ahead");

        for text in ["", "{}", r#"{"format": 9, "saved_unix_nanos": 0, "faults": []}"#] {
            std::fs::write(&file.0, text).expect("written");
            let error = file.read(0).expect_err(text).to_string();
            assert!(error.contains("move the file away"), "{error}");
        }
    }
}
