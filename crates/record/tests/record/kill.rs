//! Nothing committed is lost by `kill -9`, and no epoch is used twice.
//!
//! The process is this test binary itself, run again with [`child`] as its only test.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bigfleet_record::{OpenError, Start, Store};
use bigfleet_scenario::seed::Seed;
use bigfleet_shard::{Fact, MachineMemo};

const FOLDER: &str = "RECORD_TEST_FOLDER";
const ROUNDS: u64 = 25;
const NOW: i64 = 1_800_000_000_000_000_000;

/// What commit `number` says: the count, and one machine that all commits change together with another.
fn facts(number: u64) -> Vec<Fact> {
    let memo = Some(MachineMemo { idle_since: Some(number.cast_signed()), ..MachineMemo::default() });
    vec![
        Fact::Cycle(number),
        Fact::Machine(format!("m-{}", number % 50).into(), memo.clone()),
        Fact::Machine("all".into(), memo),
    ]
}

/// Commits until it is killed, and says what it has done. Does nothing unless [`start`] has asked for it.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let mut opened = Store::open(folder, NOW).unwrap();
    let mut out = std::io::stderr();
    writeln!(out, "epoch {}", opened.epoch).unwrap();
    for number in opened.memory.cycle + 1.. {
        opened.store.commit(&facts(number)).unwrap();
        if writeln!(out, "done {number}").is_err() {
            return;
        }
    }
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn after<T: std::str::FromStr>(line: &str, word: &str) -> Option<T> {
    line.strip_prefix(word)?.trim().parse().ok()
}

#[test]
fn nothing_committed_is_lost_and_no_epoch_comes_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = Seed::new(5);
    let (mut told, mut last_epoch) = (0_u64, 0_i64);
    for round in 0..ROUNDS {
        let mut child = start(folder.path());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let epoch: i64 = lines.find_map(|line| after(&line, "epoch ")).expect("the child starts");
        assert!(epoch > last_epoch, "round {round}: epoch {epoch} after {last_epoch}");
        last_epoch = epoch;
        if round == 3 {
            let refused = Store::open(folder.path(), NOW).unwrap_err();
            assert!(matches!(refused, OpenError::InUse(_)), "a second process: {refused}");
        }
        let commits = 1 + seed.below(40);
        for line in lines.by_ref().take(commits as usize) {
            told = after(&line, "done ").unwrap_or(told);
        }
        // No handler runs, nothing is flushed.
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            told = after(&line, "done ").unwrap_or(told);
        }
    }
    let opened = Store::open(folder.path(), NOW).unwrap();
    assert!(opened.epoch > last_epoch);
    assert_eq!(opened.start, Start::AfterCrash);
    let found = opened.memory.cycle;
    assert!(found == told || found == told + 1, "told {told}, found {found}: at most the one under way");
    assert!(told > ROUNDS * 5, "only {told} commits: the test did not do its work");
    // A commit is there whole.
    let idle = |name: &str| opened.memory.machines[name].idle_since;
    assert_eq!(idle("all"), Some(found.cast_signed()));
    for number in found.saturating_sub(49)..=found {
        if number > 0 {
            assert_eq!(idle(&format!("m-{}", number % 50)), Some(number.cast_signed()));
        }
    }
}
