//! This checkout's source files keep to the rules of form and purity.

use bigfleet_house::layers::{PURE, PURE_SOURCES};
use bigfleet_house::workspace::{Member, files, members, read, shown};
use bigfleet_house::{expect_none, purity, sources};
use std::path::{Path, PathBuf};

fn source_files(member: &Member) -> Vec<PathBuf> {
    let found = files(&member.folder.join("src"), "rs");
    assert!(!found.is_empty(), "{} has no sources", member.name);
    found
}

/// A file that exists only under `#[cfg(test)]`, by our naming.
fn is_test_module(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "tests")
        || path.components().any(|part| part.as_os_str() == "tests")
}

#[test]
fn pure_crates_mention_nothing_impure() {
    let members = members();
    let is_pure = |name: &str| PURE.contains(&name) || PURE_SOURCES.contains(&name);
    let pure: Vec<&Member> = members.iter().filter(|member| is_pure(&member.name)).collect();
    assert!(!pure.is_empty(), "no pure crate is in the workspace");
    for member in pure {
        for path in source_files(member) {
            let source = read(&path);
            // A whole file of tests is treated like an inline test module: it may read files, not the clock.
            let source =
                if is_test_module(&path) { format!("#[cfg(test)] mod tests {{{source}\n}}") } else { source };
            expect_none(&purity::violations(&shown(&path), &source));
        }
    }
}

#[test]
fn every_source_file_opens_with_its_reason() {
    let opened = members().iter().flat_map(source_files).collect::<Vec<_>>();
    let found: Vec<String> =
        opened.iter().filter_map(|path| sources::without_opening(&shown(path), &read(path))).collect();
    expect_none(&found);
}

#[test]
fn no_source_file_is_too_long() {
    let all = members().iter().flat_map(|member| files(&member.folder, "rs")).collect::<Vec<_>>();
    let sizes: Vec<(String, usize)> =
        all.iter().map(|path| (shown(path), read(path).lines().count())).collect();
    expect_none(&sources::too_long(&sizes, sources::LONGER));
}
