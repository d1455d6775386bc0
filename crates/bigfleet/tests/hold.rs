//! Real shards that are treated badly: a disk that fails, a folder that goes away, a memory that is lost, names that try
//! to command the terminal of whoever looks.

#![expect(
    clippy::disallowed_methods,
    reason = "processes run in real time, and so does whoever waits for them"
)]

#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "support/operator.rs"]
mod operator;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "support/process.rs"]
mod process;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bigfleet_proto::v1alpha1::{CapacityNeed, NodeSelectorRequirement};
use operator::Operator;
use process::{Process, free_port};

/// How often something is looked for before a test gives up, a tenth of a second apart. Not a bar: an end to waiting.
const TRIES: u32 = 600;
const REPORT: Duration = Duration::from_millis(250);

struct Shard {
    process: Process,
    port: u16,
}

/// The flags of a shard without a cloud: nobody is at its provider's address.
fn flags(data: &Path, port: u16) -> Vec<String> {
    let data = data.to_str().expect("a plain path");
    let flags = ["shard", "--shard-id", "s1", "--data", data, "--provider", "none=http://127.0.0.1:1"];
    let more = ["--metrics", "none", "--listen"];
    let flags = flags.into_iter().chain(more).map(String::from);
    flags.chain([format!("127.0.0.1:{port}")]).collect()
}

impl Shard {
    fn start(data: &Path) -> Self {
        let port = free_port();
        let flags = flags(data, port);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Self { process: Process::start("shard", &flags), port }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Runs a shard that is expected not to come up.
fn refused(data: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(flags(data, free_port())).output().expect("it runs")
}

async fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..TRIES {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}: did not happen");
}

fn rows() -> Vec<CapacityNeed> {
    let amounts: BTreeMap<String, String> = [("cpu".to_owned(), "1".to_owned())].into();
    vec![CapacityNeed { aggregate_resources: amounts.clone(), min_unit: amounts, ..CapacityNeed::default() }]
}

/// An operator that has been heard.
async fn heard(shard: &Shard, cluster: &str, rows: Vec<CapacityNeed>) -> Operator {
    let operator = Operator::start(&shard.url(), cluster, REPORT, rows);
    until("a roll-up to be acknowledged", || operator.heard().acks.iter().any(|ack| ack == "rollup")).await;
    operator
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fails_ends_the_process_with_words() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("shard");
    let port = free_port();
    // A limit of file sizes is a disk that takes no more; the signal that comes with it is ignored from the start.
    let flags = flags(&data, port);
    let mut run = vec!["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_bigfleet")];
    run.extend(flags.iter().map(String::as_str));
    let shard = Shard { process: Process::start_program("shard", "bash", &run), port };
    let operator = heard(&shard, "shop", vec![]).await;
    let (pid, limit) = (shard.process.id().to_string(), "--fsize=0:0");
    let limited = Command::new("prlimit").args(["--pid", &pid, limit]).status().expect("prlimit(1) is there");
    assert!(limited.success());
    operator.report(rows());
    let mut shard = shard;
    until("the process to end", || shard.process.has_ended().is_some()).await;
    assert_eq!(
        shard.process.has_ended().and_then(|status| status.code()),
        Some(1),
        "{}",
        shard.process.last_words()
    );
    let words = shard.process.last_words();
    assert!(words.contains("the shard stops, because what it cannot remember it must not do"), "{words}");
    assert!(!words.contains("panicked"), "nobody is taken by surprise: {words}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_goes_away_ends_the_process_and_its_path_stays_claimed_until_then() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("shard");
    let mut shard = Shard::start(&data);
    let _operator = heard(&shard, "shop", rows()).await;
    for file in ["state.redb", "epoch", "lock", "commits"] {
        let mode = data.join(file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    for dir in [data.clone(), data.join("record")] {
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", dir.display());
    }
    assert!(!shard.process.last_words().contains('\u{1b}'), "no colours into a pipe");
    std::fs::remove_dir_all(&data).unwrap();
    let second = refused(&data);
    if shard.process.has_ended().is_none() {
        assert_eq!(second.status.code(), Some(4), "the first still runs");
        let words = String::from_utf8_lossy(&second.stderr).into_owned();
        assert!(words.contains("in use by another process"), "{words}");
    }
    until("the process to end", || shard.process.has_ended().is_some()).await;
    let words = shard.process.last_words();
    assert!(
        words.contains("was deleted or moved away") || words.contains("was replaced by another"),
        "{words}"
    );
    assert_eq!(shard.process.has_ended().and_then(|status| status.code()), Some(1), "{words}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_memory_is_not_begun_without_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("shard");
    let shard = Shard::start(&data);
    drop(heard(&shard, "shop", rows()).await);
    assert_eq!(shard.process.stop(), Some(0));
    std::fs::rename(data.join("state.redb"), data.join("elsewhere")).unwrap();
    let output = refused(&data);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{words}");
    assert!(words.contains("--accept-lost-memory"), "{words}");
    assert!(!data.join("state.redb").exists(), "a folder that is refused is left as it was");

    let port = free_port();
    let mut flags = flags(&data, port);
    flags.push("--accept-lost-memory".into());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let shard = Shard { process: Process::start("shard", &flags), port };
    drop(heard(&shard, "shop", rows()).await);
    assert_eq!(shard.process.stop(), Some(0));
}

/// How the test below leaves a process behind.
#[test]
#[ignore = "run and killed by what_a_killed_test_leaves_behind_is_ended_by_the_system"]
#[expect(clippy::print_stdout, reason = "whoever runs it reads this")]
fn keeps_a_process_until_it_is_killed() {
    let process = Process::start_program("sleeper", "sleep", &["600"]);
    println!("started {}", process.id());
    std::thread::sleep(Duration::from_mins(10));
}

#[tokio::test]
async fn what_a_killed_test_leaves_behind_is_ended_by_the_system() {
    let mut test = Command::new(std::env::current_exe().expect("this test has a file"))
        .args(["--ignored", "--exact", "keeps_a_process_until_it_is_killed", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(test.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let left = lines.find_map(|line| line.split_once("started ").map(|(_, id)| id.trim().to_owned()));
    let left = left.expect("it says which process it keeps");
    // Field 3 says what it does; one that has ended and that nobody asked about is a Z.
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
    };
    assert!(is_there(), "process {left}");
    // It is on its leash once setpriv(1) has become the program.
    let is_leashed =
        || std::fs::read(format!("/proc/{left}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\0"));
    until("the process to be on its leash", is_leashed).await;
    test.kill().expect("it can be killed");
    test.wait().expect("it ends");
    until("the process to be ended", || !is_there()).await;
}

/// A command on a real terminal, without colours of ours. Whoever reads it is there as long as this is.
struct Terminal {
    process: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
    reading: JoinHandle<()>,
}

impl Terminal {
    fn start(arguments: &[&str]) -> Self {
        let words = [&[env!("CARGO_BIN_EXE_bigfleet")], arguments].concat();
        let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        // The shell becomes the command: one that starts it in a group of its own would have it stopped for touching the terminal.
        let line = format!("stty cols 160 rows 40; exec {line}");
        let mut process = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .env("NO_COLOR", "1")
            .env("COLUMNS", "200")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script(1) is there");
        let keys = process.stdin.take().expect("it is piped");
        let mut pipe = process.stdout.take().expect("it is piped");
        let shown: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = shown.clone();
        let reading = std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut some) {
                kept.lock().unwrap().extend_from_slice(&some[..count]);
            }
        });
        Self { process, keys, shown, reading }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn press(&mut self, keys: &[u8]) {
        // Whoever has ended reads no more, and is asked for its words next.
        let _ = self.keys.write_all(keys);
    }

    /// All it has shown when it has ended by itself.
    async fn end(mut self, what: &str) -> String {
        let mut ended = false;
        for _ in 0..TRIES {
            ended = self.process.try_wait().expect("it can be asked").is_some();
            if ended {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if !ended {
            self.process.kill().expect("it can be killed");
            self.process.wait().expect("it ends");
            panic!("{what} does not end; it shows:\n{}", self.shown().escape_debug());
        }
        self.reading.join().expect("it reads to the end");
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }
}

/// What stands on a terminal on which this was written, line by line. Only what differs from the picture before is written, so a
/// name need not be found whole in it. As much as a program needs that puts the cursor somewhere and writes.
fn screen(written: &str) -> String {
    let (mut lines, mut row, mut column) = (vec![vec![' '; 200]; 60], 0, 0);
    let mut letters = written.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            let Some('[') = letters.next() else { continue };
            let mut order = String::new();
            let end = letters.by_ref().find(|letter| {
                order.push(*letter);
                ('@'..='~').contains(letter)
            });
            let order = order.trim_end_matches(|letter: char| letter.is_alphabetic());
            let mut numbers = order.split(';').map(|number| number.parse::<usize>().unwrap_or(1));
            match end {
                Some('H') => {
                    row = numbers.next().unwrap_or(1).clamp(1, 60) - 1;
                    column = numbers.next().unwrap_or(1).clamp(1, 200) - 1;
                }
                Some('J') => lines.iter_mut().for_each(|line| line.fill(' ')),
                _ => {}
            }
        } else if !letter.is_control() {
            lines[row][column] = letter;
            column = (column + 1).min(199);
        }
    }
    lines.into_iter().map(|line| line.into_iter().chain(['\n']).collect::<String>()).collect()
}

#[test]
fn a_screen_is_what_was_written_last() {
    let shown =
        screen("\u{1b}[?1049h\u{1b}[2J\u{1b}[1;1Helk\u{1b}[2;3H\u{1b}[1;31mx\u{1b}[1;2Hvi\u{1b}[1;4Hl");
    let lines: Vec<&str> = shown.lines().take(2).map(str::trim_end).collect();
    assert_eq!(lines, ["evil", "  x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_from_outside_do_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let shard = Shard::start(&folder.path().join("shard"));
    let cluster = "evil\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\nfake";
    let mut row = rows().remove(0);
    row.requirements.push(NodeSelectorRequirement {
        key: "pool\u{1b}[31m".into(),
        operator: 1,
        values: vec!["blue\u{202e}\u{1b}[2J".into()],
    });
    row.group = "gang\u{1b}[0m\0x".into();
    let _operator = heard(&shard, cluster, vec![row]).await;
    let url = shard.url();
    let pause =
        ["pause", "--server", &url, "--for", "1h", "--reason", "x\u{1b}[2J\u{202e}", "--cluster", cluster];
    let paused = Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(pause).output().unwrap();
    assert!(paused.status.success(), "{}", String::from_utf8_lossy(&paused.stderr));
    let server = ["--server", url.as_str()];
    for command in [
        &["get", "clusters"][..],
        &["get", "clusters", "-o", "wide"],
        &["get", "clusters", "-o", "name"],
        &["get", "clusters", "-o", "json"],
        &["get", "clusters", "-o", "yaml"],
        &["get", "needs"],
        &["get", "needs", "-o", "name"],
        &["get", "needs", "-o", "json"],
        &["get", "sessions"],
        &["get", "sessions", "-o", "yaml"],
        &["get", "rails"],
        &["get", "rails", "-o", "json"],
        &["explain", "cluster", cluster],
        &["explain", "cluster", "evil\u{1b}[2J\u{202e}nobody"],
    ] {
        let shown = Terminal::start(&[command, &server].concat()).end(&format!("{command:?}")).await;
        let hidden =
            |letter: &char| (letter.is_control() && !"\r\n".contains(*letter)) || *letter == '\u{202e}';
        let found: Vec<char> = shown.chars().filter(hidden).collect();
        assert!(found.is_empty(), "{command:?} shows {found:?}:\n{}", shown.escape_debug());
        assert!(!shown.trim().is_empty(), "{command:?} shows nothing");
    }
    assert!(!shard.process.last_words().contains('\u{1b}'), "nor to who reads the log");
    // What draws commands the terminal itself; of what it shows nothing does.
    let mut top = Terminal::start(&["top", "--server", &url]);
    let name = r"evil\u{1b}]0;owned";
    for _ in 0..TRIES {
        if screen(&top.shown()).contains(name) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let seen = screen(&top.shown());
    top.press(b"q");
    let drawn = top.end("top").await;
    assert!(seen.contains(name), "{seen}");
    let hidden: Vec<char> = drawn.chars().filter(|letter| "\u{202e}\u{9b}\u{7}".contains(*letter)).collect();
    assert!(hidden.is_empty() && !drawn.contains("\u{1b}]"), "{hidden:?}: {}", drawn.escape_debug());
}
