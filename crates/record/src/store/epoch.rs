//! The epoch in a file of its own: small enough to be replaced whole.

use std::io::ErrorKind;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::OpenError;

pub(super) const EPOCH_FILE: &str = "epoch";
const FIRST_LINE: &str = "bigfleet shard epoch, format ";
const FORMAT: u64 = 1;

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// There is none.
    Nothing,
    /// The last life had this epoch.
    At(i64),
    /// It cannot be read.
    Damaged(String),
}

fn text(epoch: i64) -> String {
    let body = format!("{FIRST_LINE}{FORMAT}\nepoch {epoch}\n");
    let sum = xxh3_64(body.as_bytes());
    format!("{body}check {sum:016x}\n")
}

/// Reads the file.
pub(super) fn read(folder: &Path) -> Result<Known, OpenError> {
    let path = folder.join(EPOCH_FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Known::Nothing),
        Err(error) => return Err(OpenError::io("read", &path, &error)),
    };
    parse(&bytes).map_err(|found| OpenError::Newer { path, found, known: FORMAT })
}

/// The epoch, or the format if it is newer than ours.
fn parse(bytes: &[u8]) -> Result<Known, u64> {
    let damaged = |reason: &str| Ok(Known::Damaged(reason.into()));
    let Ok(found) = str::from_utf8(bytes) else { return damaged("it is not text") };
    let mut lines = found.lines();
    let format = lines.next().and_then(|line| line.strip_prefix(FIRST_LINE)?.parse().ok());
    match format {
        Some(FORMAT) => {}
        Some(newer) if newer > FORMAT => return Err(newer),
        _ => return damaged("it does not begin like one"),
    }
    let epoch = lines.next().and_then(|line| line.strip_prefix("epoch ")?.parse().ok());
    match epoch {
        Some(epoch) if found == text(epoch) => Ok(Known::At(epoch)),
        _ => damaged("it does not match its checksum"),
    }
}

/// Replaces the file; on disk when this returns.
pub(super) fn write(folder: &Path, epoch: i64) -> Result<(), OpenError> {
    let path = folder.join(EPOCH_FILE);
    bigfleet_durable::replace(&path, text(epoch).as_bytes())
        .map_err(|error| OpenError::io("write", &path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), Ok(Known::Nothing));
        for epoch in [1, 1_794_000_000, i64::MAX] {
            write(folder.path(), epoch).unwrap();
            assert_eq!(read(folder.path()), Ok(Known::At(epoch)));
        }
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "the temporary file has become the file"
        );
    }

    #[test]
    fn no_change_of_a_byte_goes_unnoticed() {
        let good = text(1_794_000_000).into_bytes();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(!matches!(parse(&bad), Ok(Known::At(_) | Known::Nothing)), "byte {at}, bit {bit}");
            }
            assert!(!matches!(parse(&good[..at]), Ok(Known::At(_) | Known::Nothing)), "cut at {at}");
        }
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        assert_eq!(parse(b"bigfleet shard epoch, format 2\nanything"), Err(2));
        assert!(matches!(parse(b"bigfleet shard epoch, format 0\n"), Ok(Known::Damaged(_))));
        assert!(matches!(parse(b""), Ok(Known::Damaged(_))));
    }
}
