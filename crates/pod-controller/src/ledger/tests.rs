//! What follows from pods and requests, news by news.

use bigfleet_crds::{CapacityRequest, INTERRUPTION_PENALTY};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::object::{request, status};
use crate::translate::Penalties;

fn pod(uid: &str, change: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": format!("pod-of-{uid}"), "namespace": "shop", "uid": uid},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending"},
    });
    merge(&mut pod, change);
    serde_json::from_value(pod).unwrap()
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

/// What the server would hold after the step.
fn written(ledger: &mut Ledger, step: &Step) {
    match step {
        Step::Apply { pod, spec } => {
            let mut object = request(pod, spec);
            let before = ledger.requests_of(&pod.uid).map(|(_, entry)| entry.clone()).next();
            if let Some(before) = before.filter(|before| !before.conditions.is_empty()) {
                object["status"] = json!({"phase": "Pending", "conditions": before.conditions});
            }
            seen(ledger, object);
        }
        Step::Status { pod, conditions } => {
            let Some(entry) = ledger.pods.get(&pod.uid) else { panic!("no such pod") };
            let wanted = entry.wanted.as_ref().unwrap();
            let mut object = request(pod, &wanted.request(ledger.class_of(wanted)));
            let found: CapacityRequest = serde_json::from_value(object.clone()).unwrap();
            object["status"] = status(&found, conditions)["status"].clone();
            seen(ledger, object);
        }
        Step::Delete { namespace, name, .. } => {
            let owners: Vec<Uid> = ledger.requests.keys().map(|(pod, _)| pod.clone()).collect();
            for pod in &owners {
                ledger.forget_request(pod, &(namespace.clone(), name.clone()));
            }
        }
    }
}

fn seen(ledger: &mut Ledger, object: Value) {
    let request: CapacityRequest = serde_json::from_value(object).unwrap();
    ledger.request(&request.metadata, Some(&request));
}

/// Does what follows until nothing does, and says what it was.
fn settle(ledger: &mut Ledger) -> Vec<String> {
    let mut done = Vec::new();
    while let Some(uid) = ledger.pop() {
        if let Some(step) = ledger.next(&uid, 0) {
            done.push(format!("{} {uid}", step.name()));
            written(ledger, &step);
            ledger.mark(uid);
        }
        assert!(done.len() < 100, "it does not come to rest: {done:?}");
    }
    done
}

#[test]
fn a_pod_has_one_request_from_beginning_to_end() {
    let mut ledger = Ledger::new(Policy::default());
    ledger.pod(&pod("a", json!({})));
    assert_eq!(settle(&mut ledger), ["apply a"]);
    ledger.pod(&pod("a", json!({"status": {"phase": "Running"}, "spec": {"nodeName": "n"}})));
    assert_eq!(settle(&mut ledger), [""; 0]);
    ledger.pod(&pod(
        "a",
        json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}),
    ));
    assert_eq!(settle(&mut ledger), ["apply a"], "a resized pod");
    ledger.pod(&pod("a", json!({"status": {"phase": "Succeeded"}})));
    assert_eq!(settle(&mut ledger), ["delete a"]);
    ledger.pod_gone("a");
    assert_eq!(settle(&mut ledger), [""; 0]);
    assert_eq!(ledger.tally(), &Tally { skipped: BTreeMap::from([(Skip::Over, 0)]), ..Tally::default() });
}

#[test]
fn news_twice_or_in_any_order_change_nothing() {
    let mut ledger = Ledger::new(Policy::default());
    let a = pod("a", json!({}));
    ledger.pod(&a);
    settle(&mut ledger);
    ledger.pod(&a);
    ledger.pods_begin();
    ledger.pod(&a);
    ledger.pods_end();
    assert_eq!(settle(&mut ledger), [""; 0]);
    // After a restart the requests are heard of first.
    let mut restarted = Ledger::new(Policy::default());
    restarted.requests.clone_from(&ledger.requests);
    restarted.pod(&a);
    assert_eq!(settle(&mut restarted), [""; 0]);
}

#[test]
fn what_a_new_list_lacks_is_gone() {
    let mut ledger = Ledger::new(Policy::default());
    for uid in ["a", "b"] {
        ledger.pod(&pod(uid, json!({})));
    }
    settle(&mut ledger);
    ledger.pods_begin();
    ledger.pod(&pod("b", json!({})));
    ledger.pods_end();
    assert_eq!(settle(&mut ledger), ["delete a"]);
    ledger.requests_begin();
    ledger.requests_end();
    assert_eq!(settle(&mut ledger), ["apply b"], "somebody deleted it while we did not look");
}

#[test]
fn an_edited_a_stripped_and_an_unreadable_request_are_put_right() {
    let mut ledger = Ledger::new(Policy::default());
    ledger.pod(&pod("a", json!({})));
    settle(&mut ledger);
    let name = ledger.pods["a"].name.clone();
    let spec = ledger.pods["a"].wanted.as_ref().unwrap().spec.clone();
    seen(&mut ledger, request(&name, &CapacityRequestSpec { priority: 9, ..spec.clone() }));
    assert_eq!(settle(&mut ledger), ["apply a"]);
    let mut stripped = request(&name, &spec);
    stripped["metadata"]["ownerReferences"] = json!([]);
    seen(&mut ledger, stripped);
    assert_eq!(settle(&mut ledger), ["apply a"]);
    let whole: CapacityRequest = serde_json::from_value(request(&name, &spec)).unwrap();
    ledger.request(&whole.metadata, None);
    assert_eq!(settle(&mut ledger), ["apply a"]);
}

#[test]
fn a_second_request_for_a_pod_goes_once_the_right_one_is_there() {
    let mut ledger = Ledger::new(Policy::default());
    let name = PodName { namespace: "shop".into(), name: "pod-of-a".into(), uid: "a".into() };
    let mut older = request(&name, &CapacityRequestSpec::default());
    older["metadata"]["name"] = json!("cr-pod-web-x7k2p");
    seen(&mut ledger, older);
    ledger.pod(&pod("a", json!({})));
    assert_eq!(settle(&mut ledger), ["apply a", "delete a"]);
    assert_eq!(ledger.requests_of("a").map(|(place, _)| &*place.1).collect::<Vec<_>>(), ["pod-a"]);
}

#[test]
fn what_is_not_carried_is_said_and_taken_back() {
    let mut ledger = Ledger::new(Policy::default());
    let port = json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 1}],
        "resources": {"requests": {"cpu": "1"}}}]}});
    ledger.pod(&pod("a", port));
    assert_eq!(settle(&mut ledger), ["apply a", "status a"]);
    assert_eq!(ledger.tally().losses, BTreeMap::from([(("spec.containers.ports.hostPort", "Crowded"), 1)]));
    ledger.pod(&pod("a", json!({})));
    assert_eq!(settle(&mut ledger), ["status a"]);
    assert_eq!(ledger.tally().losses, BTreeMap::from([(("spec.containers.ports.hostPort", "Crowded"), 0)]));
    assert!(ledger.requests_of("a").all(|(_, entry)| entry.conditions.is_empty()));
}

#[test]
fn a_priority_class_speaks_for_its_pods_where_they_say_nothing() {
    let defaults = |dollars: &str| {
        let annotations = BTreeMap::from([(INTERRUPTION_PENALTY.to_owned(), dollars.to_owned())]);
        Some(ClassDefaults { penalties: Penalties::read(Some(&annotations)) })
    };
    let mut ledger = Ledger::new(Policy::default());
    ledger.class("gold", defaults("4"));
    let of_class = json!({"spec": {"priorityClassName": "gold"}});
    ledger.pod(&pod("a", of_class.clone()));
    let mut own = of_class;
    merge(&mut own, json!({"metadata": {"annotations": {INTERRUPTION_PENALTY: "1"}}}));
    ledger.pod(&pod("b", own));
    ledger.pod(&pod("c", json!({})));
    assert_eq!(settle(&mut ledger), ["apply a", "apply b", "apply c"]);
    ledger.class("gold", defaults("8"));
    assert_eq!(settle(&mut ledger), ["apply a"]);
    ledger.class("gold", defaults("eight"));
    assert_eq!(
        settle(&mut ledger),
        ["apply a", "status a", "status b"],
        "both are told that their class is in error"
    );
    ledger.classes_begin();
    ledger.classes_end();
    assert_eq!(settle(&mut ledger), ["status a", "status b"]);
}

#[test]
fn a_refused_request_is_not_offered_again_until_it_is_another() {
    let mut ledger = Ledger::new(Policy::default());
    ledger.pod(&pod("a", json!({})));
    let Some(Step::Apply { spec, .. }) = ledger.next("a", 0) else { panic!() };
    ledger.refuse("a", &spec);
    assert_eq!(ledger.next("a", 0), None);
    assert_eq!(ledger.tally().refused, 1);
    ledger.pod(&pod("a", json!({"spec": {"priority": 5}})));
    assert_eq!(ledger.tally().refused, 0);
    assert_eq!(settle(&mut ledger), ["apply a"]);
}
