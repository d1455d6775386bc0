//! The rules of the house, checked by machine.
//!
//! `ARCHITECTURE.md` promises things a compiler does not look at: which crate may know which, what the pure crates
//! never touch, how a source file begins, that a record is listed. Each rule here is a function from plain data to a
//! list of violations, so that it can be shown a planted violation in a unit test. The files in `tests/` run the same
//! functions over this checkout and expect no violation.
//!
//! Nothing depends on this crate and nothing of it is shipped.

pub mod documents;
pub mod layers;
pub mod purity;
pub mod sources;
pub mod tokens;
pub mod vectors;
pub mod walks;
pub mod workspace;

/// Fails the calling test with every violation on its own line, if there is one.
#[track_caller]
pub fn expect_none(violations: &[String]) {
    assert!(violations.is_empty(), "{} violation(s):\n  {}", violations.len(), violations.join("\n  "));
}
