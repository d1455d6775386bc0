//! Form of source files: how they begin and how long they may be.

/// Lines a source file may have. Most have a quarter of that; a longer one usually holds two ideas.
pub const LINE_LIMIT: usize = 600;

/// Files that may be longer, each with the reason. An entry that is no longer needed is a violation too.
pub const LONGER: &[(&str, &str)] = &[];

/// A file that does not open with a sentence about itself.
pub fn without_opening(path: &str, source: &str) -> Option<String> {
    let opens =
        source.starts_with("//! ") && source.lines().next().is_some_and(|line| line.len() > "//! ".len());
    (!opens).then(|| format!("{path} does not begin with a module doc (`//! ..`)"))
}

/// Files above [`LINE_LIMIT`] that are not listed, and listed files that are not above it.
pub fn too_long(files: &[(String, usize)], longer: &[(&str, &str)]) -> Vec<String> {
    let listed = |path: &str| longer.iter().any(|(name, _)| *name == path);
    let over = files.iter().filter(|(path, lines)| *lines > LINE_LIMIT && !listed(path));
    let over = over.map(|(path, lines)| format!("{path} has {lines} lines, the limit is {LINE_LIMIT}"));
    let needed = |name: &str| files.iter().any(|(path, lines)| path == name && *lines > LINE_LIMIT);
    let idle = longer.iter().filter(|(name, _)| !needed(name));
    let idle = idle.map(|(name, _)| format!("{name} is listed in LONGER and need not be"));
    over.chain(idle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_opening_is_found() {
        assert_eq!(without_opening("a.rs", "//! Says why.\n"), None);
        for bad in ["", "use x;\n", "// plain\n", "//!\n//! late\n", "\n//! late\n"] {
            assert!(without_opening("a.rs", bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn a_long_file_and_an_idle_exception_are_found() {
        let files = [("a".to_owned(), 601), ("b".to_owned(), 600), ("c".to_owned(), 900)];
        assert_eq!(
            too_long(&files, &[("b", ""), ("c", "")]),
            ["a has 601 lines, the limit is 600", "b is listed in LONGER and need not be"]
        );
    }
}
