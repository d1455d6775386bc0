//! What a pod requests in all: cases by hand, and random pods against the rules written down once more.

use std::collections::BTreeMap;

use bigfleet_model::quantity::Quantity;
use bigfleet_pod_controller::translate::{Policy, Translation, Wanted, translate};
use proptest::prelude::*;
use serde_json::{Value, json};

fn wanted(spec: &Value) -> Wanted {
    let pod = serde_json::from_value(json!({"metadata": {"name": "p", "uid": "u"}, "spec": spec})).unwrap();
    match translate(&pod, &Policy::default()) {
        Translation::Wanted(wanted) => *wanted,
        Translation::Skipped(skip) => panic!("skipped: {skip:?}"),
    }
}

fn asks(spec: &Value) -> BTreeMap<String, String> {
    wanted(spec).spec.resources.into_iter().map(|(name, amount)| (name, amount.0)).collect()
}

#[test]
fn cases_by_hand() {
    let container = |cpu: &str, memory: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}});
    let sidecar = |cpu: &str, memory: &str| {
        let mut sidecar = container(cpu, memory);
        sidecar["restartPolicy"] = json!("Always");
        sidecar
    };
    let (app, app2) = (container("500m", "1Gi"), container("1", "512Mi"));
    for (name, spec, cpu, memory) in [
        ("a sum", json!({"containers": [app, app2]}), "1500m", "1536Mi"),
        (
            "a large init container",
            json!({"containers": [app], "initContainers": [container("4", "16Mi")]}),
            "4",
            "1Gi",
        ),
        (
            "init containers run one by one",
            json!({"containers": [app], "initContainers": [container("2", "0"), container("3", "2Gi")]}),
            "3",
            "2Gi",
        ),
        (
            "a sidecar runs beside",
            json!({"containers": [app], "initContainers": [sidecar("1", "1Gi")]}),
            "1500m",
            "2Gi",
        ),
        (
            "an init container after a sidecar runs beside it",
            json!({"containers": [app], "initContainers": [sidecar("1", "1Gi"), container("4", "1Gi")]}),
            "5",
            "2Gi",
        ),
        (
            "one before it does not",
            json!({"containers": [app], "initContainers": [container("4", "1Gi"), sidecar("1", "1Gi")]}),
            "4",
            "2Gi",
        ),
        (
            "overhead",
            json!({"containers": [app], "overhead": {"cpu": "250m", "memory": "64Mi"}}),
            "750m",
            "1088Mi",
        ),
        (
            "the pod as a whole, with overhead on top",
            json!({"containers": [app], "resources": {"requests": {"cpu": "2", "memory": "3Gi"}}, "overhead": {"cpu": "100m"}}),
            "2100m",
            "3Gi",
        ),
        (
            "a limit stands for a request that is not there",
            json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]}),
            "1",
            "1Gi",
        ),
    ] {
        let expected =
            BTreeMap::from([("cpu".to_owned(), cpu.to_owned()), ("memory".to_owned(), memory.to_owned())]);
        assert_eq!(asks(&spec), expected, "{name}");
    }
}

#[test]
fn what_is_said_for_the_whole_pod_replaces_only_what_may_be_said_there() {
    let spec = json!({
        "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"}}}],
        "resources": {"requests": {"nvidia.com/gpu": "9", "hugepages-2Mi": "8Mi"}},
    });
    assert_eq!(
        asks(&spec),
        BTreeMap::from([("hugepages-2Mi".into(), "8Mi".into()), ("nvidia.com/gpu".into(), "1".into())])
    );
}

#[test]
fn an_amount_that_cannot_be_read_is_carried_as_it_stands_and_said() {
    for text in ["1e99", "-1", "lots", ""] {
        let wanted = wanted(&json!({"containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            {"name": "b", "resources": {"requests": {"cpu": text}}},
        ]}));
        assert_eq!(wanted.spec.resources["cpu"].0, text);
        assert_eq!(wanted.spec.resources["memory"].0, "1Gi");
        assert_eq!(wanted.losses.len(), 1, "{:?}", wanted.losses);
        assert_eq!(wanted.losses[0].effect.name(), "Refused");
    }
}

/// A container: millicpus, bytes, and whether it is a sidecar.
type Drawn = (u64, u64, bool);

fn containers() -> impl Strategy<Value = Vec<Drawn>> {
    prop::collection::vec((0_u64..8000, 0_u64..1 << 40, any::<bool>()), 0..6)
}

fn object((cpu, memory, sidecar): &Drawn) -> Value {
    let mut object = json!({"name": "c", "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": memory.to_string()}}});
    if *sidecar {
        object["restartPolicy"] = json!("Always");
    }
    object
}

proptest! {
    /// The largest moment of a pod's life, played through second by second in one dimension at a time.
    #[test]
    fn the_request_is_the_largest_moment_of_a_pods_life(
        apps in containers().prop_filter("a pod runs something", |apps| !apps.is_empty()),
        inits in containers(),
        overhead in 0_u64..1000,
    ) {
        let apps: Vec<Drawn> = apps.into_iter().map(|(cpu, memory, _)| (cpu, memory, false)).collect();
        let spec = json!({
            "containers": apps.iter().map(object).collect::<Vec<_>>(),
            "initContainers": inits.iter().map(object).collect::<Vec<_>>(),
            "overhead": {"cpu": format!("{overhead}m")},
        });
        let largest = |of: fn(&Drawn) -> u64| {
            let mut beside = 0;
            let mut most = 0;
            for init in &inits {
                most = most.max(beside + of(init));
                beside += if init.2 { of(init) } else { 0 };
            }
            most.max(beside + apps.iter().map(of).sum::<u64>())
        };
        let cpu = Quantity::from_milli(largest(|drawn| drawn.0) + overhead);
        let memory = Quantity::from_units(largest(|drawn| drawn.1));
        let found = asks(&spec);
        let read = |name: &str| found.get(name).map_or(Quantity::ZERO, |text| text.parse().unwrap());
        prop_assert_eq!(read("cpu"), cpu);
        prop_assert_eq!(read("memory"), memory);
        prop_assert!(found.values().all(|text| text != "0"), "{found:?}");
    }

    /// Whatever a container says, the answer is a request, and asking for more never gives less.
    #[test]
    fn any_text_gives_a_request(texts in prop::collection::vec("[0-9.eEKMGinum+-]{0,12}", 1..5), more in 1_u64..100) {
        let container = |text: &String| json!({"name": "c", "resources": {"requests": {"cpu": text}}});
        let mut all: Vec<Value> = texts.iter().map(container).collect();
        let before = wanted(&json!({"containers": all}));
        all.push(container(&more.to_string()));
        let after = wanted(&json!({"containers": all}));
        let readable = texts.iter().all(|text| text.parse::<Quantity>().is_ok_and(|amount| !amount.is_negative()));
        prop_assert_eq!(after.losses.is_empty(), readable, "{:?}", after.losses);
        if readable {
            let read = |wanted: &Wanted| wanted.spec.resources.get("cpu").map_or(Quantity::ZERO, |text| text.0.parse().unwrap());
            prop_assert!(read(&after) > read(&before) || read(&after) == Quantity::MAX);
        }
    }
}
