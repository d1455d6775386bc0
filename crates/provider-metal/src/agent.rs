//! What is asked of a host, and how its answers are read. The other half is `agent.sh`, which runs there.
//!
//! An answer comes from a host we do not trust: every part has a bound and nothing in it is believed beyond
//! what it is about, namely that host.

use std::fmt::Write as _;
use std::time::Duration;

use bigfleet_model::text::Quoted;

use crate::inventory::Host;
use crate::ssh::{Exchange, Limits, Ssh, SshError};

const SCRIPT: &str = include_str!("agent.sh");
/// On top of the time a host is asked to wait: for connecting and for moving the data.
const PATIENCE: Duration = Duration::from_secs(45);
/// How long one connection waits for a job.
const WAIT: Duration = Duration::from_secs(20);
/// The most an answer may have: the end of a job's output and a few lines.
const ANSWER_LIMIT_BYTES: usize = 128 << 10;
/// The same with a record, whose metadata may need six bytes for one.
const RECORD_LIMIT_BYTES: usize = 8 << 20;
const WHILE_WAITING: Limits =
    Limits { time: Duration::from_secs(WAIT.as_secs() + PATIENCE.as_secs()), bytes: ANSWER_LIMIT_BYTES };
/// How much of a job's output the host sends: its end. `agent.sh` has the same number.
pub(crate) const OUTPUT_LIMIT_BYTES: usize = 64 << 10;
/// The longest value of a line in an answer.
const VALUE_LIMIT_BYTES: usize = 256;

/// What is to be done on a host, once per operation.
#[derive(Clone, Debug)]
pub struct Job {
    /// Names it; a host that has had it does not do it again.
    pub operation: String,
    /// Which cluster it is done for, if any; for people.
    pub cluster: String,
    /// Which steps it takes.
    pub mode: Mode,
    /// After which the host itself stops it.
    pub limit: Duration,
    /// What the hooks are told, as environment variables.
    pub facts: Vec<(&'static str, String)>,
    /// The first hook.
    pub first: String,
    /// The second hook.
    pub second: String,
    /// Data for the first hook; removed from the host when the job ends.
    pub blob: Vec<u8>,
    /// The host's copy of our record.
    pub record: Vec<u8>,
    /// A job that must not begin any more, should it still be on its way.
    pub supersedes: String,
}

/// Which steps a job takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The first hook, then the second again and again until it agrees.
    Join,
    /// The first hook, then the second must agree.
    Reset,
    /// Nothing if the second hook agrees, otherwise as a reset.
    Ensure,
}

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The host has no job.
    None,
    /// It goes on.
    Running,
    /// It ended with this code.
    Ended(i32),
    /// The host was restarted, or the job was killed, before it ended.
    Lost,
}

/// A host's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How its job stands.
    pub standing: Standing,
    /// Which operation that is.
    pub operation: String,
    /// Changes with every start of the host.
    pub boot_id: String,
    /// The end of what the job printed.
    pub output: String,
    /// The host's copy of our record.
    pub record: Option<Vec<u8>>,
    /// Changes with every installation of the host.
    pub machine_id: String,
    /// Processors.
    pub cpus: Option<u64>,
    /// Memory.
    pub memory_kib: Option<u64>,
}

impl Report {
    /// How the job of this operation stands; another's is none.
    pub fn standing_of(&self, operation: &str) -> Standing {
        if self.operation == operation { self.standing.clone() } else { Standing::None }
    }
}

/// Asks a host who it is and what it last did.
pub async fn probe(ssh: &Ssh, host: &Host) -> Result<Report, SshError> {
    let limits = Limits { time: PATIENCE, bytes: ANSWER_LIMIT_BYTES };
    ask(ssh, host, Exchange::Quick, &["probe", &host.ssh.work_folder], b"", limits).await
}

/// As [`probe`], with the host's copy of our record.
pub async fn record(ssh: &Ssh, host: &Host) -> Result<Report, SshError> {
    let limits = Limits { time: PATIENCE, bytes: RECORD_LIMIT_BYTES };
    ask(ssh, host, Exchange::Preferred, &["record", &host.ssh.work_folder], b"", limits).await
}

/// Begins a job if the host has not had it, and waits a while for its end.
pub async fn job(ssh: &Ssh, host: &Host, job: &Job) -> Result<Report, SshError> {
    let mut facts = String::new();
    for (name, value) in &job.facts {
        let _ = writeln!(facts, "export {name}={}", quoted(value));
    }
    let pieces: [&[u8]; 5] =
        [facts.as_bytes(), job.first.as_bytes(), job.second.as_bytes(), &job.blob, &job.record];
    let mode = match job.mode {
        Mode::Join => "join",
        Mode::Reset => "reset",
        Mode::Ensure => "ensure",
    };
    let (wait, limit) = (WAIT.as_secs().to_string(), job.limit.as_secs().max(1).to_string());
    let sizes = pieces.map(|piece| piece.len().to_string());
    let mut words = vec!["job", &host.ssh.work_folder, &job.operation, &wait, mode, &limit];
    words.extend(sizes.iter().map(String::as_str));
    words.push(&job.supersedes);
    ask(ssh, host, Exchange::Preferred, &words, &pieces.concat(), WHILE_WAITING).await
}

/// Has a job refused from now on, unless it was begun: the answer says which.
pub async fn refuse(ssh: &Ssh, host: &Host, operation: &str) -> Result<Report, SshError> {
    let limits = Limits { time: PATIENCE, bytes: ANSWER_LIMIT_BYTES };
    ask(ssh, host, Exchange::Quick, &["refuse", &host.ssh.work_folder, operation], b"", limits).await
}

/// Waits a while for the end of a job.
pub async fn wait(ssh: &Ssh, host: &Host, operation: &str) -> Result<Report, SshError> {
    let wait = WAIT.as_secs().to_string();
    let words = ["wait", host.ssh.work_folder.as_str(), operation, &wait];
    ask(ssh, host, Exchange::Preferred, &words, b"", WHILE_WAITING).await
}

async fn ask(
    ssh: &Ssh,
    host: &Host,
    exchange: Exchange,
    words: &[&str],
    input: &[u8],
    limits: Limits,
) -> Result<Report, SshError> {
    let sudo = if host.ssh.sudo { "sudo -n " } else { "" };
    let mut command = format!("{sudo}sh -c '{SCRIPT}' bigfleet");
    for word in words {
        let _ = write!(command, " {}", quoted(word));
    }
    let answer = ssh.run(host, exchange, &command, input, limits).await?;
    parse(&answer).map_err(|reason| SshError::Failed { address: host.ssh.address.clone(), reason })
}

/// One word for a POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

/// Reads an answer. Login shells may print before it.
fn parse(answer: &[u8]) -> Result<Report, String> {
    const OPENING: &[u8] = b"bigfleet-agent 1\n";
    let opens = |at: &usize| *at == 0 || answer[at - 1] == b'\n';
    let starts = answer.windows(OPENING.len()).enumerate().filter(|(_, part)| *part == OPENING);
    let start = starts.map(|(at, _)| at).find(|at| opens(at));
    let Some(start) = start else {
        let said = String::from_utf8_lossy(&answer[..answer.len().min(200)]);
        return Err(format!("the host answered {}, which is no answer of ours", Quoted(&said)));
    };
    let mut rest = &answer[start + OPENING.len()..];
    let mut report = Report {
        standing: Standing::None,
        operation: String::new(),
        boot_id: String::new(),
        output: String::new(),
        record: None,
        machine_id: String::new(),
        cpus: None,
        memory_kib: None,
    };
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or("the host's answer is cut short")?;
        let line = std::str::from_utf8(&rest[..end]).map_err(|_| "the host's answer is no text")?;
        rest = &rest[end + 1..];
        if line.len() > VALUE_LIMIT_BYTES {
            return Err("a line of the host's answer is too long".into());
        }
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "end" => return Ok(report),
            "job" => report.standing = standing(value)?,
            "operation" => report.operation = value.into(),
            "boot" => report.boot_id = value.into(),
            "machine" => report.machine_id = value.into(),
            "cpus" => report.cpus = value.parse().ok(),
            "memory_kib" => report.memory_kib = value.parse().ok(),
            "output" | "record" => {
                let size: usize = value.parse().map_err(|_| format!("a size of {} bytes", Quoted(value)))?;
                let (piece, after) =
                    rest.split_at_checked(size).ok_or("the host's answer is shorter than it says")?;
                rest = after.strip_prefix(b"\n").ok_or("the host's answer is longer than it says")?;
                match name {
                    "output" => report.output = String::from_utf8_lossy(piece).into_owned(),
                    _ => report.record = Some(piece.to_vec()),
                }
            }
            other => return Err(format!("the host's answer has a part {}", Quoted(other))),
        }
    }
}

fn standing(value: &str) -> Result<Standing, String> {
    match value {
        "none" => Ok(Standing::None),
        "running" => Ok(Standing::Running),
        "lost" => Ok(Standing::Lost),
        _ => value
            .strip_prefix("ended ")
            .and_then(|code| code.trim().parse().ok())
            .map(Standing::Ended)
            .ok_or_else(|| format!("a job that is {}", Quoted(value))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_script_can_travel_in_quotes() {
        assert!(!SCRIPT.contains('\''));
        assert!(!SCRIPT.contains("\\\\") && !SCRIPT.contains("\\'"), "fish reads these even in quotes");
    }

    /// What the script says of a job whose folder has these files.
    fn probed(files: &[(&str, &str)]) -> Standing {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("job")).expect("a job");
        for (name, content) in files {
            std::fs::write(folder.path().join("job").join(name), content).expect("a file");
        }
        let mut agent = std::process::Command::new("sh");
        let said = agent.args(["-c", SCRIPT, "bigfleet", "probe"]).arg(folder.path()).output().expect("sh");
        parse(&said.stdout).expect("an answer").standing
    }

    #[test]
    fn a_job_is_lost_only_on_evidence() {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
        let alive = std::process::id().to_string();
        let mut ended = std::process::Command::new("true").spawn().expect("a process");
        ended.wait().expect("it ends");
        let gone = ended.id().to_string();
        let job = |pid: &str| probed(&[("operation", "op\n"), ("boot", &boot), ("pid", pid)]);
        assert_eq!(job(&alive), Standing::Running);
        assert_eq!(job(&gone), Standing::Lost);
        // A runner that is about to write its number, and one that has not come so far.
        assert_eq!(job(""), Standing::Running);
        assert_eq!(probed(&[("operation", "op\n"), ("boot", &boot)]), Standing::Running);
        assert_eq!(probed(&[("operation", "op\n"), ("boot", "other\n"), ("pid", &alive)]), Standing::Lost);
        let ended = [("operation", "op\n"), ("boot", &boot), ("pid", &gone), ("exit", "7\n")];
        assert_eq!(probed(&ended), Standing::Ended(7));
    }

    #[test]
    fn an_answer_is_read_whatever_the_shell_said_before() {
        let answer = b"Welcome!\nbigfleet-agent 1\njob ended 3\noperation op-1\nboot b\noutput 5\na\nend\nrecord 2\n{}\n\
                       machine m\ncpus 2\nmemory_kib 10\nend\nand more";
        let report = parse(answer).expect("an answer");
        assert_eq!(report.standing_of("op-1"), Standing::Ended(3));
        assert_eq!(report.standing_of("op-2"), Standing::None);
        assert_eq!((report.output.as_str(), report.record.as_deref()), ("a\nend", Some(&b"{}"[..])));
        assert_eq!((report.machine_id.as_str(), report.cpus, report.memory_kib), ("m", Some(2), Some(10)));
    }

    #[test]
    fn answers_that_make_no_sense_are_refused() {
        for answer in [
            &b""[..],
            b"bigfleet-agent 2\nend\n",
            b"xbigfleet-agent 1\nend\n",
            b"bigfleet-agent 1\n",
            b"bigfleet-agent 1\njob maybe\nend\n",
            b"bigfleet-agent 1\noutput 99999999999999999999\nend\n",
            b"bigfleet-agent 1\noutput 10\nabc\nend\n",
            b"bigfleet-agent 1\noutput 1\nabc\nend\n",
            b"bigfleet-agent 1\nshadow root:x\nend\n",
            b"bigfleet-agent 1\n\xff\nend\n",
        ] {
            assert!(parse(answer).is_err(), "{}", answer.escape_ascii());
        }
        let long = format!("bigfleet-agent 1\nboot {}\nend\n", "x".repeat(1000));
        assert!(parse(long.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_answer_does_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut answer = b"bigfleet-agent 1\n".to_vec();
            answer.extend(bytes);
            let _ = parse(&answer);
        }

        #[test]
        fn quoting_survives_a_shell(word in "[ -~\\n]{0,40}") {
            let said = std::process::Command::new("sh").args(["-c", &format!("printf %s {}", quoted(&word))]).output();
            prop_assert_eq!(String::from_utf8(said.expect("sh").stdout).expect("text"), word);
        }
    }
}
