//! Words that arrive late, and a past that was forgotten.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_coordinator::{Entry, Step, Transfer, Writes, register};
use bigfleet_coordinator_server::store::{Changes, Etcd, EtcdSettings, Store, StoreError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::etcd::{Members, clock, until};

/// A way to a member that can be held up: what is said arrives when it is let go on, and answers likewise.
struct Way {
    address: SocketAddr,
    held: watch::Sender<bool>,
}

impl Way {
    async fn to(member: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("it has one");
        let (held, is_held) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(&member).await else { continue };
                let (near_reads, near_writes) = near.into_split();
                let (far_reads, far_writes) = far.into_split();
                tokio::spawn(carry(near_reads, far_writes, is_held.clone()));
                tokio::spawn(carry(far_reads, near_writes, is_held.clone()));
            }
        });
        Self { address, held }
    }
}

async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut is_held: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if is_held.wait_for(|held| !held).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_was_begun_before_its_leader_was_deposed_and_arrives_after_changes_nothing() {
    let members = Members::start();
    let member = members.settings("late").members[0].trim_start_matches("http://").to_owned();
    let way = Way::to(member).await;
    // As patient as it takes: what it says must still be on its way when it has been deposed.
    let settings = EtcdSettings {
        members: vec![format!("http://{}", way.address)],
        lease: Duration::from_secs(2),
        patience: Duration::from_mins(2),
        ..members.settings("late")
    };
    let old = Store::Etcd(Arc::new(Etcd::new(settings, clock()).expect("an address")));
    let leadership = until("a leadership", async || old.lead("127.0.0.1:1", &clock()).await.ok()).await;
    let known = bigfleet_coordinator::Fleet::default();
    old.commit(&leadership, &known.begin(leadership.term)).await.expect("it leads");

    way.held.send_replace(true);
    let late = register(&known, "late", "127.0.0.1:9", 5).expect("new");
    let term = leadership.term;
    let write = tokio::spawn(async move { old.commit(&leadership, &late).await });
    let other = members.store("late");
    let next = until("the next leadership", async || other.lead("127.0.0.1:2", &clock()).await.ok()).await;
    assert!(next.term > term && !write.is_finished());
    other.commit(&next, &known.begin(next.term)).await.expect("it leads");
    way.held.send_replace(false);
    let refused = write.await.expect("no panic").expect_err("it was deposed meanwhile");
    assert!(matches!(refused, StoreError::Deposed), "{refused}");
    let loaded = other.load().await.expect("it answers");
    assert!(!loaded.entries.iter().any(|(key, _)| key.contains("late")), "{:?}", loaded.entries);
}

/// A change of so many bytes.
fn large(term: i64, bytes: usize) -> Writes {
    Writes::of(Entry::Transfer(Transfer {
        machine: "m".into(),
        domain: "".into(),
        from: "a".into(),
        to: "b".into(),
        step: Step::Arrived,
        was_given: false,
        since_unix_nanos: term,
        reason: "x".repeat(bytes),
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_past_that_was_forgotten_is_loaded_anew_and_its_room_is_given_back() {
    let members = Members::start();
    let etcd = Arc::new(Etcd::new(members.settings("tidy"), clock()).expect("addresses"));
    let store = Store::Etcd(etcd.clone());
    let leadership = until("a leadership", async || store.lead("127.0.0.1:1", &clock()).await.ok()).await;
    // Enough that a member is worth defragmenting: one entry, again and again.
    let mut revision = 0;
    for round in 0..100 {
        let writes = large(round, 1_000_000);
        revision = store.commit(&leadership, &writes).await.expect("it leads");
    }
    let sizes = || (0..3).map(|member| members.database_bytes(member)).collect::<Vec<u64>>();
    let before = sizes();
    assert!(before.iter().all(|bytes| *bytes > 80 << 20), "{before:?}");
    // Forgetting takes a member a while; the leader tidies hourly, we at once.
    let after = until("the room is given back", async || {
        etcd.tidy(revision).await.expect("a majority");
        // What was freed counts as unused from the next write on.
        store.commit(&leadership, &large(0, 10)).await.expect("it leads");
        let after = sizes();
        after.iter().all(|bytes| *bytes < 20 << 20).then_some(after)
    })
    .await;
    eprintln!("members' files, in MiB: {:?} before, {:?} after", mebibytes(&before), mebibytes(&after));
    // Whoever watched from before hears that it must load, and finds everything.
    let mut changes = store.changes(revision - 50).await.expect("it can be asked");
    let forgotten = loop {
        match next(&mut changes).await {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(forgotten, StoreError::Compacted(_)), "{forgotten}");
    let loaded = store.load().await.expect("it answers");
    assert_eq!(loaded.entries.len(), 1);
    let again = store.commit(&leadership, &large(1000, 10)).await.expect("it still leads");
    assert!(again > revision);
}

async fn next(changes: &mut Changes) -> Result<(), StoreError> {
    changes.next().await.map(drop)
}

fn mebibytes(sizes: &[u64]) -> Vec<u64> {
    sizes.iter().map(|bytes| bytes >> 20).collect()
}
