//! The bars of a large fleet: a thousand watched hosts, a hundred joins at once. Measured, not judged; run with
//! `cargo nextest run -p bigfleet-provider-metal --run-ignored only scale`, with `BIGFLEET_MEASURED` naming a release build of
//! `bigfleet`, `BIGFLEET_SCALE_HOSTS` and `BIGFLEET_SCALE_SECS`.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use bigfleet_provider_kit::{Clock as _, MachineState, SystemClock};

use crate::lab::{Lab, parts};
use crate::provider::Provider;

/// An sshd listens on at most 16 addresses.
const ADDRESSES: usize = 16;

/// Resident memory and processor time so far, its own and that of the `ssh` it ran.
fn usage(pid: u32) -> (u64, f64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    let rss_kib = rss.trim().trim_end_matches(" kB").parse().expect("a number");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks: f64 = fields[11..15].iter().map(|ticks| ticks.parse::<f64>().expect("ticks")).sum();
    (rss_kib, ticks / 100.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes; measures"]
async fn a_thousand_hosts_under_watch_and_a_hundred_joins() {
    let hosts: usize =
        std::env::var("BIGFLEET_SCALE_HOSTS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let secs: u64 =
        std::env::var("BIGFLEET_SCALE_SECS").ok().and_then(|text| text.parse().ok()).unwrap_or(600);
    let mut lab = Lab::new(0).await;
    let start = lab.head.find("watch:").expect("a line");
    let end = lab.head.find("bounds:").expect("a line");
    lab.head.replace_range(start..end, "");
    lab.head = lab.head.replace("configure_secs: 60", "configure_secs: 600");
    Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(lab.path("host.key"))
        .status()
        .expect("a key");
    let at = lab.path("").display().to_string();
    let mut text = format!("{}hosts:\n", lab.head);
    let mut servers = Vec::new();
    for group in 0..hosts.div_ceil(ADDRESSES) {
        let mut config = format!(
            "Port 20022\nHostKey {at}/host.key\nAuthorizedKeysFile {at}/id.pub\nPidFile none\nUsePAM no\nStrictModes no\nMaxStartups 300\n"
        );
        for number in group * ADDRESSES..((group + 1) * ADDRESSES).min(hosts) {
            let address = format!("127.7.{}.{}", number / 200, number % 200 + 1);
            let _ = writeln!(config, "ListenAddress {address}");
            let _ = writeln!(
                text,
                "  - {{name: h{number}, address: {address}, port: 20022, rack: r{}, work_folder: {at}/w{number}}}",
                number / 40
            );
        }
        let path = lab.path(&format!("sshd.{group}"));
        std::fs::write(&path, config).expect("written");
        servers.push(parts().sshd(&path));
    }
    let inventory = lab.path("inventory.yaml");
    std::fs::write(&inventory, text).expect("written");
    let clock = SystemClock::start();
    clock.sleep(Duration::from_secs(2)).await;
    let provider = Provider::start(&inventory, &lab.path("state")).await;

    let (_, before) = usage(provider.pid());
    let mut peak = 0;
    for _ in 0..secs {
        clock.sleep(Duration::from_secs(1)).await;
        peak = peak.max(usage(provider.pid()).0);
    }
    let (_, after) = usage(provider.pid());
    eprintln!(
        "watching {hosts} hosts for {secs} s: {peak} KiB at most, {:.2} % of a core",
        (after - before) / secs as f64 * 100.0
    );

    // The last group vanishes.
    let began = clock.now_unix_nanos();
    drop(servers.pop());
    let gone = format!("h{}", hosts - 1);
    provider.is_in(&gone, MachineState::Failed).await;
    eprintln!("a vanished host was reported after {:.1} s", (clock.now_unix_nanos() - began) as f64 / 1e9);

    let began = clock.now_unix_nanos();
    let ids: Vec<String> = (0..100.min(hosts - ADDRESSES)).map(|number| format!("h{number}")).collect();
    for id in &ids {
        provider.configure(id, "prod", b"").await;
    }
    for id in &ids {
        let machine = provider.settled(id).await;
        assert_eq!(machine.state, MachineState::Configured.to_wire(), "{id}: {}", machine.last_error);
    }
    let (rss, _) = usage(provider.pid());
    eprintln!(
        "{} joins at once took {:.1} s, {rss} KiB",
        ids.len(),
        (clock.now_unix_nanos() - began) as f64 / 1e9
    );
}
