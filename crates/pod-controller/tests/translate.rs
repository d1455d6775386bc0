//! Pods and the requests they become, case by case.

use bigfleet_crds::{CapacityRequestSpec, INTERRUPTION_PENALTY};
use bigfleet_pod_controller::translate::{
    ClassDefaults, Penalties, Policy, Skip, Translation, Wanted, translate,
};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    });
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

fn wanted_by(pod: &Pod, policy: &Policy) -> Wanted {
    match translate(pod, policy) {
        Translation::Wanted(wanted) => *wanted,
        Translation::Skipped(skip) => panic!("skipped: {skip:?}"),
    }
}

fn wanted(spec: Value) -> Wanted {
    wanted_by(&pod(spec), &Policy::default())
}

/// Requirements as text, `key op values`.
fn requirements(spec: &CapacityRequestSpec) -> Vec<String> {
    let text = spec.requirements.iter().map(|r| format!("{} {} {}", r.key, r.operator, r.values.join("|")));
    text.map(|text| text.trim_end().to_owned()).collect()
}

/// Losses as text, `effect field`.
fn losses(wanted: &Wanted) -> Vec<String> {
    wanted.losses.iter().map(|loss| format!("{} {}", loss.effect.name(), loss.field)).collect()
}

fn terms(terms: Value) -> Value {
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
}

/// One alternative of `(key, operator, values)`.
fn term(expressions: &[(&str, &str, &[&str])]) -> Value {
    let expressions = expressions
        .iter()
        .map(|(key, operator, values)| json!({"key": key, "operator": operator, "values": values}));
    json!({"matchExpressions": expressions.collect::<Vec<_>>()})
}

#[test]
fn node_selectors_and_affinity_become_one_list() {
    const NARROWED: &[&str] = &["Narrowed spec.affinity.nodeAffinity"];
    const REFUSED: &[&str] = &["Refused spec.affinity.nodeAffinity"];
    let (a, b): (&[&str], &[&str]) = (&["a"], &["b"]);
    let cases: Vec<(&str, Value, &[&str], &[&str])> = vec![
        ("nothing", json!({}), &[], &[]),
        (
            "a selector",
            json!({"nodeSelector": {"disk": "ssd", "arch": "arm64"}}),
            &["arch In arm64", "disk In ssd"],
            &[],
        ),
        (
            "one term, with repeats and out of order",
            terms(json!([term(&[
                ("z", "In", &["b", "a", "b"]),
                ("gpu", "Exists", &[]),
                ("spot", "DoesNotExist", &[])
            ])])),
            &["gpu Exists", "spot DoesNotExist", "z In a|b"],
            &[],
        ),
        (
            "equal terms are one",
            terms(json!([term(&[("z", "In", &["a", "b"])]), term(&[("z", "In", &["b", "a"])])])),
            &["z In a|b"],
            &[],
        ),
        (
            "terms that differ in the values of one key are one list",
            terms(json!([
                term(&[("z", "In", a), ("gpu", "Exists", &[])]),
                term(&[("gpu", "Exists", &[]), ("z", "In", b)]),
                term(&[("z", "In", &["c", "a"]), ("gpu", "Exists", &[])]),
            ])),
            &["gpu Exists", "z In a|b|c"],
            &[],
        ),
        (
            "not in a, or not in b: only what is in both is excluded",
            terms(json!([term(&[("z", "NotIn", &["a", "b"])]), term(&[("z", "NotIn", &["b", "c"])])])),
            &["z NotIn b"],
            &[],
        ),
        (
            "which may be nothing",
            terms(json!([term(&[("z", "NotIn", a)]), term(&[("z", "NotIn", b)])])),
            &[],
            &[],
        ),
        (
            "a term that asks for nothing more makes the other moot",
            terms(json!([term(&[("z", "In", a)]), term(&[("z", "In", a), ("gpu", "Exists", &[])])])),
            &["z In a"],
            &[],
        ),
        (
            "terms that differ in more are carried in part, and that is said",
            terms(json!([
                term(&[("z", "In", a), ("disk", "In", &["ssd"])]),
                term(&[("z", "In", b), ("disk", "In", &["nvme"])]),
            ])),
            &["disk In ssd", "z In a"],
            NARROWED,
        ),
        (
            "different keys",
            terms(json!([term(&[("z", "In", a)]), term(&[("rack", "In", b)])])),
            &["z In a"],
            NARROWED,
        ),
        (
            "different operators",
            terms(json!([term(&[("z", "In", a)]), term(&[("z", "Exists", &[])])])),
            &["z In a"],
            NARROWED,
        ),
        ("an empty term matches nothing", terms(json!([{}, term(&[("z", "In", a)])])), &["z In a"], &[]),
        (
            "a comparison cannot be carried: it stays as it is, and nothing is asked for",
            terms(json!([term(&[("cores", "Gt", &["8"]), ("z", "In", a)])])),
            &["cores Gt 8", "z In a"],
            REFUSED,
        ),
        (
            "another term is taken instead",
            terms(json!([term(&[("cores", "Gt", &["8"])]), term(&[("z", "In", b)])])),
            &["z In b"],
            NARROWED,
        ),
        (
            "a term that names a node is not asked for",
            terms(json!([
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]},
                term(&[("z", "In", b)]),
            ])),
            &["z In b"],
            NARROWED,
        ),
    ];
    for (name, spec, expected, lost) in cases {
        let wanted = wanted(spec);
        assert_eq!(requirements(&wanted.spec), expected, "{name}");
        assert_eq!(losses(&wanted), lost, "{name}: {:?}", wanted.losses);
    }
}

#[test]
fn a_selector_and_affinity_hold_together() {
    let mut spec = terms(json!([term(&[("z", "In", &["a", "b"])])]));
    spec["nodeSelector"] = json!({"z": "a"});
    assert_eq!(requirements(&wanted(spec).spec), ["z In a", "z In a|b"]);
}

#[test]
fn labels_that_every_node_has_are_not_asked_of_machines() {
    let policy = Policy {
        node_labels: [("kubernetes.io/os".to_owned(), "linux".to_owned())].into(),
        ..Policy::default()
    };
    let of = |spec: Value| requirements(&wanted_by(&pod(spec), &policy).spec);
    assert_eq!(of(json!({"nodeSelector": {"kubernetes.io/os": "linux", "z": "a"}})), ["z In a"]);
    assert_eq!(of(json!({"nodeSelector": {"kubernetes.io/os": "windows"}})), ["kubernetes.io/os In windows"]);
    assert_eq!(of(terms(json!([term(&[("kubernetes.io/os", "NotIn", &["windows"])])]))), [""; 0]);
    assert_eq!(
        of(terms(json!([term(&[("kubernetes.io/os", "DoesNotExist", &[])])]))),
        ["kubernetes.io/os DoesNotExist"]
    );
}

#[test]
fn taints_of_machines_are_avoided_unless_tolerated() {
    let policy = Policy {
        machine_taints: vec![
            "dedicated=ml:NoSchedule@pool=ml".parse().unwrap(),
            "gpu:NoExecute@nvidia.com/gpu".parse().unwrap(),
        ],
        ..Policy::default()
    };
    let of = |tolerations: Value| {
        requirements(&wanted_by(&pod(json!({"tolerations": tolerations})), &policy).spec)
    };
    assert_eq!(of(json!([])), ["nvidia.com/gpu DoesNotExist", "pool NotIn ml"]);
    assert_eq!(of(json!([{"key": "gpu", "operator": "Exists"}])), ["pool NotIn ml"]);
    assert_eq!(
        of(json!([{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}])),
        ["nvidia.com/gpu DoesNotExist"]
    );
    assert_eq!(of(json!([{"operator": "Exists"}])), [""; 0]);
}

fn affinity(kind: &str, term: Value) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

#[test]
fn spread_affinity_and_anti_affinity_are_carried_where_they_speak_of_the_pod_itself() {
    let own = json!({"matchLabels": {"app": "web"}});
    let other = json!({"matchLabels": {"app": "db"}});
    let spread = |key: &str, selector: &Value, when: &str| {
        json!({"topologySpreadConstraints": [
            {"topologyKey": key, "maxSkew": 2, "whenUnsatisfiable": when, "labelSelector": selector}]})
    };
    let (zone, host) = ("topology.kubernetes.io/zone", "kubernetes.io/hostname");
    let near = |key: &str, selector: &Value| {
        affinity("podAffinity", json!({"topologyKey": key, "labelSelector": selector}))
    };
    let far = |key: &str, selector: &Value| {
        affinity("podAntiAffinity", json!({"topologyKey": key, "labelSelector": selector}))
    };
    let here = json!({"topologyKey": zone, "labelSelector": own, "namespaces": ["shop"]});
    let elsewhere = json!({"topologyKey": zone, "labelSelector": own, "namespaces": ["shop", "bank"]});
    let everywhere = json!({"topologyKey": zone, "labelSelector": own, "namespaceSelector": {}});
    let cases: Vec<(&str, Value, &str, &str, &[&str])> = vec![
        ("a strict spread", spread(zone, &own, "DoNotSchedule"), "zone:2", "", &[]),
        ("a wish is no demand", spread(zone, &own, "ScheduleAnyway"), "", "", &[]),
        (
            "a spread over nodes",
            spread(host, &own, "DoNotSchedule"),
            "",
            "",
            &["Crowded spec.topologySpreadConstraints"],
        ),
        (
            "a spread that counts others",
            spread(zone, &other, "DoNotSchedule"),
            "",
            "",
            &["Widened spec.topologySpreadConstraints"],
        ),
        ("a gang", near(zone, &own), "", zone, &[]),
        ("a gang on one machine", near(host, &own), "", host, &[]),
        ("a gang, its namespace named", affinity("podAffinity", here), "", zone, &[]),
        ("near others", near(zone, &other), "", "", &["Widened spec.affinity.podAffinity"]),
        (
            "near its like in other namespaces",
            affinity("podAffinity", elsewhere),
            "",
            "",
            &["Widened spec.affinity.podAffinity"],
        ),
        (
            "near its like anywhere",
            affinity("podAffinity", everywhere),
            "",
            "",
            &["Widened spec.affinity.podAffinity"],
        ),
        ("apart over zones", far(zone, &own), "zone:1", "", &[]),
        ("apart over nodes", far(host, &own), "", "", &["Crowded spec.affinity.podAntiAffinity"]),
        (
            "apart from others over nodes",
            far(host, &other),
            "",
            "",
            &["Crowded spec.affinity.podAntiAffinity"],
        ),
        (
            "apart from others over zones",
            far(zone, &other),
            "",
            "",
            &["Widened spec.affinity.podAntiAffinity"],
        ),
    ];
    for (name, spec, spread, gang, lost) in cases {
        let wanted = wanted(spec);
        let spreads = wanted.spec.topology_spread.iter().map(|spread| {
            assert_eq!(spread.when_unsatisfiable, "DoNotSchedule");
            format!("{}:{}", spread.topology_key.rsplit('/').next().unwrap(), spread.max_skew)
        });
        assert_eq!(spreads.collect::<Vec<_>>().join(","), spread, "{name}");
        let location = wanted.spec.co_location.as_ref();
        assert_eq!(location.map_or("", |location| location.topology_key.as_str()), gang, "{name}");
        assert_eq!(losses(&wanted), lost, "{name}: {:?}", wanted.losses);
    }
}

#[test]
fn a_request_carries_one_gang() {
    let term = |key: &str| json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}});
    let both = json!({"affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term("rack"), term("rack"), term("zone")]}}});
    let wanted = wanted(both);
    assert_eq!(wanted.spec.co_location.as_ref().unwrap().topology_key, "rack");
    assert_eq!(losses(&wanted), ["Widened spec.affinity.podAffinity"]);
    assert!(
        wanted.losses[0].sentence.contains("within rack, not the one within zone"),
        "{:?}",
        wanted.losses
    );
}

#[test]
fn parts_of_a_spread_that_are_not_carried_are_named() {
    let wanted = wanted(json!({"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, "minDomains": 3, "matchLabelKeys": ["app"]}]}));
    assert_eq!(wanted.spec.topology_spread.len(), 1);
    let said: Vec<&str> = wanted.losses.iter().map(|loss| loss.sentence.as_str()).collect();
    assert_eq!(
        said,
        [
            "the spread over zone is carried without its minDomains",
            "the spread over zone is carried without its matchLabelKeys"
        ]
    );
}

#[test]
fn what_no_request_has_a_place_for_is_said() {
    for (spec, lost) in [
        (
            json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}],
                "resources": {"requests": {"cpu": "1"}}}]}),
            "Crowded spec.containers.ports.hostPort",
        ),
        (
            json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}),
            "Widened spec.volumes.persistentVolumeClaim",
        ),
        (json!({"resourceClaims": [{"name": "gpu"}]}), "Widened spec.resourceClaims"),
        (json!({"containers": [{"name": "c"}]}), "Crowded spec.containers.resources"),
    ] {
        assert_eq!(losses(&wanted(spec.clone())), [lost], "{spec}");
    }
    let plain = wanted(json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
    assert_eq!(losses(&plain), [""; 0]);
}

#[test]
fn pods_that_ask_for_nothing_are_skipped_for_a_reason() {
    let of = |change: Value| {
        let mut pod = serde_json::to_value(pod(json!({}))).unwrap();
        for (path, value) in change.as_object().unwrap() {
            *pod.pointer_mut(path.rsplit_once('/').unwrap().0)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .entry(path.rsplit_once('/').unwrap().1)
                .or_insert(Value::Null) = value.clone();
        }
        match translate(&serde_json::from_value(pod).unwrap(), &Policy::default()) {
            Translation::Skipped(skip) => Some(skip),
            Translation::Wanted(_) => None,
        }
    };
    let owner = |api: &str, kind: &str| json!([{"apiVersion": api, "kind": kind, "name": "o", "uid": "o", "controller": true}]);
    let node_named = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]}]}}});
    let nowhere = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}});
    for (change, skip) in [
        (json!({}), None),
        (json!({"/status": {"phase": "Pending"}}), None),
        (json!({"/status": {"phase": "Running"}, "/spec/nodeName": "n"}), None),
        (json!({"/status": {"phase": "Unknown"}}), None),
        (json!({"/status": {"phase": "Succeeded"}}), Some(Skip::Over)),
        (json!({"/status": {"phase": "Failed"}}), Some(Skip::Over)),
        (json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}), Some(Skip::Over)),
        (json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z", "/spec/nodeName": "n"}), None),
        (json!({"/metadata/ownerReferences": owner("apps/v1", "DaemonSet")}), Some(Skip::DaemonSet)),
        (json!({"/metadata/ownerReferences": owner("example.com/v1", "DaemonSet")}), None),
        (json!({"/metadata/ownerReferences": owner("apps/v1", "ReplicaSet")}), None),
        (json!({"/metadata/ownerReferences": owner("v1", "Node")}), Some(Skip::Static)),
        (json!({"/metadata/annotations": {"kubernetes.io/config.mirror": "x"}}), Some(Skip::Mirror)),
        (json!({"/metadata/annotations": {"kubernetes.io/config.source": "file"}}), Some(Skip::Static)),
        (json!({"/metadata/annotations": {"kubernetes.io/config.source": "api"}}), None),
        (json!({"/spec/schedulerName": "default-scheduler"}), None),
        (json!({"/spec/schedulerName": "volcano"}), Some(Skip::ForeignScheduler)),
        (json!({"/spec/schedulingGates": [{"name": "quota"}]}), Some(Skip::Gated)),
        (json!({"/spec/schedulingGates": []}), None),
        (json!({"/spec/nodeSelector": {"kubernetes.io/hostname": "node-7"}}), Some(Skip::NodeBound)),
        (json!({"/spec/affinity": node_named}), Some(Skip::NodeBound)),
        (json!({"/spec/affinity": nowhere}), Some(Skip::NeverSchedulable)),
    ] {
        assert_eq!(of(change.clone()), skip, "{change}");
    }
}

#[test]
fn priority_and_penalties_are_carried() {
    let mut annotated = pod(json!({"priority": -7, "priorityClassName": "gold"}));
    annotated.metadata.annotations = Some([(INTERRUPTION_PENALTY.to_owned(), "2.5".to_owned())].into());
    let wanted = wanted_by(&annotated, &Policy::default());
    assert_eq!((wanted.spec.priority, wanted.class.as_deref()), (-7, Some("gold")));
    let class = ClassDefaults {
        penalties: Penalties {
            interruption: Some("9".into()),
            reclamation: Some("10".into()),
            ..Penalties::default()
        },
    };
    let request = wanted.request(Some(&class));
    assert_eq!(
        (request.interruption_penalty, request.reclamation_penalty),
        (Some("2500m".into()), Some("10".into()))
    );
    let request = wanted.request(None);
    assert_eq!((request.interruption_penalty, request.reclamation_penalty), (Some("2500m".into()), None));
}

/// A pod may be a megabyte. Its request is small, and what is left out is said.
#[test]
fn a_giant_pod_becomes_a_small_request_in_little_time() {
    let many: Vec<Value> = (0..5000)
        .map(|n| term(&[("z", "In", &[&format!("v{n}")]), (&format!("k{n}"), "Exists", &[])]))
        .collect();
    let giant = wanted(terms(json!(many)));
    assert_eq!(losses(&giant), ["Narrowed spec.affinity.nodeAffinity"]);
    let values: Vec<String> = (0..20_000).map(|n| format!("v{n}")).collect();
    let giant =
        wanted(terms(json!([{"matchExpressions": [{"key": "z", "operator": "In", "values": values}]}])));
    assert_eq!(losses(&giant), ["Refused spec.affinity.nodeAffinity"]);
    assert!(serde_json::to_string(&giant.spec).unwrap().len() < 1000);
    let limits: serde_json::Map<_, _> =
        (0..3000).map(|n| (format!("example.com/r{n}"), json!("1"))).collect();
    let giant = wanted(json!({"containers": [{"name": "c", "resources": {"limits": limits}}]}));
    assert_eq!(giant.spec.resources.len(), 64);
    assert_eq!(losses(&giant), ["Widened spec.containers.resources"]);
}
