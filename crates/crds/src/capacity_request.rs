//! What one pod asks for.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::quantity::Quantity;

/// One pod's demand for capacity.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bigfleet.lucy.sh",
    version = "v1alpha1",
    kind = "CapacityRequest",
    plural = "capacityrequests",
    singular = "capacityrequest",
    shortname = "cr",
    shortname = "crs",
    category = "fleet",
    namespaced,
    status = "CapacityRequestStatus",
    derive = "PartialEq",
    doc = "What one pod asks for. The operator adds up the requests of a cluster and asks the fleet for their sum.",
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Priority", "type": "integer", "jsonPath": ".spec.priority"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    selectable = ".status.phase"
)]
#[serde(rename_all = "camelCase")]
pub struct CapacityRequestSpec {
    /// What a machine must be like: every one of these holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
    /// What the pod requests.
    pub resources: BTreeMap<String, Quantity>,
    /// The pod's priority; higher is served first.
    pub priority: i32,
    /// What an interruption costs, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption_penalty: Option<Quantity>,
    /// What it costs to give up the machine, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclamation_penalty: Option<Quantity>,
    /// How the machines of the need must lie over domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread: Vec<TopologySpread>,
    /// The gang that the pod belongs to: all of it in one domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub co_location: Option<CoLocation>,
}

/// A requirement on the labels of a machine, in the shape of Kubernetes' node selectors.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// One of In, `NotIn`, Exists, `DoesNotExist`. A request with another operator is not put into a roll-up.
    pub operator: String,
    /// The values that the operator compares with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}

/// How evenly machines must lie over the values of a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpread {
    /// The label whose values are the domains.
    pub topology_key: String,
    /// How far domains may differ.
    pub max_skew: i32,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: String,
}

/// A gang: pods that must share one domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoLocation {
    /// The label whose value all machines of the gang share.
    pub topology_key: String,
    /// Which pods belong to the gang.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
}

/// What became of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityRequestStatus {
    /// How far the request has got.
    pub phase: RequestPhase,
    /// When it first went into a roll-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<Time>,
    /// What is known about it, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Asked for beyond the sum of the need's requests, because pods found no hole.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reserved: BTreeMap<String, Quantity>,
}

/// How far a request has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RequestPhase {
    /// Not in a roll-up yet.
    #[default]
    Pending,
    /// It has been part of a roll-up.
    Acknowledged,
}
