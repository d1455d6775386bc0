//! A record on disk and no server: the same questions, answered in this process.

use std::path::PathBuf;

use crate::run::User;

/// A data folder that an older build wrote, under the first edition of the rules.
fn folder() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/data-first-edition/stopped/shard");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn lists_explanations_costs_and_lints_need_no_server() {
    let (user, folder) = (User::new(), folder());
    let ask = |arguments: &[&str]| user.run(&[arguments, &["--record", &folder]].concat());
    let machines = ask(&["get", "machines", "-o", "name"]).fine();
    let first = machines.lines().next().expect("there are machines").to_owned();
    let explained = ask(&["explain", "machine", &first, "-o", "text"]).fine();
    assert!(explained.contains(&first), "{explained}");
    let table = ask(&["get", "clusters", "-o", "table"]);
    assert_eq!(table.code, 0, "{}", table.err);
    assert!(table.err.contains("from the record"), "{}", table.err);
    let needs = ask(&["get", "needs", "-o", "name"]).fine();
    let need = needs.lines().next().expect("there are needs").to_owned();
    let said = ask(&["explain", "need", &need, "-o", "text"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(ask(&["get", "decisions", "-o", "json"]).fine().lines().count() > 0);
    let costs: serde_json::Value = serde_json::from_str(&ask(&["cost", "--json"]).fine()).expect("JSON");
    let parts: i64 = costs["parts"].as_array().unwrap().iter().map(|p| p["nano_usd"].as_i64().unwrap()).sum();
    assert_eq!(Some(parts), costs["total_nano_usd"].as_i64(), "{costs}");
    assert!([0, 1].contains(&ask(&["lint", "--json"]).code));
    let plan = ask(&["plan"]);
    assert!(plan.code == 2 && plan.err.contains("needs a running shard"), "{}", plan.err);
}

#[test]
fn a_record_of_other_rules_is_replayed_with_its_differences() {
    let (user, folder) = (User::new(), folder());
    let said = user.run(&["replay", &folder, "-o", "json"]);
    assert!([0, 1].contains(&said.code), "{}", said.err);
    let told: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert!(told["cycles"].as_u64().unwrap() > 0, "{told}");
    assert_eq!(said.code == 1, told["differences"].as_u64().unwrap() > 0);
    let changed = user.run(&["replay", &folder, "--with", "hold.on-demand=1s", "-o", "text"]);
    assert!([0, 1].contains(&changed.code), "{}", changed.err);
    let refused = user.run(&["replay", &folder, "--with", "colour=red"]);
    assert!(refused.code == 2 && refused.err.contains("hold.spot"), "{}", refused.err);
}

#[test]
fn a_record_is_listed_exported_and_trimmed() {
    let (user, folder) = (User::new(), folder());
    let list = user.run(&["record", "list", &folder, "-o", "json"]).fine();
    let segments = list.lines().count();
    assert!(segments > 0, "{list}");
    let copy = user.home.path().join("copy");
    let copy = copy.to_str().unwrap();
    let said = user.run(&["record", "export", &folder, copy]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(user.run(&["record", "list", copy, "-o", "json"]).fine(), list);
    let again = user.run(&["record", "export", &folder, copy]);
    assert_eq!(again.code, 2, "nothing is written over");
    let said = user.run(&["record", "trim", copy, "--keep", "1s"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        user.run(&["record", "list", copy, "-o", "json"]).fine().lines().count(),
        1,
        "the newest stays"
    );
    let nothing = user.run(&["record", "list", "/nowhere"]);
    assert!(nothing.code == 2 && nothing.err.contains("is no folder"), "{}", nothing.err);
}
