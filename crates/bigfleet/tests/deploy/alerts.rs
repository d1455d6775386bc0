//! The alert rules: made from the table here, which names only metrics that are there; each has a runbook and a test.

use std::fmt::Write as _;

use crate::metrics::exists;
use crate::{is_made_of, read};

/// Wakes somebody, or waits until the morning.
#[derive(Clone, Copy)]
enum Severity {
    Page,
    Ticket,
}
use Severity::{Page, Ticket};

struct Alert {
    name: &'static str,
    expr: &'static str,
    /// How long it must hold; empty for at once.
    after: &'static str,
    severity: Severity,
    summary: &'static str,
}

const fn alert(
    name: &'static str,
    expr: &'static str,
    after: &'static str,
    severity: Severity,
    summary: &'static str,
) -> Alert {
    Alert { name, expr, after, severity, summary }
}

const GROUPS: [(&str, &[Alert]); 5] = [
    (
        "bigfleet-shard",
        &[
            alert(
                "BigFleetDown",
                r#"up{job=~".*bigfleet.*"} == 0"#,
                "1m",
                Page,
                "{{ $labels.instance }} does not answer its scrapes",
            ),
            alert(
                "BigFleetNotDeciding",
                "bigfleet_shard_cycle_age_seconds > 60",
                "1m",
                Page,
                "no cycle for {{ $value }} s",
            ),
            alert(
                "BigFleetAlarm",
                r#"increase(bigfleet_shard_notices_total{urgency="alarm"}[10m]) > 0"#,
                "",
                Page,
                "alarm: {{ $labels.code }}",
            ),
            alert(
                "BigFleetInventoryStale",
                "bigfleet_shard_inventory_age_seconds > 120",
                "1m",
                Page,
                "provider {{ $labels.provider }} was not listed for {{ $value }} s",
            ),
            alert(
                "BigFleetListingHeld",
                "bigfleet_shard_listing_held_missing > 0",
                "",
                Page,
                "provider {{ $labels.provider }} no longer lists {{ $value }} machines",
            ),
            alert(
                "BigFleetRollupHeld",
                "bigfleet_shard_rollups_held > 0",
                "5m",
                Ticket,
                "{{ $value }} clusters report a collapse of their demand",
            ),
            alert(
                "BigFleetUnmet",
                r#"sum(bigfleet_shard_shortfalls{age=~"1h|more"}) > 0"#,
                "",
                Ticket,
                "{{ $value }} needs are short for more than 15 minutes",
            ),
            alert(
                "BigFleetSlowCycles",
                "histogram_quantile(0.99, rate(bigfleet_shard_cycle_duration_seconds_bucket[10m])) > 0.25",
                "10m",
                Ticket,
                "cycle p99 {{ $value }} s",
            ),
            alert(
                "BigFleetSlowDisk",
                "histogram_quantile(0.99, rate(bigfleet_shard_commit_duration_seconds_bucket[10m])) > 0.1",
                "10m",
                Ticket,
                "commit p99 {{ $value }} s",
            ),
            alert(
                "BigFleetPausedLong",
                "bigfleet_shard_pauses > 0",
                "24h",
                Ticket,
                "{{ $value }} pauses are in force for a day",
            ),
            alert(
                "BigFleetIdleMoney",
                "bigfleet_shard_idle_usd_per_hour > 0.33 * bigfleet_shard_spend_usd_per_hour",
                "1h",
                Ticket,
                "${{ $value }} an hour idle",
            ),
            alert(
                "BigFleetRecordLost",
                "increase(bigfleet_shard_records_lost_total[10m]) > 0",
                "",
                Ticket,
                "cycles are missing from the decision record",
            ),
        ],
    ),
    (
        "bigfleet-coordinator",
        &[alert(
            "BigFleetNoCoordinatorLeads",
            "max(bigfleet_coordinator_leads) == 0",
            "2m",
            Ticket,
            "no replica of the coordinator leads",
        )],
    ),
    (
        "bigfleet-operator",
        &[
            alert(
                "BigFleetOperatorDisconnected",
                "bigfleet_operator_connected == 0",
                "5m",
                Page,
                "{{ $labels.instance }} has no session with its shard",
            ),
            alert(
                "BigFleetRequestsRefused",
                r#"bigfleet_operator_requests{state="refused"} > 0"#,
                "15m",
                Ticket,
                "{{ $value }} requests cannot be used",
            ),
            alert(
                "BigFleetDrainBlocked",
                r#"increase(bigfleet_operator_evictions_total{outcome="blocked"}[15m]) > 0"#,
                "1h",
                Ticket,
                "a disruption budget has held a drain for an hour",
            ),
        ],
    ),
    (
        "bigfleet-pod-controller",
        &[
            alert(
                "BigFleetNoPodControllerLeads",
                "max(bigfleet_pod_controller_leading) == 0",
                "5m",
                Page,
                "no replica of the pod controller works",
            ),
            alert(
                "BigFleetPodsAskForNothing",
                r#"bigfleet_pod_controller_not_carried{effect="Refused"} > 0"#,
                "15m",
                Ticket,
                "{{ $value }} pods ask for nothing because of {{ $labels.field }}",
            ),
        ],
    ),
    (
        "bigfleet-provider",
        &[alert(
            "BigFleetProviderCannotStore",
            r#"increase(bigfleet_provider_commits_total{outcome="failed"}[10m]) > 0"#,
            "",
            Page,
            "{{ $labels.instance }} cannot write what it does",
        )],
    ),
];

/// Where an alert's runbook is.
fn runbook(alert: &Alert) -> String {
    format!("docs/operations.md#{}", alert.name.to_lowercase())
}

#[test]
fn the_rules_are_made_of_metrics_that_exist() {
    let mut text = String::from(
        "# Prometheus rules for all programs. docs/operations.md says what each alert means and what to do.\n# Made by \
         crates/bigfleet/tests/deploy/alerts.rs; change that, and write this anew as its test says.\ngroups:\n",
    );
    for (group, alerts) in GROUPS {
        write!(text, "  - name: {group}\n    rules:\n").unwrap();
        for alert in alerts {
            exists(alert.expr);
            write!(text, "      - alert: {}\n        expr: {}\n", alert.name, alert.expr).unwrap();
            if !alert.after.is_empty() {
                writeln!(text, "        for: {}", alert.after).unwrap();
            }
            let severity = match alert.severity {
                Page => "page",
                Ticket => "ticket",
            };
            writeln!(text, "        labels: {{severity: {severity}}}").unwrap();
            let link = runbook(alert);
            writeln!(text, "        annotations: {{summary: {:?}, runbook: {link:?}}}", alert.summary)
                .unwrap();
        }
    }
    is_made_of("deploy/charts/bigfleet/files/alerts.yml", &text);
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let page = read("docs/operations.md");
    let mut sections = page.split("\n#### ").skip(1).filter_map(|section| section.split_once('\n'));
    let mut written: Vec<&str> = Vec::new();
    for (title, text) in sections.by_ref().filter(|(title, _)| title.starts_with("BigFleet")) {
        assert!(text.contains("What to do:"), "the runbook of {title} does not say what to do");
        written.push(title);
    }
    let alerts: Vec<&str> = GROUPS.iter().flat_map(|(_, alerts)| *alerts).map(|alert| alert.name).collect();
    assert_eq!(written, alerts);
}

#[test]
fn every_alert_is_tried_when_it_fires_and_when_it_must_not() {
    let tests = read("deploy/alerts_test.yml");
    for alert in GROUPS.iter().flat_map(|(_, alerts)| *alerts) {
        let name = format!("alertname: {}\n", alert.name);
        let tries: Vec<&str> = tests.split(&name).skip(1).map(str::trim_start).collect();
        let silent = tries.iter().filter(|next| next.starts_with("exp_alerts: []")).count();
        assert!(silent > 0, "no test says when {} must be silent", alert.name);
        assert!(silent < tries.len(), "no test says when {} fires", alert.name);
    }
}
