//! A running `bigfleet up`: a real process with a home of its own, stopped at the end whatever happens.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use bigfleet_net::{Clock, SystemClock};
use tempfile::TempDir;

/// How long anything may take before a test gives up. Generous: it only decides when a broken test ends.
const PATIENCE: Duration = Duration::from_mins(2);

/// The program under test, in a home of its own so that no file of the user or of another test matters.
pub(crate) fn bigfleet(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    command
        .args(args)
        .env_clear()
        .env("HOME", home)
        .env("NO_COLOR", "1")
        .env("TZ", "UTC")
        .env("COLUMNS", "100");
    command.stdin(Stdio::null());
    command
}

/// A running `bigfleet up`.
pub(crate) struct Up {
    child: Child,
    home: TempDir,
    lines: Receiver<String>,
    /// What it has written to standard output up to its `ready` line.
    pub(crate) banner: Vec<String>,
}

impl Up {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a home"), args)
    }

    fn start_in(home: TempDir, args: &[&str]) -> Self {
        let mut command = bigfleet(home.path(), &["up"]);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (line, lines) = channel();
        std::thread::spawn(move || {
            // Ends with the process; a test that has seen enough no longer listens.
            out.lines()
                .map_while(Result::ok)
                .take_while(|text| line.send(text.clone()).is_ok())
                .for_each(drop);
        });
        let mut up = Self { child, home, lines, banner: Vec::new() };
        loop {
            let line = up.line("the ready line");
            let ready = line.starts_with("ready after ");
            up.banner.push(line);
            if ready {
                return up;
            }
        }
    }

    /// The next line.
    fn line(&mut self, what: &str) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no {what} came; so far: {:#?}", self.banner),
            Err(RecvTimeoutError::Disconnected) => {
                panic!("it ended before {what}: {:?}; it wrote {:#?}", self.child.wait(), self.banner)
            }
        }
    }

    /// Lines until one suits.
    pub(crate) fn line_with(&mut self, what: &str) -> String {
        loop {
            let line = self.line(what);
            if line.contains(what) {
                return line;
            }
        }
    }

    /// How much memory of its own it has now, in KiB: without the pages of the program.
    pub(crate) fn own_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux says so");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// A command in the same home, ready to run.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        bigfleet(self.home.path(), args)
    }

    /// What a command prints, which must end well.
    pub(crate) fn ask(&self, args: &[&str]) -> String {
        let output = self.output(args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{args:?}: {output:?}");
        text
    }

    /// What becomes of a command.
    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("it runs")
    }

    /// Rows of a list, as JSON.
    pub(crate) fn rows(&self, args: &[&str]) -> Vec<serde_json::Value> {
        let text = self.ask(args);
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// Asks again and again until the answer suits, and returns it.
    pub(crate) fn rows_until(
        &self,
        args: &[&str],
        what: &str,
        suits: impl Fn(&[serde_json::Value]) -> bool,
    ) -> Vec<serde_json::Value> {
        let clock = SystemClock::start();
        let until = clock.now_unix_nanos() + bigfleet_net::nanos(PATIENCE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        loop {
            let rows = self.rows(args);
            if suits(&rows) {
                return rows;
            }
            assert!(clock.now_unix_nanos() < until, "{what} did not come true: {rows:#?}");
            runtime.block_on(async { clock.sleep(Duration::from_millis(100)).await });
        }
    }

    /// Sends the signal of ctrl-c and waits for the end. Returns how it ended, what it said last, and its home.
    pub(crate) fn interrupt(mut self) -> (ExitStatus, String, TempDir) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().expect("kill is there");
        assert!(sent.success());
        let mut last = String::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            last = line;
        }
        let status = self.child.wait().expect("it ends");
        let home = std::mem::replace(&mut self.home, tempfile::tempdir().expect("another"));
        (status, last, home)
    }

    /// Its file for other commands.
    pub(crate) fn announcement(&self) -> std::path::PathBuf {
        self.home.path().join(".local/state/bigfleet/up.json")
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // One that has ended already needs no ending.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
