//! Bits that flip in a state file: refused or correct, never a panic, never silently wrong.

use std::path::Path;

use bigfleet_record::store::STATE_FILE;
use bigfleet_record::{OpenError, Store};
use bigfleet_scenario::seed::Seed;
use bigfleet_shard::{Fact, MachineMemo, Memory};

const NOW: i64 = 1_800_000_000_000_000_000;

fn idle(number: u64, since: i64) -> Fact {
    let memo = MachineMemo { idle_since: Some(since), ..MachineMemo::default() };
    Fact::Machine(format!("machine-{number:04}").into(), Some(memo))
}

/// A folder in which `lives` left something, the last one in order or not.
fn used(folder: &Path, is_closed: bool) -> Memory {
    let mut memory = Memory::default();
    for life in 0..2 {
        let mut opened = Store::open(folder, NOW).unwrap();
        for commit in 0..12_u64 {
            let facts: Vec<Fact> =
                (0..40).map(|n| idle(n * 7 % 200 + commit, life * 1_000 + n.cast_signed())).collect();
            opened.store.commit(&facts).unwrap();
            for fact in facts {
                memory.learn(fact);
            }
        }
        if is_closed {
            opened.store.close().unwrap();
        } else {
            // As a killed process leaves it: the file as it is now, not as closing makes it.
            let snapshot = std::fs::read(folder.join(STATE_FILE)).unwrap();
            drop(opened);
            std::fs::write(folder.join(STATE_FILE), snapshot).unwrap();
        }
    }
    memory
}

/// Copies the files of a folder into another.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn flip(good: &Path, expected: &Memory, bits: &[usize]) -> bool {
    let folder = crate::folder();
    copy(good, folder.path());
    let state = folder.path().join(STATE_FILE);
    let mut bytes = std::fs::read(&state).unwrap();
    for bit in bits {
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    std::fs::write(&state, bytes).unwrap();
    // Twice: what was refused once must not be taken, changed, the second time.
    let mut refused = false;
    for attempt in 0..2 {
        match Store::open(folder.path(), NOW) {
            Ok(opened) => {
                assert!(opened.memory == *expected, "bits {bits:?}, attempt {attempt}: silently wrong");
                break;
            }
            Err(OpenError::Damaged { .. } | OpenError::Foreign { .. } | OpenError::Newer { .. }) => {
                refused = true;
            }
            Err(other) => panic!("bits {bits:?}: {other}"),
        }
    }
    refused
}

#[test]
fn any_flipped_bit_is_refused_or_harmless() {
    // redb's own assertions speak up on the way to our refusal; nobody needs to read them here.
    std::panic::set_hook(Box::new(|panic| {
        if !panic.location().is_some_and(|place| place.file().contains("redb")) {
            eprintln!("{panic}");
        }
    }));
    for is_closed in [true, false] {
        let good = crate::folder();
        let memory = used(good.path(), is_closed);
        assert!(!flip(good.path(), &memory, &[]), "the file is good");
        let bits = std::fs::metadata(good.path().join(STATE_FILE)).unwrap().len() as usize * 8;
        let mut refused = 0;
        // Every bit of the head, or every third, then anywhere.
        for bit in (0..320 * 8).step_by(if is_closed { 1 } else { 3 }) {
            refused += usize::from(flip(good.path(), &memory, &[bit]));
        }
        let mut seed = Seed::new(11);
        for _ in 0..300 {
            let count = 1 + seed.below(4);
            let flips: Vec<usize> = (0..count).map(|_| seed.below(bits as u64) as usize).collect();
            refused += usize::from(flip(good.path(), &memory, &flips));
        }
        assert!(refused > 300, "only {refused} refused: the flips hit nothing");
    }
}

#[test]
fn a_file_cut_short_is_refused_or_harmless() {
    let good = crate::folder();
    let memory = used(good.path(), true);
    let bytes = std::fs::read(good.path().join(STATE_FILE)).unwrap();
    for part in 0..16 {
        let folder = crate::folder();
        copy(good.path(), folder.path());
        std::fs::write(folder.path().join(STATE_FILE), &bytes[..bytes.len() * part / 16]).unwrap();
        match Store::open(folder.path(), NOW) {
            Ok(opened) => assert!(opened.memory == memory, "{part} of 16 left"),
            Err(error) => assert!(matches!(error, OpenError::Damaged { .. }), "{error}"),
        }
    }
}
