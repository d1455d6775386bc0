//! The decision vectors, for tests of whoever decides.
//!
//! The committed copy under `tests/vectors/` is always there; a newer one beside the checkout is read as
//! well, so that a vector added there is felt before it is committed here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::input::{self, InputError};
use crate::{Answer, Scenario};

/// One vector.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Topic and file name.
    pub name: String,
    /// One sentence: what it shows.
    pub what: String,
    /// The input.
    pub scenario: Scenario,
    /// What must be answered.
    pub expect: Answer,
    /// The file.
    pub path: PathBuf,
}

/// Why the vectors could not be loaded.
#[derive(Debug, Error)]
pub enum VectorError {
    /// A file or folder could not be read.
    #[error("{}: {source}; is the checkout complete?", .path.display())]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not a vector.
    #[error("{}: {source}", .path.display())]
    Invalid {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<InputError>,
    },
    /// A folder without a single vector: a test over it would prove nothing.
    #[error("{}: no vectors in here", .path.display())]
    None {
        /// Which folder.
        path: PathBuf,
    },
}

/// All vectors: the committed ones in the order of their paths, then those beside the checkout, if any.
pub fn all() -> Result<Vec<Vector>, VectorError> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut vectors = under(&workspace.join("tests/vectors"))?;
    let beside = workspace.join("../shared/vectors-2");
    if beside.is_dir() {
        vectors.extend(under(&beside)?);
    }
    Ok(vectors)
}

/// The vectors in a folder and its subfolders, in the order of their paths.
pub fn under(folder: &Path) -> Result<Vec<Vector>, VectorError> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    if paths.is_empty() {
        return Err(VectorError::None { path: folder.to_owned() });
    }
    paths.sort_unstable();
    paths.into_iter().map(load).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), VectorError> {
    let unreadable = |source| VectorError::Unreadable { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    Ok(())
}

fn load(path: PathBuf) -> Result<Vector, VectorError> {
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(source) => return Err(VectorError::Unreadable { path, source }),
    };
    match input::read_vector(&text) {
        Ok(file) => Ok(Vector {
            name: file.name,
            what: file.what,
            scenario: file.scenario,
            expect: file.expect,
            path,
        }),
        Err(source) => Err(VectorError::Invalid { path, source: Box::new(source) }),
    }
}
