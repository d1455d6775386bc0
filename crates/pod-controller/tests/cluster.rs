//! The pod controller on a real control plane, as a service account with the rights of the manifest and no others.

mod support;

use bigfleet_kube_testbed::{ControlPlane, Parts, eventually, scenarios};
use bigfleet_pod_controller::request_name;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use bigfleet_crds::{CapacityRequest, INTERRUPTION_PENALTY, RequestPhase};
use support::{controller, metric, own_controller, pod, replica};

#[test]
fn on_a_real_control_plane() {
    scenarios(
        Parts::Controllers,
        4,
        scenarios![
            a_pod_has_its_request_and_both_go_together,
            a_pod_that_has_ended_asks_for_nothing,
            what_is_not_carried_is_an_event_a_condition_and_a_metric,
            an_edited_or_deleted_request_is_put_right,
            restarts_and_two_controllers_make_no_second_request,
            owners_take_their_requests_with_them_without_the_controller,
            a_priority_class_gives_its_pods_their_penalties,
            the_leader_hands_over,
            ten_thousand_hostile_objects_do_not_stop_it,
        ],
    );
}

async fn requests(plane: &ControlPlane, namespace: &str) -> Vec<CapacityRequest> {
    let api: Api<CapacityRequest> = Api::namespaced(plane.client().await, namespace);
    api.list(&ListParams::default()).await.unwrap().items
}

async fn request_of(plane: &ControlPlane, pod: &Pod) -> CapacityRequest {
    let api: Api<CapacityRequest> = Api::namespaced(plane.client().await, &pod.namespace().unwrap());
    let name = request_name(&pod.uid().unwrap());
    eventually(&format!("{name} of {}", pod.name_any()), async || api.get_opt(&name).await.unwrap()).await
}

async fn a_pod_has_its_request_and_both_go_together(plane: &ControlPlane, namespace: String) {
    controller(plane).await;
    let pods: Api<Pod> = Api::namespaced(plane.client().await, &namespace);
    let web = pod(
        "web",
        json!({
            "nodeSelector": {"disk": "ssd"},
            "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            "initContainers": [{"name": "i", "image": "none", "resources": {"requests": {"cpu": "2"}}}],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "web"}}}]}},
            "topologySpreadConstraints": [{"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}],
        }),
    );
    let web = pods.create(&PostParams::default(), &web).await.unwrap();
    let request = request_of(plane, &web).await;
    assert_eq!(
        serde_json::to_value(&request.spec).unwrap(),
        json!({
            "requirements": [{"key": "disk", "operator": "In", "values": ["ssd"]}],
            "resources": {"cpu": "2", "memory": "1Gi"},
            "priority": 0,
            "topologySpread": [{"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
            "coLocation": {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "web"}}},
        })
    );
    let owner = &request.owner_references()[0];
    assert_eq!((owner.kind.as_str(), &owner.uid, owner.controller), ("Pod", &web.uid().unwrap(), Some(true)));
    assert_eq!(request.labels()[bigfleet_crds::OWNED_BY_POD], web.uid().unwrap());
    pods.delete("web", &DeleteParams::default().grace_period(0)).await.unwrap();
    eventually("no request", async || requests(plane, &namespace).await.is_empty().then_some(())).await;
}

async fn a_pod_that_has_ended_asks_for_nothing(plane: &ControlPlane, namespace: String) {
    controller(plane).await;
    let pods: Api<Pod> = Api::namespaced(plane.client().await, &namespace);
    let job = pods.create(&PostParams::default(), &pod("job", json!({}))).await.unwrap();
    request_of(plane, &job).await;
    let done = json!({"status": {"phase": "Succeeded"}});
    pods.patch_status("job", &PatchParams::default(), &Patch::Merge(&done)).await.unwrap();
    eventually("no request", async || requests(plane, &namespace).await.is_empty().then_some(())).await;
    assert!(pods.get_opt("job").await.unwrap().is_some(), "the pod is still there");
}

async fn what_is_not_carried_is_an_event_a_condition_and_a_metric(plane: &ControlPlane, namespace: String) {
    let running = controller(plane).await;
    let client = plane.client().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let mut odd = pod(
        "odd",
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["8"]}]}]}}}}),
    );
    odd.metadata.annotations = Some([(INTERRUPTION_PENALTY.to_owned(), "much".to_owned())].into());
    let odd = pods.create(&PostParams::default(), &odd).await.unwrap();
    let api: Api<CapacityRequest> = Api::namespaced(client.clone(), &namespace);
    let name = request_name(&odd.uid().unwrap());
    let status = eventually("conditions", async || api.get_opt(&name).await.unwrap()?.status).await;
    assert_eq!(status.phase, RequestPhase::Pending);
    let said: Vec<(&str, &str)> =
        status.conditions.iter().map(|c| (c.type_.as_str(), c.reason.as_str())).collect();
    assert_eq!(said, [("Carried", "Refused"), ("PenaltiesRead", "BadAnnotation")]);
    assert!(
        status.conditions[0]
            .message
            .contains("spec.affinity.nodeAffinity: the operator Gt cannot be carried")
    );
    assert!(
        status.conditions[1].message.contains("does not begin with a number"),
        "{:?}",
        status.conditions[1]
    );

    let events: Api<Event> = Api::namespaced(client, &namespace);
    let told = eventually("two events", async || {
        let about = ListParams::default().fields("involvedObject.name=odd,type=Warning");
        let mut told = events.list(&about).await.unwrap().items;
        told.retain(|event| {
            event.source.as_ref().is_some_and(|s| s.component.as_deref() == Some("bigfleet-pod-controller"))
        });
        (told.len() == 2).then_some(told)
    });
    let mut reasons: Vec<String> = told.await.into_iter().filter_map(|event| event.reason).collect();
    reasons.sort();
    assert_eq!(reasons, ["NotCarried", "PenaltyNotRead"]);
    let text = metric(running).await;
    assert!(text.contains(r#"not_carried{field="spec.affinity.nodeAffinity",effect="Refused"}"#), "{text}");
    assert!(text.contains(&format!(r#"bad_penalties{{annotation="{INTERRUPTION_PENALTY}"}}"#)), "{text}");

    // The operator's word about the phase stays when conditions change again.
    let acknowledged = json!({"status": {"phase": "Acknowledged"}});
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&acknowledged)).await.unwrap();
    let mended = json!({"metadata": {"annotations": {INTERRUPTION_PENALTY: "3"}}});
    pods.patch("odd", &PatchParams::default(), &Patch::Merge(&mended)).await.unwrap();
    let status = eventually("one condition", async || {
        api.get(&name).await.unwrap().status.filter(|status| status.conditions.len() == 1)
    });
    assert_eq!(status.await.phase, RequestPhase::Acknowledged);
    assert_eq!(api.get(&name).await.unwrap().spec.interruption_penalty, Some("3".into()));
}

async fn an_edited_or_deleted_request_is_put_right(plane: &ControlPlane, namespace: String) {
    controller(plane).await;
    let client = plane.client().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let web = pods.create(&PostParams::default(), &pod("web", json!({}))).await.unwrap();
    let right = request_of(plane, &web).await;
    let api: Api<CapacityRequest> = Api::namespaced(client, &namespace);
    let edit = json!({"spec": {"priority": 1_000_000, "resources": {"cpu": "64"}}});
    api.patch(&right.name_any(), &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    eventually("the request as it was", async || {
        (api.get(&right.name_any()).await.unwrap().spec == right.spec).then_some(())
    })
    .await;
    api.delete(&right.name_any(), &DeleteParams::default()).await.unwrap();
    eventually("another request", async || {
        api.get_opt(&right.name_any()).await.unwrap().filter(|found| found.uid() != right.uid())
    })
    .await;
}

async fn restarts_and_two_controllers_make_no_second_request(plane: &ControlPlane, namespace: String) {
    const PODS: usize = 120;
    controller(plane).await;
    let client = plane.client().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let making = async {
        for number in 0..PODS {
            pods.create(&PostParams::default(), &pod(&format!("p{number}"), json!({}))).await.unwrap();
        }
    };
    // Without an election, beside the other one: as bad as it gets.
    let restarting = async {
        for _ in 0..6 {
            let other = own_controller(plane).await;
            eventually("it has begun", async || metric(&other).await.contains("requests ").then_some(()))
                .await;
            other.stop().await;
        }
    };
    futures::join!(making, restarting);
    let all = eventually("a request for every pod", async || {
        let all = requests(plane, &namespace).await;
        (all.len() >= PODS).then_some(all)
    })
    .await;
    let mut expected: Vec<String> = pods
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .iter()
        .map(|pod| request_name(&pod.uid().unwrap()))
        .collect();
    expected.sort();
    let mut found: Vec<String> = all.iter().map(kube::ResourceExt::name_any).collect();
    found.sort();
    assert_eq!(found, expected);
    assert!(all.iter().all(|request| request.metadata.generation == Some(1)), "each was written once");
}

async fn owners_take_their_requests_with_them_without_the_controller(
    plane: &ControlPlane,
    namespace: String,
) {
    controller(plane).await;
    let client = plane.client().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let owner = pods.create(&PostParams::default(), &pod("owner", json!({}))).await.unwrap();
    let mut copy = request_of(plane, &owner).await;
    // The same owner reference; without our label, so that only the garbage collector can know.
    copy.metadata = kube::api::ObjectMeta {
        name: Some("copy".into()),
        owner_references: copy.metadata.owner_references,
        ..kube::api::ObjectMeta::default()
    };
    let api: Api<CapacityRequest> = Api::namespaced(client, &namespace);
    api.create(&PostParams::default(), &copy).await.unwrap();
    pods.delete("owner", &DeleteParams::default().grace_period(0)).await.unwrap();
    eventually("collected", async || api.get_opt("copy").await.unwrap().is_none().then_some(())).await;
}

async fn a_priority_class_gives_its_pods_their_penalties(plane: &ControlPlane, namespace: String) {
    controller(plane).await;
    let client = plane.client().await;
    let classes: Api<PriorityClass> = Api::all(client.clone());
    let class = |dollars: &str| -> PriorityClass {
        serde_json::from_value(json!({"metadata": {"name": "gold", "annotations": {INTERRUPTION_PENALTY: dollars}}, "value": 900})).unwrap()
    };
    classes.create(&PostParams::default(), &class("16")).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let web = pods.create(&PostParams::default(), &pod("web", json!({"priorityClassName": "gold"}))).await;
    let web = match web {
        Ok(web) => web,
        // The server's own cache of classes may lag behind.
        Err(_) => {
            eventually("the class is known", async || {
                pods.create(&PostParams::default(), &pod("web", json!({"priorityClassName": "gold"})))
                    .await
                    .ok()
            })
            .await
        }
    };
    let api: Api<CapacityRequest> = Api::namespaced(client, &namespace);
    let name = request_name(&web.uid().unwrap());
    let penalty = async |dollars: &str| {
        eventually(&format!("a penalty of {dollars}"), async || {
            let spec = api.get_opt(&name).await.unwrap()?.spec;
            (spec.interruption_penalty == Some(dollars.into()) && spec.priority == 900).then_some(())
        })
        .await;
    };
    penalty("16").await;
    classes.patch("gold", &PatchParams::default(), &Patch::Merge(&class("32"))).await.unwrap();
    penalty("32").await;
}

async fn the_leader_hands_over(plane: &ControlPlane, namespace: String) {
    let (first, second) = (replica(plane, "first").await, replica(plane, "second").await);
    let leads =
        async |running: &bigfleet_pod_controller::Running| metric(running).await.contains("leading 1");
    eventually("one leads", async || (leads(&first).await ^ leads(&second).await).then_some(())).await;
    let (leader, other) = if leads(&first).await { (first, second) } else { (second, first) };
    leader.stop().await;
    eventually("the other leads", async || leads(&other).await.then_some(())).await;
    let pods: Api<Pod> = Api::namespaced(plane.client().await, &namespace);
    let web = pods.create(&PostParams::default(), &pod("web", json!({}))).await.unwrap();
    request_of(plane, &web).await;
    other.stop().await;
}

async fn ten_thousand_hostile_objects_do_not_stop_it(plane: &ControlPlane, namespace: String) {
    const OBJECTS: usize = 10_000;
    let running = controller(plane).await;
    let client = plane.client().await;
    let api: Api<CapacityRequest> = Api::namespaced(client.clone(), &namespace);
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let hostile = |number: usize| -> CapacityRequest {
        let spec = match number % 5 {
            0 => json!({"priority": i32::MIN, "resources": {"cpu": "1e99", "x": "-5"}}),
            1 => {
                json!({"priority": 1, "resources": {}, "requirements": [{"key": "", "operator": "\u{0}Like\n", "values": ["\u{1b}[31m"]}]})
            }
            2 => {
                json!({"priority": 1, "resources": {"cpu": 7}, "topologySpread": [{"topologyKey": "", "maxSkew": -1, "whenUnsatisfiable": "?"}]})
            }
            3 if number % 500 == 3 => json!({"priority": 1, "resources": {"cpu": "1"},
                "requirements": [{"key": "k", "operator": "In", "values": vec!["v".repeat(1000); 400]}]}),
            _ => {
                json!({"priority": i32::MAX, "resources": {"cpu": "1"}, "interruptionPenalty": "9999999999999999999E"})
            }
        };
        // Half of them claim to speak for pods that nobody has, some for one pod, some for a name that is no UID.
        let label = match number % 4 {
            0 | 1 => format!("nobody-{number}"),
            2 => "the-same".into(),
            _ => String::new(),
        };
        serde_json::from_value(json!({
            "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest",
            "metadata": {"name": format!("hostile-{number}"), "labels": {bigfleet_crds::OWNED_BY_POD: label}}, "spec": spec,
        }))
        .unwrap()
    };
    let flood = futures::stream::iter(0..OBJECTS).for_each_concurrent(32, |number| {
        let (api, hostile) = (&api, hostile(number));
        async move {
            api.create(&PostParams::default(), &hostile).await.unwrap();
        }
    });
    let between = async {
        for number in 0..5 {
            let web =
                pods.create(&PostParams::default(), &pod(&format!("web-{number}"), json!({}))).await.unwrap();
            request_of(plane, &web).await;
        }
    };
    futures::join!(flood, between);
    let after = pods.create(&PostParams::default(), &pod("after", json!({}))).await.unwrap();
    request_of(plane, &after).await;
    let text = metric(running).await;
    assert!(text.contains("watch_errors_total") || !text.contains("cause="), "no watch broke off: {text}");
}
