//! Listings (2.2): filters, caps, and changes since a revision.

use std::collections::BTreeSet;

use bigfleet_model::machine::MachineState::{Configured, Idle, Speculative};
use bigfleet_proto::v1alpha1::{ListFilter, MachineList};
use bigfleet_provider_kit::{Clock as _, SystemClock};
use bigfleet_provider_sim::{FAULT_LABEL, FAULT_SLOTS};

use super::{FREE, Move, Socket};

fn ids(list: &MachineList) -> BTreeSet<String> {
    list.machines.iter().map(|machine| machine.id.clone()).collect()
}

#[tokio::test]
async fn states_are_an_exact_union_and_caps_hold() {
    let socket = Socket::open(64).await;
    let bound = socket.in_state(0, Configured).await;
    let of = |states: &[i32]| ListFilter { states: states.to_vec(), ..ListFilter::default() };
    assert_eq!(socket.list(ListFilter::default()).await.machines.len(), 64 + FAULT_SLOTS);
    assert_eq!(ids(&socket.list(of(&[5])).await), BTreeSet::from([bound]));
    assert_eq!(socket.list(of(&[3])).await.machines.len(), 8);
    assert_eq!(socket.list(of(&[1, 3, 5])).await.machines.len(), 64 + FAULT_SLOTS);
    assert!(socket.list(of(&[8])).await.machines.is_empty());
    for cap in [1, 5, 67, 1000] {
        let list = socket.list(ListFilter { max_results: cap, ..ListFilter::default() }).await;
        assert_eq!(list.machines.len(), (cap as usize).min(64 + FAULT_SLOTS));
        assert_eq!(ids(&list).len(), list.machines.len(), "none twice");
    }
}

#[tokio::test]
async fn any_cursor_that_is_not_ours_gives_everything() {
    let socket = Socket::open(16).await;
    for cursor in [vec![], b"garbage".to_vec(), vec![0xff; 64], vec![b'9'; 10_000], b"-1".to_vec(), vec![0]] {
        let list = socket.list(ListFilter { since_revision: cursor.clone(), ..ListFilter::default() }).await;
        assert_eq!(list.machines.len(), 16 + FAULT_SLOTS, "{cursor:?}");
    }
}

#[tokio::test]
async fn the_revision_moves_with_changes_and_with_nothing_else() {
    let socket = Socket::open(32).await;
    let start = socket.list(ListFilter::default()).await.revision;
    let since = |revision: &[u8]| ListFilter { since_revision: revision.to_vec(), ..ListFilter::default() };
    assert!(socket.list(since(&start)).await.machines.is_empty(), "nothing at the current cursor");
    let id = socket.in_state(0, Speculative).await;
    socket.act(Move::Create, &id, FREE).await.expect("a slot");
    let begun = socket.list(since(&start)).await;
    assert_eq!(ids(&begun), BTreeSet::from([id.clone()]));
    assert_ne!(begun.revision, start);
    socket.reach(&id, Idle).await;
    let ended = socket.list(since(&begun.revision)).await;
    assert_eq!(ids(&ended), BTreeSet::from([id.clone()]));
    SystemClock::start().sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(socket.list(ListFilter::default()).await.revision, ended.revision, "quiet is quiet");

    socket.act(Move::Delete, &id, FREE).await.expect("idle");
    socket.reach(&id, Speculative).await;
    let deleted = socket.list(since(&ended.revision)).await;
    assert_eq!(
        (deleted.machines.len(), deleted.machines[0].state),
        (1, Speculative.to_wire()),
        "no tombstones"
    );
}

#[tokio::test]
async fn capped_listings_differ_and_slots_that_fail_come_last() {
    let socket = Socket::open(40).await;
    let one = ListFilter { states: vec![Speculative.to_wire()], max_results: 1, ..ListFilter::default() };
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        let list = socket.list(one.clone()).await;
        assert!(!list.machines[0].labels.contains_key(FAULT_LABEL), "while others are free");
        seen.extend(ids(&list));
    }
    assert_eq!(seen.len(), 35, "every slot comes up");
    let all = socket.list(ListFilter::default()).await.machines;
    let last = all.iter().rev().take(FAULT_SLOTS);
    assert!(last.into_iter().all(|machine| machine.labels.contains_key(FAULT_LABEL)));
}
