//! How many commits there were, beside the database.
//!
//! A database whose head is damaged, or that was restored from a copy, may open in order and show an older state. The
//! count tells. It is written in place after each commit and not synced, so it may lag behind the database after a
//! power loss; it can never be ahead.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::OpenError;

const WITNESS_FILE: &str = "commits";

#[derive(Debug)]
pub(super) struct Witness {
    file: File,
    commits: u64,
}

fn bytes(commits: u64) -> [u8; 16] {
    let number = commits.to_le_bytes();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number);
    bytes[8..].copy_from_slice(&xxh3_64(&number).to_le_bytes());
    bytes
}

impl Witness {
    /// Reads the count. One that is not there, or was cut short, knows of no commit.
    pub(super) fn open(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(WITNESS_FILE);
        let file =
            bigfleet_durable::private_file().create(true).truncate(false).read(true).write(true).open(&path);
        let file = file.map_err(|error| OpenError::io("open", &path, &error))?;
        let mut found = [0; 16];
        let commits = match file.read_exact_at(&mut found, 0) {
            Ok(()) => {
                let number = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
                if found == bytes(number) { number } else { 0 }
            }
            Err(_) => 0,
        };
        Ok(Self { file, commits })
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    /// Notes a commit that is on disk. A failure is no loss: the count then lags behind.
    pub(super) fn note(&mut self, commits: u64) {
        if self.file.write_all_at(&bytes(commits), 0).is_ok() {
            self.commits = commits;
        }
    }

    pub(super) fn sync(&self) {
        // The count may lag behind; then an older copy is not noticed after a power loss, and that is all.
        let _ = self.file.sync_data();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_kept_and_damage_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Witness::open(folder.path()).unwrap().commits(), 0);
        Witness::open(folder.path()).unwrap().note(7);
        assert_eq!(Witness::open(folder.path()).unwrap().commits(), 7);
        let path = folder.path().join(WITNESS_FILE);
        let good = std::fs::read(&path).unwrap();
        for at in 0..16 {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert_eq!(Witness::open(folder.path()).unwrap().commits(), 0, "byte {at}");
        }
    }
}
