//! What machines do once a fleet has given them to a cluster: they become nodes, and when they have left their nodes go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bigfleet_net::{Clock as _, SystemClock};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::hollow::Hollow;
use crate::joiner::{Joiner, NewNode};

/// How often the cluster is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The name of a machine's node.
pub fn node_name(machine: &str) -> String {
    format!("node-of-{machine}")
}

/// What machines are once they have joined.
enum Nodes {
    OnPaper(Joiner),
    Hollow(Hollow),
}

impl Nodes {
    async fn join(&mut self, new: NewNode) -> Result<(), String> {
        match self {
            Self::OnPaper(joiner) => joiner.join(new).await.map(drop).map_err(|error| error.to_string()),
            Self::Hollow(hollow) => hollow.join(new).await.map_err(|error| error.to_string()),
        }
    }

    async fn leave(&mut self, name: &str) -> kube::Result<()> {
        match self {
            Self::OnPaper(joiner) => joiner.leave(name).await,
            Self::Hollow(hollow) => hollow.leave(name).await,
        }
    }
}

/// Follows the cluster's `UpcomingNode`s: joins those that are being configured, and leaves with those that are gone. Nodes are on
/// paper. Never ends; drop it to stop.
pub async fn join_machines(client: Client) {
    let joiner = Joiner::start(client.clone());
    follow(client, Nodes::OnPaper(joiner)).await;
}

/// The same with a kubelet for each node.
pub async fn join_hollow_machines(client: Client, hollow: Hollow) {
    follow(client, Nodes::Hollow(hollow)).await;
}

async fn follow(client: Client, mut nodes: Nodes) {
    let clock = SystemClock::start();
    let kind = GroupVersionKind::gvk("bigfleet.lucy.sh", "v1alpha1", "UpcomingNode");
    let upcoming: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    loop {
        clock.sleep(LOOK_EVERY).await;
        let Ok(list) = upcoming.list(&ListParams::default()).await else { continue };
        let mut there = BTreeSet::new();
        for machine in list {
            let text = |pointer: &str| machine.data.pointer(pointer).and_then(Value::as_str);
            let Some(provider_id) = text("/status/providerID").map(str::to_owned) else { continue };
            there.insert(provider_id.clone());
            // A machine joins while it is being configured; whether it has is for the fleet to find out.
            let comes = matches!(text("/status/phase"), Some("Registered" | "Ready"));
            if !comes || joined.contains_key(&provider_id) {
                continue;
            }
            let name = node_name(&machine.name_any());
            let new = NewNode {
                name: name.clone(),
                resources: map(&machine.data, "/spec/resources"),
                labels: map(&machine.data, "/spec/labels"),
                taints: Vec::new(),
                provider_id: Some(provider_id.clone()),
            };
            // A server that does not answer is asked again.
            if nodes.join(new).await.is_ok() {
                joined.insert(provider_id, name);
            }
        }
        let gone: Vec<String> = joined
            .extract_if(.., |provider_id, _| !there.contains(provider_id))
            .map(|(_, name)| name)
            .collect();
        for name in gone {
            let _ = nodes.leave(&name).await;
        }
    }
}

fn map(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let fields = object.pointer(pointer).and_then(Value::as_object);
    let fields = fields.into_iter().flatten();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    fields.map(|(name, value)| (name.clone(), text(value))).collect()
}
