//! What is shipped around the program: charts, manifests, dashboards, alert rules, reference pages, the image. All of it is made
//! from the program itself, or held against it. `BLESS=1` writes what is made anew.

mod alerts;
mod charts;
mod dashboards;
mod flags;
mod helm;
mod image;
mod installation;
mod manifests;
mod metrics;
mod pages;
#[path = "../support/process.rs"]
mod process;
mod reference;
mod release;
mod server;
mod values;
#[path = "../support/walk.rs"]
mod walk_through;
mod wire;

use std::path::PathBuf;

/// The checkout.
fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

/// A file of the checkout, as text.
fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Holds a file that is made against what makes it, or writes it.
#[track_caller]
fn is_made_of(path: &str, text: &str) {
    let file = root().join(path);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    if kept != text {
        let line = kept.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
        panic!(
            "{path} is not what it is made of, from line {} on:\n  kept {:?}\n  made {:?}\nwrite it anew: \
             BLESS=1 cargo test -p bigfleet --test deploy",
            line + 1,
            kept.lines().nth(line),
            text.lines().nth(line)
        );
    }
}
