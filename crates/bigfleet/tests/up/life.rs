//! It comes up, lives, is asked and changed, stops, and goes on where it was.

use std::collections::BTreeSet;
use std::net::TcpListener;

use serde_json::Value;

use crate::process::{Up, bigfleet};

/// Ports of its own, quick enough to see things happen.
const QUICK: [&str; 4] = ["--port", "0", "--clock", "100"];

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_else(|| panic!("{field} of {row}"))
}

fn bound(up: &Up) -> BTreeSet<String> {
    let rows = up.rows(&["get", "machines", "--state", "configured", "-o", "json"]);
    rows.iter().map(|row| format!("{} for {}", text(row, "id"), text(row, "cluster"))).collect()
}

#[test]
fn it_comes_up_is_asked_and_changed_and_stops() {
    let mut up = Up::start(&QUICK);
    assert!(up.banner[0].starts_with("page      http://127.0.0.1:"), "the address is the first line");
    assert!(
        up.banner[1].starts_with("BigFleet  SIMULATED cloud and clusters, real shard"),
        "{:?}",
        up.banner
    );
    assert!(up.announcement().exists());
    up.line_with(" for ml");

    // Everything that is wanted gets its machines.
    let all_run = up.ask(&["demand", "wait", "--for", "2m"]);
    assert!(all_run.starts_with("all ") && all_run.ends_with(" pods run (simulated)\n"), "{all_run}");
    let clusters = up.rows(&["get", "clusters", "-o", "json"]);
    let names: Vec<&str> = clusters.iter().map(|row| text(&row["lane"], "cluster")).collect();
    assert_eq!(names, ["batch", "ml", "shop"]);
    for cluster in &clusters {
        assert!(cluster["lane"]["machines"].as_u64() > Some(0), "{cluster}");
        assert_eq!((&cluster["lane"]["connected"], &cluster["simulated"]), (&true.into(), &true.into()));
    }

    // Somebody wants more: machines appear.
    let before = bound(&up).iter().filter(|machine| machine.ends_with(" for shop")).count();
    let said = up.ask(&["demand", "set", "shop", "web=200"]);
    assert!(said.starts_with("web in shop wants 200 pods (simulated): "), "{said}");
    assert!(said.ends_with("fixed by hand\n"), "{said}");
    up.rows_until(&["demand", "list", "shop", "-o", "json"], "200 web pods run", |rows| {
        rows.iter().any(|row| row["work"] == "web" && row["running_pods"] == 200)
    });
    let after = bound(&up).iter().filter(|machine| machine.ends_with(" for shop")).count();
    assert!(after > before, "{before} machines before, {after} after");

    // And is told why.
    let decisions = up.rows(&["get", "decisions", "--cluster", "shop", "-o", "json"]);
    let decision = decisions.iter().find(|row| row["kind"] == "provision" || row["kind"] == "bootstrap");
    let machine = text(decision.expect("one that bound a machine"), "machine");
    let why = up.ask(&["explain", "machine", machine, "-o", "text"]);
    assert!(why.contains(machine) && why.contains("shop"), "{why}");

    // A fault of the cloud finds its way by itself.
    let fault = up.ask(&["fault", "add", "zone-outage", "zone-b", "--for", "10m"]);
    assert_eq!(fault, "fault 1 active (simulated): zone-outage zone=zone-b --for 10m\n");
    let lifted = up.ask(&["fault", "rm", "1"]);
    assert!(lifted.starts_with("fault 1 lifted (simulated): zone-outage zone=zone-b "), "{lifted}");

    let announcement = up.announcement();
    let (status, last, _home) = up.interrupt();
    assert!(status.success(), "{status}");
    assert!(last.starts_with("stopped after ") && last.ends_with("; nothing is kept"), "{last}");
    assert!(!announcement.exists(), "nobody is sent to a process that is gone");
}

#[test]
fn a_fleet_that_is_kept_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet");
    let path = path.to_str().unwrap();
    // Slow enough that nothing else happens between the two lives.
    let args = ["--port", "0", "--clock", "40", "--seed", "42", "--data", path];
    let up = Up::start(&args);
    up.ask(&["demand", "set", "ml", "serve=3", "notebook=4"]);
    up.ask(&["demand", "wait", "ml", "--for", "2m"]);
    let trained = |up: &Up| -> BTreeSet<String> {
        let bound = bound(up).into_iter();
        bound.filter(|machine| machine.ends_with(" for ml") && machine.contains("train")).collect()
    };
    let before = trained(&up);
    assert!(!before.is_empty());
    let epoch = |up: &Up| up.rows(&["version", "-o", "json"])[0]["server"]["epoch"].as_i64();
    let first = epoch(&up);
    let (status, last, _home) = up.interrupt();
    assert!(status.success(), "{status}");
    assert!(last.contains("has everything; the same command goes on with it"), "{last}");

    let up = Up::start(&args);
    assert!(first.is_some() && epoch(&up) > first, "a new life of the same shard");
    let work = up.rows(&["demand", "list", "ml", "-o", "json"]);
    let fixed: Vec<(&str, u64)> = work
        .iter()
        .filter(|row| row["fixed"] == true)
        .map(|row| (text(row, "work"), row["wanted"].as_u64().unwrap()))
        .collect();
    assert_eq!(fixed, [("serve", 3), ("notebook", 4)]);
    up.ask(&["demand", "wait", "ml", "--for", "2m"]);
    assert_eq!(trained(&up), before, "the gang stayed where it was");

    // The folder is that of one process, and of one seed.
    let home = tempfile::tempdir().unwrap();
    let second = bigfleet(home.path(), &["up", "--port", "0", "--data", path]).output().unwrap();
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    let other =
        bigfleet(home.path(), &["up", "--port", "0", "--data", path, "--seed", "7"]).output().unwrap();
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(2), "{said}");
    assert!(said.contains("holds a world of seed 42, not 7; leave --seed out"), "{said}");

    // Not even a kill makes it forget.
    drop(up);
    let up = Up::start(&args);
    up.ask(&["demand", "wait", "ml", "--for", "2m"]);
    assert_eq!(trained(&up), before, "the gang stayed where it was");
}

#[test]
fn a_taken_port_moves_on_and_is_found() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let up = Up::start(&["--port", &port.to_string()]);
    let moved = format!("port {port} is taken; the shard is on ");
    assert!(up.banner.iter().any(|line| line.contains(&moved)), "{:?}", up.banner);
    let version = up.rows(&["version", "-o", "json"]);
    assert_eq!(version[0]["server"]["simulated"], true, "{version:?}");
    let (status, ..) = up.interrupt();
    assert!(status.success());
}

#[test]
fn unknown_names_and_absent_worlds_are_answered_with_what_to_do() {
    let up = Up::start(&QUICK);
    for (args, code, words) in [
        (
            &["demand", "set", "shpo", "web=1"][..],
            2,
            "no simulated cluster is called \"shpo\" (did you mean shop?)",
        ),
        (&["demand", "set", "shop", "wbe=1"], 2, "shop has no work called \"wbe\" (did you mean web?)"),
        (&["demand", "set", "shop", "web"], 2, "write WORK=N, such as web=40"),
        (&["demand", "set", "shop", "web=99999999"], 2, "holds at most 10000 of a kind"),
        (&["demand", "rm", "shop", "web"], 2, "nobody fixed web of shop; it follows its own curve already"),
        (&["demand", "list", "ship"], 2, "there are shop, ml, batch"),
        (&["demand", "list", "--admin", "127.0.0.1:1"], 3, "start them with `bigfleet up`"),
        (&["demand", "list", "--admin", "nowhere"], 2, "is no address; write HOST:PORT"),
        (&["fault", "list", "--admin", "127.0.0.1:1"], 3, "start one with `bigfleet up`"),
        (&["up", "--clock", "0"], 2, "0 is not in 1..=1000"),
        (&["up", "--clock", "1001"], 2, "1001 is not in 1..=1000"),
    ] {
        let output = up.output(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    up.ask(&["demand", "set", "shop", "web=1"]);
    let back = up.ask(&["demand", "rm", "shop", "web"]);
    assert!(back.contains("by its own curve: 20 at midnight, 60 at noon"), "{back}");
}
