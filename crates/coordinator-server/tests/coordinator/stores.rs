//! Both stores keep the same promises: one suite, run on each.

use std::path::Path;
use std::sync::Arc;

use bigfleet_coordinator::{Fleet, Writes, assign, register, unassign};
use bigfleet_coordinator_server::snapshot;
use bigfleet_coordinator_server::store::{Embedded, Leadership, Store, StoreError};

use crate::etcd::{Members, clock, until};

async fn lead(store: &Store) -> Leadership {
    until("a leadership", async || store.lead("127.0.0.1:1", &clock()).await.ok()).await
}

async fn fleet(store: &Store) -> Fleet {
    let loaded = until("the store answers", async || store.load().await.ok()).await;
    Fleet::load(loaded.entries.iter().map(|(key, value)| (key.as_str(), value.as_slice()))).expect("a fleet")
}

/// Commits through a fleet, as a leader does.
async fn commit(
    store: &Store,
    leadership: &Leadership,
    fleet: &mut Fleet,
    writes: Writes,
) -> Result<i64, StoreError> {
    let revision = store.commit(leadership, &writes).await?;
    fleet.apply(&writes);
    Ok(revision)
}

/// What any store promises. `again` opens it anew, as another process would.
async fn suite(store: Store, again: impl AsyncFn(Store) -> Store) {
    let first = lead(&store).await;
    let mut known = fleet(&store).await;
    let begin = known.begin(first.term);
    commit(&store, &first, &mut known, begin).await.expect("it leads");
    for shard in ["a", "b"] {
        let registered = register(&known, shard, "127.0.0.1:9", 5).expect("new");
        commit(&store, &first, &mut known, registered).await.expect("it leads");
    }
    // As many writes as one transaction takes, and puts and deletes together.
    let mut many = Writes::default();
    for zone in 0..30 {
        many.append(&assign(&known, "zone", &format!("z{zone}"), "a", 6).expect("free"));
        known.apply(&many);
    }
    assert!(many.as_slice().len() > 60 && many.have_room(0), "{} writes", many.as_slice().len());
    let revision = store.commit(&first, &many).await.expect("it leads");
    assert_eq!(fleet(&store).await, known, "what was committed is there");
    let leaving = unassign(&known, "zone", "z7", 7).expect("held");
    let later = commit(&store, &first, &mut known, leaving).await.expect("it leads");
    assert!(later > revision, "revisions rise");

    // Another leads: what the first still wants to say is refused, whole.
    let term = first.term;
    let store = again(store).await;
    let second = if matches!(store, Store::Etcd(_)) {
        drop(first);
        lead(&store).await
    } else {
        lead(&store).await
    };
    assert!(second.term > term, "terms rise: {} then {}", term, second.term);
    assert_eq!(fleet(&store).await, known, "nothing is lost between two leaders");
    let begin = known.begin(second.term);
    assert!(known.term() < second.term);
    commit(&store, &second, &mut known, begin).await.expect("it leads");
    assert_eq!(fleet(&store).await, known);

    // A snapshot is the whole fleet, and goes into an empty store alone.
    let saved = snapshot::save(&known);
    let file = saved.to_file();
    let (meta, read) = snapshot::read(&file).expect("a snapshot");
    assert_eq!((meta.entries as usize, &read), (known.entries().count(), &known));
    let refused = snapshot::restore(&read, &store, &second).await.expect_err("it is not empty");
    assert!(refused.to_string().contains("restore into an empty one"), "{refused}");
    for damaged in [&file[..file.len() - 3], &file[5..], b"{}\n", b"", &[&file[..], b"x\n"].concat()] {
        assert!(snapshot::read(damaged).is_err());
    }
    let newer = String::from_utf8(file).expect("text").replacen("\"edition\":1", "\"edition\":9", 1);
    assert!(snapshot::read(newer.as_bytes()).expect_err("newer").to_string().contains("edition 9"));
}

fn open(folder: &Path) -> Store {
    Store::Embedded(Arc::new(Embedded::open(folder).expect("a folder")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_keeps_the_promises_of_a_store() {
    let folder = tempfile::tempdir().expect("a folder");
    suite(open(folder.path()), async |store| {
        let second = Embedded::open(folder.path()).expect_err("one process at a time").to_string();
        assert!(second.contains("cannot be used"), "{second}");
        drop(store);
        open(folder.path())
    })
    .await;
    // What was lost comes back from a snapshot, in a term above the lost one's.
    let known = fleet(&open(folder.path())).await;
    let saved = snapshot::save(&known).to_file();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let store = open(elsewhere.path());
    let leadership = lead(&store).await;
    let (_, read) = snapshot::read(&saved).expect("a snapshot");
    snapshot::restore(&read, &store, &leadership).await.expect("an empty store");
    let restored = fleet(&store).await;
    assert!(restored.term() > known.term(), "{} and {}", restored.term(), known.term());
    assert!(restored.domains().eq(known.domains()) && restored.instructions().eq(known.instructions()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_keeps_the_promises_of_a_store() {
    let members = Members::start();
    suite(members.store("suite"), async |_| members.store("suite")).await;
    // Fleets with other prefixes do not meet.
    assert_eq!(fleet(&members.store("other")).await, Fleet::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_given_up_changes_nothing() {
    let members = Members::start();
    let (store, other) = (members.store("fence"), members.store("fence"));
    let old = lead(&store).await;
    let mut known = fleet(&store).await;
    let begin = known.begin(old.term);
    commit(&store, &old, &mut known, begin).await.expect("it leads");
    // The lease is taken from under it, as if it had been away for longer than that; it does not know.
    let term = old.term;
    let stale = Leadership::stale(term);
    drop(old);
    let new = lead(&other).await;
    assert!(new.term > term);
    let late = register(&known, "late", "127.0.0.1:9", 5).expect("new");
    let refused = store.commit(&stale, &late).await.expect_err("it was deposed");
    assert!(matches!(refused, StoreError::Deposed), "{refused}");
    assert!(fleet(&other).await.shard("late").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terms_rise_from_a_file_to_etcd_and_back() {
    let (members, folders) = (Members::start(), [tempfile::tempdir(), tempfile::tempdir()]);
    let [first, last] = folders.map(|folder| folder.expect("a folder"));
    let mut known = Fleet::default();
    // Far above any revision of an etcd that has just begun.
    known.apply(&known.begin(1_000_000));
    let stores = [open(first.path()), members.store("moved"), members.store("again"), open(last.path())];
    for store in stores {
        let leadership = lead(&store).await;
        assert!(leadership.term < known.term(), "{}", leadership.term);
        snapshot::restore(&known, &store, &leadership).await.expect("an empty store");
        let restored = fleet(&store).await;
        assert!(restored.term() > known.term(), "{} and {}", restored.term(), known.term());
        known = restored;
    }
}
