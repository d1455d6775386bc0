//! How commands end.

use std::io::{self, Write};
use std::process::ExitCode;

use bigfleet_model::text::shown_lines;

use crate::reach::Trouble;

/// The answer to a question is "yes, there is something": exit code 1.
pub(crate) const FOUND: u8 = 1;

/// A command that did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request or its input makes no sense: exit code 2.
    Usage(anyhow::Error),
    /// A server did not answer, or not with what was asked for: exit code 3, or 2 if the question was at fault.
    Server(Box<Trouble>),
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
            Self::Server(trouble) => (trouble.to_string(), trouble.exit_code()),
        };
        // Nothing is left to be done if even this cannot be written.
        let _ = writeln!(io::stderr(), "bigfleet: {}", shown_lines(&message));
        ExitCode::from(code)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Usage(error)
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Server(Box::new(trouble))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
