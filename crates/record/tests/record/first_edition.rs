//! What people have on their disks from the first edition of the rules: it opens, lists and explains in every later one.
//!
//! The folders were written by real processes; `tests/fixtures/data-first-edition/README.md` says how.

use std::path::{Path, PathBuf};

use bigfleet_engine::ActionKind;
use bigfleet_record::replay::replay;
use bigfleet_record::tape::{Limits, Reader, Writer};
use bigfleet_record::{Recorded, Start, Store};
use bigfleet_shard::Fate;

/// A copy of a folder, because opening one begins a life in it.
fn copy(name: &str) -> tempfile::TempDir {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/data-first-edition");
    let folder = crate::folder();
    copy_files(&fixture.join(name).join("shard"), folder.path());
    folder
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let from: PathBuf = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        if from.is_dir() {
            copy_files(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

fn records(folder: &Path) -> Vec<Recorded> {
    Reader::open(folder.join("record")).unwrap().records().map(Result::unwrap).collect()
}

#[test]
fn the_store_opens_with_everything_in_it() {
    for (name, start, epoch) in
        [("stopped", Start::Continued, STOPPED_EPOCH), ("killed", Start::AfterCrash, STOPPED_EPOCH + 1)]
    {
        let folder = copy(name);
        let opened = Store::open(folder.path(), 0).unwrap();
        assert_eq!((opened.start, opened.epoch), (start, epoch + 1), "{name}");
        let memory = &opened.memory;
        let clusters: Vec<&str> = memory.demand.keys().map(|cluster| &**cluster).collect();
        assert_eq!(clusters, ["batch", "ml", "shop"], "{name}");
        let pauses: Vec<&str> = memory.pauses.values().map(|pause| &*pause.reason).collect();
        assert_eq!(pauses, ["a look around"], "{name}");
        assert!(!memory.machines.is_empty(), "{name} remembers machines");
    }
}

/// The life in which `stopped` was written.
const STOPPED_EPOCH: i64 = 1_767_600_004;

#[test]
fn the_record_lists_what_was_decided() {
    for (name, cycles) in [("stopped", 146), ("killed", 167)] {
        let folder = copy(name);
        let records = records(folder.path());
        assert_eq!(records.len(), cycles, "{name}");
        let decided = || records.iter().flat_map(|record| &record.decided);
        for kind in [
            ActionKind::Bootstrap,
            ActionKind::Provision,
            ActionKind::Preempt,
            ActionKind::Reclaim,
            ActionKind::Delete,
        ] {
            let begun = decided().filter(|one| one.kind == kind && one.fate == Fate::Begun).count();
            assert!(begun >= 3, "{name}: {begun} of {kind}");
        }
        let gang = |one: &&bigfleet_record::Decided| {
            one.need.as_ref().is_some_and(|need| !need.key.group.is_empty())
        };
        assert!(decided().filter(gang).count() >= 5, "{name}: a gang got its machines");
        assert!(decided().any(|one| one.fate == Fate::Capped), "{name}: the cap held reclaims back");
    }
}

#[test]
fn every_moment_comes_back_and_is_explained() {
    let folder = copy("stopped");
    let reader = Reader::open(folder.path().join("record")).unwrap();
    let (mut explained, mut kept) = (0, 0);
    for record in records(folder.path()) {
        let state = reader.state_at(&reader.at_cycle(record.cycle).unwrap()).unwrap();
        assert_eq!(state.machines.len(), state.fleet.machine_count());
        assert_eq!(state.around.expect("it was recorded").surroundings.settings.providers.len(), 1);
        let explain = |action| state.fleet.explain_action(action, &record.options);
        explained += state.decision.actions.iter().filter_map(explain).count();
        kept += record.decided.iter().filter(|decided| decided.why.is_some()).count();
    }
    assert!(explained > 100 && kept > 100, "{explained} explained now, {kept} kept from then");
}

#[test]
fn a_replay_reads_all_of_it() {
    for name in ["stopped", "killed"] {
        let folder = copy(name);
        let report = replay(Reader::open(folder.path().join("record")).unwrap().records());
        assert!(report.first_difference.is_none(), "{name}: {}", report.first_difference.unwrap());
        assert_eq!((report.lost.len(), report.unanchored), (0, 0), "{name}");
        assert!(report.cycles > 20, "{name}: {} cycles", report.cycles);
    }
}

#[test]
fn the_tape_goes_on() {
    for name in ["stopped", "killed"] {
        let folder = copy(name);
        let before = records(folder.path()).len();
        let (writer, damages) = Writer::open(folder.path().join("record"), Limits::default()).unwrap();
        assert!(damages.is_empty() && writer.wants_full(), "{name}: {damages:?}");
        drop(writer);
        assert_eq!(records(folder.path()).len(), before, "{name}");
    }
}
