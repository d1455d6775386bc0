//! A machine on its way into a cluster, or out of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ObjectReference, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;

/// What the machine will be like as a node.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bigfleet.lucy.sh",
    version = "v1alpha1",
    kind = "UpcomingNode",
    plural = "upcomingnodes",
    singular = "upcomingnode",
    shortname = "upn",
    category = "fleet",
    status = "UpcomingNodeStatus",
    derive = "PartialEq",
    doc = "A machine of the fleet that is on its way into this cluster, or out of it.",
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Node", "type": "string", "jsonPath": ".status.nodeRef.name"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct UpcomingNodeSpec {
    /// The labels that the node will have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What the node will offer.
    pub resources: BTreeMap<String, Quantity>,
    /// The taints that the node will have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::taints")]
    pub taints: Vec<Taint>,
}

/// Where the machine is on its way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpcomingNodeStatus {
    /// How far it has got.
    pub phase: NodePhase,
    /// The node it has become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::object_reference")]
    pub node_ref: Option<ObjectReference>,
    /// The machine as the provider names it; nodes carry the same.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "providerID")]
    pub provider_id: Option<String>,
    /// When the machine was first heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_start_time: Option<Time>,
    /// When it is expected to be ready: in nine of ten cases by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_ready_time: Option<Time>,
    /// When it is expected to be ready at the earliest: in nine of ten cases not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_ready_time: Option<Time>,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// How far a machine has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NodePhase {
    /// It is being created, or only planned.
    #[default]
    Provisioning,
    /// It is there and belongs to nobody yet.
    Launched,
    /// It is being made a node of this cluster.
    Registered,
    /// It is a node of this cluster.
    Ready,
    /// It is being emptied.
    Draining,
    /// It is empty.
    Drained,
    /// It was lost.
    Failed,
}
