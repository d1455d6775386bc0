//! The walk in `docs/kubernetes.md`, executed as printed: `$ ` begins a command, what follows is what it must print, `…` stands for
//! anything. A command that ends in `&` is left running. Addresses are changed to free ports.

#[path = "../up/tour/script.rs"]
mod script;
#[path = "../up/tour/terminal.rs"]
mod terminal;

use std::path::PathBuf;
use std::process::Command;

use bigfleet_kube_testbed::{ControlPlane, Identity, join_machines};

use crate::process::{Process, free_port};
use script::{Step, matches, steps, words};

const DOCUMENT: &str = "docs/kubernetes.md";
/// Ports that the document names.
const PORTS: [&str; 2] = [":9000", ":7780"];

pub(crate) async fn the_walk_is_as_printed(plane: &ControlPlane, _namespace: String) {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect();
    let text = std::fs::read_to_string(root.join(DOCUMENT)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubectl = plane.program("kubectl").expect("kubectl: WITH_KUBECTL=1 scripts/kube-assets builds it");
    let ours = PathBuf::from(env!("CARGO_BIN_EXE_bigfleet"));
    let folders =
        [ours.parent().unwrap(), kubectl.parent().unwrap()].map(|folder| folder.display().to_string());
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
    let kubeconfig = plane.kubeconfig_file("walk", &Identity::admin()).unwrap().display().to_string();
    let ports = PORTS.map(|port| (port, format!(":{}", free_port())));
    let server = format!("http://127.0.0.1{}", ports[1].1);
    let environment = [
        ("PATH", path.as_str()),
        ("KUBECONFIG", &kubeconfig),
        ("BIGFLEET_SERVER", &server),
        ("NO_COLOR", "1"),
        ("COLUMNS", "100"),
    ];
    let joining = tokio::spawn(join_machines(plane.client().await));
    let mut running: Vec<Process> = Vec::new();
    let mut played = 0;
    for Step { line, command, expected } in steps(&text) {
        let command = ports.iter().fold(command, |command, (from, to)| command.replace(from, to));
        let shell = |command: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).current_dir(folder.path()).envs(environment);
            shell
        };
        played += 1;
        if let Some(command) = command.strip_suffix(" &") {
            let name = words(command).into_iter().take(2).collect::<Vec<_>>().join(" ");
            running.push(Process::start_command(&name, shell(&format!("exec {command}"))));
            continue;
        }
        let (status, printed) = terminal::run(shell(&command));
        let said = || running.iter().map(Process::last_words).collect::<Vec<_>>().join("\n");
        assert!(
            status.success(),
            "{DOCUMENT}:{line}: `{command}` ended with {status}:\n{printed}\n{}",
            said()
        );
        if let Err(reason) = matches(&expected, &printed) {
            panic!("{DOCUMENT}:{line}: `{command}` {reason}\n--- printed\n{printed}\n{}", said());
        }
    }
    joining.abort();
    assert!(played >= 12, "a walk has more steps than that");
}
