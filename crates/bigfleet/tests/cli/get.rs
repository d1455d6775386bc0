//! `bigfleet get`: tables, data, filters.

use crate::fake::{Manner, Server};
use crate::run::User;
use std::fmt::Write as _;

const THINGS: [&str; 8] =
    ["needs", "machines", "clusters", "decisions", "offers", "providers", "sessions", "shortfalls"];

#[test]
fn every_list_as_a_table_at_100_columns() {
    let (server, user) = (Server::start(), User::new());
    for thing in THINGS {
        let said = user.run_wide(100, &["get", thing, "-o", "table", "--server", &server.url]);
        for line in said.out.lines() {
            assert!(line.chars().count() <= 100, "{thing}: {line}");
        }
        insta::assert_snapshot!(format!("get_{thing}"), said.all(&server.url));
    }
}

#[test]
fn every_list_wide_names_and_yaml() {
    let (server, user) = (Server::start(), User::new());
    let mut text = String::new();
    for thing in THINGS {
        for format in ["wide", "name"] {
            let said = user.run_wide(80, &["get", thing, "-o", format, "--server", &server.url]);
            let _ = write!(text, "== {thing} -o {format}\n{}", said.fine());
        }
    }
    text.push_str("== needs -o yaml\n");
    text.push_str(&user.run(&["get", "needs", "-o", "yaml", "--limit", "1", "--server", &server.url]).fine());
    insta::assert_snapshot!(text);
}

#[test]
fn into_a_pipe_each_thing_is_a_line_of_json() {
    let (server, user) = (Server::start(), User::new());
    for thing in THINGS {
        let text = user.run(&["get", thing, "--server", &server.url]).fine();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!lines.is_empty(), "{thing}");
        assert!(lines.iter().all(|line| line["simulated"] == true), "{thing}: simulated is labelled");
    }
    let text = user.run(&["get", "needs", "--unmet", "--json", "--server", &server.url]).fine();
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["key"]["id"], "77aa88bb");
    assert_eq!(first["reason"], "priority_starved");
    assert_eq!(first["short_since"], "2026-11-15T14:02:10Z");
    assert_eq!(first["deficit"]["nvidia.com/gpu"], "32");
    assert_eq!(first["spec"]["requirements"][0]["operator"], "same");
}

#[test]
fn flags_become_filters_of_the_server() {
    let (server, user) = (Server::start(), User::new());
    let asked = |arguments: &[&str]| {
        user.run(&[&["get"], arguments, &["--server", &server.url]].concat()).fine();
        server.last_asked()
    };
    let machines = asked(&[
        "machines",
        "aws-",
        "--cluster",
        "shop",
        "--state",
        "Idle,configured",
        "--capacity",
        "on-demand",
        "--zone",
        "a,b",
        "--type",
        "m5",
        "--provider",
        "aws",
        "-l",
        "rack=r2",
        "--need",
        "77aa",
        "--troubled",
        "--limit",
        "7",
    ]);
    for part in [
        "cluster: \"shop\"",
        "states: [Idle, Configured]",
        "capacity_types: [OnDemand]",
        "zones: [\"a\", \"b\"]",
        "instance_types: [\"m5\"]",
        "provider: \"aws\"",
        "id_prefix: \"aws-\"",
        "labels: [\"rack=r2\"]",
        "need: \"77aa\"",
        "troubled: true",
        "detail: Full",
        "limit: 7",
    ] {
        assert!(machines.contains(part), "{part} is missing in {machines}");
    }
    let names = asked(&["machines", "-o", "name"]);
    assert!(names.contains("detail: Brief"), "names need no labels: {names}");
    let needs = asked(&[
        "needs",
        "--unmet",
        "--priority=-5",
        "--reason",
        "priority-starved",
        "--gangs",
        "--at",
        "1800",
    ]);
    for part in
        ["short_only: true", "min_priority: Some(-5)", "PriorityStarved", "gangs_only: true", "Cycle(1800)"]
    {
        assert!(needs.contains(part), "{part} is missing in {needs}");
    }
    let decisions = asked(&[
        "decisions",
        "--kind",
        "Preempt,reclaim",
        "--fate",
        "dry-run",
        "--since",
        "1h",
        "--until",
        "1842",
    ]);
    for part in [
        "kinds: [Preempt, Reclaim]",
        "fates: [DryRun]",
        "from_unix_nanos: 1794748111000000000",
        "to_cycle: 1842",
        "from_record: true",
    ] {
        assert!(decisions.contains(part), "{part} is missing in {decisions}");
    }
    let sorted = asked(&["machines", "--sort=-usd", "--limit", "2"]);
    assert!(sorted.contains("limit: 0"), "everything must come to be sorted: {sorted}");
}

#[test]
fn lists_are_sorted_cut_and_shown_by_column() {
    let (server, user) = (Server::start(), User::new());
    let get = |arguments: &[&str]| {
        user.run(&[&["get", "machines", "--server", &server.url], arguments].concat()).fine()
    };
    assert_eq!(get(&["-o", "name", "--sort=-usd", "--limit", "2"]), "gcp-0007\naws-0031\n");
    assert_eq!(
        get(&["-o", "table", "--columns", "id,label:topology.bigfleet/rack,risk", "--limit", "1"]),
        "ID        LABEL:TOPOLOGY.BIGFLEET/RACK      RISK\naws-0031  rack-2                        0.0021/h\n"
    );
    let said = user.run(&["get", "machines", "--server", &server.url, "-o", "table", "--columns", "zonne"]); // typos: ignore
    assert_eq!(said.code, 2);
    assert!(said.err.contains("did you mean zone?"), "{}", said.err);
}

#[test]
fn a_crowd_flows_through_without_being_held() {
    let server = Server::with(Manner { crowd: 100_000, ..Manner::default() }, None);
    let user = User::new();
    let names = user.run(&["get", "machines", "-o", "name", "--server", &server.url]).fine();
    assert_eq!(names.lines().count(), 100_004);
    assert_eq!(names.lines().last(), Some("crowd-0099999"));
    // The table's widths are settled by the first rows, and later rows keep to them.
    let table = user.run_wide(90, &["get", "machines", "-o", "table", "--server", &server.url]).fine();
    assert_eq!(table.lines().count(), 100_005);
    assert!(table.lines().all(|line| line.chars().count() <= 90));
}

#[test]
fn a_watch_into_a_pipe_tells_what_is_gone() {
    let watch = |format: &str| {
        let server = Server::with(Manner { leaves: "ml", ..Manner::default() }, None);
        User::new().run(&["get", "sessions", "--watch", "-o", format, "--server", &server.url]).fine()
    };
    let lines: Vec<serde_json::Value> =
        watch("json").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named: Vec<_> = lines.iter().map(|line| (line["event"].as_str(), line["cluster"].as_str())).collect();
    assert_eq!(
        named,
        [(None, Some("batch")), (None, Some("ml")), (None, Some("shop")), (Some("removed"), None)]
    );
    assert_eq!(
        lines[3],
        serde_json::json!({"event": "removed", "kind": "session", "name": "ml", "simulated": true})
    );
    assert!(watch("yaml").ends_with("---\nevent: removed\nkind: session\nname: ml\nsimulated: true\n"));
    assert_eq!(watch("name"), "batch\nml\nshop\n", "names are for other commands");
}

#[test]
fn a_watch_prints_into_a_pipe_only_what_changed() {
    let (server, user) = (Server::start(), User::new());
    let said = user.run(&["get", "decisions", "--watch", "-o", "name", "--server", &server.url]);
    // Two ticks with the same decisions: each is there once, the oldest first.
    assert_eq!(said.out, "1790/aws-0031\n1841/metal-07\n1842/aws-0012\n");
    assert!(said.err.contains("ended the watch"), "{}", said.err);
    let table = user.run(&["get", "sessions", "--watch=2s", "-o", "table", "--server", &server.url]).fine();
    assert_eq!(table.matches("CLUSTER").count(), 2, "{table}");
}

#[test]
fn rails_read_well() {
    let (server, user) = (Server::start(), User::new());
    let said = user.run_wide(80, &["get", "rails", "-o", "text", "--server", &server.url]);
    insta::assert_snapshot!(said.all(&server.url));
    let data: serde_json::Value =
        serde_json::from_str(&user.run(&["get", "rails", "--server", &server.url]).fine()).unwrap();
    assert_eq!(data["pauses"][0]["kind"], "reclaim");
    assert_eq!(data["reclaim_window_secs"], 600.0);
}

#[test]
fn colour_is_only_written_when_it_is_wanted() {
    let (server, user) = (Server::start(), User::new());
    let arguments = ["get", "needs", "-o", "table", "--server", &server.url];
    let colour = |variables: &[(&str, &str)]| {
        let mut command = user.command(&arguments);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains('\x1b')
    };
    assert!(!colour(&[]), "this is a pipe");
    assert!(colour(&[("CLICOLOR_FORCE", "1")]));
    assert!(!colour(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}
