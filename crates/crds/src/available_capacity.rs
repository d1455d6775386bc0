//! What the fleet could still give to a cluster.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity_request::Requirement;
use crate::quantity::Quantity;

/// One kind of machine that may be had.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bigfleet.lucy.sh",
    version = "v1alpha1",
    kind = "AvailableCapacity",
    plural = "availablecapacities",
    singular = "availablecapacity",
    shortname = "avc",
    category = "fleet",
    status = "AvailableCapacityStatus",
    derive = "PartialEq",
    doc = "One kind of machine that the fleet could still give to this cluster.",
    printcolumn = r#"{"name": "Availability", "type": "string", "jsonPath": ".spec.availability"}"#,
    printcolumn = r#"{"name": "Available", "type": "integer", "jsonPath": ".spec.availableCount"}"#,
    printcolumn = r#"{"name": "Cost", "type": "string", "jsonPath": ".spec.cost"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AvailableCapacitySpec {
    /// How likely it is to be had.
    pub availability: Availability,
    /// How many there are.
    pub available_count: i32,
    /// Dollars an hour for one.
    pub cost: Quantity,
    /// What these machines are like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
    /// What one of them offers.
    pub resources: BTreeMap<String, Quantity>,
}

/// How likely capacity is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Availability {
    /// There is none.
    None,
    /// Hardly.
    Low,
    /// Perhaps.
    Medium,
    /// Very.
    High,
}

/// Nothing yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AvailableCapacityStatus {}
