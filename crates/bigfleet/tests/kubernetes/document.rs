//! Documents that are walks through a cluster, executed as printed: `$ ` begins a command, what follows is what it must print, `…`
//! stands for anything. A command that ends in `&` is left running. A block whose first line names a file behind the language
//! (```` ```yaml inventory.yaml ````) is that file. Addresses are changed to free ports.

#[path = "../up/tour/script.rs"]
mod script;
#[path = "../up/tour/terminal.rs"]
pub(crate) mod terminal;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bigfleet_kube_testbed::{ControlPlane, Identity, join_machines};
use bigfleet_net::{Clock as _, SystemClock};

use crate::process::{Process, free_port};
use script::{Step, matches, steps, words};

/// Questions are asked again until the answer is there: what was started a moment ago needs that moment.
const ASKED_AGAIN: [&str; 2] = ["bigfleet get ", "bigfleet explain machine "];
const MOST_ASKED: usize = 300;

/// A document, and the place where it is played.
pub(crate) struct Walk {
    document: &'static str,
    folder: tempfile::TempDir,
    environment: Vec<(&'static str, String)>,
    /// What stands there for readers, and what it is here.
    replaced: Vec<(String, String)>,
}

pub(crate) async fn the_walk_is_as_printed(plane: &ControlPlane, _namespace: String) {
    let walk = Walk::new("docs/kubernetes.md", plane);
    let joining = tokio::spawn(join_machines(plane.client().await));
    let played = walk.play().await;
    joining.abort();
    assert!(played >= 12, "a walk has more steps than that");
}

impl Walk {
    /// A document beside this control plane, with the ports that it names made free ones.
    pub(crate) fn new(document: &'static str, plane: &ControlPlane) -> Self {
        let kubectl =
            plane.program("kubectl").expect("kubectl: WITH_KUBECTL=1 scripts/kube-assets builds it");
        let ours = PathBuf::from(env!("CARGO_BIN_EXE_bigfleet"));
        let folders =
            [ours.parent().unwrap(), kubectl.parent().unwrap()].map(|folder| folder.display().to_string());
        let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
        let kubeconfig = plane.kubeconfig_file("walk", &Identity::admin()).unwrap().display().to_string();
        let ports = [":9000", ":7780"].map(|port| (port.to_owned(), format!(":{}", free_port())));
        let folder = tempfile::tempdir().unwrap();
        // Programs find nothing of ours at home, and leave nothing there.
        let home = folder.path().join("home");
        std::fs::create_dir_all(home.join(".ssh")).unwrap();
        let environment = vec![
            ("PATH", path),
            ("HOME", home.display().to_string()),
            ("KUBECONFIG", kubeconfig),
            ("BIGFLEET_SERVER", format!("http://127.0.0.1{}", ports[1].1)),
            ("NO_COLOR", "1".into()),
            ("COLUMNS", "100".into()),
        ];
        Self { document, folder, environment, replaced: ports.into() }
    }

    /// What stands for something else.
    pub(crate) fn replace(&mut self, from: &str, to: &str) {
        self.replaced.push((from.into(), to.into()));
    }

    /// Puts a folder of programs before the others.
    pub(crate) fn with_programs(&mut self, folder: &Path) {
        let path = &mut self.environment[0].1;
        *path = format!("{}:{path}", folder.display());
    }

    /// Does what the document says. Returns how many commands that were.
    pub(crate) async fn play(&self) -> usize {
        let waiting = SystemClock::start();
        let document = self.document;
        let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect();
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        for (name, content) in files(&text) {
            std::fs::write(self.folder.path().join(name), self.here(&content)).unwrap();
        }
        let mut running: Vec<Process> = Vec::new();
        let mut played = 0;
        for Step { line, command, expected } in steps(&text) {
            let command = self.here(&command);
            played += 1;
            if let Some(command) = command.strip_suffix(" &") {
                let name = words(command).into_iter().take(2).collect::<Vec<_>>().join(" ");
                running.push(Process::start_command(&name, &self.shell(&format!("exec {command}"))));
                continue;
            }
            let most =
                if ASKED_AGAIN.iter().any(|asked| command.starts_with(asked)) { MOST_ASKED } else { 1 };
            let mut tries = 0;
            let failed = loop {
                let (status, printed) = terminal::run(self.shell(&command));
                let outcome = match matches(&expected, &printed) {
                    _ if !status.success() => Err(format!("ended with {status}")),
                    matched => matched,
                };
                tries += 1;
                match outcome {
                    Ok(()) => break None,
                    Err(reason) if tries == most => break Some((reason, printed)),
                    Err(_) => waiting.sleep(Duration::from_millis(300)).await,
                }
            };
            if let Some((reason, printed)) = failed {
                let said = running.iter().map(Process::last_words).collect::<Vec<_>>().join("\n");
                panic!("{document}:{line}: `{command}` {reason}\n--- printed\n{printed}\n{said}");
            }
        }
        played
    }

    fn here(&self, text: &str) -> String {
        self.replaced.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.folder.path());
        shell.envs(self.environment.iter().map(|(name, value)| (name, value)));
        shell
    }
}

/// The files that a document gives, with their names.
fn files(document: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut is_inside = false;
    let mut is_file = false;
    for line in document.lines() {
        if let Some(info) = line.strip_prefix("```") {
            is_inside = !is_inside;
            let name = info.split_whitespace().nth(1).filter(|_| is_inside);
            is_file = name.is_some();
            files.extend(name.map(|name| (name.to_owned(), String::new())));
        } else if is_file && let Some((_, content)) = files.last_mut() {
            *content += line;
            content.push('\n');
        }
    }
    files
}

#[test]
fn files_are_found_in_documents() {
    let text = "```yaml a.yaml\nx: 1\n\ny: 2\n```\n\n```console\n$ cat a.yaml\n```\n```sh b.sh\nfalse\n```\n";
    let file = |name: &str, content: &str| (name.to_owned(), content.to_owned());
    assert_eq!(files(text), [file("a.yaml", "x: 1\n\ny: 2\n"), file("b.sh", "false\n")]);
}
