//! Where two answers part, in a sentence a person can act on.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use serde::Serialize;

use super::Answer;

/// The first place where two answers differ, or nothing if they are equal.
///
/// Goes through the answer in the order in which a cycle makes it, so that the first difference is the
/// cause of the others as often as possible.
pub fn difference(expected: &Answer, got: &Answer) -> Option<String> {
    lists("normalized_needs", &expected.normalized_needs, &got.normalized_needs)
        .or_else(|| lists("domains", &expected.domains, &got.domains))
        .or_else(|| claims(&expected.claims, &got.claims))
        .or_else(|| lists("deficits", &expected.deficits, &got.deficits))
        .or_else(|| lists("actions", &expected.actions, &got.actions))
        .or_else(|| lists("unresolved", &expected.unresolved, &got.unresolved))
        .or_else(|| lists("reasons", &expected.reasons, &got.reasons))
}

fn lists<T: PartialEq + Serialize>(field: &str, expected: &[T], got: &[T]) -> Option<String> {
    let at = (0..expected.len().max(got.len())).find(|at| expected.get(*at) != got.get(*at))?;
    let (expected_len, got_len) = (expected.len(), got.len());
    let (wanted, found) = (Entry(expected.get(at)), Entry(got.get(at)));
    Some(format!("{field}[{at}]: expected {wanted:?} (of {expected_len}), got {found:?} (of {got_len})"))
}

fn claims(expected: &BTreeMap<String, u32>, got: &BTreeMap<String, u32>) -> Option<String> {
    let machine = expected.keys().chain(got.keys()).filter(|id| expected.get(*id) != got.get(*id)).min()?;
    let (wanted, found) = (Entry(expected.get(machine)), Entry(got.get(machine)));
    Some(format!("claims[{machine:?}]: expected need {wanted:?}, got {found:?}"))
}

/// One entry as JSON, or the word nothing.
struct Entry<'a, T>(Option<&'a T>);

impl<T: Serialize> Debug for Entry<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("nothing"),
            Some(entry) => f.write_str(&serde_json::to_string(entry).map_err(|_| fmt::Error)?),
        }
    }
}
