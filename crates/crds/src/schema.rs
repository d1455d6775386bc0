//! Schemas of core Kubernetes types as the wire has them: the fields and nothing around them.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

/// A label selector, replaced whole by server-side apply.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Which pods belong to the gang.",
        "type": "object",
        "properties": {
            "matchLabels": {
                "description": "Labels that a pod must have.",
                "type": "object",
                "additionalProperties": {"type": "string"},
            },
            "matchExpressions": {
                "description": "What else must hold for the labels of a pod.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"type": "string"},
                        "operator": {"type": "string"},
                        "values": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
                    },
                },
                "x-kubernetes-list-type": "atomic",
            },
        },
        "x-kubernetes-map-type": "atomic",
    })
}

/// The taints of a node.
pub(crate) fn taints(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "The taints that the node will have.",
        "type": "array",
        "items": {
            "type": "object",
            "required": ["effect", "key"],
            "properties": {
                "key": {"type": "string"},
                "effect": {"type": "string"},
                "value": {"type": "string"},
                "timeAdded": {"type": "string", "format": "date-time"},
            },
        },
    })
}

/// A reference to another object, replaced whole by server-side apply.
pub(crate) fn object_reference(_: &mut SchemaGenerator) -> Schema {
    let fields = ["apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"];
    let properties: serde_json::Map<_, _> =
        fields.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json_schema!({
        "description": "The node it has become.",
        "type": "object",
        "properties": properties,
        "x-kubernetes-map-type": "atomic",
    })
}
