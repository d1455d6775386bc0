//! List: filters, caps, revisions.

use std::collections::BTreeSet;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::{ListFilter, MachineList};

use crate::cloud::{FREE, World};

fn ids(list: &MachineList) -> BTreeSet<&str> {
    let ids: BTreeSet<&str> = list.machines.iter().map(|machine| machine.id.as_str()).collect();
    assert_eq!(ids.len(), list.machines.len(), "no machine twice");
    ids
}

fn since(revision: &[u8]) -> ListFilter {
    ListFilter { since_revision: revision.to_vec(), ..ListFilter::default() }
}

#[tokio::test]
async fn states_are_an_exact_union() {
    let world = World::new(5).await;
    world.configured("m-0", "c").await;
    world.create("m-1", FREE).await.unwrap();
    world.reach("m-1", MachineState::Idle).await;
    let states = |states: &[MachineState]| ListFilter {
        states: states.iter().map(|state| state.to_wire()).collect(),
        ..ListFilter::default()
    };
    assert_eq!(world.list(ListFilter::default()).await.machines.len(), 5);
    assert_eq!(ids(&world.list(states(&[MachineState::Idle])).await), ["m-1"].into());
    let both = [MachineState::Idle, MachineState::Configured];
    assert_eq!(ids(&world.list(states(&both)).await), ["m-0", "m-1"].into());
    assert!(world.list(states(&[MachineState::Failed])).await.machines.is_empty());
    let odd = ListFilter { states: vec![0, -1, 99], ..ListFilter::default() };
    assert!(world.list(odd).await.machines.is_empty(), "states nobody is in");
}

#[tokio::test]
async fn a_cap_is_never_exceeded_and_capped_lists_go_round() {
    let world = World::new(10).await;
    let capped = |max_results| ListFilter { max_results, ..ListFilter::default() };
    let mut seen = BTreeSet::new();
    for _ in 0..5 {
        let list = world.list(capped(2)).await;
        assert_eq!(list.machines.len(), 2);
        seen.extend(list.machines.into_iter().map(|machine| machine.id));
    }
    assert_eq!(seen.len(), 10, "five lists of two show all ten");
    assert_eq!(world.list(capped(100)).await.machines.len(), 10);
    assert_eq!(world.list(capped(0)).await.machines.len(), 10);
    assert_eq!(world.list(capped(-3)).await.machines.len(), 10);
    let first = world.list(capped(1)).await.machines.remove(0).id;
    let second = world.list(capped(1)).await.machines.remove(0).id;
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_revision_brings_what_changed_after_it_and_nothing_else() {
    let world = World::new(4).await;
    let start = world.list(ListFilter::default()).await;
    assert!(world.list(since(&start.revision)).await.machines.is_empty());
    world.create("m-2", FREE).await.unwrap();
    world.reach("m-2", MachineState::Idle).await;
    let delta = world.list(since(&start.revision)).await;
    assert_eq!(ids(&delta), ["m-2"].into());
    assert_ne!(delta.revision, start.revision);
    assert!(world.list(since(&delta.revision)).await.machines.is_empty());
    world.create("m-0", FREE).await.unwrap();
    world.reach("m-0", MachineState::Idle).await;
    assert_eq!(ids(&world.list(since(&start.revision)).await), ["m-0", "m-2"].into());
    let idle_only = ListFilter { states: vec![MachineState::Idle.to_wire()], ..since(&start.revision) };
    assert_eq!(world.list(idle_only).await.machines.len(), 2);
    let capped = ListFilter { max_results: 1, ..since(&start.revision) };
    assert_eq!(world.list(capped).await.machines.len(), 1);
    assert!(delta.revision.iter().all(u8::is_ascii_digit), "a decimal counter");
}

#[tokio::test]
async fn a_deleted_machine_stays_as_a_slot_in_the_delta() {
    let world = World::new(1).await;
    world.create("m-0", FREE).await.unwrap();
    world.reach("m-0", MachineState::Idle).await;
    let before = world.list(ListFilter::default()).await;
    world.delete("m-0", FREE).await.unwrap();
    world.reach("m-0", MachineState::Speculative).await;
    let delta = world.list(since(&before.revision)).await;
    assert_eq!(delta.machines[0].state, MachineState::Speculative.to_wire());
}

#[tokio::test]
async fn a_foreign_cursor_brings_everything() {
    let world = World::new(3).await;
    let ahead = (u64::MAX).to_string();
    let oversized = vec![b'9'; 1 << 20];
    let foreign: [&[u8]; 9] =
        [b"", b"garbage", b"-1", b"+1", b" 1", b"1.0", &[0xff, 0x00], ahead.as_bytes(), &oversized];
    for cursor in foreign {
        assert_eq!(world.list(since(cursor)).await.machines.len(), 3, "{:?}", &cursor[..cursor.len().min(8)]);
    }
    assert_eq!(world.list(since(b"0")).await.machines.len(), 3, "everything changed after nothing");
}

#[tokio::test]
async fn a_refused_call_does_not_move_the_revision() {
    let world = World::new(1).await;
    let before = world.list(ListFilter::default()).await.revision;
    let _ = world.drain("m-0", 0, ("s", 1, 1)).await;
    let _ = world.create("nobody", ("s", 1, 1)).await;
    assert_eq!(world.list(ListFilter::default()).await.revision, before);
}
