//! What an inventory may say, and how it is refused.

use std::fmt::Write as _;
use std::time::Duration;

use bigfleet_provider_kit::CapacityType;

use super::*;

const GOOD: &str = r#"
provider: lab
defaults:
  user: ops
  sudo: true
  zone: dc1
  price_per_hour: 0.5
  labels: {tier: spare, owner: lab}
hosts:
  - name: r1-s01
    address: 10.0.0.11
    type: r650
    rack: r1
    labels: {owner: ml}
    resources: {cpu: 64, memory: 256Gi}
  - name: r1-s02
    address: s02.example
    port: 2222
    type: r650
    capacity_type: reserved
    price_per_month: 730
    always_on: false
    host_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJq0000000000000000000000000000000000000000
    resources: {cpu: "32", memory: 128Gi, nvidia.com/gpu: 4}
    bmc:
      url: http://10.0.1.12:8000/
      system: /redfish/v1/Systems/1
hooks:
  ready: test -e /run/ready
bounds: {parallel: 10, configure_secs: 60}
watch: {ssh_secs: 5}
"#;

#[test]
fn a_good_file_becomes_hosts_with_the_defaults_filled_in() {
    let inventory = parse(GOOD).expect("good");
    assert_eq!(inventory.provider, "lab");
    let first = &inventory.hosts["r1-s01"];
    assert_eq!((first.ssh.user.as_str(), first.ssh.sudo, first.ssh.port), ("ops", true, 22));
    assert_eq!(first.ssh.host_key, HostKey::FirstUse);
    let offering = first.offering();
    assert_eq!(offering.capacity_type, CapacityType::BareMetal);
    assert_eq!(offering.host.as_deref(), Some("r1-s01"));
    assert_eq!(offering.labels["owner"], "ml");
    assert_eq!(offering.labels["tier"], "spare");
    assert_eq!(offering.labels[RACK_LABEL], "r1");
    assert_eq!(offering.resources["cpu"], "64");
    let second = &inventory.hosts["r1-s02"];
    let offering = second.offering();
    assert_eq!(offering.capacity_type, CapacityType::Reserved);
    assert_eq!((offering.price_usd_per_hour, offering.host), (1.0, None));
    assert_eq!(second.bmc.as_ref().expect("a bmc").url, "http://10.0.1.12:8000");
    assert_eq!(inventory.hooks.ready, "test -e /run/ready");
    assert_eq!(inventory.hooks.reset, Hooks::default().reset);
    assert_eq!((inventory.bounds.parallel, inventory.bounds.parallel_per_rack), (10, 64));
    assert_eq!(inventory.bounds.configure, Duration::from_mins(1));
    assert_eq!(inventory.watch, Watch { ssh: Duration::from_secs(5), ..Watch::default() });
}

/// Replaces a part of the good file, and returns what is said about the result.
fn said(part: &str, instead: &str) -> Vec<String> {
    assert!(GOOD.contains(part), "{part}");
    let text = GOOD.replacen(part, instead, 1);
    parse(&text).expect_err("a wrong file").iter().map(ToString::to_string).collect()
}

#[test]
fn each_fault_is_named_with_its_line() {
    for (part, instead, expected) in [
        ("name: r1-s02", "name: r1-s01", "line 16: host \"r1-s01\" is there already, in line 10"),
        (
            "address: s02.example\n    port: 2222",
            "address: 10.0.0.11",
            "line 16: host \"r1-s02\" has the address 10.0.0.11 port 22 of host \"r1-s01\"",
        ),
        (
            "address: 10.0.0.11",
            "address: -oProxyCommand=x",
            "line 10: host \"r1-s01\": address \"-oProxyCommand=x\" is no host name",
        ),
        ("name: r1-s01", "name: ../etc", "line 10: name \"../etc\" must be 1 to 63 letters"),
        ("    type: r650\n    rack", "    rack", "line 10: host \"r1-s01\" has no type"),
        ("cpu: 64", "cpu: many", "line 15: machine \"r1-s01\": "),
        ("resources: {cpu: 64, memory: 256Gi}", "labels2: 1", "line 15: "),
        (
            "    resources: {cpu: 64, memory: 256Gi}\n",
            "",
            "line 10: host \"r1-s01\" has no resources: write them, or let",
        ),
        ("owner: ml", "zone: ml", "line 10: machine \"r1-s01\": label zone repeats a field"),
        ("capacity_type: reserved", "capacity_type: spot", "line 20: capacity_type \"spot\" is neither"),
        ("price_per_month: 730", "price_per_month: -1", "line 21: host \"r1-s02\": -1 is no price"),
        (
            "price_per_month: 730",
            "price_per_month: 7\n    price_per_hour: 1",
            "line 22: host \"r1-s02\" has two prices",
        ),
        ("  price_per_hour: 0.5\n", "", "line 9: host \"r1-s01\" has no price"),
        ("host_key: ssh-ed25519 AAAA", "host_key: my-key AAAA", "line 23: host_key \"my-key"),
        ("url: http://10.0.1.12:8000/", "url: ftp://x", "line 26: bmc url \"ftp://x\""),
        ("url: http://10.0.1.12:8000/", "url: https://x", "line 26: bmc over https needs a ca_file"),
        (
            "system: /redfish",
            "user: admin\n      system: /redfish",
            "line 26: bmc needs both user and password",
        ),
        ("system: /redfish/v1/Systems/1", "system: ../x", "line 27: bmc system"),
        ("  user: ops", "  key_file: /no/such/key", "line 4: key_file \"/no/such/key\": No such file"),
        ("parallel: 10", "parallel: 0", "line 30: parallel is 0; it must be 1 to 1024"),
        ("ssh_secs: 5", "ssh_secs: 5s", "line 31: "),
        ("hosts:", "hosts: []\nmore:", "line 10: "),
    ] {
        let said = said(part, instead);
        let text = said.join("\n");
        assert!(text.contains(expected), "{part} -> {instead}\nsaid: {text}\nexpected: {expected}");
    }
    let text = GOOD.split("\n    bmc:").next().expect("a part").to_owned();
    assert!(parse(&text).expect_err("no bmc")[0].to_string().contains("nobody could power it on"));
    assert_eq!(
        parse("hosts: []\n").expect_err("empty")[0].to_string(),
        "it lists no hosts; write at least one under `hosts:`"
    );
}

#[test]
fn everything_wrong_with_a_thousand_hosts_is_said_at_once() {
    let mut text = String::from("defaults: {zone: z, type: t, price_per_hour: 1}\nhosts:\n");
    for number in 0..1000 {
        let _ = writeln!(
            text,
            "  - {{name: h{number}, address: \"bad address {number}\", resources: {{cpu: 1}}}}"
        );
    }
    let findings = parse(&text).expect_err("a wrong file");
    assert_eq!(findings.len(), 1000);
    assert!(findings.iter().enumerate().all(|(at, finding)| finding.line == at as u64 + 3));
    let refused = Refused { path: "hosts.yaml".into(), findings };
    assert_eq!(refused.to_string().lines().count(), 52);
    assert!(refused.to_string().ends_with("and 950 more"));
}

#[test]
fn hostile_text_is_refused_without_harm() {
    let mut many = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for c in b'b'..=b'z' {
        let (this, last) = (c as char, (c - 1) as char);
        let row = vec![format!("*{last}"); 9].join(",");
        many += &[&*format!("{this}: &{this} ["), &*row, "]\n"].concat();
    }
    let deep = "[".repeat(100_000);
    for text in ["", "\0", "hosts: {", "- a", "hosts: 3", &many, &deep, "hosts:\n  - name: \"\u{1b}[31m\""] {
        let findings = parse(text).expect_err("refused");
        assert!(findings.iter().all(|finding| !finding.to_string().contains('\u{1b}')), "{findings:?}");
    }
}

#[test]
fn hosts_without_resources_are_listed_for_discovery() {
    let text = GOOD.replace("    resources: {cpu: 64, memory: 256Gi}\n", "");
    let (inventory, unknown) = parse_to_discover(&text).expect("good but for that");
    assert_eq!(inventory.hosts.len(), 2);
    assert_eq!(unknown, [("r1-s01".to_owned(), 10)]);
}
