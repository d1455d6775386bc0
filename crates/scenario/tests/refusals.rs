//! What is refused, and what the message says: the row, the field, the reason and the remedy.

use bigfleet_scenario::input;
use proptest::prelude::*;

fn refusal(json: &str) -> String {
    input::read(json.as_bytes()).expect_err(json).to_string()
}

fn machine(fields: &str) -> String {
    format!(
        r#"{{"machines": [{{"id": "m1", "state": "Idle"}}, {{{fields}}}], "needs": [{{"cluster": "c1"}}]}}"#
    )
}

fn need(fields: &str) -> String {
    format!(r#"{{"needs": [{{"cluster": "c1"}}, {{{fields}}}]}}"#)
}

#[test]
fn messages_name_the_row_the_field_and_the_remedy() {
    let cases = [
        (
            machine(r#""id": "m1", "state": "Idle""#),
            r#"machine "m1" (entry 1), `id`: has the same identity as entry 0"#,
        ),
        (machine(r#""id": "", "state": "Idle""#), r#"machine "" (entry 1), `id`: the id is empty"#),
        (
            machine(r#""id": "x", "state": "Asleep""#),
            r#"`state`: "Asleep" is unknown; use one of Speculative, Creating"#,
        ),
        (
            machine(r#""id": "x", "state": "Idle", "capacity_type": "Gift""#),
            r#"`capacity_type`: "Gift" is unknown"#,
        ),
        (machine(r#""id": "x", "state": "Idle", "cluster": "c1""#), "`cluster`: names a cluster"),
        (machine(r#""id": "x", "state": "Configured""#), "`cluster`: names no cluster"),
        (machine(r#""id": "x", "state": "Idle", "price": -1"#), "`price`: price -1"),
        (
            machine(r#""id": "x", "state": "Idle", "resources": {"cpu": "-1"}"#),
            r#"`resources`: resource "cpu""#,
        ),
        (machine(r#""id": "x", "state": "Idle", "resources": {"cpu": "1", "cpu": "1"}"#), "listed twice"),
        (
            machine(r#""id": "x", "state": "Idle", "labels": {"a": "1", "a": "2"}"#),
            "`labels`: label \"a\" is given twice",
        ),
        (
            machine(r#""id": "x", "state": "Idle", "assigned_need": 1"#),
            "`assigned_need`: points at need 1, but the file has 1",
        ),
        (
            machine(r#""id": "x", "state": "Idle", "draining_for": {"need": 7}"#),
            "`draining_for`: points at need 7",
        ),
        (
            machine(r#""id": "x", "state": "Idle", "assigned_reclamation_penalty": "much""#),
            "dollars as a number",
        ),
        (
            machine(r#""id": "x", "state": "Idle", "assigned_interruption_penalty": -1"#),
            "`assigned penalties`",
        ),
        (need(""), r#"need 1 (cluster ""), `cluster`: is missing or empty"#),
        (need(r#""cluster": "c2", "parked": true"#), "`parked`: is set, but only a need with a `Same`"),
        (
            need(r#""cluster": "c2", "interruption_bucket": 28"#),
            "`interruption_bucket`: penalty bucket 28 is unknown",
        ),
        (
            need(r#""cluster": "c2", "requirements": [{"key": "a", "op": "Near"}]"#),
            r#"`requirements`: "Near" is unknown"#,
        ),
        (
            need(r#""cluster": "c2", "requirements": [{"key": "a;b", "op": "Exists"}]"#),
            "`requirements`: requirement on \"a;b\"",
        ),
        (need(r#""cluster": "c2", "spread": [{"key": "", "when": "DoNotSchedule"}]"#), "`spread`: "),
        (
            need(r#""cluster": "c2", "spread": [{"key": "a", "when": "Never"}]"#),
            r#"`spread`: "Never" is unknown"#,
        ),
        (r#"{"name": "x"}"#.into(), "neither `input` nor `machines` nor `needs`"),
        ("3".into(), "this is not a scenario"),
        (String::new(), "this is not a scenario"),
    ];
    for (json, expected) in cases {
        let message = refusal(&json);
        assert!(message.contains(expected), "{json}\n  said: {message}\n  not:  {expected}");
    }
}

#[test]
fn what_is_absent_has_its_default() {
    let scenario = input::read(
        br#"{"machines": [{"id": "a", "state": "Failed", "unknown": 1}, {"id": "b", "state": "Draining",
             "cluster": "c2", "assigned_cluster": "c9", "draining_for": {"need": 0, "group": "g"}}],
             "needs": [{"cluster": "c1", "group": "h"}]}"#,
    )
    .unwrap();
    assert_eq!(scenario.options, bigfleet_scenario::CycleOptions::default());
    assert_eq!(&*scenario.machines[0].last_error, "unknown");
    assert_eq!(
        &*scenario.machines[1].assigned.cluster, "c2",
        "a bound machine is stamped with its own cluster"
    );
    let freed = scenario.machines[1].draining_for.as_ref().unwrap();
    assert_eq!((&*freed.cluster, &*freed.group), ("c1", "g"));
    assert_eq!(*freed.fingerprint, *scenario.needs[0].profile.fingerprint());
}

/// A scenario that uses every field, to be damaged.
const WHOLE: &str = r#"{"name": "n", "what": "w", "input": {"now_unix_nanos": 5, "release_policy": {"spot_hold_ns": 1},
"phase2": {"weights": {"priority": 0.5}, "estimated_drain_ns": 7}, "ready_clusters": ["c1"], "machines": [
{"id": "m1", "state": "Configured", "cluster": "c1", "labels": {"a": "\u0041", "b": ""}, "price": 0.4,
 "resources": {"cpu": "4", "memory": "16Gi"}, "allocatable": {"cpu": "3500m"}, "assigned_need": 0,
 "assigned_priority": -3, "assigned_interruption_penalty": "inf", "assigned_reclamation_penalty": 1e3,
 "capacity_type": "Spot", "instance_type": "std", "zone": "z", "interruption_probability": 0.5},
{"id": "m2", "state": "Draining", "cluster": "c1", "draining_for": {"need": 0, "cluster": "c2"}},
{"id": "m3", "state": "Idle", "idle_since_unix_nanos": -4}, {"id": "m4", "state": "Failed", "last_error": "e"}],
"needs": [{"cluster": "c1", "requirements": [{"key": "a", "op": "Same", "values": ["A", "B"]}], "spread":
[{"key": "b", "max_skew": 2, "when": "DoNotSchedule"}], "priority": 9, "interruption_bucket": 27,
"reclamation_bucket": 1, "aggregate": {"cpu": "8"}, "min_unit": {"cpu": "1"}, "arrival_unix_nanos": 3,
"group": "g", "parked": true}]}, "expect": {"actions": [{"kind": "Delete", "machine": "m3"}], "claims": {"m1": 0},
"deficits": [{}], "domains": [{"need": 0, "value": null, "covers": false}], "normalized_needs": [], "reasons":
[{"need": 0, "reason": "parked"}], "unresolved": []}}"#;

#[test]
fn the_whole_scenario_is_good() {
    input::read_vector(WHOLE.as_bytes()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Damaged text is refused or read, never a panic, and what was read can be written and read again.
    #[test]
    fn garbage_never_panics(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6)) {
        let mut text = WHOLE.as_bytes().to_vec();
        for (at, byte, how) in edits {
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                2 => { text.remove(at); }
                // Swaps two pieces of the text: still balanced quotes and brackets surprisingly often.
                _ => {
                    let tail = &mut text[at..];
                    tail.rotate_left(usize::from(byte) % tail.len().max(1) / 2);
                }
            }
            if text.is_empty() { break }
        }
        let _ = input::read_vector(&text);
        let _ = input::lines(&*text).count();
        if let Ok(scenario) = input::read(&text) {
            let mut copy = Vec::new();
            input::write(&mut copy, &scenario).unwrap();
            prop_assert_eq!(input::read(&copy).unwrap(), scenario);
        }
    }

    /// Words of the schema in the wrong places: well-formed JSON, nonsense otherwise.
    #[test]
    fn nonsense_never_panics(swaps in prop::collection::vec((0..60_usize, 0..60_usize), 1..4)) {
        let mut words: Vec<&str> = WHOLE.split('"').collect();
        for (a, b) in swaps {
            // Odd pieces are the strings.
            words.swap(a * 2 + 1, b * 2 + 1);
        }
        let text = words.join("\"");
        if let Ok(scenario) = input::read(text.as_bytes()) {
            let mut copy = Vec::new();
            input::write(&mut copy, &scenario).unwrap();
            prop_assert_eq!(input::read(&copy).unwrap(), scenario);
        }
    }
}
