//! One program of a control plane: started, watched, and gone with us.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Runs a program beside a watcher that ends it when our end of the pipe closes: by dropping it, or because this
/// process is gone, however that came about. Nothing is left behind by a test that was killed.
const SUPERVISOR: &str = r#"
exec 3<&0
pid=$1; shift
"$@" 3<&- </dev/null &
child=$!
echo $child >"$pid"
{ cat <&3 >/dev/null; kill -9 $child 2>/dev/null; } &
wait $child
"#;

/// How often a program that was told to stand still is looked at, each time after whoever else wants a processor had one.
const LOOKS: usize = 100_000;

/// How much of a program's last words is shown.
const LAST_WORDS_BYTES: usize = 4000;

/// A running program.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    /// Closing it ends the program.
    leash: Option<ChildStdin>,
    log: PathBuf,
    pid: PathBuf,
}

impl Program {
    /// Starts a program; what it says goes to a file in `folder`.
    pub fn start<I>(program: &Path, arguments: I, folder: &Path) -> io::Result<Self>
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let name = program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let log = folder.join(format!("{name}.log"));
        let pid = folder.join(format!("{name}.pid"));
        let said = File::options().create(true).append(true).open(&log)?;
        let mut child = Command::new("sh")
            .args(["-c", SUPERVISOR, "sh"])
            .arg(&pid)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(said.try_clone()?)
            .stderr(said)
            .spawn()?;
        let leash = child.stdin.take();
        Ok(Self { name, child, leash, log, pid })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The end of what it has said.
    pub fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let from = text.len().saturating_sub(LAST_WORDS_BYTES);
        String::from_utf8_lossy(&text[from..]).into_owned()
    }

    /// Asks it to end.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Holds it where it is, as if its machine stood still, until [`Self::go_on`]. It stands still when this returns: on a busy
    /// machine a thread of it may go on for a moment after the signal.
    pub fn freeze(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        let tasks = format!("/proc/{}/task", self.pid()?.as_raw_nonzero());
        for _ in 0..LOOKS {
            let all = fs::read_dir(&tasks)?.flatten();
            // A thread that is gone has no state.
            if all.filter_map(|task| state_of(&task.path())).all(|state| state == 'T') {
                return Ok(());
            }
            std::thread::yield_now();
        }
        Err(io::Error::other("it does not stand still"))
    }

    /// Lets it go on.
    pub fn go_on(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Ends it at once and waits until it is gone.
    pub fn kill(&mut self) {
        drop(self.leash.take());
        // It cannot refuse; an error says that it is gone already.
        let _ = self.child.wait();
    }

    /// How much memory it has, in bytes, as the kernel counts it.
    pub fn resident_bytes(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()?.as_raw_nonzero()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other("the kernel does not say"))
    }

    /// How long it has had a processor.
    pub fn processor_secs(&self) -> io::Result<f64> {
        processor_secs(self.pid()?.as_raw_nonzero().get().unsigned_abs())
    }

    /// The number by which the system knows it.
    pub fn id(&self) -> io::Result<i32> {
        Ok(self.pid()?.as_raw_nonzero().get())
    }

    fn pid(&self) -> io::Result<Pid> {
        let text = fs::read_to_string(&self.pid)?;
        text.trim().parse().ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("no process id yet"))
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A task's state, as the kernel has it: `R`, `S`, `T`.
fn state_of(task: &Path) -> Option<char> {
    let stat = fs::read_to_string(task.join("stat")).ok()?;
    // The name, in parentheses, may hold anything.
    stat.rsplit(") ").next()?.chars().next()
}

/// How long a process has had a processor, as the kernel counts it: in hundredths of a second.
pub fn processor_secs(pid: u32) -> io::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in parentheses, may hold anything.
    let fields = stat.rsplit(") ").next().map(|rest| rest.split(' ').collect::<Vec<_>>()).unwrap_or_default();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u32>().ok());
    let (Some(user), Some(system)) = (ticks(11), ticks(12)) else {
        return Err(io::Error::other("the kernel does not say"));
    };
    Ok((f64::from(user) + f64::from(system)) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_with_its_leash_and_its_words_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo hello; echo trouble >&2; echo ready >done; while :; do sleep 1; done";
        let sh = Path::new("/bin/sh");
        let script = format!("cd {} && {script}", folder.path().display());
        let mut program = Program::start(sh, ["-c", &script], folder.path()).unwrap();
        let pid = loop {
            assert!(program.is_running(), "{}", program.last_words());
            if let (true, Ok(pid)) = (folder.path().join("done").exists(), program.pid()) {
                break pid;
            }
            std::thread::yield_now();
        };
        assert!(program.resident_bytes().unwrap() > 0 && program.processor_secs().unwrap() >= 0.0);
        assert_eq!(program.last_words(), "hello\ntrouble\n");
        program.kill();
        assert!(!program.is_running());
        assert!(kill_process(pid, Signal::CONT).is_err(), "the program itself is gone, not only its watcher");
    }

    #[test]
    fn a_program_that_ends_by_itself_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let mut program =
            Program::start(Path::new("/bin/sh"), ["-c", "echo bad flag >&2; exit 3"], folder.path()).unwrap();
        while program.is_running() {
            std::thread::yield_now();
        }
        assert_eq!(program.last_words(), "bad flag\n");
    }
}
