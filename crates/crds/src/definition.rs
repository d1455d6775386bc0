//! The definitions that make a server know these resources.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{AvailableCapacity, CapacityRequest, UpcomingNode};

/// A server's version, as far as definitions depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion {
    /// The number before the point.
    pub major: u32,
    /// The number behind it.
    pub minor: u32,
}

impl ServerVersion {
    /// The first that knows selectable fields without being asked to.
    const SELECTABLE_FIELDS: Self = Self { major: 1, minor: 31 };

    /// A server of today: one that knows all that the definitions use.
    pub const CURRENT: Self = Self { major: 1, minor: 33 };
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a text is not a server's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionError;

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a Kubernetes version; write it like 1.20")
    }
}

impl std::error::Error for VersionError {}

impl FromStr for ServerVersion {
    type Err = VersionError;

    /// Reads `1.20`, `v1.20.2`, and what servers of some vendors say of themselves: `1.29+`.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
        let major = parts.next().and_then(|part| part.parse().ok()).ok_or(VersionError)?;
        let minor = parts.next().ok_or(VersionError)?;
        let minor = minor.strip_suffix('+').unwrap_or(minor).parse().map_err(|_| VersionError)?;
        Ok(Self { major, minor })
    }
}

/// The three definitions for a server of this version. An older server is given only what it knows: some would refuse
/// the rest, others drop it without a word.
pub fn definitions(server: ServerVersion) -> Vec<CustomResourceDefinition> {
    [AvailableCapacity::crd(), CapacityRequest::crd(), UpcomingNode::crd()]
        .into_iter()
        .map(|definition| {
            let mut json = serde_json::to_value(definition).expect("a definition is plain data");
            let list = format!("{}List", json["spec"]["names"]["kind"].as_str().expect("a kind has a name"));
            json["spec"]["names"]["listKind"] = list.into();
            for version in json["spec"]["versions"].as_array_mut().expect("there is one version") {
                plain(&mut version["schema"]["openAPIV3Schema"]);
                if server < ServerVersion::SELECTABLE_FIELDS
                    && let Some(version) = version.as_object_mut()
                {
                    version.remove("selectableFields");
                }
            }
            serde_json::from_value(json).expect("only optional parts were taken away")
        })
        .collect()
}

/// The same as one YAML document each, for `kubectl apply`.
pub fn yaml(server: ServerVersion) -> String {
    let mut text = String::new();
    for definition in definitions(server) {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&definition).expect("a definition is plain data"));
    }
    text
}

/// Takes out of a schema what deriving put in and the wire does not have: defaults, and `null` as a value. A field
/// that is not there is left out.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if name == "properties" {
                    // The names in here are fields of ours, whatever they are called.
                    value.as_object_mut().into_iter().flatten().for_each(|(_, field)| plain(field));
                } else {
                    plain(value);
                }
            }
            for name in ["nullable", "default", "title"] {
                fields.remove(name);
            }
            if fields.contains_key("x-kubernetes-int-or-string") {
                // What deriving leaves of the alternatives; the flag says it already.
                fields.remove("anyOf");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_write_them() {
        for (text, major, minor) in [("1.20", 1, 20), ("v1.20.2", 1, 20), ("1.29+", 1, 29), ("2.0", 2, 0)] {
            assert_eq!(text.parse(), Ok(ServerVersion { major, minor }), "{text}");
        }
        for text in ["", "1", "v", "1.", "one.two", "1.x", "-1.2"] {
            assert_eq!(text.parse::<ServerVersion>(), Err(VersionError), "{text}");
        }
    }

    #[test]
    fn an_older_server_gets_no_selectable_fields() {
        let selectable = |minor| {
            let all = definitions(ServerVersion { major: 1, minor });
            all.iter()
                .map(|d| d.spec.versions[0].selectable_fields.iter().flatten().count())
                .collect::<Vec<_>>()
        };
        assert_eq!(selectable(20), [0, 0, 0]);
        assert_eq!(selectable(30), [0, 0, 0]);
        assert_eq!(selectable(31), [0, 1, 0]);
    }

    /// The wire's rules: no defaults, no nulls, no rules in CEL. And what is required, exactly.
    #[test]
    fn the_definitions_are_those_of_the_wire() {
        insta::assert_snapshot!("definitions", yaml(ServerVersion::CURRENT));
    }
}
