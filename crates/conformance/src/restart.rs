//! Restarting the provider, by somebody else's means.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

use crate::clock;

/// How the provider is restarted.
#[derive(Clone, Default)]
pub enum Restart {
    /// Not at all: what needs a restart is skipped.
    #[default]
    Never,
    /// By a shell command. It must kill the provider as a crash would, start it again on the same address
    /// with the same state, and return.
    Command(String),
    /// By a function, for providers that live in the same process.
    Function(Arc<dyn Restarter>),
}

impl fmt::Debug for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("Never"),
            Self::Command(command) => f.debug_tuple("Command").field(command).finish(),
            Self::Function(_) => f.write_str("Function"),
        }
    }
}

/// Somebody who can restart the provider.
pub trait Restarter: Send + Sync {
    /// Kills it as a crash would and starts it again, or says why that is impossible.
    fn restart(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;
}

impl Restart {
    pub(crate) fn is_possible(&self) -> bool {
        !matches!(self, Self::Never)
    }

    /// Restarts; the words of an error are for the report.
    pub(crate) async fn run(&self, deadline: Duration) -> Result<(), String> {
        match self {
            Self::Never => Err("no restart command was given".into()),
            Self::Function(restarter) => restarter.restart().await,
            Self::Command(command) => run_command(command, deadline).await,
        }
    }
}

async fn run_command(command: &str, deadline: Duration) -> Result<(), String> {
    // Its output is not ours; a provider it leaves behind must not hold our pipes open.
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    match clock::within(deadline, shell.status()).await {
        None => Err(format!(
            "the restart command did not return within {deadline:?}; start the provider in the background"
        )),
        Some(Err(error)) => Err(format!("the restart command could not be started: {error}")),
        Some(Ok(status)) if !status.success() => Err(format!("the restart command ended with {status}")),
        Some(Ok(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_is_judged_by_its_exit_code_and_its_time() {
        let run = |command: &str, span| {
            let restart = Restart::Command(command.into());
            async move { restart.run(span).await }
        };
        let long = Duration::from_secs(20);
        assert_eq!(run("true", long).await, Ok(()));
        assert_eq!(run("exit 3", long).await, Err("the restart command ended with exit status: 3".into()));
        let slow = run("sleep 20", Duration::from_millis(20)).await.expect_err("too slow");
        assert!(slow.contains("did not return within 20ms"), "{slow}");
        assert_eq!(Restart::Never.run(long).await, Err("no restart command was given".into()));
    }
}
