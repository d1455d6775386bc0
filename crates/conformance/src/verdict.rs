//! How a check ends.

/// Why a behaviour counts as missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the contract asks for here.
    pub expected: String,
    /// What was seen.
    pub got: String,
    /// The calls that led there, oldest first; only the last ones.
    pub calls: Vec<String>,
    /// What to type to see it again.
    pub reproduce: String,
}

/// A check that did not pass.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    Failed { expected: String, got: String },
    Skipped(String),
}

pub(crate) type Verdict = Result<(), Ended>;

/// Ends a check as failed.
pub(crate) fn failed<T>(expected: impl Into<String>, got: impl Into<String>) -> Result<T, Ended> {
    Err(Ended::Failed { expected: expected.into(), got: got.into() })
}

/// Ends a check as skipped.
pub(crate) fn skipped<T>(reason: impl Into<String>) -> Result<T, Ended> {
    Err(Ended::Skipped(reason.into()))
}

/// Goes on if it holds.
pub(crate) fn ensure(holds: bool, expected: impl Into<String>, got: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { failed(expected, got()) }
}
