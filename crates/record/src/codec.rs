//! How facts and cycles become bytes, and bytes become facts and cycles again.
//!
//! The model knows nothing of files, so every type has a private row here that says how it lies on disk. Rows refer to
//! tables (strings, sizes, label sets, profiles, kinds of machines) that are written once before them: a fleet repeats
//! itself, and a record that does not is an eighth of the size (225,000 machines: 12.7 MB instead of 100).
//!
//! Every piece begins with a version. Whatever bytes come in, the answer is a value or a [`CodecError`]: amounts,
//! states and profiles are rebuilt through the constructors of the model, with their checks.

mod alike;
mod around;
mod cycle;
mod fact;
mod facts;
mod number;
mod pack;
mod purchases;
mod rows;
mod unpack;

use thiserror::Error;

pub use cycle::{decode_options, decode_record, encode_options, encode_record};
pub use fact::{Entry, decode_fact, encode_fact};

/// The version facts and options begin with.
pub const VERSION: u8 = 1;
/// The version records begin with. The first had no surroundings, the second no edition, the third nothing of what
/// machines were when they were decided on, the fourth nothing of the purchase rail's books and not who approved an action; all are
/// still read.
pub const RECORD_VERSION: u8 = 5;

/// Why bytes could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodecError {
    /// Written by a newer build.
    #[error("it has version {found}, this build reads up to {reads}; use the newer build")]
    Newer {
        /// The version found.
        found: u8,
        /// The newest this build reads.
        reads: u8,
    },
    /// Not in the form of a piece of this version.
    #[error("it is not in the form of {what}: {reason}")]
    Form {
        /// What should have been there.
        what: &'static str,
        /// What the reader said.
        reason: String,
    },
    /// A row refers to an entry of a table that is not there.
    #[error("it refers to {table} {index}, which is not there")]
    Dangling {
        /// Which table.
        table: &'static str,
        /// Which entry.
        index: u32,
    },
    /// A value the model does not take.
    #[error("{what}: {reason}")]
    Value {
        /// What it is a value of.
        what: &'static str,
        /// Why it is not taken.
        reason: String,
    },
}

impl CodecError {
    #[expect(clippy::needless_pass_by_value, reason = "errors, texts and arguments of a format alike")]
    fn value(what: &'static str, reason: impl ToString) -> Self {
        Self::Value { what, reason: reason.to_string() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "errors, texts and arguments of a format alike")]
    fn form(what: &'static str, reason: impl ToString) -> Self {
        Self::Form { what, reason: reason.to_string() }
    }
}

/// Takes the version off, which may be any up to `reads`.
fn versioned(bytes: &[u8], reads: u8) -> Result<(u8, &[u8]), CodecError> {
    match bytes {
        [found, ..] if *found > reads => Err(CodecError::Newer { found: *found, reads }),
        [version @ 1..=u8::MAX, rest @ ..] => Ok((*version, rest)),
        _ => Err(CodecError::form("a versioned piece", "it does not begin with a version")),
    }
}
