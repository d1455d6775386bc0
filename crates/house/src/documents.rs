//! Documents that must stay true: the list of decision records, the invariants and the tests they name, links.

use std::collections::BTreeSet;
use std::path::Path;

/// Headings every decision record carries, in this order.
const RECORD_HEADINGS: &[&str] =
    &["## Context", "## Decision", "## Consequences", "## Rejected alternatives"];

/// Decision records that are not listed in the index, listed and absent, misnumbered, or without their headings.
/// `records` are file names with their text, in name order.
pub fn records(index: &str, records: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    let listed: BTreeSet<&str> = links(index).into_iter().map(|(_, target)| target).collect();
    for (position, (name, text)) in records.iter().enumerate() {
        if !name.starts_with(&format!("{position:04}-")) {
            found.push(format!("{name} should be number {position:04}"));
        }
        if !listed.contains(name.as_str()) {
            found.push(format!("{name} is not listed in docs/adr/README.md"));
        }
        let places: Vec<Option<usize>> = RECORD_HEADINGS.iter().map(|heading| text.find(heading)).collect();
        if places.contains(&None) || !places.is_sorted() {
            found.push(format!("{name} lacks one of {RECORD_HEADINGS:?}, or has them in another order"));
        }
        if !text.contains("\nStatus: ") {
            found.push(format!("{name} has no line `Status: ..`"));
        }
    }
    found
}

/// One numbered invariant of `ARCHITECTURE.md`.
#[derive(Debug, PartialEq, Eq)]
pub struct Invariant {
    /// Its number.
    pub number: usize,
    /// The tests it names, as (file, function).
    pub tests: Vec<(String, String)>,
}

/// The numbered items of the section `## Invariants`. A test is written as `` `path/to/file.rs` `function` ``.
pub fn invariants(architecture: &str) -> Vec<Invariant> {
    let section = architecture.split("\n## Invariants\n").nth(1).unwrap_or("");
    let section = section.split("\n## ").next().unwrap_or("");
    let mut found: Vec<Invariant> = Vec::new();
    let mut file = None;
    for line in section.lines() {
        if let Some(number) = line.split_once(". ").and_then(|(number, _)| number.parse().ok()) {
            found.push(Invariant { number, tests: Vec::new() });
            file = None;
        }
        let Some(invariant) = found.last_mut() else { continue };
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_name = !quoted.is_empty() && quoted.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            if Path::new(quoted).extension().is_some_and(|e| e == "rs") {
                file = Some(quoted.to_owned());
            } else if let Some(file) = file.as_ref().filter(|_| is_name) {
                invariant.tests.push((file.clone(), quoted.to_owned()));
            }
        }
    }
    found
}

/// Invariants that are misnumbered, name no test, or name one that `source_of` does not hold.
pub fn unproven(invariants: &[Invariant], source_of: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (position, invariant) in invariants.iter().enumerate() {
        let number = invariant.number;
        if number != position + 1 {
            found.push(format!("invariant {number} should be number {}", position + 1));
        }
        if invariant.tests.is_empty() {
            found.push(format!("invariant {number} names no test"));
        }
        for (file, name) in &invariant.tests {
            if !source_of(file).is_some_and(|source| tests_in(&source).contains(&name.as_str())) {
                found.push(format!("invariant {number} names the test {name}, which {file} does not hold"));
            }
        }
    }
    found
}

/// The functions marked `#[test]` in a source file.
pub fn tests_in(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        let name = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next());
        found.extend(name.filter(|_| marked));
        marked = line == "#[test]" || (marked && line.starts_with("#["));
    }
    found
}

/// All links of a Markdown text to something other than a web page or a place in itself: line and target.
pub fn links(markdown: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in markdown.lines().enumerate() {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let local = targets.filter(|target| !target.is_empty() && !target.contains("://"));
        found.extend(local.map(|target| (number + 1, target)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str =
        "# x\n\nStatus: accepted\n\n## Context\n## Decision\n## Consequences\n## Rejected alternatives\n";

    #[test]
    fn a_record_that_is_lost_or_shapeless_is_found() {
        let good = ("0000-a.md".to_owned(), RECORD.to_owned());
        assert_eq!(records("- [a](0000-a.md)", std::slice::from_ref(&good)), [""; 0]);
        let bad = ("0002-b.md".to_owned(), "# b\n## Decision\n## Context\n".to_owned());
        assert_eq!(records("- [a](0000-a.md)", &[good, bad]).len(), 4);
    }

    #[test]
    fn an_invariant_is_read_with_its_tests() {
        let text = "# A\n`no.rs` `no`\n## Invariants\n\n1. **One.** See `Type`.\n   Test: `a.rs` `f_one`, `g`.\n2. Two. `b.rs`\n\n## Next\n3. No.\n";
        let test = |file: &str, name: &str| (file.to_owned(), name.to_owned());
        assert_eq!(
            invariants(text),
            [
                Invariant { number: 1, tests: vec![test("a.rs", "f_one"), test("a.rs", "g")] },
                Invariant { number: 2, tests: vec![] }
            ]
        );
    }

    #[test]
    fn an_invariant_without_a_living_test_is_found() {
        let invariant =
            |number, name: &str| Invariant { number, tests: vec![("a.rs".to_owned(), name.to_owned())] };
        let read = |file: &str| (file == "a.rs").then(|| "#[test]\nfn lives() {}\nfn helper() {}".to_owned());
        assert_eq!(unproven(&[invariant(1, "lives")], read), [""; 0]);
        assert_eq!(
            unproven(
                &[invariant(1, "helper"), invariant(3, "lives"), Invariant { number: 3, tests: vec![] }],
                read
            ),
            [
                "invariant 1 names the test helper, which a.rs does not hold",
                "invariant 3 should be number 2",
                "invariant 3 names no test"
            ]
        );
    }

    #[test]
    fn links_to_files_are_read_and_others_are_not() {
        let text = "[a](b.md) [c](https://x.y/z)\n[d](e/f.md#part) [g](#here)";
        assert_eq!(links(text), [(1, "b.md"), (2, "e/f.md")]);
    }
}
