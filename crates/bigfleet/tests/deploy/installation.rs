//! The walk in `docs/install.md`, executed as printed: two private clusters, both charts installed by Helm, their pods run as processes,
//! and pods of both clusters become nodes' pods. Only the step that starts the private clusters is done here, and not by its script.

#[allow(dead_code, reason = "commands of the tour are split into words; here a shell does that")]
#[path = "../up/tour/script.rs"]
mod script;
#[path = "../up/tour/terminal.rs"]
mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bigfleet_kube_testbed::TestBed;
use script::{Step, matches, steps};

use crate::helm::helm;
use crate::root;

const DOCUMENT: &str = "docs/install.md";
/// A port that the document names, and that may be somebody else's here.
const PORT: &str = ":9000";

/// A command that is left running; ended when the test ends.
struct Left(Child);

impl Drop for Left {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn two_clusters_by_copy_and_paste() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_bigfleet"));
    let bed = runtime.block_on(TestBed::start(&["east", "west"], &program)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["deploy", "scripts"] {
        std::os::unix::fs::symlink(root().join(name).canonicalize().unwrap(), folder.path().join(name))
            .unwrap();
    }
    let environment = environment(&bed, &program, folder.path());
    let mut running = Vec::new();
    let text = crate::read(DOCUMENT);
    let steps = steps(&text);
    let beginning: Vec<&str> = steps.iter().take(2).map(|step| step.command.as_str()).collect();
    assert_eq!(beginning, ["scripts/test-bed east west &", ". test-bed/env"], "what is done here instead");
    assert!(steps.len() > 20, "a walk has more steps than that");
    let port = format!(":{}", free_port());
    for Step { line, command, expected } in steps.into_iter().skip(2) {
        let command = command.replace(PORT, &port);
        let shell = |command: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).current_dir(folder.path()).envs(environment.iter().cloned());
            shell
        };
        if let Some(command) = command.strip_suffix(" &") {
            let mut shell = shell(&format!("exec {command}"));
            running.push(Left(shell.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()));
            continue;
        }
        let (status, printed) = terminal::run(shell(&command));
        let said = if status.success() {
            matches(&expected, &printed).err()
        } else {
            Some(format!("ended with {status}"))
        };
        if let Some(reason) = said {
            panic!("{DOCUMENT}:{line}: `{command}` {reason}\n--- printed\n{printed}\n{}", bed.last_words());
        }
    }
    // What programs may do in their clusters was enough, and nothing was started twice that should not have been.
    let said = bed.last_words();
    assert!(!said.contains("forbidden"), "{said}");
    drop(running);
    drop(bed);
}

/// One that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn environment(bed: &TestBed, program: &Path, folder: &Path) -> Vec<(String, String)> {
    let kubectl = bed.program("kubectl").expect("kubectl: WITH_KUBECTL=1 scripts/kube-assets builds it");
    let folders = [program, &kubectl, helm()].map(|program| program.parent().unwrap().display().to_string());
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
    let mut all = vec![
        ("PATH".to_owned(), path),
        ("NO_COLOR".to_owned(), "1".to_owned()),
        ("COLUMNS".to_owned(), "100".to_owned()),
    ];
    // Settings of whoever runs this stay as they are, and out of it.
    for name in
        ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"]
    {
        all.push((name.to_owned(), folder.join("home").display().to_string()));
    }
    for (name, kubeconfig) in bed.kubeconfigs().unwrap() {
        all.push((name.to_uppercase(), kubeconfig.display().to_string()));
    }
    all
}
