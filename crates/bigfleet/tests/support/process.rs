//! Real processes of the real binary, ended when the test ends, however it ends.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

/// A running process.
pub(crate) struct Process {
    name: String,
    child: Child,
    /// What it said on standard error, for failures.
    said: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts `bigfleet` with these arguments: the one built with this test, or that of `BIGFLEET_PROGRAM`, for figures of an
    /// optimised one.
    #[allow(dead_code, reason = "walks start what their pages say")]
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Self {
        let given = std::env::var("BIGFLEET_PROGRAM");
        Self::start_program(name, given.as_deref().unwrap_or(env!("CARGO_BIN_EXE_bigfleet")), arguments)
    }

    /// Starts another program.
    #[allow(dead_code, reason = "the same")]
    pub(crate) fn start_program(name: &str, program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments);
        Self::start_command(name, &command)
    }

    /// Starts a command as it is, but for its streams. The system ends it when this process ends, however it ends.
    pub(crate) fn start_command(name: &str, command: &Command) -> Self {
        let mut child = leashed(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let (lines, pipe) = (said.clone(), child.stderr.take().expect("it is piped"));
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                let mut lines = lines.lock().unwrap();
                if lines.len() == 400 {
                    lines.remove(0);
                }
                lines.push(line);
            }
        });
        Self { name: name.into(), child, said }
    }

    /// Ends it like a power cut.
    #[allow(dead_code, reason = "not every test has a power cut")]
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Asks it to stop and returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().expect("kill(1) is there");
        assert!(asked.success());
        self.child.wait().expect("it ends").code()
    }

    /// How it ended, if it has.
    #[allow(dead_code, reason = "only tests of how it ends by itself ask")]
    pub(crate) fn has_ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().expect("it can be asked")
    }

    #[allow(dead_code, reason = "the load benchmark reads its memory; the end-to-end test does not")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its last words.
    pub(crate) fn last_words(&self) -> String {
        let said = self.said.lock().unwrap();
        format!("--- {} said:\n{}", self.name, said[said.len().saturating_sub(60)..].join("\n"))
    }
}

/// The same command, which the system kills when its parent is gone: a test that is killed cannot do it any more. Its id stays
/// that of the program. Where there is no setpriv(1), orphans are possible.
fn leashed(command: &Command) -> Command {
    let known = Command::new("setpriv").args(["--pdeathsig", "KILL", "true"]).stderr(Stdio::null()).status();
    let mut leashed = if known.is_ok_and(|status| status.success()) {
        let mut leashed = Command::new("setpriv");
        leashed.args(["--pdeathsig", "KILL"]).arg(command.get_program());
        leashed
    } else {
        Command::new(command.get_program())
    };
    leashed.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => leashed.env(name, value),
            None => leashed.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        leashed.current_dir(folder);
    }
    leashed
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already; either way it must not outlive the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", self.last_words());
        }
    }
}

/// A port that was free a moment ago. From below the range the system hands out by itself, so that no process that asks
/// for any free port is given it in between; and from a part of that range that depends on this process.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let base = 10_000 + u16::try_from(std::process::id() % 200).expect("it is below 200") * 100;
    loop {
        let port = base + NEXT.fetch_add(1, Ordering::Relaxed) % 100;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
