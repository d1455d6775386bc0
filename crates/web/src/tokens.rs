//! The file that says who may open the page from other machines: one line each, a role, a secret and a name.
//!
//! ```text
//! # role     secret (at least 32 characters)      name
//! admin      d3b07384d113edec49eaa6238ad5ff00     alice
//! readonly   c157a79031e1c40f85931829bc5fc552     wall-display
//! ```

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use thiserror::Error;

/// A secret shorter than this can be guessed.
const LEAST_CHARACTERS: usize = 32;
/// Longest file that is read, and most lines.
const MOST_BYTES: u64 = 64 << 10;
const MOST_TOKENS: usize = 256;

/// Why a token file cannot be used.
#[derive(Debug, Error)]
pub enum TokensError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others on this machine could read it.
    #[error("{0} can be read by others; take that away with chmod 600")]
    Open(PathBuf),
    /// A line makes no sense.
    #[error("{path} line {line}: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Its number.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody could sign in.
    #[error("{0} holds no token; write lines of a role (admin or readonly), a secret and a name")]
    Empty(PathBuf),
}

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Admin,
    ReadOnly,
}

#[derive(Debug)]
struct Token {
    role: Role,
    name: String,
    /// Of the secret: comparing digests takes the same time for every guess.
    digest: [u8; 32],
}

/// Who may open the page.
#[derive(Debug)]
pub struct Tokens(Vec<Token>);

fn sha256(secret: &[u8]) -> [u8; 32] {
    digest(&SHA256, secret).as_ref().try_into().expect("the digest has 32 bytes")
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Tokens {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let failed = |source| TokensError::Read { path: path.into(), source };
        let about = fs::metadata(path).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            if about.permissions().mode() & 0o077 != 0 {
                return Err(TokensError::Open(path.into()));
            }
        }
        if about.len() > MOST_BYTES {
            return Err(failed(io::Error::other(format!("it is larger than {MOST_BYTES} bytes"))));
        }
        Self::parse(&fs::read_to_string(path).map_err(failed)?, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, TokensError> {
        let mut tokens = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let bad = |why: &str| TokensError::Line { path: path.into(), line: number + 1, why: why.into() };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let role = match words.next() {
                Some("admin") => Role::Admin,
                Some("readonly") => Role::ReadOnly,
                _ => return Err(bad("the role must be admin or readonly")),
            };
            let secret = words.next().ok_or_else(|| bad("the secret is missing"))?;
            if secret.len() < LEAST_CHARACTERS {
                return Err(bad("the secret needs 32 characters; `openssl rand -hex 32` makes one"));
            }
            let name =
                words.next().ok_or_else(|| bad("a name is missing: it is written down with what it does"))?;
            if words.next().is_some() {
                return Err(bad("there is more than a role, a secret and a name"));
            }
            if tokens.len() == MOST_TOKENS {
                return Err(bad("there are more than 256 tokens"));
            }
            tokens.push(Token { role, name: name.into(), digest: sha256(secret.as_bytes()) });
        }
        if tokens.is_empty() { Err(TokensError::Empty(path.into())) } else { Ok(Self(tokens)) }
    }

    /// Whose secret this is. All are compared, so that time tells nothing.
    pub(crate) fn holder(&self, secret: &str) -> Option<(Role, &str)> {
        let digest = sha256(secret.as_bytes());
        let mut found = None;
        for token in &self.0 {
            if verify_slices_are_equal(&digest, &token.digest).is_ok() {
                found = Some((token.role, token.name.as_str()));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "d3b07384d113edec49eaa6238ad5ff00";

    fn parse(text: &str) -> Result<Tokens, String> {
        Tokens::parse(text, Path::new("tokens")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_secret_opens_what_its_line_says() {
        let text = format!("# who\n\nadmin {LONG} alice\nreadonly {LONG}1 wall\n");
        let tokens = parse(&text).unwrap();
        assert_eq!(tokens.holder(LONG), Some((Role::Admin, "alice")));
        assert_eq!(tokens.holder(&format!("{LONG}1")), Some((Role::ReadOnly, "wall")));
        assert_eq!(tokens.holder("x"), None);
    }

    #[test]
    fn lines_that_make_no_sense_are_named() {
        for (text, why) in [
            ("", "holds no token"),
            ("root x y", "line 1: the role"),
            ("admin short me", "32 characters"),
            (&format!("\nadmin {LONG}"), "line 2: a name is missing"),
            (&format!("admin {LONG} me too"), "more than a role"),
        ] {
            assert!(parse(text).unwrap_err().contains(why), "{text:?}");
        }
    }

    #[test]
    fn a_file_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), format!("admin {LONG} me")).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Tokens::read(file.path()), Err(TokensError::Open(_))));
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Tokens::read(file.path()).unwrap().holder(LONG).is_some());
    }
}
