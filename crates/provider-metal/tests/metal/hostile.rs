//! Hosts that mean harm: each costs its own move, with an error that says what it did, and nobody else anything.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::symlink;

use bigfleet_provider_kit::MachineState;

use crate::lab::{Host, Lab};
use crate::provider::Provider;

/// A key that may only run this command, whatever is asked for.
fn forced(lab: &Lab, number: usize, command: &str) {
    let key = std::fs::read_to_string(lab.path("id.pub")).expect("a key");
    std::fs::write(lab.path(&format!("h{number}.keys")), format!("command={command:?} {key}"))
        .expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_host_harms_itself_alone() {
    let mut lab = Lab::new(7).await;
    lab.head = lab.head.replace("configure_secs: 60, drain_secs: 60", "configure_secs: 30, drain_secs: 10");
    for (number, command) in [(0, "yes"), (1, "sleep 1000"), (2, "echo bigfleet-agent 1; yes boot")] {
        forced(&lab, number, command);
        lab.stop(number);
        lab.start(number, "").await;
    }
    // h3 shows another key than at first; h4 has a banner of 168 KB.
    std::fs::write(lab.path("banner"), "all your base\n".repeat(12_000)).expect("written");
    lab.stop(4);
    lab.start(4, &format!("Banner {}", lab.path("banner").display())).await;
    // h5's work folder is a link to somewhere else.
    std::fs::create_dir(lab.path("elsewhere")).expect("made");
    symlink(lab.path("elsewhere"), lab.path("h5.work")).expect("linked");
    // One that greets for ever without being an SSH server.
    let flood = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut flooding = Host::unanswering("flood", String::new());
    flooding.port = flood.local_addr().expect("an address").port();
    lab.hosts.push(flooding);
    std::thread::spawn(move || {
        for stream in flood.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                while stream.write_all(&[b'x'; 4096]).is_ok() {}
            });
        }
    });
    // Watchers would find some of this too; here it is the moves that must.
    lab.head = lab.head.replace("ssh_secs: 1, boot_id_secs: 2", "ssh_secs: 3600, boot_id_secs: 3600");
    let provider = Provider::start(&lab.inventory(), &lab.path("state")).await;

    provider.configure("h3", "prod", b"").await;
    provider.is_in("h3", MachineState::Configured).await;
    lab.stop(3);
    lab.change_key(3);
    lab.start(3, "").await;
    provider.drain("h3").await;
    for id in ["h0", "h1", "h2", "h4", "h5", "h6", "flood"] {
        provider.configure(id, "prod", b"").await;
    }
    // A long banner is only noise, and the honest host is honest.
    provider.is_in("h6", MachineState::Configured).await;
    provider.is_in("h4", MachineState::Configured).await;
    for (id, expected) in [
        ("h0", "printed more than 131072 bytes; the command was cut off"),
        ("h1", "Configure took longer than 30 s"),
        ("h2", "printed more than 131072 bytes"),
        ("h3", "shows another host key than the one it is known by, so nothing was sent"),
        ("h5", "h5.work is a symbolic link"),
        ("flood", "does not answer over SSH"),
    ] {
        let error = provider.is_in(id, MachineState::Failed).await.last_error;
        assert!(error.contains(expected), "{id}: {error}");
        assert!(error.len() < 4096 && !error.contains('\u{1b}'), "{id}: {error}");
    }
    assert_eq!(
        std::fs::read_dir(lab.path("elsewhere")).expect("read").count(),
        0,
        "nothing was put behind the link"
    );
    assert!(lab.is_joined("h3"), "nothing was done to a host with another key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_among_the_files_of_a_job_are_not_followed() {
    let lab = Lab::new(1).await;
    let provider = Provider::start(&lab.inventory(), &lab.path("state")).await;
    provider.configure("h0", "prod", b"").await;
    provider.is_in("h0", MachineState::Configured).await;
    std::fs::write(lab.path("secret"), "geheim").expect("written");
    let output = lab.path("h0.work/job/output");
    std::fs::remove_file(&output).expect("removed");
    symlink(lab.path("secret"), &output).expect("linked");
    let lock = lab.path("h0.work/lock");
    std::fs::remove_file(&lock).expect("removed");
    symlink(lab.path("secret"), &lock).expect("linked");
    provider.drain("h0").await;
    let error = provider.is_in("h0", MachineState::Failed).await.last_error;
    assert!(error.contains("h0.work/lock is a symbolic link"), "{error}");
    assert_eq!(std::fs::read_to_string(lab.path("secret")).expect("read"), "geheim");
    let kept = std::fs::read_to_string(lab.path("state/output/h0.log")).unwrap_or_default();
    assert!(!kept.contains("geheim") && !error.contains("geheim"));
}
