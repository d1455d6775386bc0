//! The metrics of all programs, as they declare them: what dashboards and rules are made from, and held against.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::is_made_of;

/// What kind of number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// One metric.
#[derive(Clone, Debug)]
pub(crate) struct Metric {
    /// As Prometheus has it, without what is added for samples of a histogram.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) help: String,
    pub(crate) labels: Vec<String>,
}

/// A program and what it says about itself.
pub(crate) struct Component {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) metrics: Vec<Metric>,
}

/// All of them.
pub(crate) static COMPONENTS: LazyLock<Vec<Component>> = LazyLock::new(|| {
    let all: [(&str, &str, String); 5] = [
        ("shard", "Shard", bigfleet_shard_server::metrics_specimen()),
        ("coordinator", "Coordinator", bigfleet_coordinator_server::metrics_specimen()),
        ("operator", "Operator", bigfleet_operator_kube::metrics_specimen()),
        ("pod-controller", "Pod controller", bigfleet_pod_controller::metrics_specimen()),
        ("provider", "Provider", bigfleet_provider_kit::metrics_specimen()),
    ];
    all.into_iter().map(|(name, title, text)| Component { name, title, metrics: read(name, &text) }).collect()
});

/// Reads a scrape in which every metric has a series.
fn read(component: &str, text: &str) -> Vec<Metric> {
    let mut help = BTreeMap::new();
    let mut metrics: Vec<Metric> = Vec::new();
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        if let Some((name, said)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help.insert(name.to_owned(), said.trim_end_matches('.').to_owned());
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (kind, suffix) = match kind {
                "counter" => (Kind::Counter, "_total"),
                "gauge" => (Kind::Gauge, ""),
                "histogram" => (Kind::Histogram, ""),
                "info" => (Kind::Info, "_info"),
                other => panic!("{component}: {name} is a {other}"),
            };
            let help = help.remove(name).unwrap_or_else(|| panic!("{component}: {name} says nothing"));
            metrics.push(Metric { name: format!("{name}{suffix}"), kind, help, labels: Vec::new() });
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let of = metrics.last_mut().expect("a series has a type");
            assert!(name.starts_with(of.name.as_str()), "{component}: {name} has no type");
            seen.insert(of.name.clone());
            for label in labels(line).into_iter().filter(|label| label != "le") {
                if !of.labels.contains(&label) {
                    of.labels.push(label);
                }
            }
        }
    }
    for metric in &metrics {
        assert!(seen.contains(&metric.name), "{component}: the specimen has no series of {}", metric.name);
    }
    metrics
}

/// The names of a sample's labels.
fn labels(line: &str) -> Vec<String> {
    let Some((_, inside)) = line.split_once('{') else { return Vec::new() };
    let inside = inside.rsplit_once('}').unwrap().0;
    inside.split("\",").filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned()).collect()
}

/// What may stand in an expression for this metric.
fn sample_names(metric: &Metric) -> Vec<String> {
    match metric.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", metric.name)).into(),
        _ => vec![metric.name.clone()],
    }
}

/// Refuses an expression over a metric that nobody exports, or a label that it does not have.
#[track_caller]
pub(crate) fn exists(expression: &str) {
    // Prometheus' own, and what it puts on every series.
    let mut known: BTreeMap<String, Vec<String>> = BTreeMap::from([("up".to_owned(), Vec::new())]);
    for metric in COMPONENTS.iter().flat_map(|component| &component.metrics) {
        for name in sample_names(metric) {
            known.entry(name).or_default().extend(metric.labels.iter().cloned());
        }
    }
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let mut rest = expression;
    let mut named = Vec::new();
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_alphabetic()) {
        let before = rest[..start].chars().last();
        let end = rest[start..].find(|letter| !is_word(letter)).map_or(rest.len(), |end| start + end);
        let word = &rest[start..end];
        rest = &rest[end..];
        if before == Some('"') || before == Some('$') {
            rest = rest
                .split_once('"')
                .map_or(rest, |(_, after)| if before == Some('"') { after } else { rest });
            continue;
        }
        if word.starts_with("bigfleet_") || word.starts_with("process_") || word == "up" {
            let labels = known.get(word).unwrap_or_else(|| panic!("nobody exports {word}: {expression}"));
            named.extend(labels.iter().cloned());
            let inside = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let Some((inside, after)) = inside else { continue };
            rest = after;
            for pair in inside.split(',').filter(|pair| pair.contains('=')) {
                let label = pair.split(['=', '!']).next().unwrap().trim();
                let usual = ["job", "instance", "namespace", "le", "shard"].contains(&label);
                assert!(
                    usual || labels.iter().any(|one| one == label),
                    "{word} has no label {label}: {expression}"
                );
            }
        }
    }
    for list in expression.split("by (").skip(1).filter_map(|after| after.split_once(')')) {
        for label in list.0.split(',').map(str::trim) {
            let usual = ["job", "instance", "namespace", "le", "shard"].contains(&label);
            assert!(
                usual || named.iter().any(|one| one == label),
                "nothing has a label {label}: {expression}"
            );
        }
    }
}

#[test]
fn expressions_over_what_is_not_there_are_refused() {
    exists(
        "sum by (le, provider) (rate(bigfleet_shard_provider_call_duration_seconds_bucket{method=\"List\"}[5m]))",
    );
    exists("up{job=~\".*bigfleet.*\"} == 0");
    for wrong in [
        "bigfleet_shard_cycles > 0",
        "bigfleet_shard_machines{color=\"red\"}",
        "sum by (color) (bigfleet_shard_machines)",
        "rate(bigfleet_shard_cycle_duration_seconds[5m])",
    ] {
        std::panic::catch_unwind(|| exists(wrong)).expect_err(wrong);
    }
}

#[test]
fn the_page_of_metrics_is_made_of_what_programs_export() {
    let mut page = String::from(
        "# Metrics\n\nEverything that our programs export, as they declare it. This page is made from the programs; do not edit \
         it.\nEvery series of a shard also has the label `shard`. Prometheus reads `/metrics`; what the programs are worth an alert \
         for is in\n[the runbooks](operations.md#alerts).\n",
    );
    for component in COMPONENTS.iter() {
        write!(page, "\n## {}\n\n| metric | kind | labels | what |\n|---|---|---|---|\n", component.title)
            .unwrap();
        for metric in &component.metrics {
            let labels =
                metric.labels.iter().filter(|label| *label != "shard").map(|label| format!("`{label}`"));
            let labels = labels.collect::<Vec<_>>().join(", ");
            let kind = format!("{:?}", metric.kind).to_lowercase();
            writeln!(page, "| `{}` | {kind} | {labels} | {} |", metric.name, metric.help).unwrap();
        }
    }
    is_made_of("docs/metrics.md", &page);
}
