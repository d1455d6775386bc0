//! What the program says about where it comes from. Builds work outside of a checkout and without git.
//!
//! Only release builds look at git: a development build would be compiled again after every commit.

use std::env;
use std::process::Command;

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let profile = variable("PROFILE");
    let commit = match env::var("BIGFLEET_COMMIT") {
        // Whoever packages a tarball knows better.
        Ok(commit) => commit,
        Err(_) if profile == "release" => commit(),
        Err(_) => String::new(),
    };
    println!("cargo::rustc-env=BIGFLEET_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=BIGFLEET_BUILD_RUSTC={}", said(&variable("RUSTC"), &["--version"]));
    println!("cargo::rustc-env=BIGFLEET_BUILD_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=BIGFLEET_BUILD_PROFILE={profile}");
    println!("cargo::rerun-if-env-changed=BIGFLEET_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
}

/// The commit of the checkout, marked if files differ from it; empty if this is none.
fn commit() -> String {
    // The log of what HEAD was: it changes with every commit and with nothing else.
    let log = said("git", &["rev-parse", "--git-path", "logs/HEAD"]);
    if !log.is_empty() {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = said("git", &["rev-parse", "--short=12", "HEAD"]);
    let dirty = !commit.is_empty()
        && !said("git", &["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]).is_empty();
    if dirty { format!("{commit}-changed") } else { commit }
}

/// What a program prints; empty if it fails or is not there.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
