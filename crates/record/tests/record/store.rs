//! The store: what survives, what is refused, and that the epoch never falls.

use std::path::Path;

use bigfleet_record::store::STATE_FILE;
use bigfleet_record::{OpenError, Opened, Start, Store};
use bigfleet_shard::{Fact, Memory, ShortSince};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::random::fact;

const NOW: i64 = 1_800_000_000_500_000_000;
const NOW_SECS: i64 = 1_800_000_000;

fn open(folder: &Path) -> Opened {
    Store::open(folder, NOW).unwrap()
}

fn short(cluster: &str, cycle: u64) -> Fact {
    let key = bigfleet_model::need::NeedKey { cluster: cluster.into(), ..Default::default() };
    Fact::Shortfall(key, Some(ShortSince { unix_nanos: 7, cycle }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_life_begins_with_what_the_one_before_committed(lives in vec(vec(vec(fact(), 0..6), 0..4), 1..4)) {
        let folder = crate::folder();
        let mut memory = Memory::default();
        let mut last = None;
        for (life, commits) in lives.into_iter().enumerate() {
            let mut opened = open(folder.path());
            prop_assert_eq!(&opened.memory, &memory);
            prop_assert!(last.is_none_or(|last| opened.epoch == last + 1));
            last = Some(opened.epoch);
            for facts in commits {
                opened.store.commit(&facts).unwrap();
                for fact in facts {
                    memory.learn(fact);
                }
            }
            if life % 2 == 0 {
                opened.store.close().unwrap();
            }
        }
        prop_assert_eq!(open(folder.path()).memory, memory);
    }
}

#[test]
fn the_first_epoch_is_the_clocks_and_later_ones_count_up() {
    let folder = crate::folder();
    let first = open(&folder.path().join("made/on/the/way"));
    assert_eq!((first.epoch, first.start), (NOW_SECS, Start::New));
    first.store.close().unwrap();
    // Whatever the clock says later.
    for (life, now) in (1..).zip([0, i64::MIN, i64::MAX]) {
        let opened = Store::open(folder.path().join("made/on/the/way"), now).unwrap();
        assert_eq!((opened.epoch, opened.start), (NOW_SECS + life, Start::Continued));
        opened.store.close().unwrap();
    }
    let before_time = crate::folder();
    assert_eq!(Store::open(before_time.path(), -5).unwrap().epoch, 1);
}

#[test]
fn losing_either_file_keeps_the_epoch_and_losing_both_asks_the_clock() {
    let folder = crate::folder();
    let at = |name: &str| folder.path().join(name);
    open(folder.path()).store.commit(&[Fact::Cycle(5)]).unwrap();

    std::fs::remove_file(at(STATE_FILE)).unwrap();
    let opened = open(folder.path());
    assert_eq!(
        (opened.epoch, opened.start, &opened.memory),
        (NOW_SECS + 1, Start::MemoryLost, &Memory::default())
    );
    drop(opened);

    std::fs::remove_file(at("epoch")).unwrap();
    let mut opened = open(folder.path());
    assert_eq!(opened.epoch, NOW_SECS + 2);
    opened.store.commit(&[Fact::Cycle(6)]).unwrap();
    drop(opened);

    std::fs::write(at("epoch"), "gibberish").unwrap();
    let opened = open(folder.path());
    assert_eq!((opened.epoch, opened.memory.cycle), (NOW_SECS + 3, 6), "the state file knows");
    assert!(opened.repaired_epoch.as_ref().is_some_and(|why| !why.is_empty()), "and it is told");
    drop(opened);

    std::fs::write(at("epoch"), "gibberish").unwrap();
    std::fs::remove_file(at(STATE_FILE)).unwrap();
    let error = Store::open(folder.path(), NOW).unwrap_err();
    assert!(matches!(error, OpenError::EpochDamaged { .. }), "{error}");
    assert!(error.to_string().contains("see that the clock is right"), "{error}");

    std::fs::remove_file(at("epoch")).unwrap();
    assert_eq!(Store::open(folder.path(), NOW + 9_000_000_000).unwrap().epoch, NOW_SECS + 9);
}

#[test]
fn an_epoch_that_was_written_and_not_begun_is_never_given_out() {
    let folder = crate::folder();
    drop(open(folder.path()));
    let state = std::fs::read(folder.path().join(STATE_FILE)).unwrap();
    drop(open(folder.path()));
    let ahead = std::fs::read(folder.path().join("epoch")).unwrap();
    // The power went after the epoch file and before the database, three times over.
    std::fs::write(folder.path().join(STATE_FILE), state).unwrap();
    std::fs::remove_file(folder.path().join("commits")).unwrap();
    std::fs::write(folder.path().join("epoch"), ahead).unwrap();
    std::fs::write(folder.path().join("epoch.new"), "half a fi").unwrap();
    std::fs::write(folder.path().join("state.new"), "half a fi").unwrap();
    assert_eq!(open(folder.path()).epoch, NOW_SECS + 2);
}

#[test]
fn a_folder_is_used_once_at_a_time() {
    let folder = crate::folder();
    let first = open(folder.path());
    let error = Store::open(folder.path(), NOW).unwrap_err();
    assert_eq!(error, OpenError::InUse(folder.path().into()));
    assert!(error.to_string().contains("one shard, one folder"), "{error}");
    drop(first);
    let second = open(folder.path());
    assert_eq!(second.epoch, NOW_SECS + 1, "the refused one took no epoch");
}

#[test]
fn a_restored_copy_is_refused_with_the_way_out() {
    let folder = crate::folder();
    let state = folder.path().join(STATE_FILE);
    open(folder.path()).store.close().unwrap();
    let copy = std::fs::read(&state).unwrap();
    let mut opened = open(folder.path());
    opened.store.commit(&[short("shop", 3)]).unwrap();
    opened.store.close().unwrap();
    std::fs::write(&state, copy).unwrap();
    let error = Store::open(folder.path(), NOW).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, OpenError::Damaged { .. }), "{text}");
    for part in [
        "an older copy, or its head is damaged",
        &format!("mv {0} {0}.damaged", state.display()),
        &format!("bigfleet shard --data {}", folder.path().display()),
        "nothing is reclaimed before a cluster has reported again",
        "released before it has idled anew",
        "Pauses and modes have to be given again",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    // And the way out works.
    std::fs::rename(&state, state.with_extension("damaged")).unwrap();
    let opened = open(folder.path());
    assert_eq!((opened.start, opened.epoch), (Start::MemoryLost, NOW_SECS + 2));
    drop(opened);
    assert_eq!(open(folder.path()).start, Start::Continued, "and it goes on");
}

#[test]
fn what_is_not_ours_is_refused_by_name() {
    let folder = crate::folder();
    let state = folder.path().join(STATE_FILE);
    std::fs::write(&state, b"once upon a time").unwrap();
    let error = Store::open(folder.path(), NOW).unwrap_err();
    assert!(
        matches!(&error, OpenError::Damaged { reason, .. } if reason == "it is not a database"),
        "{error}"
    );

    std::fs::remove_file(&state).unwrap();
    let database = redb::Database::create(&state).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(redb::TableDefinition::<&str, u64>::new("machines")).unwrap();
    write.commit().unwrap();
    drop(database);
    let error = Store::open(folder.path(), NOW).unwrap_err();
    assert_eq!(error, OpenError::Foreign { path: state.clone(), table: "machines".into() });

    std::fs::remove_file(&state).unwrap();
    drop(open(folder.path()));
    let database = redb::Database::create(&state).unwrap();
    let write = database.begin_write().unwrap();
    let mut meta = write.open_table(redb::TableDefinition::<&str, u64>::new("bigfleet-shard-meta")).unwrap();
    meta.insert("format", 7).unwrap();
    drop(meta);
    write.commit().unwrap();
    drop(database);
    let error = Store::open(folder.path(), NOW).unwrap_err();
    assert_eq!(error, OpenError::Newer { path: state.clone(), found: 7, known: 1 });
    assert!(error.to_string().contains("Start the newer build again"), "{error}");
}

#[test]
fn a_fact_that_cannot_be_read_is_damage() {
    let folder = crate::folder();
    drop(open(folder.path()));
    let database = redb::Database::create(folder.path().join(STATE_FILE)).unwrap();
    let write = database.begin_write().unwrap();
    let mut facts =
        write.open_table(redb::TableDefinition::<&[u8], &[u8]>::new("bigfleet-shard-facts")).unwrap();
    facts.insert(&b"mm-17"[..], &[1_u8, 200][..]).unwrap();
    drop(facts);
    write.commit().unwrap();
    drop(database);
    let error = Store::open(folder.path(), NOW).unwrap_err();
    assert!(
        error.to_string().contains("fact \"mm-17\": it is not in the form of a machine's memo"),
        "{error}"
    );
}
