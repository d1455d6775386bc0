//! Files that survive a crash, and folders that only their owner may read: the one place where that is done.
//!
//! A file that is written where it lies can be half of the old and half of the new when the power goes. So a small file is
//! replaced whole: written under another name, synced, renamed, and the folder synced, because a name is on disk only when its
//! folder is. What we keep tells what a fleet is made of and what it does, so new files and folders are for their owner alone.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Result, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Replaces the file at `path`, or makes it. The new content is on disk when this returns; after a crash meanwhile there is the
/// old content or the new one, never a part. Who may read a file that was there stays as it was; a new one is private.
pub fn replace(path: &Path, content: &[u8]) -> Result<()> {
    replace_with(path, |file| file.write_all(content))
}

/// As [`replace`], with content that `write` puts into the new file.
pub fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let name =
        path.file_name().ok_or_else(|| Error::new(ErrorKind::InvalidInput, "the path names no file"))?;
    let folder = folder_of(path);
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    // In the same folder, because a rename does not cross file systems. It goes away by itself if anything fails below; a
    // process that is killed in between leaves it behind, under a name that nobody reads.
    let mut new = tempfile::Builder::new().prefix(&prefix).suffix(".new").tempfile_in(folder)?;
    write(new.as_file_mut())?;
    if let Ok(before) = std::fs::metadata(path) {
        new.as_file().set_permissions(before.permissions())?;
    }
    // Before the rename: else the new name could be on disk without the content.
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    sync_folder(folder)
}

/// Makes sure that names made, changed or removed in a folder are on disk.
pub fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder a file lies in; the present one for a bare name.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a folder for its owner alone, if it is not there. One that was there is closed to others as far as it is ours to
/// close: on a volume that somebody else owns it stays as they made it.
pub fn private_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(folder_of(path))?;
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {
            let _ = std::fs::set_permissions(path, Permissions::from_mode(0o700));
            Ok(())
        }
        made => made,
    }
}

/// How files in such a folder are opened: new ones are for their owner alone.
pub fn private_file() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_newest_content_is_there_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for content in [&b"one"[..], b"", b"another"] {
            replace(&path, content).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
        assert_eq!(mode(&path), 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace(&path, b"old").unwrap();
        let failed = replace_with(&path, |file| {
            file.write_all(b"ne")?;
            Err(Error::other("the disk is full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "half a file is taken away");
        assert_eq!(
            replace(&folder.path().join("no/such/file"), b"").unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(replace(Path::new(".."), b"").unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn who_may_read_a_file_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inventory.yaml");
        std::fs::write(&path, "hosts: []").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        replace(&path, b"hosts: [a]").unwrap();
        assert_eq!(mode(&path), 0o644);
    }

    #[test]
    fn folders_and_files_are_for_their_owner_alone() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/b");
        for _ in 0..2 {
            private_folder(&folder).unwrap();
            assert_eq!(mode(&folder), 0o700);
            std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        }
        private_folder(&folder).unwrap();
        let file = folder.join("file");
        private_file().create_new(true).write(true).open(&file).unwrap();
        assert_eq!(mode(&file), 0o600);
        assert!(private_folder(&file).is_err(), "a file is no folder");
    }
}
