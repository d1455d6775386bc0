//! Secrets by reference: the inventory says where a secret is, and it is fetched when it is needed.
//!
//! A [`Secret`] cannot be shown: it has no `Display`, and its `Debug` says nothing.

use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use bigfleet_model::text::Quoted;
use bigfleet_net::Clock;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// The longest secret.
const LIMIT_BYTES: u64 = 64 << 10;
/// How long a command may take to say it.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Where a secret is. Exactly one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretRef {
    /// A file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// An environment variable of the provider that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// A program with arguments that prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

/// Why a secret could not be had. Never says what it is.
#[derive(Debug, Error)]
pub enum SecretError {
    /// Not one place, but none or several.
    #[error("a secret is named by exactly one of file, env and command")]
    NotOne,
    /// The file cannot be read.
    #[error("secret file {}: {reason}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The variable is not set.
    #[error("environment variable {} is not set", Quoted(.0))]
    Env(String),
    /// The command did not say it.
    #[error("secret command {}: {reason}", Quoted(.program))]
    Command {
        /// Its program.
        program: String,
        /// What happened.
        reason: String,
    },
}

/// A secret that was fetched.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for where it is used.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl SecretRef {
    /// What can be said without running anything: one place, and it is there.
    pub fn check(&self) -> Result<(), SecretError> {
        match (&self.file, &self.env, &self.command) {
            (Some(path), None, None) => std::fs::metadata(path)
                .map(drop)
                .map_err(|error| SecretError::File { path: path.clone(), reason: error.to_string() }),
            (None, Some(name), None) if std::env::var_os(name).is_none() => {
                Err(SecretError::Env(name.clone()))
            }
            (None, None, Some(words)) if words.is_empty() => {
                Err(SecretError::Command { program: String::new(), reason: "it names no program".into() })
            }
            (None, Some(_), None) | (None, None, Some(_)) => Ok(()),
            _ => Err(SecretError::NotOne),
        }
    }

    /// Fetches it. A line end at the end is not part of it.
    pub async fn fetch(&self, clock: &dyn Clock) -> Result<Secret, SecretError> {
        self.check()?;
        let text = match (&self.file, &self.env, &self.command) {
            (Some(path), ..) => {
                let failed = |reason: String| SecretError::File { path: path.clone(), reason };
                let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
                if size > LIMIT_BYTES {
                    return Err(failed(format!("it has {size} bytes, at most {LIMIT_BYTES} are read")));
                }
                std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?
            }
            (_, Some(name), _) => std::env::var(name).map_err(|_| SecretError::Env(name.clone()))?,
            (_, _, Some(words)) => spoken_in_time(words, clock).await?,
            _ => return Err(SecretError::NotOne),
        };
        Ok(Secret(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

/// What a command prints, if it does not take too long.
async fn spoken_in_time(words: &[String], clock: &dyn Clock) -> Result<String, SecretError> {
    tokio::select! {
        said = spoken(words) => said,
        () = clock.sleep(COMMAND_LIMIT) => {
            let reason = format!("it took longer than {} s", COMMAND_LIMIT.as_secs());
            Err(SecretError::Command { program: words[0].clone(), reason })
        }
    }
}

/// What a command prints.
async fn spoken(words: &[String]) -> Result<String, SecretError> {
    let failed = |reason: String| SecretError::Command { program: words[0].clone(), reason };
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let mut text = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    let read = stdout.take(LIMIT_BYTES).read_to_string(&mut text).await;
    read.map_err(|error| failed(error.kind().to_string()))?;
    let status = child.wait().await.map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(text) } else { Err(failed(status.to_string())) }
}

#[cfg(test)]
mod tests {
    use bigfleet_net::SystemClock;

    use super::*;

    #[tokio::test]
    async fn a_secret_comes_from_where_it_is_named_and_is_never_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("password");
        std::fs::write(&path, "hunter2\n").expect("written");
        let clock = SystemClock::start();
        let words = |words: &[&str]| SecretRef {
            command: Some(words.iter().map(|word| (*word).to_owned()).collect()),
            ..SecretRef::default()
        };
        let file = SecretRef { file: Some(path), ..SecretRef::default() };
        for reference in [file, words(&["echo", "hunter2"])] {
            let secret = reference.fetch(&clock).await.expect("a secret");
            assert_eq!(secret.expose(), "hunter2");
            assert!(!format!("{secret:?}").contains("hunter2"));
        }
        let failed = words(&["sh", "-c", "echo hunter2; exit 3"]).fetch(&clock).await.expect_err("refused");
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");
        assert!(!failed.to_string().contains("hunter2"), "{failed}");
        assert!(matches!(SecretRef::default().check(), Err(SecretError::NotOne)));
        let unset = SecretRef { env: Some("BIGFLEET_NO_SUCH_VARIABLE".into()), ..SecretRef::default() };
        assert!(matches!(unset.check(), Err(SecretError::Env(_))));
    }
}
