//! The dashboards: one for each program with every metric that it exports, by kind, and one to begin with.

use serde_json::{Value, json};

use crate::is_made_of;
use crate::metrics::{COMPONENTS, Component, Kind, Metric, exists};

/// Panels in a row.
const ACROSS: usize = 3;
/// Grafana's grid has so many columns.
const COLUMNS: usize = 24;
const HEIGHT: usize = 8;

/// The first look: what is spent, what is missing, what does not work. A title, an expression, a unit.
const GLANCE: [(&str, &str, &str); 12] = [
    ("Spend, dollars an hour", "sum(bigfleet_shard_spend_usd_per_hour)", "currencyUSD"),
    ("Of it idle, dollars an hour", "sum(bigfleet_shard_idle_usd_per_hour)", "currencyUSD"),
    ("Machines by state", "sum by (state) (bigfleet_shard_machines)", "short"),
    (
        "Spend by cluster, dollars an hour",
        "sum by (cluster) (bigfleet_shard_cluster_usd_per_hour)",
        "currencyUSD",
    ),
    ("Needs that are short, by how long", "sum by (age) (bigfleet_shard_shortfalls)", "short"),
    (
        "Actions begun a second",
        r#"sum by (kind) (rate(bigfleet_shard_actions_total{fate="begun"}[$__rate_interval]))"#,
        "short",
    ),
    (
        "Cycle, 99th percentile",
        "histogram_quantile(0.99, sum by (le, shard) (rate(bigfleet_shard_cycle_duration_seconds_bucket[$__rate_interval])))",
        "s",
    ),
    ("Age of listings", "max by (shard, provider) (bigfleet_shard_inventory_age_seconds)", "s"),
    (
        "Roll-ups held, listings held",
        "sum(bigfleet_shard_rollups_held) + sum(bigfleet_shard_listing_held_missing)",
        "short",
    ),
    (
        "Alarms in ten minutes",
        r#"sum by (code) (increase(bigfleet_shard_notices_total{urgency="alarm"}[10m]))"#,
        "short",
    ),
    ("Operators connected", "sum(bigfleet_operator_connected)", "short"),
    ("Pods by whether they ask", "sum by (state) (bigfleet_pod_controller_pods)", "short"),
];

fn unit(name: &str) -> &'static str {
    let ends = |end: &str| name.trim_end_matches("_total").ends_with(end);
    if ends("_seconds") {
        "s"
    } else if ends("_bytes") {
        "bytes"
    } else if ends("_usd_per_hour") {
        "currencyUSD"
    } else {
        "short"
    }
}

/// A panel at its place.
fn panel(number: usize, title: &str, about: &str, unit: &str, targets: &[(String, String)]) -> Value {
    let width = COLUMNS / ACROSS;
    let targets = targets.iter().zip('A'..='Z').map(|((expr, legend), name)| {
        exists(expr);
        json!({"refId": name.to_string(), "expr": expr, "legendFormat": legend})
    });
    json!({
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "description": about,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": number % ACROSS * width, "y": number / ACROSS * HEIGHT, "w": width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": targets.collect::<Vec<_>>(),
    })
}

/// What is drawn of one metric.
fn panel_of(number: usize, metric: &Metric) -> Value {
    let name = &metric.name;
    let chosen = r#"{instance=~"$instance"}"#;
    let by = |labels: &[String]| labels.join(", ");
    let legend = |labels: &[String]| {
        labels.iter().map(|label| format!("{{{{{label}}}}}")).collect::<Vec<_>>().join(" ")
    };
    let own = if metric.labels.is_empty() { vec!["instance".to_owned()] } else { metric.labels.clone() };
    let every = "[$__rate_interval]";
    let (title, targets) = match metric.kind {
        Kind::Counter => {
            let expr = format!("sum by ({}) (rate({name}{chosen}{every}))", by(&own));
            (format!("{} (a second)", metric.help), vec![(expr, legend(&own))])
        }
        Kind::Gauge => {
            let expr = format!("sum by ({}) ({name}{chosen})", by(&own));
            (metric.help.clone(), vec![(expr, legend(&own))])
        }
        Kind::Info => {
            let expr = format!("count by ({}) ({name}{chosen})", by(&own));
            (metric.help.clone(), vec![(expr, legend(&own))])
        }
        Kind::Histogram => {
            let apart: Vec<String> =
                metric.labels.iter().filter(|label| *label != "shard").cloned().collect();
            let of = std::iter::once("le".to_owned()).chain(apart.iter().cloned()).collect::<Vec<_>>();
            let quantile = |q: f64| {
                let expr = format!(
                    "histogram_quantile({q}, sum by ({}) (rate({name}_bucket{chosen}{every})))",
                    by(&of)
                );
                (expr, format!("p{:.0} {}", q * 100.0, legend(&apart)).trim_end().to_owned())
            };
            (metric.help.clone(), vec![quantile(0.5), quantile(0.99)])
        }
    };
    panel(number, &title, name, unit(name), &targets)
}

fn dashboard(name: &str, title: &str, instances_of: Option<&str>, panels: &[Value]) -> String {
    let mut variables = vec![json!({
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
    })];
    if let Some(metric) = instances_of {
        variables.push(json!({
            "name": "instance", "label": "Instance", "type": "query", "multi": true, "includeAll": true,
            "current": {"text": "All", "value": "$__all"}, "refresh": 2,
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "query": format!("label_values({metric}, instance)"),
        }));
    }
    let dashboard = json!({
        "uid": format!("bigfleet-{name}"),
        "title": format!("BigFleet: {title}"),
        "tags": ["bigfleet"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "templating": {"list": variables},
        "annotations": {"list": []},
        "panels": panels,
    });
    serde_json::to_string_pretty(&dashboard).unwrap() + "\n"
}

fn of_component(component: &Component) -> String {
    let panels: Vec<Value> =
        component.metrics.iter().enumerate().map(|(number, metric)| panel_of(number, metric)).collect();
    dashboard(component.name, component.title, Some(&component.metrics[0].name), &panels)
}

#[test]
fn the_dashboards_are_made_of_metrics_that_exist() {
    let path = |name: &str| format!("deploy/charts/bigfleet/files/dashboards/{name}.json");
    let glance: Vec<Value> = GLANCE
        .iter()
        .enumerate()
        .map(|(number, (title, expr, unit))| {
            panel(number, title, "", unit, &[((*expr).to_owned(), String::from("__auto"))])
        })
        .collect();
    is_made_of(&path("fleet"), &dashboard("fleet", "the fleet at a glance", None, &glance));
    for component in COMPONENTS.iter() {
        is_made_of(&path(component.name), &of_component(component));
    }
    let kept =
        std::fs::read_dir(crate::root().join("deploy/charts/bigfleet/files/dashboards")).unwrap().count();
    assert_eq!(kept, COMPONENTS.len() + 1, "a dashboard that nothing makes");
}
