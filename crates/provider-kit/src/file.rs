//! Small files that are replaced whole: after a crash there is the old text or the new one, never a part.

use std::fs::{File, rename};
use std::io::Write as _;
use std::path::Path;

/// Replaces the file at `path`. The new text is on disk when this returns.
pub fn replace_file(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut beside = path.to_path_buf().into_os_string();
    beside.push(".new");
    let mut new = File::create(&beside)?;
    new.write_all(text)?;
    new.sync_all()?;
    rename(&beside, path)?;
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_text_is_there_and_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        for text in [&b"one"[..], b"", b"another"] {
            replace_file(&path, text).expect("written");
            assert_eq!(std::fs::read(&path).expect("read"), text);
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 1);
        assert!(replace_file(&folder.path().join("no/such/file"), b"").is_err());
    }
}
