//! A host's life as its owner sees it: joining, failing to join, files that change, a store that is lost.

use bigfleet_provider_kit::MachineState;

use crate::lab::{Lab, until};
use crate::provider::{Provider, command};

const DEFAULT_JOIN: &str = include_str!("../../src/hooks/join.sh");

/// The lab's inventory with the hook that runs the bootstrap data.
fn with_default_join(lab: &mut Lab) {
    let start = lab.head.find("  join: |\n").expect("a hook");
    let end = lab.head.find("  ready:").expect("a hook");
    let hook: Vec<String> = DEFAULT_JOIN.lines().map(|line| format!("    {line}\n")).collect();
    let hook = hook.concat();
    lab.head.replace_range(start..end, &format!("  join: |\n{hook}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bootstrap_data_runs_on_the_host_and_its_output_is_kept() {
    let mut lab = Lab::new(3).await;
    with_default_join(&mut lab);
    let (inventory, state) = (lab.inventory(), lab.path("state"));
    let provider = Provider::start(&inventory, &state).await;
    let joined = lab.path("h0.joined").display().to_string();
    let script = format!("#!/bin/sh\necho joining $BIGFLEET_CLUSTER; touch {joined}\n");
    provider.configure("h0", "prod", script.as_bytes()).await;
    provider.configure("h1", "prod", b"echo token=geheim >&2; exit 7").await;
    provider.configure("h2", "prod", b"#cloud-config\n{}").await;
    provider.is_in("h0", MachineState::Configured).await;
    assert!(lab.is_joined("h0"));
    let said = command(&inventory, &state, &["output", "h0"]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("joining prod"), "{said:?}");
    assert!(!lab.path("h0.work/job/blob").exists(), "the bootstrap data is gone from the host");
    let failed = provider.is_in("h1", MachineState::Failed).await.last_error;
    assert!(failed.contains("failed with exit code 7; its output ends \"token=geheim\""), "{failed}");
    assert!(failed.ends_with("; the host was reset"), "{failed}");
    // What a shard asks for when a person asks it: the Configure's own, whatever was done to the host since.
    let output = provider.configure_output("h0", 0).await.expect("it was kept");
    assert_eq!((output.cluster_id.as_str(), output.outcome.as_str()), ("prod", "ended with exit code 0"));
    assert_eq!((&output.text[..], output.is_cut), (&b"joining prod\n"[..], false));
    assert!(output.operation_id.starts_with("op-") && output.ended_unix_nanos > 0, "{output:?}");
    let output = provider.configure_output("h1", 6).await.expect("it was kept");
    assert_eq!((&output.text[..], output.is_cut), (&b"eheim\n"[..], true));
    assert_eq!(output.outcome, "ended with exit code 7");
    let unknown = provider.configure_output("h9", 0).await.expect_err("there is no such host");
    assert_eq!(unknown.code(), tonic::Code::NotFound);
    let failed = provider.is_in("h2", MachineState::Failed).await.last_error;
    assert!(failed.contains("cloud-config, not a script"), "{failed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_file_is_taken_whole_or_not_at_all_and_a_bound_host_is_drained() {
    let mut lab = Lab::new(2).await;
    let inventory = lab.inventory_without(&["h1"]);
    let provider = Provider::start(&inventory, &lab.path("state")).await;
    provider.configure("h0", "prod", b"").await;
    provider.is_in("h0", MachineState::Configured).await;

    // A wrong file changes nothing, not even where it is right.
    let good = lab.head.clone();
    lab.head = good.replace("price_per_month: 73", "price_per_month: 146").replace("zone: z1", "zone: ''");
    lab.inventory();
    // A right one adds a host, and changes a price.
    for _ in 0..30 {
        crate::lab::pause().await;
    }
    assert_eq!(provider.get("h0").await.price_per_hour, 0.1);
    lab.head = good.replace("price_per_month: 73", "price_per_month: 146");
    lab.inventory();
    until("the price has doubled", async || provider.get("h0").await.price_per_hour == 0.2).await;
    provider.is_in("h1", MachineState::Idle).await;

    // The bound host leaves: drained, then out of reach of shards.
    lab.inventory_without(&["h0"]);
    let left = provider.is_in("h0", MachineState::Failed).await;
    assert!(left.last_error.starts_with("left-inventory: "), "{}", left.last_error);
    assert_eq!((lab.is_joined("h0"), lab.hook_runs("reset", "h0")), (false, 1));
    // And comes back.
    lab.inventory();
    provider.is_in("h0", MachineState::Idle).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_store_is_rebuilt_from_the_hosts_after_showing_how() {
    let lab = Lab::new(3).await;
    let (inventory, state) = (lab.inventory(), lab.path("state"));
    let mut provider = Provider::start(&inventory, &state).await;
    provider.configure("h0", "prod", b"").await;
    provider.configure("h1", "prod", b"").await;
    provider.is_in("h0", MachineState::Configured).await;
    provider.is_in("h1", MachineState::Configured).await;
    provider.drain("h1").await;
    provider.is_in("h1", MachineState::Idle).await;
    provider.kill();
    std::fs::remove_file(state.join("provider.redb")).expect("lost");

    let expected = "~ h0: the store says Idle, the host says Configured in \"prod\" with 1 metadata\n\
                    \x20 h1: the store says Idle, the host says free\n  h2: the store says Idle, the host says free\n";
    let shown = command(&inventory, &state, &["rebuild"]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout), expected, "{shown:?}");
    let again = command(&inventory, &state, &["rebuild", "--apply"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), expected, "the first look changed nothing: {again:?}");
    let provider = Provider::start(&inventory, &state).await;
    let machine = provider.get("h0").await;
    assert_eq!(machine.state, MachineState::Configured.to_wire());
    assert_eq!((machine.cluster.as_str(), machine.shard_metadata["key"].as_str()), ("prod", "a\0b"));
    provider.drain("h0").await;
    provider.is_in("h0", MachineState::Idle).await;
    assert!(!lab.is_joined("h0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_are_discovered_and_shown_before_they_are_written() {
    let mut lab = Lab::new(1).await;
    lab.head =
        lab.head.replace("  resources: {cpu: 4, memory: 8Gi}\n  allocatable: {cpu: 3, memory: 7Gi}\n", "");
    let (inventory, state) = (lab.inventory(), lab.path("state"));
    let refused = command(&inventory, &state, &["check"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("host \"h0\" has no resources"), "{refused:?}");
    let before = std::fs::read_to_string(&inventory).expect("read");
    let shown = command(&inventory, &state, &["discover"]);
    let diff = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(diff.contains("\n+    resources: {cpu: \""), "{shown:?}");
    assert_eq!(std::fs::read_to_string(&inventory).expect("read"), before);
    assert!(command(&inventory, &state, &["discover", "--apply"]).status.success());
    let checked = command(&inventory, &state, &["check"]);
    assert!(
        String::from_utf8_lossy(&checked.stdout).ends_with("1 hosts, 1 of them always on\n"),
        "{checked:?}"
    );
}
