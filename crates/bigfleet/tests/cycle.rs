//! `bigfleet cycle` as people run it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors")
}

fn cycle(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .arg("cycle")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A command that refuses its arguments never reads its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the binary ends")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).expect("the answer is JSON")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_vector_is_answered_as_it_expects() {
    let path = vectors().join("mixed/fleet-07.json");
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for threads in ["1", "2"] {
        let output = cycle(&["--threads", threads, path.to_str().unwrap()], "");
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(json(&output), file["expect"]);
    }
}

#[test]
fn lines_are_answered_by_lines_with_their_names() {
    let one = r#"{"name":"a","input":{"now_unix_nanos":1,"machines":[{"id":"m","state":"Idle","resources":{"cpu":"4"}}],"needs":[]}}"#;
    let two = r#"{"name":"b","input":{"now_unix_nanos":1,"machines":[],"needs":[]}}"#;
    let output = cycle(&["-"], &format!("{one}\n\n{two}\n"));
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["name"].clone())
        .collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn timings_add_up_to_what_a_cycle_costs_and_nothing_else() {
    let path = vectors().join("mixed/fleet-07.json");
    let output = cycle(&["--timings", "--repeat", "3", path.to_str().unwrap()], "");
    let answer = json(&output);
    let steps = answer["timings_ns"].as_object().expect("the steps of the cycle");
    assert!(steps.len() > 3, "{steps:?}");
    let sum: u64 = steps.values().map(|nanos| nanos.as_u64().expect("nanoseconds")).sum();
    assert_eq!(Some(sum), answer["cycle_ns"].as_u64());
    for outside in ["parse", "load", "report"] {
        assert!(!steps.contains_key(outside));
        assert!(answer["outside_ns"][outside].is_u64(), "{outside} is missing: {}", answer["outside_ns"]);
    }
    let plain = json(&cycle(&[path.to_str().unwrap()], ""));
    for field in ["timings_ns", "cycle_ns", "outside_ns"] {
        assert!(plain[field].is_null(), "{field} was not asked for");
    }
}

#[test]
fn rows_of_one_identity_are_merged_as_ingest_merges_them() {
    let row = |cpu: &str, memory: &str, arrival: i64| {
        format!(
            r#"{{"cluster": "c1", "aggregate": {{"cpu": "{cpu}"}}, "min_unit": {{"cpu": "1", "memory": "{memory}"}}, "arrival_unix_nanos": {arrival}}}"#
        )
    };
    let input = format!(
        r#"{{"machines": [{{"id": "m", "state": "Idle", "resources": {{"cpu": "8", "memory": "64"}}}}], "needs": [{}, {}, {}]}}"#,
        row("2", "8", 9),
        row("9223372036854775", "4", 5),
        row("3", "16", 7)
    );
    let output = cycle(&["-"], &input);
    assert!(output.status.success(), "{}", stderr(&output));
    let answer = json(&output);
    let needs = answer["normalized_needs"].as_array().expect("the demand");
    assert_eq!(needs.len(), 1);
    assert_eq!(needs[0]["aggregate"]["cpu"], i64::MAX, "the sum stops at the largest amount");
    assert_eq!(needs[0]["min_unit"], serde_json::json!({"cpu": 1000, "memory": 16}));
    assert_eq!(needs[0]["first_seen"], 5);
}

#[test]
fn what_cannot_be_taken_is_refused_with_a_reason() {
    let cases: [(&[&str], &str, &str); 6] = [
        (&["no-such-file.json"], "", "cannot read no-such-file.json"),
        (&["-"], "", "cannot take -"),
        (&["-"], "not json", "cannot take -"),
        (&["-"], r#"{"machines":[{"id":"m","state":"Idle","price":-1}],"needs":[]}"#, "price -1"),
        (&["-"], r#"{"machines":[{"id":"m","state":"Asleep"}],"needs":[]}"#, "Asleep"),
        (&["--threads", "0", "-"], "{}", "threads"),
    ];
    for (arguments, input, says) in cases {
        let output = cycle(arguments, input);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {input}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?} {input}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}
