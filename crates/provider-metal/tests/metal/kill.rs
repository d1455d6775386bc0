//! `kill -9` of the provider in every state: each move ends once, and the host is in a known state.

use bigfleet_provider_kit::MachineState;

use crate::lab::{Emulator, Lab};
use crate::provider::Provider;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_move_survives_a_kill_and_is_done_once() {
    use MachineState::{Configured, Configuring, Creating, Deleting, Draining, Idle, Speculative};
    let mut lab = Lab::new(3).await;
    let emulator = Emulator::start(1, None).await;
    lab.hosts[2].more = emulator.lines(0);
    let mut provider = Provider::start(&lab.inventory(), &lab.path("state")).await;

    provider.create("h2").await;
    provider.configure("h0", "prod", b"").await;
    provider.configure("h1", "test", b"").await;
    for (id, during) in [("h2", Creating), ("h0", Configuring), ("h1", Configuring)] {
        provider.is_in(id, during).await;
    }
    // The jobs must have reached the hosts: before that a Configure is rightly undone.
    for id in ["h0", "h1"] {
        crate::lab::until("the join runs", async || lab.hook_runs("join", id) == 1).await;
    }
    provider.restart().await;
    for (id, cluster) in [("h0", "prod"), ("h1", "test")] {
        let machine = provider.is_in(id, Configured).await;
        assert_eq!((machine.cluster.as_str(), machine.shard_metadata["key"].as_str()), (cluster, "a\0b"));
        assert_eq!(lab.hook_runs("join", id), 1, "joined once");
    }
    provider.is_in("h2", Idle).await;

    provider.drain("h0").await;
    provider.delete("h2").await;
    provider.is_in("h0", Draining).await;
    provider.is_in("h2", Deleting).await;
    provider.restart().await;
    let machine = provider.is_in("h0", Idle).await;
    assert!(machine.cluster.is_empty() && machine.shard_metadata.is_empty());
    assert!(!lab.is_joined("h0"));
    assert_eq!(lab.hook_runs("reset", "h0"), 1, "reset once");
    provider.is_in("h2", Speculative).await;
    assert_eq!(provider.state("h1").await, Configured);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_at_any_moment_leave_every_host_in_a_known_state() {
    use MachineState::{Configured, Idle};
    let lab = Lab::new(4).await;
    let mut provider = Provider::start(&lab.inventory(), &lab.path("state")).await;
    for round in 0_u32..12 {
        let ids: Vec<String> = lab.hosts.iter().map(|host| host.name.clone()).collect();
        for id in &ids {
            match provider.state(id).await {
                Idle => provider.configure(id, &format!("cluster-{round}"), b"").await,
                Configured => provider.drain(id).await,
                other => panic!("round {round}: {id} is {other:?}: {}", provider.get(id).await.last_error),
            }
        }
        // Some rounds are cut at once, some in the middle, some after the end.
        for _ in 0..round % 6 {
            crate::lab::pause().await;
            crate::lab::pause().await;
        }
        provider.restart().await;
        for id in &ids {
            let machine = provider.settled(id).await;
            let state = MachineState::from_wire(machine.state).expect("a state");
            assert!(
                matches!(state, Idle | Configured),
                "round {round}: {id} is {state:?}: {}",
                machine.last_error
            );
            assert_eq!(lab.is_joined(id), state == Configured, "round {round}: {id} is {state:?}");
        }
    }
}
