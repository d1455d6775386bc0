//! The decision vectors: one cycle per file, shared with other implementations of the same rules.
//!
//! The copy in this repository must not drift from the shared one, and must not lose a file.

use crate::workspace::files;
use serde_json::Value;
use std::path::Path;

/// Vectors that are not JSON, lack a part, or carry another name than their file.
pub fn malformed(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for path in files(folder, "json") {
        let name = path.strip_prefix(folder).expect("files are below the folder").with_extension("");
        let name = name.display().to_string();
        let text = std::fs::read(&path).expect("a listed file can be read");
        match serde_json::from_slice::<Value>(&text) {
            Err(error) => found.push(format!("{name}: {error}")),
            Ok(vector) => {
                if vector["name"] != name.as_str() {
                    found.push(format!("{name} calls itself {}", vector["name"]));
                }
                let missing = ["input", "expect"].into_iter().filter(|part| !vector[part].is_object());
                found.extend(missing.map(|part| format!("{name} has no {part}")));
            }
        }
    }
    found
}

/// Files that differ, byte for byte, or exist on one side alone.
pub fn differences(ours: &Path, theirs: &Path) -> Vec<String> {
    let mut found = one_sided(ours, theirs, "is ours alone");
    found.extend(one_sided(theirs, ours, "is missing in our copy"));
    for (path, bytes) in contents(ours) {
        if std::fs::read(theirs.join(&path)).is_ok_and(|other| other != bytes) {
            found.push(format!("{path} differs"));
        }
    }
    found
}

fn one_sided(here: &Path, there: &Path, what: &str) -> Vec<String> {
    let alone = contents(here).into_iter().filter(|(path, _)| !there.join(path).is_file());
    alone.map(|(path, _)| format!("{path} {what}")).collect()
}

fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let both = files(folder, "json").into_iter().chain(files(folder, "md"));
    both.map(|path| {
        let bytes = std::fs::read(&path).expect("a listed file can be read");
        let name = path.strip_prefix(folder).expect("files are below the folder").display().to_string();
        (name, bytes)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A folder of its own for one test, emptied first.
    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bigfleet-house-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
        folder
    }

    fn write(folder: &Path, name: &str, text: &str) {
        std::fs::write(folder.join(name), text).expect("the temporary folder is writable");
    }

    #[test]
    fn a_malformed_vector_is_found() {
        let folder = scratch("malformed");
        write(&folder, "good.json", r#"{"name": "good", "input": {}, "expect": {}}"#);
        write(&folder, "other.json", r#"{"name": "good", "input": {}}"#);
        write(&folder, "torn.json", r#"{"name": "#);
        let found = malformed(&folder);
        std::fs::remove_dir_all(&folder).expect("the temporary folder is ours");
        assert_eq!(found[..2], [r#"other calls itself "good""#, "other has no expect"]);
        assert!(found[2].starts_with("torn: EOF"), "{found:?}");
    }

    #[test]
    fn a_drifting_copy_is_found() {
        let (ours, theirs) = (scratch("ours"), scratch("theirs"));
        for (name, text) in [("same.json", "1"), ("changed.json", "2"), ("ours.json", "3")] {
            write(&ours, name, text);
        }
        for (name, text) in [("same.json", "1"), ("changed.json", "2 "), ("README.md", "4")] {
            write(&theirs, name, text);
        }
        let found = differences(&ours, &theirs);
        for folder in [ours, theirs] {
            std::fs::remove_dir_all(folder).expect("the temporary folder is ours");
        }
        assert_eq!(
            found,
            ["ours.json is ours alone", "README.md is missing in our copy", "changed.json differs"]
        );
    }
}
