//! `--at`: what was, as real processes recorded it. A shard, a simulated provider and an operator; then the provider dies.

#![expect(
    clippy::disallowed_methods,
    reason = "processes run in real time, and so does whoever waits for them"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use bigfleet_proto::v1alpha1::CapacityNeed;
use serde_json::Value;

use crate::operator::Operator;
use crate::process::{Process, free_port};
use crate::run::User;

/// How long anything may take before the test gives up. Not a bar: only an end to waiting.
const PATIENCE: Duration = Duration::from_mins(2);

/// Everything that can be listed as it was, but machines and needs.
const THINGS: [&str; 6] = ["clusters", "offers", "providers", "sessions", "shortfalls", "rails"];

struct Scene {
    folder: tempfile::TempDir,
    user: User,
    provider_port: u16,
    server: String,
    _shard: Process,
}

impl Scene {
    /// A shard that decides twice a second, with a record or without one.
    fn start(recording: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (provider_port, port) = (free_port(), free_port());
        let listen = format!("127.0.0.1:{port}");
        let provider = format!("east=http://127.0.0.1:{provider_port}");
        let data = folder.path().join("shard");
        let keeping = if recording { vec!["--data", data.to_str().unwrap()] } else { vec!["--memory-only"] };
        let flags = ["--tick", "500ms", "--list-every", "300ms", "--stale-after", "2s", "--metrics", "none"];
        let arguments = ["shard", "--provider", &provider, "--listen", &listen];
        let shard = Process::start("shard", &[&arguments[..], &flags, &keeping].concat());
        Self { folder, user: User::new(), provider_port, server: format!("http://{listen}"), _shard: shard }
    }

    fn provider(&self) -> Process {
        let addr = format!("127.0.0.1:{}", self.provider_port);
        let state = self.folder.path().join("cloud");
        let state = state.to_str().unwrap();
        let slots = ["--seed-count", "11", "--idle-count", "1", "--fault-slots", "4"];
        let arguments =
            [&["provider", "sim", "--use-fake-backend"][..], &slots, &["--provider", "east"]].concat();
        let places = ["--addr", &addr, "--state", state, "--http", "none"];
        Process::start("east", &[&arguments[..], &places].concat())
    }

    /// Rows of a list, if it can be had.
    fn rows(&self, arguments: &[&str]) -> Option<Vec<Value>> {
        let said = self.user.run(&[&["get"], arguments, &["--server", &self.server]].concat());
        let rows = || said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        (said.code == 0).then(rows)
    }

    /// Rows of a list that must be there.
    fn get(&self, arguments: &[&str]) -> Vec<Value> {
        let said = self.user.run(&[&["get"], arguments, &["--server", &self.server]].concat());
        said.fine().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// What is said to somebody who cannot have a list.
    fn refused(&self, arguments: &[&str]) -> String {
        let said = self.user.run(&[&["get"], arguments, &["--server", &self.server]].concat());
        assert_eq!((said.code, &*said.out), (2, ""), "{}", said.err);
        said.err
    }

    /// Asks until the first row of a list suits; a cycle that knew it.
    async fn until(&self, arguments: &[&str], suits: impl Fn(&Value) -> bool) -> u64 {
        let begun = tokio::time::Instant::now();
        let mut first = None;
        loop {
            let rows = self.rows(arguments).unwrap_or_default();
            if rows.first().is_some_and(&suits) {
                let cycle = self.get(&["rails"])[0]["as_of"]["cycle"].as_u64().expect("a cycle");
                // The cycle before it may have begun before it was so.
                if cycle > *first.get_or_insert(cycle) + 1 {
                    return cycle;
                }
            } else {
                first = None;
            }
            assert!(begun.elapsed() < PATIENCE, "{arguments:?}: {rows:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn pods(count: u32) -> Vec<CapacityNeed> {
    let cpu = |amount: u32| BTreeMap::from([("cpu".to_owned(), amount.to_string())]);
    let need = CapacityNeed {
        priority: 1000,
        aggregate_resources: cpu(count),
        min_unit: cpu(1),
        ..CapacityNeed::default()
    };
    vec![need]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_thing_is_seen_as_it_was() {
    let scene = Scene::start(true);
    let provider = scene.provider();
    let every = Duration::from_millis(250);
    let operator = Operator::start(&scene.server, "shop", every, pods(2));
    let served = |row: &Value| row["machines"][0]["state"] == "configured" && row["lane"]["short"] == 0;
    let well = scene.until(&["clusters"], served).await;
    let cluster = &scene.get(&["clusters"])[0];

    scene
        .user
        .run(&["pause", "--cluster", "shop", "--reason", "drill", "--for", "1h", "--server", &scene.server])
        .fine();
    operator.report(pods(100_000));
    provider.kill();
    let ill = |row: &Value| row["brief"]["stale"] == true && row["failures"].as_u64() > Some(0);
    scene.until(&["providers"], ill).await;
    let bad = scene.until(&["shortfalls"], |row| !row["since"].is_null()).await;
    drop(operator);
    let gone = scene.until(&["clusters"], |row| row["lane"]["connected"] == false).await;
    assert!(well < bad && bad < gone);

    let at = |thing: &str, cycle: u64| scene.get(&[thing, "--at", &cycle.to_string()]);
    let then = &at("clusters", well)[0];
    // How far a cluster was trusted is not in the record of a cycle.
    let mut lane = cluster["lane"].clone();
    assert_eq!(lane["mode"].take(), "auto");
    assert_eq!(then["lane"], lane);
    assert_eq!(
        (&then["machines"], &then["session"]["number"]),
        (&cluster["machines"], &cluster["session"]["number"])
    );
    assert_eq!(at("clusters", bad)[0]["pauses"][0]["reason"], "drill");
    assert_eq!(at("clusters", gone)[0]["lane"]["connected"], false);

    assert_eq!(
        (at("sessions", well).len(), at("sessions", bad).len(), at("sessions", gone).len()),
        (1, 1, 0)
    );
    assert_eq!(at("sessions", well)[0]["opened"], cluster["session"]["opened"]);
    let (fine, down) = (&at("providers", well)[0], &at("providers", bad)[0]);
    assert_eq!(
        (&fine["brief"]["stale"], &fine["failures"], &fine["list_error"]),
        (&false.into(), &0.into(), &"".into())
    );
    assert_eq!((&fine["brief"]["name"], &fine["brief"]["machines"]), (&"east".into(), &16.into()));
    assert_eq!(down["brief"]["stale"], true);
    assert!(down["list_error"].as_str().unwrap().contains("unavailable"), "{down}");

    assert_eq!(at("shortfalls", well), Vec::<Value>::new());
    assert_eq!(at("shortfalls", bad)[0]["need"]["cluster"], "shop");
    assert!(!at("shortfalls", bad)[0]["since"].is_null());
    let offers = at("offers", well);
    assert!(!offers.is_empty() && offers.iter().all(|offer| offer["provider"] == "east"), "{offers:#?}");
    let (quiet, held) = (&at("rails", well)[0], &at("rails", bad)[0]);
    assert_eq!((&quiet["pauses"], &quiet["providers"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    assert_eq!(
        (&held["pauses"][0]["cluster"], &held["pauses"][0]["reason"]),
        (&"shop".into(), &"drill".into())
    );
    assert_eq!(held["providers"][0]["brief"]["name"], "east");
    assert!(held["withheld"].as_array().unwrap().iter().any(|cell| cell["fate"] == "paused"), "{held:#}");
    assert_eq!(
        (&held["as_of"]["from_record"], held["as_of"]["cycle"].as_u64() <= Some(bad)),
        (&true.into(), true)
    );
    let text =
        scene.user.run(&["get", "rails", "-o", "text", "--at", &bad.to_string(), "--server", &scene.server]);
    assert!(text.fine().starts_with("The rails withheld "));
    let table = scene.user.run(&["get", "sessions", "-o", "table", "--at", "1s", "--server", &scene.server]);
    assert!(table.err.contains(", from the record"), "{}", table.err);

    for thing in THINGS {
        let early = scene.refused(&[thing, "--at", "2001-01-01T00:00:00Z"]);
        assert!(early.contains("nothing as early as that; it begins at cycle "), "{thing}: {early}");
        assert!(scene.refused(&[thing, "--at", "0"]).contains("it begins at cycle "), "{thing}");
        let late = scene.refused(&[thing, "--at", "2199-01-01T00:00:00Z"]);
        assert!(late.contains("2199-01-01T00:00:00Z is yet to come"), "{thing}: {late}");
        let late = scene.refused(&[thing, "--at", "99999999"]);
        assert!(late.contains("cycle 99999999 has not run yet; the last was "), "{thing}: {late}");
    }
    assert!(scene.refused(&["clusters", "--at", "1", "--watch"]).contains("cannot be used with"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_without_a_record_says_so() {
    let scene = Scene::start(false);
    let _provider = scene.provider();
    scene.until(&["providers"], |row| !row["brief"]["heard"].is_null()).await;
    for thing in THINGS {
        let said = scene.refused(&[thing, "--at", "1"]);
        assert!(said.contains("this shard keeps no decision record"), "{thing}: {said}");
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("the fixture") {
        let from = entry.expect("an entry").path();
        let to = to.join(from.file_name().expect("a name"));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("a copy");
        }
    }
}

/// The folders people have from the first edition of the rules, opened by this build: everything in them can be listed
/// and explained, and where the rules have changed since, that is said.
#[test]
fn the_record_of_the_first_edition_is_listed_and_explained() {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/data-first-edition");
    for life in ["stopped", "killed"] {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("shard");
        copy(&std::path::Path::new(fixture).join(life).join("shard"), &data);
        let listen = format!("127.0.0.1:{}", free_port());
        let arguments = ["shard", "--provider", "sim=http://127.0.0.1:1", "--listen", &listen];
        let rest = ["--metrics", "none", "--data", data.to_str().unwrap()];
        let _shard = Process::start("shard", &[&arguments[..], &rest].concat());
        let (user, server) = (User::new(), format!("http://{listen}"));
        let run = |arguments: &[&str]| user.run(&[arguments, &["--server", &server]].concat());
        // However it is broken into lines.
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        // Its port opens once the record was read.
        while run(&["get", "rails"]).code == 3 {
            std::thread::yield_now();
        }
        let rows = |arguments: &[&str]| -> Vec<Value> {
            run(arguments).fine().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
        };
        let edition = (bigfleet_engine::EDITION != 1).then_some(1);
        let said = "decided under edition 1 of the rules";

        let decisions = rows(&["get", "decisions", "--all", "--limit", "100000"]);
        for kind in ["bootstrap", "provision", "preempt", "reclaim", "delete"] {
            assert!(decisions.iter().any(|row| row["kind"] == kind), "{life}: {kind}");
        }
        assert!(decisions.iter().all(|row| row["recorded_edition"] == Value::from(edition)), "{life}");
        let preempted = decisions.iter().find(|row| row["kind"] == "preempt").expect("a preemption");
        let (cycle, machine) = (preempted["cycle"].as_u64().unwrap(), preempted["machine"].as_str().unwrap());

        let at = cycle.to_string();
        let machines = rows(&["get", "machines", "--at", &at]);
        assert_eq!(machines.len(), 120, "{life}");
        for thing in ["clusters", "needs", "providers", "sessions"] {
            assert!(!rows(&["get", thing, "--at", &at]).is_empty(), "{life}: {thing}");
        }
        let table = run(&["get", "clusters", "--at", &at, "-o", "table"]);
        assert!(table.err.contains(", from the record"), "{}", table.err);
        assert_eq!(table.err.contains(said), edition.is_some(), "{}", table.err);

        let name = format!("{cycle}/{machine}");
        let story = flat(&run(&["explain", "decision", &name, "-o", "text"]).fine());
        assert!(story.contains("best victim"), "{life}: the reason was kept: {story}");
        assert_eq!(story.contains("decided under edition 1 of the rules"), edition.is_some(), "{story}");
        assert_eq!(story.contains("this shard decides under edition"), edition.is_some(), "{story}");
        let need = preempted["need"]["id"].as_str().unwrap();
        let story = flat(&run(&["explain", "need", need, "--at", &at, "-o", "text"]).fine());
        assert!(story.contains("from the record"), "{life}: {story}");
        assert_eq!(story.contains(said), edition.is_some(), "{story}");
    }
}
