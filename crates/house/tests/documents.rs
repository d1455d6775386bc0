//! This checkout's documents are true: records listed, invariants tested, links alive.

use bigfleet_house::workspace::{files, read, root, shown};
use bigfleet_house::{documents, expect_none};
use std::path::PathBuf;

#[test]
fn every_decision_record_is_listed() {
    let folder = root().join("docs/adr");
    let index = folder.join("README.md");
    let records: Vec<(String, String)> = files(&folder, "md")
        .into_iter()
        .filter(|path| *path != index)
        .map(|path| {
            (path.file_name().expect("a file has a name").to_string_lossy().into_owned(), read(&path))
        })
        .collect();
    assert!(records.len() > 1, "no decision records in {}", shown(&folder));
    expect_none(&documents::records(&read(&index), &records));
}

#[test]
fn every_invariant_names_a_living_test() {
    let invariants = documents::invariants(&read(&root().join("ARCHITECTURE.md")));
    assert!(!invariants.is_empty(), "ARCHITECTURE.md has no invariants");
    expect_none(&documents::unproven(&invariants, |file| std::fs::read_to_string(root().join(file)).ok()));
}

#[test]
fn every_house_rule_is_an_invariant() {
    let named = documents::invariants(&read(&root().join("ARCHITECTURE.md")));
    let named: Vec<(String, String)> = named.into_iter().flat_map(|invariant| invariant.tests).collect();
    let mut missing = Vec::new();
    for path in files(&root().join("crates/house/tests"), "rs") {
        for test in documents::tests_in(&read(&path)) {
            if !named.contains(&(shown(&path), test.to_owned())) {
                missing.push(format!("ARCHITECTURE.md does not name {test} of {}", shown(&path)));
            }
        }
    }
    expect_none(&missing);
}

#[test]
fn every_link_leads_somewhere() {
    let root = root();
    let top = std::fs::read_dir(&root).expect("the checkout can be listed");
    let top = top.map(|entry| entry.expect("the checkout can be listed").path());
    let mut pages: Vec<PathBuf> = top.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.extend(files(&root.join("docs"), "md"));
    pages.extend(files(&root.join("crates"), "md"));
    assert!(pages.contains(&root.join("README.md")));
    let mut dead = Vec::new();
    for page in pages {
        for (line, target) in documents::links(&read(&page)) {
            let folder = page.parent().expect("a page lies in a folder");
            if !folder.join(target).exists() {
                dead.push(format!("{}:{line}: {target} does not exist", shown(&page)));
            }
        }
    }
    expect_none(&dead);
}
