//! Reads this checkout: its folder, its crates as cargo sees them, its files.
//!
//! Cargo is asked offline and with the lock file as it is: a test must neither reach the network nor change a file.

use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One crate of the workspace.
#[derive(Debug)]
pub struct Member {
    /// The package name, such as `bigfleet-model`.
    pub name: String,
    /// The folder that holds its `Cargo.toml`.
    pub folder: PathBuf,
    /// The text of its `Cargo.toml`.
    pub manifest: String,
    /// Names of the packages it declares as normal or build dependencies. Development dependencies are left out.
    pub dependencies: BTreeSet<String>,
}

/// The root of the checkout.
pub fn root() -> PathBuf {
    // Asked at run time first: a test binary may outlive the checkout it was built in.
    let house = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&house).ancestors().nth(2).expect("this crate lives in crates/house").to_path_buf()
}

/// Every crate of the workspace, by name.
pub fn members() -> Vec<Member> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output).expect("cargo metadata prints JSON");
    let mut members: Vec<Member> = array(&metadata, "packages").iter().map(member).collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    members
}

fn member(package: &Value) -> Member {
    let path = PathBuf::from(string(package, "manifest_path"));
    let declared = array(package, "dependencies");
    Member {
        name: string(package, "name"),
        manifest: read(&path),
        folder: path.parent().expect("a manifest lies in a folder").to_path_buf(),
        dependencies: declared.iter().filter(|d| d["kind"] != "dev").map(|d| string(d, "name")).collect(),
    }
}

/// The names of all packages that `package` links, directly or not, with its default features.
pub fn linked(package: &str) -> BTreeSet<String> {
    let tree =
        cargo(&["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != package).map(str::to_owned).collect()
}

/// All files below `folder` whose name ends in `.extension`, in path order. A folder that does not exist has none.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("a folder can be listed").path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The text of a file; a missing one fails the test with its path.
#[track_caller]
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// `path` as people write it: relative to the root, with forward slashes.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn cargo(arguments: &[&str]) -> String {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let output = Command::new(program)
        .args(arguments)
        .args(["--locked", "--offline", "--color", "never"])
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "cargo {} failed:\n{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

fn array<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().unwrap_or_else(|| panic!("cargo metadata has no list `{field}`"))
}

fn string(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("cargo metadata has no text `{field}`")).to_owned()
}
