//! The flags of the program and those of the charts: the same, and all of them.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::helm::{Chart, containers};
use crate::{is_made_of, values};

/// A command and its flags, as the program lists them.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Listed {
    pub(crate) command: String,
    pub(crate) about: String,
    pub(crate) flags: Vec<Flag>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Flag {
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) value: Option<String>,
    pub(crate) default: Vec<String>,
    pub(crate) choices: Vec<String>,
    pub(crate) repeats: bool,
}

/// Everything the program takes.
pub(crate) static LISTED: LazyLock<Vec<Listed>> = LazyLock::new(|| {
    let done = Command::new(env!("CARGO_BIN_EXE_bigfleet")).arg("flags").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
});

pub(crate) fn flags_of(command: &str) -> &'static [Flag] {
    &LISTED.iter().find(|one| one.command == command).expect("there is such a command").flags
}

/// A program in a chart: its command, where its flags are in the values, and the schema's name for them.
pub(crate) struct Program {
    pub(crate) chart: Chart,
    pub(crate) command: &'static str,
    pub(crate) at: &'static str,
    /// Flags nobody gives in production, and why.
    not_for_charts: &'static [(&'static str, &'static str)],
}

impl Program {
    fn definition(&self) -> String {
        format!("{}Flags", self.at)
    }
}

pub(crate) const PROGRAMS: [Program; 4] = [
    Program {
        chart: Chart::ControlPlane,
        command: "shard",
        at: "shard",
        not_for_charts: &[
            ("memory-only", "a chart gives it a disk"),
            ("seed", "for tests that repeat a run"),
            ("web", "the chart runs the page as a program of its own"),
            ("web-tokens", "the same"),
        ],
    },
    Program {
        chart: Chart::ControlPlane,
        command: "coordinator run",
        at: "coordinator",
        not_for_charts: &[],
    },
    Program {
        chart: Chart::Cluster,
        command: "operator",
        at: "operator",
        not_for_charts: &[
            ("kubeconfig", "in its cluster it uses its account"),
            ("context", "the same"),
            ("no-leader-election", "during an update two replicas are there"),
        ],
    },
    Program {
        chart: Chart::Cluster,
        command: "pod-controller",
        at: "podController",
        not_for_charts: &[
            ("kubeconfig", "in its cluster it uses its account"),
            ("context", "the same"),
            ("no-leader-election", "during an update two replicas are there"),
        ],
    },
];

/// Flags of the page, which has no `flags` in the values: all that are not set by the chart.
const NOT_FOR_THE_PAGE: [(&str, &str); 4] = [
    ("server", "shards are named one by one"),
    ("record", "for looking at a disk"),
    ("context", "for people"),
    ("look-only", "only without tokens, on loopback"),
];

/// The flags that the chart itself gives, in one of many ways to use it.
fn given_by_the_chart(chart: Chart, command: &str) -> BTreeSet<String> {
    let words: Vec<&str> = command.split(' ').collect();
    let mut given = BTreeSet::new();
    for base in values::bases(chart) {
        // Without anything below `flags`.
        for container in containers(&chart.objects(&[&base, &values::without_flags(chart)])) {
            if container.args.starts_with(&words.iter().map(ToString::to_string).collect::<Vec<_>>()) {
                let names = container.args.iter().filter_map(|arg| arg.strip_prefix("--"));
                given.extend(names.map(|arg| arg.split('=').next().unwrap().to_owned()));
            }
        }
    }
    assert!(!given.is_empty(), "{command}");
    given
}

fn in_the_schema(program: &Program) -> BTreeSet<String> {
    let schema = program.chart.file("values.schema.json");
    let flags = &schema["$defs"][program.definition()]["properties"];
    flags.as_object().unwrap_or(&Map::new()).keys().cloned().collect()
}

/// A flag as a value.
fn schema_of(flag: &Flag) -> Value {
    let mut schema = match flag.value.as_deref() {
        None => json!({"type": "boolean"}),
        Some(_) if !flag.choices.is_empty() => json!({"enum": flag.choices}),
        Some("N" | "0..1" | "USD" | "MIB" | "SECONDS") => json!({"type": ["number", "string"]}),
        Some(_) => json!({"type": "string", "minLength": 1}),
    };
    schema["description"] = json!(flag.help);
    schema
}

#[test]
fn the_schema_has_the_flags_of_the_programs() {
    for chart in Chart::ALL {
        let mut schema = chart.file("values.schema.json");
        for program in PROGRAMS.iter().filter(|program| program.chart == chart) {
            let given = given_by_the_chart(chart, program.command);
            let left = flags_of(program.command).iter().filter(|flag| {
                !given.contains(&flag.name)
                    && !program.not_for_charts.iter().any(|(name, _)| *name == flag.name)
            });
            let left: Map<String, Value> = left.map(|flag| (flag.name.clone(), schema_of(flag))).collect();
            schema["$defs"][program.definition()] =
                json!({"type": "object", "additionalProperties": false, "properties": left});
        }
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        is_made_of(&format!("{}/values.schema.json", chart.folder()), &text);
    }
}

#[test]
fn every_flag_can_be_reached_and_no_other() {
    for program in &PROGRAMS {
        let given = given_by_the_chart(program.chart, program.command);
        let known = in_the_schema(program);
        let all: BTreeSet<String> = flags_of(program.command).iter().map(|flag| flag.name.clone()).collect();
        let left_out = program.not_for_charts.iter().map(|(name, _)| (*name).to_owned());
        let reached: BTreeSet<String> =
            given.iter().cloned().chain(known.iter().cloned()).chain(left_out).collect();
        assert_eq!(reached, all, "{}", program.command);
        assert!(given.is_disjoint(&known), "{}: {:?}", program.command, given.intersection(&known));
    }
    let given = given_by_the_chart(Chart::ControlPlane, "web");
    let left_out = NOT_FOR_THE_PAGE.iter().map(|(name, _)| (*name).to_owned());
    let reached: BTreeSet<String> = given.into_iter().chain(left_out).collect();
    assert_eq!(reached, flags_of("web").iter().map(|flag| flag.name.clone()).collect());
}

/// A value for a flag that is not its default.
fn example(flag: &Flag) -> Value {
    match flag.value.as_deref() {
        None => json!(true),
        Some(_) if !flag.choices.is_empty() => {
            json!(flag.choices.iter().find(|one| !flag.default.contains(one)))
        }
        Some("0..1") => json!(0.25),
        Some("N" | "USD" | "MIB") => json!(1_500_000),
        Some("SECONDS") => json!(77),
        Some("SPAN") => json!("7m"),
        Some("URL") => json!("http://127.0.0.1:4317"),
        Some("FILTER") => json!("debug"),
        Some("PREFIX") => json!("/other/"),
        Some("FOLDER") => json!("/var/backups/fleet"),
        other => panic!("say what a value for {} of {other:?} looks like", flag.name),
    }
}

#[test]
fn every_flag_that_is_set_reaches_the_program_and_is_understood() {
    for program in &PROGRAMS {
        let known = in_the_schema(program);
        let set = flags_of(program.command).iter().filter(|flag| known.contains(&flag.name));
        let set: Map<String, Value> = set.map(|flag| (flag.name.clone(), example(flag))).collect();
        assert!(set.len() >= 2, "{} has flags to set", program.command);
        for base in values::bases(program.chart) {
            let objects = program.chart.objects(&[&base, &json!({program.at: {"flags": set}})]);
            let words: Vec<String> = program.command.split(' ').map(ToString::to_string).collect();
            let ours = containers(&objects).into_iter().filter(|one| one.args.starts_with(&words));
            for container in ours {
                for (name, value) in &set {
                    let arg = match value {
                        Value::Bool(_) => format!("--{name}"),
                        Value::String(text) => format!("--{name}={text}"),
                        number => format!("--{name}={number}"),
                    };
                    assert!(container.args.contains(&arg), "{arg} is not in {:?}", container.args);
                }
                understood(&container.args);
            }
        }
    }
}

/// The program's own parser takes it.
#[track_caller]
pub(crate) fn understood(args: &[String]) {
    let done =
        Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(["flags", "--"]).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_wrong_command_line_is_noticed() {
    let line = ["flags", "--", "shard", "--memory-only", "--provider=a=http://a:1", "--advertise=b:1"];
    let done = Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(line).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(2) && said.contains("--coordinator"), "{said}");
}
