//! Running the binary with nothing of the surroundings leaking in.

use std::process::{Command, Output};

use tempfile::TempDir;

/// A user with an empty home.
pub(crate) struct User {
    pub(crate) home: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().expect("a folder") }
    }

    /// The binary with these arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        command.args(arguments).env_clear().env("HOME", self.home.path()).env("TZ", "UTC").env("USER", "sam");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        Said::of(self.command(arguments).output().expect("the binary runs"))
    }

    /// The same as on a terminal of this width.
    pub(crate) fn run_wide(&self, columns: usize, arguments: &[&str]) -> Said {
        let output = self.command(arguments).env("COLUMNS", columns.to_string()).output();
        Said::of(output.expect("the binary runs"))
    }
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it ended by itself"),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Standard output of a command that must have gone well.
    pub(crate) fn fine(self) -> String {
        assert_eq!(self.code, 0, "{}", self.err);
        self.out
    }

    /// Everything, for snapshots. The port of the server differs in every run.
    pub(crate) fn all(self, server: &str) -> String {
        let text = format!("{}-- standard error --\n{}-- exit code {} --\n", self.out, self.err, self.code);
        text.replace(server, "http://SERVER").replace(server.trim_start_matches("http://"), "SERVER")
    }
}
