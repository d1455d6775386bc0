//! Documents that are walks, executed as printed: `$ ` begins a command, what follows is what it must print, `…` stands for anything.
//! A command that ends in `&` is left running, one that begins with `. ` or `export ` holds for all after it. A block whose first line
//! names a file behind the language (```` ```yaml inventory.yaml ````) is that file. Addresses are changed to free ports.

#[path = "script.rs"]
pub(crate) mod script;
#[path = "terminal.rs"]
pub(crate) mod terminal;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bigfleet_net::{Clock as _, SystemClock};

use crate::process::{Process, free_port};
use script::{Step, matches, steps, words};

/// Questions are asked again until the answer is there: what was started a moment ago needs that moment.
const ASKED_AGAIN: [&str; 4] = ["bigfleet get ", "bigfleet explain machine ", "bigfleet conform 127", ". "];
const MOST_ASKED: usize = 600;

/// A document, and the place where it is played.
pub(crate) struct Walk {
    document: &'static str,
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
    /// What stands there for readers, and what it is here.
    replaced: Vec<(String, String)>,
}

/// What became of a document.
pub(crate) struct Played {
    pub(crate) commands: usize,
    /// The command that did not do what it should, and what those that are left running said.
    failed: Option<String>,
    /// Those that are left running.
    running: Vec<Process>,
}

impl Played {
    /// Asks what is running to stop, the newest first, and waits for it.
    #[allow(dead_code, reason = "only what is started by a script must be asked")]
    pub(crate) fn stop(&mut self) {
        while let Some(process) = self.running.pop() {
            process.stop();
        }
    }

    /// Ends what is running. Panics if a command failed, with more to be said.
    pub(crate) fn end(self, more: &str) -> usize {
        if let Some(failed) = self.failed {
            panic!("{failed}\n{more}");
        }
        self.commands
    }
}

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

impl Walk {
    /// A document, in a folder and a home of its own: programs find nothing of ours there and leave nothing. `ports` are those that it
    /// names and that may be somebody else's here, as in `:9000`.
    pub(crate) fn new(document: &'static str, ports: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("home/.ssh")).unwrap();
        let ports = ports.iter().map(|port| ((*port).to_owned(), format!(":{}", free_port())));
        let mut walk = Self { document, folder, environment: Vec::new(), replaced: ports.collect() };
        walk.set("PATH", &std::env::var("PATH").unwrap_or_default());
        walk.set("HOME", &walk.home());
        walk.set("NO_COLOR", "1");
        walk.set("COLUMNS", "100");
        walk.with_programs(Path::new(env!("CARGO_BIN_EXE_bigfleet")).parent().unwrap());
        walk
    }

    /// Sets a variable of the environment.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(other, _)| other != name);
        self.environment.push((name.into(), value.into()));
    }

    /// What stands for something else.
    #[allow(dead_code, reason = "few walks name what is not there")]
    pub(crate) fn replace(&mut self, from: &str, to: &str) {
        self.replaced.push((from.into(), to.into()));
    }

    /// Puts a folder of programs before the others.
    pub(crate) fn with_programs(&mut self, folder: &Path) {
        let path = self.environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        let path = format!("{}:{}", folder.display(), path.unwrap_or_default());
        self.set("PATH", &path);
    }

    /// Readers are in the checkout.
    pub(crate) fn in_the_checkout(&self) {
        for name in ["deploy", "scripts", "docs"] {
            let there = root().join(name).canonicalize().unwrap();
            std::os::unix::fs::symlink(there, self.folder.path().join(name)).unwrap();
        }
    }

    /// Where programs look for settings.
    #[allow(dead_code, reason = "most programs look at HOME alone")]
    pub(crate) fn home(&self) -> String {
        self.folder.path().join("home").display().to_string()
    }

    /// What was written there.
    #[allow(dead_code, reason = "few walks write what is looked at afterwards")]
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// What stands for this here.
    #[allow(dead_code, reason = "not every walk has a server that all commands ask")]
    pub(crate) fn here(&self, text: &str) -> String {
        self.replaced.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    /// Does what the document says. What it leaves running is ended at the end of it. Returns how many commands that were.
    pub(crate) async fn play(&self) -> usize {
        self.play_and_keep().await.end("")
    }

    /// Does what the document says, up to the first command that fails.
    pub(crate) async fn play_and_keep(&self) -> Played {
        let waiting = SystemClock::start();
        let document = self.document;
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        for (name, content) in files(&text) {
            std::fs::write(self.folder.path().join(name), self.here(&content)).unwrap();
        }
        let mut played = Played { commands: 0, failed: None, running: Vec::new() };
        let mut before = String::new();
        for Step { line, command, expected } in steps(&text) {
            let command = self.here(&command);
            played.commands += 1;
            if let Some(command) = command.strip_suffix(" &") {
                let name = words(command).into_iter().take(2).collect::<Vec<_>>().join(" ");
                let shell = self.shell(&format!("{before}exec {command}"));
                played.running.push(Process::start_command(&name, &shell));
                continue;
            }
            let most =
                if ASKED_AGAIN.iter().any(|asked| command.starts_with(asked)) { MOST_ASKED } else { 1 };
            let mut tries = 0;
            let failed = loop {
                let (status, printed) = terminal::run(self.shell(&format!("{before}{command}")));
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
                let said = played.running.iter().map(Process::last_words).collect::<Vec<_>>().join("\n");
                played.failed =
                    Some(format!("{document}:{line}: `{command}` {reason}\n--- printed\n{printed}\n{said}"));
                break;
            }
            if [". ", "export "].iter().any(|lasting| command.starts_with(lasting)) {
                before.extend([&command, "; "]);
            }
        }
        played
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
