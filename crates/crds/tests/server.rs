//! The definitions on a real API server: what it takes, what it refuses, what it shows.

use bigfleet_crds::{
    AvailableCapacity, CapacityRequest, Condition, ConditionStatus, RequestPhase, UpcomingNode,
    set_condition, yaml,
};
use bigfleet_kube_common::{install, server_version, time};
use bigfleet_kube_testbed::{ControlPlane, Identity, Parts, eventually, scenarios};
use bigfleet_net::SystemClock;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[test]
fn on_a_real_api_server() {
    scenarios(
        Parts::ApiServer,
        4,
        scenarios![
            objects_come_back_as_they_were_written,
            the_status_is_a_thing_apart,
            two_writers_share_a_status,
            server_side_apply_owns_the_spec,
            columns_are_shown,
            bad_objects_are_refused,
            whole_numbers_are_read,
            kubectl_applies_what_is_printed,
        ],
    );
}

async fn client(plane: &ControlPlane) -> Client {
    let client = plane.client().await;
    install(&client, &SystemClock::start()).await.unwrap();
    client
}

fn request(name: &str) -> Value {
    json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest", "metadata": {"name": name},
        "spec": {
            "requirements": [{"key": "zone", "operator": "In", "values": ["a", "b"]}, {"key": "gpu", "operator": "Exists"}],
            "resources": {"cpu": "1500m", "memory": "1.5Gi", "nvidia.com/gpu": "1"},
            "priority": -5,
            "interruptionPenalty": "2.5", "reclamationPenalty": "0",
            "topologySpread": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
            "coLocation": {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["x"]}]}},
        },
    })
}

fn node() -> Value {
    json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "UpcomingNode", "metadata": {"name": "m-1"},
        "spec": {"labels": {"zone": "a"}, "resources": {"cpu": "8"}, "taints": [{"key": "k", "effect": "NoSchedule", "value": "v"}]},
    })
}

fn capacity(name: &str) -> Value {
    json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "AvailableCapacity", "metadata": {"name": name},
        "spec": {"availability": "Low", "availableCount": 3, "cost": "0.12",
            "requirements": [{"key": "zone", "operator": "In", "values": ["a"]}], "resources": {"cpu": "8"}},
    })
}

async fn created<K>(api: &Api<K>, object: &Value) -> K
where
    K: Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let typed: K = serde_json::from_value(object.clone()).unwrap();
    api.create(&PostParams::default(), &typed).await.unwrap()
}

async fn objects_come_back_as_they_were_written(plane: &ControlPlane, namespace: String) {
    let client = client(plane).await;
    let written =
        created(&Api::<CapacityRequest>::namespaced(client.clone(), &namespace), &request("all")).await;
    assert_eq!(serde_json::to_value(&written.spec).unwrap(), request("all")["spec"]);
    let written = created(&Api::<UpcomingNode>::all(client.clone()), &node()).await;
    assert_eq!(serde_json::to_value(&written.spec).unwrap(), node()["spec"]);
    let written = created(&Api::<AvailableCapacity>::all(client), &capacity("c-1")).await;
    assert_eq!(serde_json::to_value(&written.spec).unwrap(), capacity("c-1")["spec"]);
}

fn condition(type_: &str, message: &str) -> Condition {
    Condition {
        type_: type_.into(),
        status: ConditionStatus::True,
        reason: "Test".into(),
        message: message.into(),
        last_transition_time: time(1_700_000_000_000_000_000),
        observed_generation: Some(1),
        expected_time: Some(time(1_700_000_060_000_000_000)),
        earliest_time: Some(time(1_700_000_030_000_000_000)),
        need_id: Some("77aa88bb".into()),
    }
}

async fn the_status_is_a_thing_apart(plane: &ControlPlane, namespace: String) {
    let api: Api<CapacityRequest> = Api::namespaced(client(plane).await, &namespace);
    let mut with_status = request("s");
    with_status["status"] = json!({"phase": "Acknowledged"});
    assert_eq!(created(&api, &with_status).await.status, None, "nobody sets it along the way");
    let acknowledged = json!({"status": {"phase": "Acknowledged", "acknowledgedAt": "2026-01-01T00:00:00Z"}});
    let after = api.patch_status("s", &PatchParams::default(), &Patch::Merge(&acknowledged)).await.unwrap();
    assert_eq!(after.status.as_ref().unwrap().phase, RequestPhase::Acknowledged);
    assert_eq!(after.metadata.generation, Some(1), "the status is no new generation");
    let edit = json!({"spec": {"priority": 7}, "status": {"phase": "Pending"}});
    let after = api.patch("s", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    assert_eq!((after.spec.priority, after.status.unwrap().phase), (7, RequestPhase::Acknowledged));
    assert_eq!(after.metadata.generation, Some(2));
}

/// By merge patches that name the version they were made from. Server-side apply would do it too, but not on a 1.20 server:
/// it cannot model a definition with int-or-string fields, and then takes every list for atomic.
async fn two_writers_share_a_status(plane: &ControlPlane, namespace: String) {
    let api: Api<CapacityRequest> = Api::namespaced(client(plane).await, &namespace);
    let seen = created(&api, &request("m")).await;
    let (covered, carried) = (condition("Covered", "c"), condition("Carried", "d"));
    let write = async |seen: &CapacityRequest, phase: RequestPhase, new: &Condition| {
        let mut status = seen.status.clone().unwrap_or_default();
        status.phase = phase;
        set_condition(&mut status.conditions, new.clone());
        let patch =
            json!({"metadata": {"resourceVersion": seen.metadata.resource_version}, "status": status});
        api.patch_status("m", &PatchParams::default(), &Patch::Merge(&patch)).await
    };
    let after = write(&seen, RequestPhase::Acknowledged, &covered).await.unwrap();
    let conflict = write(&seen, RequestPhase::Pending, &carried).await.unwrap_err();
    assert!(matches!(&conflict, kube::Error::Api(status) if status.code == 409), "{conflict}");
    let both = write(&after, RequestPhase::Acknowledged, &carried).await.unwrap();
    assert_eq!(both.status.unwrap().conditions, [covered, carried]);
    assert_eq!(both.spec.priority, -5, "the spec is untouched");
}

/// Applying the whole object and applying it again changes nothing; leaving a field out takes it away.
async fn server_side_apply_owns_the_spec(plane: &ControlPlane, namespace: String) {
    let api: Api<CapacityRequest> = Api::namespaced(client(plane).await, &namespace);
    let apply = PatchParams::apply("one");
    let first = api.patch("a", &apply, &Patch::Apply(request("a"))).await.unwrap();
    let again = api.patch("a", &apply, &Patch::Apply(request("a"))).await.unwrap();
    assert_eq!(first.metadata.resource_version, again.metadata.resource_version);
    let mut less = request("a");
    less["spec"].as_object_mut().unwrap().remove("coLocation");
    assert_eq!(api.patch("a", &apply, &Patch::Apply(less.clone())).await.unwrap().spec.co_location, None);
    less["spec"]["priority"] = json!(1);
    let conflict = api.patch("a", &PatchParams::apply("two"), &Patch::Apply(&less)).await.unwrap_err();
    assert!(matches!(&conflict, kube::Error::Api(status) if status.code == 409), "{conflict}");
    let forced = api.patch("a", &PatchParams::apply("two").force(), &Patch::Apply(&less)).await.unwrap();
    assert_eq!(forced.spec.priority, 1);
}

async fn columns_are_shown(plane: &ControlPlane, namespace: String) {
    let client = client(plane).await;
    created(&Api::<CapacityRequest>::namespaced(client.clone(), &namespace), &request("c")).await;
    created(&Api::<AvailableCapacity>::all(client.clone()), &capacity("shown")).await;
    let table = async |path: String| -> Value {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let request = http::Request::get(path).header("Accept", accept).body(Vec::new()).unwrap();
        client.request(request).await.unwrap()
    };
    let names = |table: &Value| -> Vec<String> {
        let columns = table["columnDefinitions"].as_array().unwrap().iter();
        columns.map(|column| column["name"].as_str().unwrap().to_owned()).collect()
    };
    let group = "/apis/bigfleet.lucy.sh/v1alpha1";
    let requests = table(format!("{group}/namespaces/{namespace}/capacityrequests")).await;
    assert_eq!(names(&requests), ["Name", "Phase", "Priority", "Age"]);
    assert_eq!(requests["rows"][0]["cells"][2], -5);
    let capacities = table(format!("{group}/availablecapacities/shown")).await;
    assert_eq!(names(&capacities), ["Name", "Availability", "Available", "Cost"]);
    assert_eq!(capacities["rows"][0]["cells"], json!(["shown", "Low", 3, "0.12"]));
    assert_eq!(names(&table(format!("{group}/upcomingnodes")).await), ["Name", "Phase", "Node", "Age"]);
}

async fn bad_objects_are_refused(plane: &ControlPlane, namespace: String) {
    let client = client(plane).await;
    let requests = format!("/apis/bigfleet.lucy.sh/v1alpha1/namespaces/{namespace}/capacityrequests");
    let capacities = "/apis/bigfleet.lucy.sh/v1alpha1/availablecapacities".to_owned();
    let post = async |path: &str, object: &Value| -> kube::Result<Value> {
        let body = serde_json::to_vec(object).unwrap();
        client
            .request(http::Request::post(path).header("Content-Type", "application/json").body(body).unwrap())
            .await
    };
    for (path, right, pointer, value) in [
        (&requests, request("b"), "/spec/priority", json!(null)),
        (&requests, request("b"), "/spec/priority", json!("high")),
        (&requests, request("b"), "/spec/resources", json!(null)),
        (&requests, request("b"), "/spec/resources/cpu", json!("much")),
        (&requests, request("b"), "/spec/resources/cpu", json!(1.5)),
        (&requests, request("b"), "/spec/resources/cpu", json!({})),
        (&requests, request("b"), "/spec/interruptionPenalty", json!("$5")),
        (&requests, request("b"), "/spec/requirements/0/key", json!(null)),
        (&requests, request("b"), "/spec/requirements/0/values", json!("a")),
        (&requests, request("b"), "/spec/topologySpread/0/maxSkew", json!("one")),
        (&requests, request("b"), "/spec/coLocation/topologyKey", json!(null)),
        (&capacities, capacity("b"), "/spec/availability", json!("Plenty")),
        (&capacities, capacity("b"), "/spec/cost", json!(null)),
    ] {
        let mut object = right;
        *object.pointer_mut(pointer).unwrap() = value.clone();
        if value.is_null() {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        }
        match post(path, &object).await {
            Err(kube::Error::Api(status)) => {
                assert_eq!(status.code, 422, "{pointer} = {value}: {}", status.message);
            }
            other => panic!("{pointer} = {value} is accepted: {other:?}"),
        }
    }
    post(&requests, &request("good")).await.unwrap();
    let api: Api<CapacityRequest> = Api::namespaced(client.clone(), &namespace);
    let bad_phase = json!({"status": {"phase": "Delighted"}});
    assert!(api.patch_status("good", &PatchParams::default(), &Patch::Merge(&bad_phase)).await.is_err());
    let no_phase = json!({"status": {"acknowledgedAt": "2026-01-01T00:00:00Z"}});
    assert!(api.patch_status("good", &PatchParams::default(), &Patch::Merge(&no_phase)).await.is_err());
}

async fn whole_numbers_are_read(plane: &ControlPlane, namespace: String) {
    let client = client(plane).await;
    let mut object = request("numbers");
    object["spec"]["resources"]["cpu"] = json!(4);
    let path = format!("/apis/bigfleet.lucy.sh/v1alpha1/namespaces/{namespace}/capacityrequests");
    let body = serde_json::to_vec(&object).unwrap();
    let post = http::Request::post(path).header("Content-Type", "application/json").body(body).unwrap();
    client.request::<Value>(post).await.unwrap();
    let api: Api<CapacityRequest> = Api::namespaced(client, &namespace);
    assert_eq!(api.get("numbers").await.unwrap().spec.resources["cpu"], "4".into());
}

/// As an administrator does it, where kubectl is at hand.
async fn kubectl_applies_what_is_printed(plane: &ControlPlane, _: String) {
    let Some(kubectl) = plane.program("kubectl") else { return };
    let client = client(plane).await;
    let file = plane.folder().join("crds.yaml");
    std::fs::write(&file, yaml(server_version(&client).await.unwrap())).unwrap();
    let kubeconfig = plane.kubeconfig_file("kubectl", &Identity::admin()).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&kubectl);
        command.arg("--kubeconfig").arg(&kubeconfig).args(arguments).env("HOME", plane.folder());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let said = run(&["apply", "-f", file.to_str().unwrap()]);
    assert_eq!(said.lines().count(), 3, "{said}");
    eventually("kubectl knows the short name", async || {
        let short = std::process::Command::new(&kubectl)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(["get", "upn"])
            .env("HOME", plane.folder())
            .output()
            .unwrap();
        short.status.success().then_some(())
    })
    .await;
    let resources = run(&["api-resources", "--api-group=bigfleet.lucy.sh", "-o", "name"]);
    assert_eq!(resources.lines().count(), 3, "{resources}");
}
