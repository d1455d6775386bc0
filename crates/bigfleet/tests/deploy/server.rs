//! What charts render, checked by a real API server, as `kubectl apply --dry-run=server` does.

use bigfleet_kube_testbed::{Apply, ControlPlane, Parts, apply, eventually, scenarios, try_apply};
use serde_json::{Value, json};

use crate::helm::{Chart, objects};
use crate::values::bases;

#[test]
fn a_server_takes_everything_that_charts_render() {
    scenarios(Parts::ApiServer, 1, scenarios![everything_is_taken]);
}

/// The least of a definition that is not ours: its names, and the fields that our charts write.
fn foreign(group: &str, version: &str, kind: &str, spec: &Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            // Only what is approved may take such a group; these are for tests.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec,
                }}},
            }],
        },
    })
}

fn definitions() -> [Value; 3] {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let map = json!({"type": "object", "additionalProperties": text});
    let strict = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
    [
        foreign(
            "monitoring.coreos.com",
            "v1",
            "ServiceMonitor",
            &strict(
                json!({
                    "jobLabel": text,
                    "selector": strict(json!({"matchLabels": map}), &[]),
                    "namespaceSelector": strict(json!({"matchNames": texts}), &[]),
                    "endpoints": {"type": "array", "items": strict(
                        json!({"port": text, "path": text, "interval": text, "scrapeTimeout": text}), &[],
                    )},
                }),
                &["selector", "endpoints"],
            ),
        ),
        foreign(
            "monitoring.coreos.com",
            "v1",
            "PrometheusRule",
            &strict(
                json!({"groups": {"type": "array", "items": strict(
                    json!({"name": text, "rules": {"type": "array", "items": strict(
                        json!({"alert": text, "expr": text, "for": text, "labels": map, "annotations": map}), &["expr"],
                    )}}),
                    &["name", "rules"],
                )}}),
                &["groups"],
            ),
        ),
        foreign(
            "cert-manager.io",
            "v1",
            "Certificate",
            &strict(
                json!({
                    "secretName": text, "duration": text, "renewBefore": text, "dnsNames": texts, "uris": texts,
                    "usages": texts,
                    "privateKey": strict(
                        json!({"algorithm": text, "size": {"type": "integer"}, "rotationPolicy": text}), &[],
                    ),
                    "issuerRef": strict(json!({"name": text, "kind": text, "group": text}), &["name"]),
                }),
                &["secretName", "issuerRef"],
            ),
        ),
    ]
}

async fn everything_is_taken(plane: &ControlPlane, _namespace: String) {
    let client = plane.client().await;
    let name = "bigfleet-system";
    apply(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
    for definition in definitions() {
        apply(&client, &definition).await;
    }
    let version = format!("1.{}", plane.minor());
    let mut kinds = std::collections::BTreeSet::new();
    for chart in Chart::ALL {
        for base in bases(chart) {
            for object in chart.objects_for(&[&base], &version) {
                let kind = object["kind"].as_str().unwrap().to_owned();
                // A definition that was made a moment ago is not served yet.
                let taken = eventually(&format!("the server knows {kind}"), async || {
                    match try_apply(&client, &object, Apply::DryRun).await {
                        Err(kube::Error::Discovery(_)) => None,
                        Err(kube::Error::Api(status)) if status.code == 404 => None,
                        done => Some(done),
                    }
                })
                .await;
                taken.unwrap_or_else(|error| panic!("{kind} {}: {error}", object["metadata"]["name"]));
                kinds.insert(kind);
            }
        }
    }
    for kind in
        ["StatefulSet", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Certificate", "ServiceMonitor"]
    {
        assert!(kinds.contains(kind), "no {kind} among {kinds:?}");
    }
    let definitions = crate::read("deploy/charts/bigfleet-cluster/crds/bigfleet.lucy.sh.yaml");
    for definition in objects(&definitions) {
        try_apply(&client, &definition, Apply::DryRun).await.unwrap();
    }
    // And what is wrong is noticed.
    let mut wrong = Chart::Cluster.objects_for(&[&Chart::Cluster.least()], &version);
    let wrong = wrong.iter_mut().find(|object| object["kind"] == "Deployment").unwrap();
    wrong["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"] = json!("another");
    try_apply(&client, wrong, Apply::DryRun).await.unwrap_err();
}
