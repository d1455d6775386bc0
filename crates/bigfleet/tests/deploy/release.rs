//! `scripts/release` in a checkout of its own: what it refuses, what it puts together, and the tag it leaves.

use std::path::Path;
use std::process::{Command, Output};

use crate::root;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn done(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// Runs git there, as somebody whose settings do not matter.
#[track_caller]
fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["-c", "user.name=release", "-c", "user.email=release@localhost"]);
    let (is_well, said) =
        done(git.args(["-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"]).args(words));
    assert!(is_well, "git {words:?}: {said}");
    said.trim().to_owned()
}

#[test]
fn a_release_is_whole_and_tagged_and_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let checkout = folder.path().join("checkout");
    // As it is here, whether committed or not, without what was built.
    let copy = "mkdir -p \"$2\" && cd \"$1\" && tar -cf - --exclude=./.git --exclude=./target --exclude=node_modules . | tar -xf - -C \"$2\"";
    let (is_well, said) = done(Command::new("sh").args(["-c", copy, "sh"]).arg(root()).arg(&checkout));
    assert!(is_well, "{said}");
    git(&checkout, &["init", "--quiet"]);
    git(&checkout, &["add", "--all", "--force"]);
    git(&checkout, &["commit", "--quiet", "--message", "as it is"]);
    // A development build says of which commit it is by a file beside it.
    let program = folder.path().join("bigfleet");
    let built = env!("CARGO_BIN_EXE_bigfleet");
    if std::fs::hard_link(built, &program).is_err() {
        std::fs::copy(built, &program).unwrap();
    }
    let built_from = |commit: &str| std::fs::write(program.with_extension("commit"), commit).unwrap();
    let release = |out: &str| {
        let mut script = Command::new(checkout.join("scripts/release"));
        script.arg(folder.path().join(out)).current_dir(folder.path());
        script.env("RELEASE_PROGRAM", &program);
        for (name, value) in [("NAME", "release"), ("EMAIL", "release@localhost")] {
            script.env(format!("GIT_COMMITTER_{name}"), value);
        }
        done(&mut script)
    };

    let changelog = checkout.join("CHANGELOG.md");
    let text = std::fs::read_to_string(&changelog).unwrap();
    let heading = format!("## [{VERSION}] - ");
    if !text.contains(&heading) {
        let (is_made, said) = release("none");
        assert!(!is_made && said.contains("CHANGELOG.md has no heading"), "{said}");
        let text = text.replace("## [Unreleased]\n", &format!("## [Unreleased]\n\n{heading}2026-11-19\n"));
        std::fs::write(&changelog, text).unwrap();
        let (is_made, said) = release("none");
        assert!(!is_made && said.contains("the checkout has changes"), "{said}");
        git(&checkout, &["commit", "--quiet", "--all", "--message", "a release"]);
    }

    built_from("0123456789ab");
    let (is_made, said) = release("none");
    assert!(!is_made && said.contains("is of commit 0123456789ab, not of"), "{said}");
    built_from(&git(&checkout, &["rev-parse", "--short=12", "HEAD"]));
    let (is_made, said) = release("out");
    assert!(is_made, "{said}");
    let out = folder.path().join("out");
    let (is_well, said) =
        done(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&out));
    assert!(is_well, "{said}");
    let mut files: Vec<String> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(VERSION, "V"))
        .collect();
    files.sort();
    let target = files.iter().position(|name| name.contains("linux")).map(|at| files.remove(at));
    assert!(target.is_some_and(|name| name.starts_with("bigfleet-V-")), "the program is there");
    let expected = [
        "SHA256SUMS",
        "bigfleet-V-image.tar",
        "bigfleet-V-manifests.tar.gz",
        "bigfleet-V.cdx.json",
        "bigfleet-V.tgz",
        "bigfleet-cluster-V.tgz",
    ];
    assert_eq!(files, expected);
    // The tag is a note of its own, on the commit that was released.
    let tag = format!("v{VERSION}");
    assert_eq!(git(&checkout, &["cat-file", "-t", &tag]), "tag");
    assert_eq!(
        git(&checkout, &["rev-parse", &format!("{tag}^{{commit}}")]),
        git(&checkout, &["rev-parse", "HEAD"])
    );

    let (is_made, said) = release("again");
    assert!(!is_made && said.contains("there is a tag"), "{said}");
    let chart = format!("{}/bigfleet-{VERSION}.tgz", out.display());
    let (is_well, said) = done(Command::new(crate::helm::helm()).args(["show", "chart", &chart]));
    assert!(is_well && said.contains(&format!("appVersion: {VERSION}")), "{said}");
}
