//! `bigfleet explain` and `why-not`: sentences, and the data behind them.

use crate::fake::Server;
use crate::run::User;

fn text(arguments: &[&str]) -> String {
    let (server, user) = (Server::start(), User::new());
    let said = user.run_wide(80, &[arguments, &["-o", "text", "--server", &server.url]].concat());
    let all = said.all(&server.url);
    for line in all.lines() {
        assert!(line.chars().count() <= 80, "wider than 80: {line}");
    }
    all
}

#[test]
fn a_gang_that_waits() {
    insta::assert_snapshot!(text(&["explain", "need", "77aa"]));
}

#[test]
fn a_need_that_is_covered() {
    insta::assert_snapshot!(text(&["explain", "need", "a1b2c3d4"]));
}

#[test]
fn a_machine_that_was_bought() {
    insta::assert_snapshot!(text(&["explain", "machine", "aws-0031"]));
}

#[test]
fn a_machine_that_is_idle() {
    insta::assert_snapshot!(text(&["explain", "machine", "gcp-0007"]));
}

#[test]
fn a_decision() {
    insta::assert_snapshot!(text(&["explain", "decision", "1841/metal-07"]));
}

#[test]
fn a_preemption_and_none() {
    insta::assert_snapshot!(text(&["explain", "preemption", "metal-07"]));
    let none = text(&["explain", "preemption", "gcp-0007"]);
    assert!(none.starts_with("No preemption is known."), "{none}");
}

#[test]
fn a_cluster() {
    insta::assert_snapshot!(text(&["explain", "cluster", "ml"]));
}

#[test]
fn every_reason_why_not() {
    let (server, user) = (Server::start(), User::new());
    let mut all = String::new();
    for code in [
        "none",
        "dead",
        "requirement",
        "too_small",
        "covered",
        "adds_nothing",
        "parked",
        "no_domain",
        "other_domain",
        "claimed_by",
        "not_lower_priority",
        "preempted_for",
        "in_transit",
        "spread",
        "from_the_future",
    ] {
        let said =
            user.run_wide(80, &["why-not", "77aa88bb", code, "-o", "text", "--server", &server.url]).fine();
        all.push_str(said.split("  machine").next().unwrap());
    }
    insta::assert_snapshot!(all);
}

#[test]
fn the_same_as_data() {
    let (server, user) = (Server::start(), User::new());
    let data = |arguments: &[&str]| -> serde_json::Value {
        let text = user.run(&[arguments, &["--json", "--server", &server.url]].concat()).fine();
        serde_json::from_str(&text).unwrap()
    };
    let need = data(&["explain", "need", "77aa88bb"]);
    assert_eq!(need["funnel"]["removed"][1]["machines"], 112);
    assert_eq!(need["remedies"][0], serde_json::json!({"priority": 900_001, "acquires": 0, "preempts": 4}));
    assert_eq!(need["as_of"]["simulated"], true);
    let machine = data(&["explain", "machine", "aws-0031"]);
    assert_eq!(machine["bound_by"]["why"]["rule"], "bargain");
    assert_eq!(machine["price_source"]["heard"], "2026-11-15T14:08:27Z");
    let decision = data(&["explain", "decision", "1841", "metal-07"]);
    assert_eq!(decision["score"]["total"], 499.28);
    assert_eq!(server.last_asked(), "ExplainDecisionRequest { cycle: 1841, machine: \"metal-07\" }");
}

#[test]
fn a_moment_is_taken_by_the_servers_clock() {
    let (server, user) = (Server::start(), User::new());
    let asked = |at: &str| {
        user.run(&["explain", "need", "77aa88bb", "--at", at, "--server", &server.url]).fine();
        server.last_asked()
    };
    assert!(asked("1800").contains("Cycle(1800)"));
    assert!(asked("14:02:10").contains("UnixNanos(1794751330000000000)"), "{}", server.last_asked());
    assert!(asked("10m").contains("UnixNanos(1794751111000000000)"), "{}", server.last_asked());
}

#[test]
fn a_decision_needs_a_cycle_and_a_machine() {
    let user = User::new();
    for arguments in [&["explain", "decision", "1841"][..], &["explain", "decision", "soon/metal-07"]] {
        let said = user.run(arguments);
        assert_eq!(said.code, 2);
        assert!(said.err.contains("1842/aws-0031"), "{}", said.err);
    }
}
