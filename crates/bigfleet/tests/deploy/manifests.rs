//! Plain manifests, for those without Helm: what the charts render, with the Namespace before it.

use std::fmt::Write as _;

use bigfleet_crds::{ServerVersion, yaml};
use serde_json::{Value, json};

use crate::helm::Chart;
use crate::is_made_of;

/// The text of a chart as a file of its own.
fn manifest(
    chart: Chart,
    about: &str,
    values: &Value,
    version: &str,
    kinds: impl Fn(&str) -> bool,
) -> String {
    let text = chart.text(&[&chart.least(), values], version).unwrap();
    let mut file = String::new();
    for line in about.lines() {
        writeln!(file, "# {line}").unwrap();
    }
    writeln!(file, "# Made from {}; change that, and write this anew as its test says.", chart.folder())
        .unwrap();
    file += "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: bigfleet-system\n";
    for document in text.split("\n---\n") {
        let document = document.trim_start_matches("---\n").trim();
        let kept: Vec<&str> = document
            .lines()
            // Helm's own remarks mean nothing to those without it.
            .filter(|line| !line.starts_with("# Source:") && !line.contains("helm.sh/chart:"))
            .collect();
        let document = kept.join("\n").replace("managed-by: Helm", "managed-by: kubectl");
        let kind = document.lines().find_map(|line| line.strip_prefix("kind: ")).unwrap_or_default();
        if kinds(kind) {
            writeln!(file, "---\n{}", document.trim()).unwrap();
        }
    }
    file
}

fn everything_but_budgets(kind: &str) -> bool {
    !kind.is_empty() && kind != "PodDisruptionBudget"
}

#[test]
fn plain_manifests_are_made_of_the_charts() {
    let (plane, cluster) = (Chart::ControlPlane, Chart::Cluster);
    let all = everything_but_budgets;
    let about = "A shard: its Services, its disk, its pod. Put the name of your image and your providers into it; docs/install.md\n\
                 explains.";
    is_made_of("deploy/kubernetes/control-plane.yaml", &manifest(plane, about, &json!({}), "1.33", all));
    let about = "The operator: who it is, what it may do, and how it runs. docs/operator.md explains. Put the name of your image, of\n\
                 the cluster and of its shard into it, and what new machines are given to join with.";
    let without = json!({"podController": {"enabled": false}});
    is_made_of("deploy/kubernetes/operator.yaml", &manifest(cluster, about, &without, "1.33", all));
    let about = "The pod controller: who it is, what it may do, and how it runs. docs/kubernetes.md explains. Put the name of your\n\
                 image into it.";
    let without = json!({"operator": {"enabled": false}});
    is_made_of("deploy/kubernetes/pod-controller.yaml", &manifest(cluster, about, &without, "1.33", all));
    let about = "Disruption budgets of the operator and the pod controller, for servers from 1.21 on.";
    let budgets = manifest(cluster, about, &json!({}), "1.33", |kind| kind == "PodDisruptionBudget");
    is_made_of("deploy/kubernetes/disruption-budgets.yaml", &budgets);
}

#[test]
fn the_chart_of_a_cluster_brings_the_definitions() {
    // Helm applies them to whatever server it finds, so they hold what all of them know.
    let version: ServerVersion = "1.20".parse().unwrap();
    is_made_of("deploy/charts/bigfleet-cluster/crds/bigfleet.lucy.sh.yaml", &yaml(version));
}
