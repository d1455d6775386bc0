//! Lists the scenario files, so that a new one needs no second mention.

use std::fmt::Write;
use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("scenarios");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = std::fs::read_dir(&folder).expect("the folder of scenarios is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut code = String::from("const FILES: &[(&str, &str)] = &[\n");
    for path in files {
        let name = path.file_stem().expect("it has a name").to_string_lossy();
        let path = path.to_str().expect("the checkout has a readable path");
        writeln!(code, "    ({name:?}, include_str!({path:?})),").expect("memory");
    }
    code.push_str("];\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it")).join("library.rs");
    std::fs::write(out, code).expect("the output folder can be written");
}
