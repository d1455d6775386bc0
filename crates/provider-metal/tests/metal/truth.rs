//! What happens to hosts behind the provider's back is reported as what it is, with the evidence.

use bigfleet_provider_kit::MachineState;

use crate::lab::{Lab, until};
use crate::provider::Provider;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_host_is_reported_and_comes_back_clean() {
    let mut lab = Lab::new(2).await;
    let provider = Provider::start(&lab.inventory(), &lab.path("state")).await;
    provider.configure("h0", "prod", b"").await;
    provider.is_in("h0", MachineState::Configured).await;
    lab.stop(0);
    let lost = provider.is_in("h0", MachineState::Failed).await;
    assert!(lost.last_error.starts_with("vanished: 127.0.0.1 port "), "{}", lost.last_error);
    assert!(lost.last_error.contains("3 times in a row"), "{}", lost.last_error);
    assert_eq!(provider.state("h1").await, MachineState::Idle);
    assert!(lab.is_joined("h0"), "nobody could reach it");
    lab.start(0, "").await;
    provider.is_in("h0", MachineState::Idle).await;
    assert!(!lab.is_joined("h0"), "it was reset before it was free again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reboots_new_installations_and_other_keys_are_told_apart() {
    let mut lab = Lab::new(4).await;
    let (inventory, state) = (lab.inventory(), lab.path("state"));
    let mut provider = Provider::start(&inventory, &state).await;
    for id in ["h0", "h1", "h2"] {
        provider.configure(id, "prod", b"").await;
        provider.is_in(id, MachineState::Configured).await;
    }
    let facts = state.join("facts.json");
    let known = || std::fs::read_to_string(&facts).unwrap_or_default();
    until("all hosts were seen", async || (0..4).all(|n| known().contains(&format!("\"h{n}\"")))).await;

    // The kernel's boot id cannot be changed here; what we remember of it can.
    provider.kill();
    let mut memory: serde_json::Value = serde_json::from_str(&known()).expect("facts");
    for id in ["h0", "h1", "h3"] {
        memory[id]["boot_id"] = "before-the-reboot".into();
    }
    std::fs::write(&facts, memory.to_string()).expect("written");
    // h0 is Ready again after its reboot, h1 is not.
    std::fs::remove_file(lab.path("h1.joined")).expect("removed");
    lab.head = lab.head.replace("configure_secs: 60", "configure_secs: 8");
    lab.inventory();
    let provider = Provider::start(&inventory, &state).await;
    let failed = provider.is_in("h1", MachineState::Failed).await.last_error;
    assert!(failed.starts_with("rebooted: boot id before-the-reboot became "), "{failed}");
    until("h0 was checked", async || !known().contains("before-the-reboot")).await;
    assert_eq!(provider.state("h0").await, MachineState::Configured);
    assert_eq!(provider.state("h3").await, MachineState::Idle);
    // h1 is reset and free.
    provider.is_in("h1", MachineState::Idle).await;

    std::fs::remove_dir_all(lab.path("h2.work")).expect("removed");
    let failed = provider.is_in("h2", MachineState::Failed).await.last_error;
    assert!(failed.starts_with("reimaged: its work folder is gone"), "{failed}");

    lab.stop(3);
    lab.change_key(3);
    lab.start(3, "").await;
    let failed = provider.is_in("h3", MachineState::Failed).await.last_error;
    assert!(failed.starts_with("other-host-key: "), "{failed}");
    assert!(failed.contains("SHA256:") && failed.contains("known_hosts/h3"), "{failed}");
    assert_eq!(provider.state("h0").await, MachineState::Configured);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_lets_us_in_no_more_is_no_supply_and_a_node_stays_a_node() {
    let mut lab = Lab::new(2).await;
    let key = std::fs::read_to_string(lab.path("id.pub")).expect("a key");
    let let_in = |lab: &Lab, who: &str| {
        for name in ["h0.keys", "h1.keys"] {
            std::fs::write(lab.path(name), who).expect("written");
        }
    };
    let_in(&lab, &key);
    for number in 0..2 {
        lab.stop(number);
        lab.start(number, "").await;
    }
    let provider = Provider::start(&lab.inventory(), &lab.path("state")).await;
    provider.configure("h1", "prod", b"").await;
    provider.is_in("h1", MachineState::Configured).await;
    let_in(&lab, "");
    let error = provider.is_in("h0", MachineState::Failed).await.last_error;
    assert!(error.starts_with("locked-out: ") && error.contains("Permission denied"), "{error}");
    until("it is said of the node", async || {
        provider.said().contains("the host is in use and cannot be looked at")
    })
    .await;
    assert_eq!(provider.state("h1").await, MachineState::Configured);
    let_in(&lab, &key);
    provider.is_in("h0", MachineState::Idle).await;
    assert_eq!(provider.state("h1").await, MachineState::Configured);
}
