//! How commands end.

use std::io::{self, Write};
use std::process::ExitCode;

/// A command that did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request or its input makes no sense: exit code 2.
    Usage(anyhow::Error),
    /// The answer could not be written: exit code 3.
    Output(io::Error),
}

impl Failure {
    /// Says what went wrong and why, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (message, code) = match &self {
            // A reader that has seen enough, as `head` does, is no failure.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Self::Output(error) => (format!("cannot write the answer: {error}"), 3),
            Self::Usage(error) => (format!("{error:#}"), 2),
        };
        // Nothing is left to be done if even this cannot be written.
        let _ = writeln!(io::stderr(), "bigfleet: {message}");
        ExitCode::from(code)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Usage(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
