//! A coordinator as people run it: a process that is killed, and the commands that ask it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use bigfleet_net::{Clock as _, SystemClock, dial};
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{InstructAck, ReportAck, ShardReport, instruct_ack};
use serde_json::Value;
use tonic::Code;

const MOMENT: Duration = Duration::from_millis(100);
const BIGFLEET: &str = env!("CARGO_BIN_EXE_bigfleet");

/// A coordinator that runs; killed when it is dropped.
struct Running {
    process: Child,
    address: String,
}

impl Running {
    fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    fn start_with(folder: &Path, more: &[&str]) -> Self {
        let mut process = Command::new(BIGFLEET)
            .args([
                "coordinator",
                "run",
                "--listen",
                "127.0.0.1:0",
                "--metrics",
                "none",
                "--log-filter",
                "warn",
            ])
            .arg("--data")
            .arg(folder)
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary");
        let mut line = String::new();
        let out = process.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("coordinator on ").expect("the line").to_owned();
        Self { process, address }
    }

    /// Runs a command against it.
    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(BIGFLEET);
        command.args(words).env("BIGFLEET_COORDINATOR", &self.address).output().expect("the binary")
    }

    /// As [`Self::run`], for a command that must succeed: what it printed, line by line as JSON.
    fn listed(&self, words: &[&str]) -> Vec<Value> {
        let done = self.run(words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        let text = String::from_utf8(done.stdout).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    }

    async fn report(&self, shard: &str, cycle: i64, answered: Option<&ReportAck>) -> ReportAck {
        let accept = |order: &bigfleet_proto::v1alpha1::CoordinatorInstruction| InstructAck {
            instruction_id: order.instruction_id.clone(),
            outcome: instruct_ack::Outcome::Accepted.into(),
            reason: String::new(),
        };
        let acks = answered.map(|ack| ack.instructions.iter().map(accept).collect()).unwrap_or_default();
        let report = ShardReport {
            shard_id: shard.into(),
            shard_epoch: 1,
            cycle,
            shard_address: format!("http://{shard}:7780"),
            instruction_acks: acks,
            ..ShardReport::default()
        };
        let channel = dial(&format!("http://{}", self.address), None).expect("an address");
        let clock = SystemClock::start();
        // It listens before it leads.
        for _ in 0..600 {
            match transport::coordinator_client(channel.clone()).report_shard(report.clone()).await {
                Ok(ack) => return ack.into_inner(),
                Err(status) if status.code() == Code::FailedPrecondition => clock.sleep(MOMENT).await,
                Err(status) => panic!("{status}"),
            }
        }
        panic!("it does not lead");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_fleet_is_laid_out_killed_saved_lost_and_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let running = Running::start(&data);
    let first = running.report("eu-1", 1, None).await;
    running.report("eu-2", 1, None).await;

    let wrong = running.run(&["assign", "zone", "--to", "eu-1"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("a domain is KEY=VALUE"));
    let unknown = running.run(&["assign", "zone=a", "--to", "eu-9"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no shard \"eu-9\""));
    for words in [
        &["assign", "zone=a", "--to", "eu-1"][..],
        &["assign", "zone=b", "--to", "eu-2"],
        &["quota", "--shard", "eu-1", "--provider", "aws", "--capacity", "spot", "200"],
        &["bind", "shop", "--to", "eu-2"],
    ] {
        let done = running.run(words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let other = running.run(&["assign", "rack=r1", "--to", "eu-1"]);
    assert!(String::from_utf8_lossy(&other.stderr).contains("all domains of a fleet have one key"));
    let shards = running.listed(&["get", "shards"]);
    assert_eq!(shards.iter().map(|shard| shard["shard"].clone()).collect::<Vec<_>>(), ["eu-1", "eu-2"]);
    let domains = running.listed(&["get", "domains", "eu-1"]);
    assert_eq!(
        (domains.len(), &domains[0]["value"], &domains[0]["arriving"]),
        (1, &"a".into(), &true.into())
    );
    let told = running.report("eu-1", 2, None).await;
    running.report("eu-1", 3, Some(&told)).await;
    assert_eq!(running.listed(&["get", "domains", "eu-1"])[0]["arriving"], false);
    assert_eq!(running.listed(&["get", "quotas"])[0]["machines"], 200);
    assert_eq!(running.listed(&["get", "bindings"])[0]["address"], "http://eu-2:7780");

    // Killed, not stopped: what was said to be done is done.
    drop(running);
    let running = Running::start(&data);
    let second = running.report("eu-1", 4, None).await;
    assert!(second.coordinator_term > first.coordinator_term);
    assert_eq!(running.listed(&["get", "domains"]).len(), 2);
    let file = folder.path().join("fleet.jsonl");
    let file = file.to_str().expect("text");
    let saved = running.run(&["coordinator", "save", file]);
    assert!(saved.status.success(), "{}", String::from_utf8_lossy(&saved.stderr));

    // A running coordinator's store is not restored into, nor one that holds anything.
    let data = data.to_str().expect("text").to_owned();
    let busy = running.run(&["coordinator", "restore", file, "--data", &data]);
    assert_eq!(busy.status.code(), Some(2), "{}", String::from_utf8_lossy(&busy.stderr));
    let before = running.listed(&["get", "domains"]);
    drop(running);
    let full =
        Command::new(BIGFLEET).args(["coordinator", "restore", file, "--data", &data]).output().expect("it");
    assert!(String::from_utf8_lossy(&full.stderr).contains("restore into an empty one"));

    // Everything is lost, and comes back in a higher term.
    std::fs::remove_dir_all(&data).expect("it is there");
    let restored =
        Command::new(BIGFLEET).args(["coordinator", "restore", file, "--data", &data]).output().expect("it");
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let running = Running::start(Path::new(&data));
    let third = running.report("eu-2", 2, None).await;
    assert_eq!(running.listed(&["get", "domains"]), before);
    assert!(third.coordinator_term > second.coordinator_term);
    assert_eq!(third.instructions.len(), 1, "what was not answered is told again");
}

#[tokio::test]
async fn exports_come_by_themselves_and_bring_a_lost_fleet_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, exports) = (folder.path().join("data"), folder.path().join("exports"));
    let to = exports.to_str().expect("text");
    let schedule = ["--export-to", to, "--export-every", "100ms", "--export-keep", "3"];
    let running = Running::start_with(&data, &schedule);
    let first = running.report("eu-1", 1, None).await;
    for words in [&["assign", "zone=a", "--to", "eu-1"][..], &["bind", "shop", "--to", "eu-1"]] {
        let done = running.run(words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    // The oldest are removed, so what is there now was all written after.
    let listed = || -> Vec<std::path::PathBuf> {
        let there = std::fs::read_dir(&exports).into_iter().flatten();
        let mut files: Vec<_> = there.map(|file| file.expect("it can be read").path()).collect();
        files.sort_unstable();
        files
    };
    let clock = SystemClock::start();
    let newest = async |after: Option<std::path::PathBuf>| loop {
        if let Some(newest) = listed().pop().filter(|newest| Some(newest) > after.as_ref()) {
            return newest;
        }
        clock.sleep(MOMENT).await;
    };
    let some = newest(None).await;
    let more = newest(Some(some)).await;
    drop(running);
    let files = listed();
    assert!((1..=4).contains(&files.len()), "{files:?}: three are kept, and one may just have been written");
    std::fs::remove_dir_all(&data).expect("it is there");

    // A file that was changed is refused, and the newest brings everything back.
    let damaged = folder.path().join("damaged.jsonl");
    let mut bytes = std::fs::read(&more).expect("an export");
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&damaged, bytes).expect("there is room");
    let restore = |file: &Path| {
        Command::new(BIGFLEET)
            .args(["coordinator", "restore"])
            .arg(file)
            .arg("--data")
            .arg(&data)
            .output()
            .expect("it")
    };
    let refused = restore(&damaged);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("this snapshot is damaged"), "{refused:?}");
    let restored = restore(files.last().expect("an export"));
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let running = Running::start(&data);
    let second = running.report("eu-1", 2, None).await;
    assert!(second.coordinator_term > first.coordinator_term);
    assert_eq!(running.listed(&["get", "domains"])[0]["value"], "a");
    assert_eq!(running.listed(&["get", "bindings"])[0]["cluster"], "shop");
}
