//! Folders and files that only their owner may read: they tell what a fleet is made of and what it does.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Makes a folder for its owner alone, if it is not there. One that was there is closed to others as far as it is ours to
/// close: on a volume that somebody else owns it stays as they made it.
pub(crate) fn folder(path: &Path) -> Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {
            let _ = std::fs::set_permissions(path, Permissions::from_mode(0o700));
            Ok(())
        }
        made => made,
    }
}

/// How files in it are opened: new ones are for their owner alone.
pub(crate) fn options() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}
