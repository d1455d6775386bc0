//! What charts render: programs that are understood, may do nothing they need not, and have the names that others expect.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::flags::understood;
use crate::helm::{Chart, containers};
use crate::values::bases;

/// A chart is packed by itself, so what both share is there twice. A link would be lost by whoever copies files.
#[test]
fn both_charts_have_the_same_common_templates() {
    let common = crate::read("deploy/charts/bigfleet/templates/_common.tpl");
    crate::is_made_of("deploy/charts/bigfleet-cluster/templates/_common.tpl", &common);
}

#[test]
fn every_container_is_understood_and_confined() {
    for chart in Chart::ALL {
        for base in bases(chart) {
            let objects = chart.objects(&[&base]);
            let containers = containers(&objects);
            assert!(!containers.is_empty());
            for container in containers {
                understood(&container.args);
                let security = &container.spec["securityContext"];
                assert_eq!(
                    *security,
                    json!({
                        "allowPrivilegeEscalation": false,
                        "readOnlyRootFilesystem": true,
                        "capabilities": {"drop": ["ALL"]},
                    }),
                    "{}",
                    container.of
                );
                let pod = &container.pod;
                assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{}", container.of);
                assert_eq!(pod["securityContext"]["runAsUser"], 65532, "{}", container.of);
                assert!(
                    container.spec["livenessProbe"].is_object()
                        && container.spec["readinessProbe"].is_object()
                );
                assert!(container.spec["resources"]["limits"]["memory"].is_string());
                // A probe asks at a port that is there.
                let ports = container.spec["ports"].as_array().unwrap();
                for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                    let probe = &container.spec[probe];
                    let port = probe.pointer("/httpGet/port").or(probe.pointer("/tcpSocket/port"));
                    assert!(port.is_none_or(|port| ports.iter().any(|one| one["name"] == *port)), "{probe}");
                }
                // What is mounted is a volume, and each file that a flag names is mounted.
                let mounts: Vec<&str> = container.spec["volumeMounts"]
                    .as_array()
                    .map(|mounts| mounts.iter().map(|mount| mount["mountPath"].as_str().unwrap()).collect())
                    .unwrap_or_default();
                for arg in &container.args {
                    let path =
                        arg.split_once('=').map(|(_, value)| value).filter(|value| value.starts_with('/'));
                    if let Some(path) = path.filter(|_| !arg.starts_with("--etcd-prefix")) {
                        assert!(mounts.iter().any(|mount| path.starts_with(mount)), "{arg} is not mounted");
                    }
                }
            }
        }
    }
}

/// Objects of a kind.
fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn each_shard_has_a_name_a_disk_and_a_certificate_of_its_own() {
    let chart = Chart::ControlPlane;
    let shards = json!({
        "tls": {"mode": "certManager"},
        "shards": [
            {"name": "eu-1", "domains": ["zone=a"], "dnsNames": ["eu-1.example.com"]},
            {"name": "eu-2", "domains": ["zone=b"], "flags": {"tick": "3s"}},
        ],
        "shard": {"flags": {"tick": "5s"}},
    });
    let objects = chart.objects(&[&chart.least(), &shards]);
    let sets = of_kind(&objects, "StatefulSet");
    let secrets: BTreeSet<&str> = sets
        .iter()
        .map(|set| set["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"].as_str().unwrap())
        .collect();
    assert_eq!(secrets, BTreeSet::from(["bigfleet-eu-1-tls", "bigfleet-eu-2-tls"]));
    let certificates = of_kind(&objects, "Certificate");
    let uris: Vec<&Value> = certificates.iter().map(|one| &one["spec"]["uris"][0]).collect();
    assert_eq!(uris, ["bigfleet://shard/eu-1", "bigfleet://shard/eu-2"]);
    let names = certificates[0]["spec"]["dnsNames"].as_array().unwrap();
    assert!(
        names.contains(&json!("bigfleet-eu-1.bigfleet-system.svc"))
            && names.contains(&json!("eu-1.example.com"))
    );
    for (set, certificate) in sets.iter().zip(&certificates) {
        assert_eq!(set["spec"]["replicas"], 1);
        assert_eq!(
            certificate["spec"]["secretName"],
            set["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"]
        );
    }
    let args: Vec<Vec<String>> = containers(&objects).into_iter().map(|one| one.args).collect();
    assert!(args[0].contains(&"--tick=5s".into()) && args[0].contains(&"--domain=zone=a".into()), "{args:?}");
    assert!(args[1].contains(&"--tick=3s".into()) && args[1].contains(&"--shard-id=eu-2".into()), "{args:?}");
}

#[test]
fn nothing_of_others_is_asked_for_unless_it_is_switched_on() {
    for chart in Chart::ALL {
        let objects = chart.objects(&[&chart.least()]);
        for object in &objects {
            let group = object["apiVersion"].as_str().unwrap().split('/').next().unwrap().to_owned();
            let ours = ["v1", "apps", "policy", "networking.k8s.io", "rbac.authorization.k8s.io"];
            assert!(ours.contains(&group.as_str()), "{group}");
        }
    }
}

#[test]
fn disruption_budgets_are_of_the_version_the_server_has() {
    for chart in Chart::ALL {
        for (version, api) in [("1.20", "policy/v1beta1"), ("1.21", "policy/v1"), ("1.33", "policy/v1")] {
            let objects = chart.objects_for(&[&chart.least()], version);
            let budgets = of_kind(&objects, "PodDisruptionBudget");
            assert!(!budgets.is_empty());
            assert!(budgets.iter().all(|budget| budget["apiVersion"] == api), "{version}");
        }
    }
}

/// Every object that selects pods selects those of one program, and every Service has a port that its pods have.
#[test]
fn selectors_find_their_pods() {
    for chart in Chart::ALL {
        for base in bases(chart) {
            let objects = chart.objects(&[&base]);
            let pods: Vec<&Value> = objects
                .iter()
                .map(|object| &object["spec"]["template"])
                .filter(|pod| pod.is_object())
                .collect();
            for object in &objects {
                let spec = &object["spec"];
                let selector = match object["kind"].as_str().unwrap() {
                    "Service" => &spec["selector"],
                    "PodDisruptionBudget" => &spec["selector"]["matchLabels"],
                    "NetworkPolicy" => &spec["podSelector"]["matchLabels"],
                    _ => continue,
                };
                let selector = selector.as_object().unwrap();
                let chosen: Vec<&&Value> = pods
                    .iter()
                    .filter(|pod| {
                        selector.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value)
                    })
                    .collect();
                assert!(!chosen.is_empty(), "{} {}", object["kind"], object["metadata"]["name"]);
                for port in spec["ports"].as_array().into_iter().flatten() {
                    let there = chosen[0]["spec"]["containers"][0]["ports"].as_array().unwrap();
                    assert!(there.iter().any(|one| one["name"] == port["targetPort"]), "{port}");
                }
            }
            // A ServiceMonitor finds a Service.
            for monitor in of_kind(&objects, "ServiceMonitor") {
                let labels = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
                let found = of_kind(&objects, "Service").into_iter().filter(|service| {
                    labels.iter().all(|(key, value)| service["metadata"]["labels"][key] == *value)
                        && service["spec"]["ports"]
                            .as_array()
                            .unwrap()
                            .iter()
                            .any(|port| port["name"] == "metrics")
                });
                assert!(found.count() > 0, "{monitor}");
            }
        }
    }
}

#[test]
fn versions_come_from_one_place() {
    for chart in Chart::ALL {
        let about = chart.file("Chart.yaml");
        for field in ["version", "appVersion"] {
            assert_eq!(about[field], env!("CARGO_PKG_VERSION"), "{field} of {chart:?}");
        }
    }
}
