//! The image: the same bytes twice, nothing in it that it does not need, and a program that runs there as nobody and writes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::root;

fn run(command: &mut Command) -> Output {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    done
}

/// Puts the image together and says what its digest is.
fn build(folder: &Path) -> String {
    let done =
        run(Command::new(root().join("scripts/image")).arg(env!("CARGO_BIN_EXE_bigfleet")).arg(folder));
    String::from_utf8(done.stdout).unwrap().lines().last().unwrap().to_owned()
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let done = run(Command::new("find").arg(folder).args([
        "-mindepth",
        "1",
        "-not",
        "-type",
        "d",
        "-printf",
        "%P\n",
    ]));
    String::from_utf8(done.stdout).unwrap().lines().map(PathBuf::from).collect()
}

#[test]
fn the_image_is_the_same_twice_and_runs_as_nobody_on_a_disk_it_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    let layout = folder.path().join("image");
    let again = folder.path().join("again");
    let digest = build(&layout);
    assert!(digest.starts_with("sha256:"), "{digest}");
    assert_eq!(digest, build(&again));
    run(Command::new("diff").arg("-r").arg(&layout).arg(&again));

    // Taken apart by a program that knows images, not by ours.
    let umoci = run(&mut Command::new(root().join("scripts/umoci")));
    let umoci = String::from_utf8(umoci.stdout).unwrap().trim().to_owned();
    let bundle = folder.path().join("bundle");
    let image = format!("{}:{}", layout.display(), env!("CARGO_PKG_VERSION"));
    run(Command::new(&umoci).args(["unpack", "--rootless", "--image", &image]).arg(&bundle));
    let runtime: Value =
        serde_json::from_str(&std::fs::read_to_string(bundle.join("config.json")).unwrap()).unwrap();
    let process = &runtime["process"];
    assert_eq!(process["user"]["uid"], 65532);
    assert_eq!(process["args"], serde_json::json!(["/usr/bin/bigfleet"]));

    let system = bundle.join("rootfs");
    let inside = files(&system);
    let is_known = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_library = path.starts_with("lib") || path.starts_with("lib64") || path.starts_with("usr/lib");
        (is_library && name.contains(".so"))
            || ["etc/passwd", "etc/group", "etc/nsswitch.conf", "usr/bin/bigfleet"]
                .iter()
                .any(|one| path == Path::new(one))
            || path.starts_with("usr/share/bigfleet")
    };
    let strange: Vec<&PathBuf> = inside.iter().filter(|path| !is_known(path)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(
        inside.contains(Path::new("usr/share/bigfleet/sbom.cdx.json")) && inside.len() < 20,
        "{inside:?}"
    );

    // Its own root, bound read-only; nobody of this machine; no other programs.
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && exec chroot --userspec=65532:65532 \"$1\" \
                  /usr/bin/bigfleet version --client --output json";
    let unshare = [
        "--user",
        "--map-root-user",
        "--map-users=auto",
        "--map-groups=auto",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
    ];
    let as_root = rustix::process::getuid().is_root();
    let mut confined = Command::new("unshare");
    // Root of this machine needs no map of users to be nobody.
    confined.args(if as_root { &unshare[4..] } else { &unshare[..] });
    let done = run(confined
        .args(["sh", "-c", script, "sh"])
        .arg(&system)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"));
    let version: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(version["client"]["version"], env!("CARGO_PKG_VERSION"), "{version}");
    let written =
        "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && ! touch \"$1/tmp/x\" 2>/dev/null";
    let mut written_to = Command::new("unshare");
    written_to.args(if as_root { &unshare[4..] } else { &unshare[..] });
    run(written_to.args(["sh", "-c", written, "sh"]).arg(&system));
}

#[test]
fn the_bill_of_materials_names_every_crate_that_is_compiled_in() {
    let done = run(&mut Command::new(root().join("scripts/sbom")));
    let bill: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(bill["metadata"]["component"]["version"], env!("CARGO_PKG_VERSION"));
    let mut references = BTreeSet::from([bill["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
    for component in bill["components"].as_array().unwrap() {
        let name = component["name"].as_str().unwrap();
        assert!(references.insert(component["bom-ref"].as_str().unwrap()), "{name} is there twice");
        assert!(component["licenses"][0]["expression"].is_string(), "{name} has no licence");
        // Ours come from this checkout, the others are pinned by what they hash to.
        assert_eq!(component["hashes"].is_array(), !name.starts_with("bigfleet"), "{name}");
    }
    for dependency in bill["dependencies"].as_array().unwrap() {
        for on in dependency["dependsOn"].as_array().unwrap() {
            assert!(references.contains(on.as_str().unwrap()), "{on}");
        }
    }
    // What cargo itself says is in the tree of the program, without what only builds and tests need.
    let tree = [
        "tree",
        "--locked",
        "--offline",
        "-p",
        "bigfleet",
        "-e",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "-f",
        "{p}",
    ];
    let done = run(Command::new(env!("CARGO"))
        .args(tree)
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .current_dir(root()));
    let text = String::from_utf8(done.stdout).unwrap();
    let linked: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| format!("{name} {}", rest.split(' ').next().unwrap()))
        .collect();
    let said = bill["components"].as_array().unwrap().iter().filter(|one| one["scope"] == "required");
    let mut said: BTreeSet<String> = said
        .map(|one| format!("{} {}", one["name"].as_str().unwrap(), one["version"].as_str().unwrap()))
        .collect();
    said.insert(format!("bigfleet {}", env!("CARGO_PKG_VERSION")));
    let missing: Vec<&String> = linked.difference(&said).collect();
    assert!(missing.is_empty() && linked.len() > 200, "not in the bill: {missing:?}");
}
