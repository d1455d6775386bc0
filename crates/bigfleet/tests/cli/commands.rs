//! `plan`, `pause`, `resume`, `doctor`, `version`, `completions`, `man`, and the help of everything.

use std::process::Command;

use crate::fake::{Manner, Server};
use crate::run::User;
use crate::story;

#[test]
fn a_plan_with_dollars() {
    let (server, user) = (Server::start(), User::new());
    let plan = |arguments: &[&str]| {
        user.run_wide(100, &[&["plan", "-o", "text", "--server", &server.url], arguments].concat())
    };
    insta::assert_snapshot!(plan(&["--check"]).all(&server.url));
    assert_eq!(plan(&[]).code, 0, "only --check counts actions as a finding");
    let quiet = plan(&["--check", "--cluster", "quiet"]);
    assert_eq!(
        (quiet.code, quiet.out.lines().next()),
        (0, Some("Cycle 1843 would do nothing.  (simulated)"))
    );
    let data = user.run(&["plan", "--kind", "reclaim", "--server", &server.url]).fine();
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    assert_eq!(data["usd_per_hour_after"], 5.165);
    assert!(server.last_asked().contains("kinds: [Reclaim]"), "{}", server.last_asked());
}

#[test]
fn modes_and_the_yes_to_what_waits() {
    let (server, user) = (Server::start(), User::new());
    let run = |arguments: &[&str]| {
        user.run_wide(110, &[arguments, &["-o", "text", "--server", &server.url]].concat())
    };
    insta::assert_snapshot!("modes", run(&["mode"]).all(&server.url));
    let said = run(&["mode", "observe", "--cluster", "ml", "--reason", "trial"]).fine();
    assert_eq!(said.lines().next(), Some("everything in ml: observe since 14:08:31: trial (by sam)"));
    let said = run(&["mode", "auto", "--cluster", "ml"]);
    assert!(said.code == 2 && said.err.contains("--reason"), "{}", said.err);
    let said = run(&["mode", "inherit", "--cluster", "shop", "--kind", "reclaim"]).fine();
    assert!(said.starts_with("taken back: Reclaim in shop: approve"), "{said}");
    let approved = run(&["approve", "0a1b2c3d"]).fine();
    insta::assert_snapshot!("approved", approved);
    assert!(server.last_asked().contains(r#"ids: ["0a1b2c3d"]"#), "{}", server.last_asked());
    assert_eq!(run(&["approve", "--all", "--cluster", "quiet"]).code, 1, "nothing waited there");
    assert_eq!(run(&["approve"]).code, 2, "say which, or all");
    insta::assert_snapshot!("mode_report", run(&["mode", "--report"]).all(&server.url));
    let table = user.run_wide(140, &["get", "proposals", "-o", "table", "--server", &server.url]);
    insta::assert_snapshot!("proposals", table.all(&server.url));
    let data = user.run(&["get", "proposals", "--server", &server.url]).fine();
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    assert_eq!(data["id"], "0a1b2c3d");
}

#[test]
fn a_pause_and_its_end() {
    let (server, user) = (Server::start(), User::new());
    let said = user.run(&[
        "pause",
        "--cluster",
        "shop",
        "--kind",
        "Reclaim",
        "--for",
        "30m",
        "--reason",
        "launch day",
        "-o",
        "text",
        "--server",
        &server.url,
    ]);
    assert_eq!(
        said.fine(),
        "paused Reclaim in shop until 14:38:31 (30 min left): launch day (by sam)  [pause 3]\nbigfleet resume 3 ends it\n"
    );
    assert!(server.last_asked().contains("for_nanos: 1800000000000"), "{}", server.last_asked());
    let said = user.run(&["resume", "3", "-o", "text", "--server", &server.url]).fine();
    assert_eq!(said, "resumed Reclaim in batch: month end  [pause 3]\n");
    let said = user.run(&["resume", "--cluster", "shop", "--server", &server.url]);
    assert_eq!(said.code, 1, "nothing had that scope");
    assert!(
        said.err.contains("no pause has exactly this scope") && said.err.contains("[pause 3]"),
        "{}",
        said.err
    );
}

#[test]
fn a_pause_must_say_why_and_how_long() {
    let user = User::new();
    for arguments in [
        &["pause", "--for", "30m"][..],
        &["pause", "--reason", "x"],
        &["pause", "--reason", "", "--for", "1m"],
        &["pause", "--reason", "x", "--for", "soon"],
        &["pause", "--reason", "x", "--for", "1m", "--until-resumed"],
        &["pause", "--reason", "x", "--for", "1m", "--kind", "explode"],
        &["resume", "3", "--all"],
    ] {
        assert_eq!(user.run(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn costs_by_cluster_and_cause_and_what_they_should_be() {
    let (server, user) = (Server::start(), User::new());
    let ask = |arguments: &[&str]| {
        let said =
            user.run_wide(90, &[&["cost"], arguments, &["-o", "text", "--server", &server.url]].concat());
        said.all(&server.url)
    };
    insta::assert_snapshot!(ask(&[]));
    insta::assert_snapshot!(ask(&["--last", "1h", "--by", "cause,capacity", "--quick"]));
}

#[test]
fn lints_have_codes_fixes_and_an_exit_code() {
    let (server, user) = (Server::start(), User::new());
    let said = user.run_wide(90, &["lint", "-o", "text", "--server", &server.url]);
    assert_eq!(said.code, 1);
    insta::assert_snapshot!(said.all(&server.url));
    let rules = user.run(&["lint", "--rules"]).fine();
    assert!(rules.lines().count() >= 12 && rules.contains("BF101  error"), "{rules}");
}

#[test]
fn providers_are_held_to_their_promises() {
    let (server, user) = (Server::start(), User::new());
    let said = user.run_wide(140, &["get", "truth", "-o", "table", "--server", &server.url]);
    insta::assert_snapshot!(said.all(&server.url));
}

#[test]
fn a_name_nobody_has_is_no_empty_list() {
    let (server, user) = (Server::start(), User::new());
    let said = user.run(&["get", "truth", "nobody", "-o", "table", "--server", &server.url]);
    assert_eq!(said.code, 0, "the server decides what passes; this one lists everything");
    let said = user.run(&["pause", "--reason", "x", "--server", &server.url]);
    assert!(
        said.code == 2 && said.err.contains("--until-resumed") && said.err.contains("--for"),
        "{}",
        said.err
    );
}

#[test]
fn a_doctor_finds_what_is_wrong() {
    let (server, user) = (Server::start(), User::new());
    let said = user.run_wide(80, &["doctor", "-o", "text", "--server", &server.url]);
    assert_eq!(said.code, 1, "a provider is stale and spot says it is never interrupted");
    // Which ports are free on this machine is not ours to know.
    let text: Vec<&str> = said.out.split("  ports").collect();
    insta::assert_snapshot!(text[0].replace(&server.url, "http://SERVER"));
    let folder = tempfile::tempdir().unwrap();
    let data = user.run(&["doctor", "--data", folder.path().to_str().unwrap(), "--server", &server.url]);
    let store = data.out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let store = store.into_iter().find(|finding| finding["check"] == "store").unwrap();
    assert_eq!(store["verdict"], "ok");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_doctor_compares_real_clocks() {
    let version = bigfleet_view::v1::Version { simulated: false, now_unix_nanos: 5, ..story::version() };
    let server = Server::with(Manner { version, ..Manner::default() }, None);
    let said = User::new().run(&["doctor", "-o", "text", "--server", &server.url]);
    assert!(said.out.contains("PROBLEM: the server's clock differs from ours by"), "{}", said.out);
    assert!(said.out.contains("is this a monthly figure?"), "{}", said.out);
}

#[test]
fn a_version_with_and_without_a_server() {
    let (server, user) = (Server::start(), User::new());
    let text = user.run(&["version", "-o", "text", "--server", &server.url]).fine();
    assert!(text.starts_with(&format!("bigfleet {}\n", env!("CARGO_PKG_VERSION"))), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("rustc 1.") && text.contains("view v1") && text.contains("shard s1 epoch 7"),
        "{text}"
    );
    let alone: serde_json::Value = serde_json::from_str(&user.run(&["version", "--client"]).fine()).unwrap();
    assert_eq!(alone["client"]["api"], "v1");
    assert_eq!(alone["server"], serde_json::Value::Null);
    let nobody = user.run(&["version", "-o", "text", "--server", "127.0.0.1:1"]);
    assert_eq!(nobody.code, 0, "a server that is not there is no failure here");
    assert!(nobody.out.contains("not reached: nobody listens"), "{}", nobody.out);
}

#[test]
fn completions_and_manual_pages_are_made() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = user.run(&["completions", shell]).fine();
        assert!(text.contains("shortfalls") && text.contains("why-not"), "{shell}");
    }
    assert!(user.run(&["man"]).fine().contains(".TH bigfleet 1"));
    let folder = tempfile::tempdir().unwrap();
    user.run(&["man", "--dir", folder.path().to_str().unwrap()]).fine();
    for page in [
        "bigfleet.1",
        "bigfleet-get.1",
        "bigfleet-get-needs.1",
        "bigfleet-explain-need.1",
        "bigfleet-doctor.1",
    ] {
        assert!(folder.path().join(page).exists(), "{page}");
    }
}

#[test]
fn bash_takes_the_completions() {
    let user = User::new();
    let script = user.run(&["completions", "bash"]).fine();
    let path = user.home.path().join("completions.bash");
    std::fs::write(&path, script).unwrap();
    let try_it = format!(
        "source {} && COMP_WORDS=(bigfleet get sh) COMP_CWORD=2 && _bigfleet bigfleet sh get && echo ${{COMPREPLY[@]}}",
        path.display()
    );
    let output = Command::new("bash").args(["-c", &try_it]).output().expect("bash is there");
    assert!(String::from_utf8_lossy(&output.stdout).contains("shortfalls"), "{output:?}");
}

#[test]
fn every_command_says_what_it_is_for() {
    let user = User::new();
    let commands = [
        "get",
        "get needs",
        "get machines",
        "get clusters",
        "get decisions",
        "get offers",
        "get providers",
        "get sessions",
        "get shortfalls",
        "get rails",
        "explain",
        "explain need",
        "explain machine",
        "explain decision",
        "explain preemption",
        "explain cluster",
        "why-not",
        "plan",
        "pause",
        "resume",
        "doctor",
        "context",
        "context set",
        "crds",
        "pod-controller",
        "version",
        "completions",
        "man",
    ];
    for command in commands {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = user.run(&words).fine();
        let first = help.lines().next().unwrap_or_default();
        assert!(first.len() > 15 && !first.starts_with("Usage"), "{command}: {first}");
    }
    let all = user.run(&["--help"]).fine();
    for command in ["get", "explain", "why-not", "plan", "pause", "resume", "doctor", "context", "version"] {
        let line = all.lines().find(|line| line.trim_start().split(' ').next() == Some(command));
        assert!(line.is_some_and(|line| line.trim().len() > command.len() + 10), "{command}: {all}");
    }
    let wrong = user.run(&["explian"]); // typos: ignore
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("'explain'"), "{}", wrong.err);
    let wrong = user.run(&["get", "nedes"]); // typos: ignore
    assert!(wrong.err.contains("'needs'"), "{}", wrong.err);
}

#[test]
fn definitions_are_printed_for_current_and_older_servers() {
    let user = User::new();
    let current = user.run(&["crds"]).fine();
    assert_eq!(current.matches("kind: CustomResourceDefinition\n").count(), 3, "{current}");
    assert_eq!(current.matches("selectableFields").count(), 1);
    let older = user.run(&["crds", "--for", "1.20"]).fine();
    assert_eq!(older.matches("kind: CustomResourceDefinition\n").count(), 3, "{older}");
    assert_eq!(older.matches("selectableFields").count(), 0);
    let json = user.run(&["crds", "--json"]).fine();
    let names = json.lines().map(|line| {
        let definition: serde_json::Value = serde_json::from_str(line).unwrap();
        definition["spec"]["names"]["kind"].as_str().unwrap().to_owned()
    });
    assert_eq!(names.collect::<Vec<_>>(), ["AvailableCapacity", "CapacityRequest", "UpcomingNode"]);
    let wrong = user.run(&["crds", "--for", "new"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("write it like 1.20"), "{}", wrong.err);
}

#[test]
fn a_pod_controller_says_what_is_wrong_with_its_flags() {
    let user = User::new();
    for (arguments, words) in [
        (&["--machine-taint", "gpu"][..], "KEY[=VALUE]:NoSchedule@LABEL[=VALUE]"),
        (&["--node-label", "linux"][..], "KEY=VALUE"),
        (&["--metrics", "here"][..], "neither an address"),
        (&["--kubeconfig", "/nowhere/kubeconfig"][..], "kubeconfig"),
    ] {
        let said = user.run(&[&["pod-controller"], arguments].concat());
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains(words), "{}", said.err);
    }
}
