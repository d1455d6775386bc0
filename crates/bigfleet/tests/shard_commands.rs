//! The commands against a real shard: real processes, a simulated cloud, one operator that is served and one that waits.

#[path = "support/operator.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod operator;
#[path = "support/process.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod process;

use std::process::Command;
use std::time::Duration;

use bigfleet_net::{Clock, SystemClock};
use bigfleet_proto::v1alpha1::{CapacityNeed, NodeSelectorRequirement};
use operator::Operator;
use process::{Process, free_port};
use serde_json::Value;

/// How long anything may take before the test gives up. Not a bar: only an end to waiting.
const PATIENCE: Duration = Duration::from_mins(2);
const REPORT: Duration = Duration::from_millis(250);

struct Scene {
    server: String,
    home: tempfile::TempDir,
    _provider: Process,
    _shard: Process,
}

/// What a command said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Scene {
    fn open() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let [cloud, listen, metrics] = [(); 3].map(|()| format!("127.0.0.1:{}", free_port()));
        let path = |name: &str| home.path().join(name).to_str().expect("a plain path").to_owned();
        let provider = Process::start(
            "provider",
            &[
                "provider",
                "sim",
                "--use-fake-backend",
                "--seed-count",
                "42",
                "--idle-count",
                "6",
                "--fault-slots",
                "4",
                "--provider",
                "east",
                "--addr",
                &cloud,
                "--state",
                &path("cloud"),
                "--http",
                "none",
            ],
        );
        let shard = Process::start(
            "shard",
            &[
                "shard",
                "--shard-id",
                "s1",
                "--data",
                &path("shard"),
                "--provider",
                &format!("east=http://{cloud}"),
                "--listen",
                &listen,
                "--metrics",
                &metrics,
            ],
        );
        Self { server: format!("http://{listen}"), home, _provider: provider, _shard: shard }
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
            .args(arguments)
            .env_clear()
            .envs([("TZ", "UTC"), ("USER", "sam"), ("COLUMNS", "100"), ("BIGFLEET_SERVER", &self.server)])
            .env("HOME", self.home.path())
            .output()
            .expect("the binary runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    fn fine(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}{}", said.out, said.err);
        said.out
    }

    fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        self.fine(arguments).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Waits until a command prints what `is` wants.
    async fn until(&self, arguments: &[&str], is: impl Fn(&Said) -> bool) {
        let clock = SystemClock::start();
        let end = clock.now_unix_nanos() + bigfleet_net::nanos(PATIENCE);
        loop {
            let said = self.run(arguments);
            if is(&said) {
                return;
            }
            assert!(clock.now_unix_nanos() < end, "{arguments:?} never: {}{}", said.out, said.err);
            clock.sleep(Duration::from_millis(100)).await;
        }
    }
}

fn want(instance_type: &str, cpu: &str, priority: i32) -> CapacityNeed {
    CapacityNeed {
        requirements: vec![NodeSelectorRequirement {
            key: "node.kubernetes.io/instance-type".into(),
            operator: 1,
            values: vec![instance_type.into()],
        }],
        aggregate_resources: [("cpu".to_owned(), cpu.to_owned())].into(),
        min_unit: [("cpu".to_owned(), "1".to_owned())].into(),
        priority,
        ..CapacityNeed::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_question_is_answered_by_a_real_shard() {
    let scene = Scene::open();
    // 48 and four that always fail.
    scene.until(&["get", "machines", "-o", "name"], |said| said.out.lines().count() == 52).await;
    let shop_operator = Operator::start(&scene.server, "shop", REPORT, vec![want("std-4", "6", 1000)]);
    let _ml_operator = Operator::start(&scene.server, "ml", REPORT, vec![want("no-such-type", "64", 500)]);
    scene
        .until(&["get", "needs", "-o", "table"], |said| {
            said.out.contains("covered") && said.out.contains("no matching supply")
        })
        .await;
    let configured = ["get", "machines", "--cluster", "shop", "--state", "configured", "-o", "name"];
    scene.until(&configured, |said| said.out.lines().count() == 2).await;

    // Lists agree with each other.
    let clusters = scene.fine(&["get", "clusters", "-o", "name"]);
    assert_eq!(clusters, "ml\nshop\n");
    assert_eq!(scene.lines(&["get", "sessions"]).len(), 2);
    let needs = scene.lines(&["get", "needs"]);
    let of = |cluster: &str| {
        let need = needs.iter().find(|need| need["key"]["cluster"] == cluster).expect("it has one");
        need["key"]["id"].as_str().expect("text").to_owned()
    };
    let (shop, ml) = (of("shop"), of("ml"));
    assert_eq!(scene.fine(&["get", "shortfalls", "-o", "name"]), format!("{ml}\n"));
    assert_eq!(scene.lines(&["get", "needs", "--unmet"]).len(), 1);
    assert_eq!(scene.lines(&["get", "providers"])[0]["brief"]["machines"], 52);
    let offers = scene.lines(&["get", "offers", "--type", "std-4"]);
    assert!(!offers.is_empty() && offers.iter().all(|offer| offer["instance_type"] == "std-4"), "{offers:?}");
    let machines = scene.fine(&configured);
    let machine = machines.lines().next().expect("there is one");
    assert_eq!(scene.lines(&["get", "machines", "--need", &shop]).len(), 2);

    // Explanations.
    let covered = scene.fine(&["explain", "need", &shop, "-o", "text"]);
    assert!(covered.contains(&format!("need {shop} of shop is covered: 2 machines")), "{covered}");
    let short = scene.fine(&["explain", "need", &format!("ml/{}", &ml[..4]), "-o", "text"]);
    assert!(short.contains("no machine there is, whoever holds it, meets what it asks for"), "{short}");
    assert!(short.contains("would help"), "remedies were tried: {short}");
    let story = scene.fine(&["explain", "machine", machine, "-o", "text"]);
    assert!(
        story.contains("Configured for shop") && story.contains(&format!("claimed by need {shop}")),
        "{story}"
    );
    let decisions = scene.lines(&["get", "decisions", "--machine", machine, "--all"]);
    let cycle = decisions[0]["cycle"].as_u64().expect("a cycle");
    let why = scene.fine(&["explain", "decision", &format!("{cycle}/{machine}"), "-o", "text"]);
    assert!(why.contains(&format!("Cycle {cycle}: ")) && why.contains("rule"), "{why}");
    let cluster = scene.fine(&["explain", "cluster", "ml", "-o", "text"]);
    assert!(cluster.contains("ml: 1 need, 1 unmet"), "{cluster}");
    let why_not = scene.fine(&["why-not", &ml, machine, "-o", "text"]);
    assert!(why_not.contains("it asks for") && why_not.contains("and"), "{why_not}");
    let none = scene.fine(&["explain", "preemption", "--need", &shop, "-o", "text"]);
    assert!(none.contains("No preemption is known"), "{none}");

    // The past.
    let then = scene.lines(&["get", "needs", "--at", &cycle.to_string()]);
    assert!(!then.is_empty());
    let then = scene.fine(&["explain", "need", &shop, "--at", &cycle.to_string(), "-o", "text"]);
    assert!(then.contains("from the record"), "{then}");

    // Nothing is left to do; more demand is a finding, and a pause withholds it.
    scene.until(&["plan", "--check"], |said| said.code == 0).await;
    scene.fine(&["pause", "--for", "1h", "--reason", "a test"]);
    shop_operator.report(vec![want("std-4", "10", 1000)]);
    scene.until(&["plan", "-o", "text"], |said| said.out.contains("withheld: paused")).await;
    assert_eq!(scene.run(&["plan", "--check"]).code, 0, "nothing would happen while it is paused");
    let rails = scene.fine(&["get", "rails", "-o", "text"]);
    assert!(rails.contains("everything until") && rails.contains("a test (by sam"), "{rails}");
    scene.fine(&["resume", "--all"]);
    scene.until(&configured, |said| said.out.lines().count() == 3).await;
    assert_eq!(scene.run(&["resume", "--all"]).code, 1, "there is nothing left to resume");

    // Names nobody knows.
    let wrong = scene.run(&["explain", "cluster", "shpo"]); // typos: ignore
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("shop"), "{}", wrong.err);
    let wrong = scene.run(&["explain", "machine", &format!("{machine}-x")]);
    assert!(wrong.code == 2 && wrong.err.contains(machine), "{}", wrong.err);

    let doctor = scene.run(&["doctor", "-o", "text"]);
    assert!(
        doctor.out.contains("shard s1 answers") && doctor.out.contains("east: 52 machines"),
        "{}",
        doctor.out
    );
    let version = scene.fine(&["version", "-o", "text"]);
    assert!(version.contains("shard s1 epoch"), "{version}");
}
