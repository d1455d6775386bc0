//! A quantity as it stands in an object: text, or a whole number that somebody did not quote.
//!
//! The server lets both through. It stays as it was written; whoever computes with it reads it with
//! `bigfleet_model::quantity`, which refuses what makes no sense.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// The pattern that Kubernetes' own tools put on quantities.
const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The text of a quantity, not yet read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl Quantity {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Quantity {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrNumber)
    }
}

struct TextOrNumber;

impl Visitor<'_> for TextOrNumber {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity: text like 500m or 1.5Gi, or a whole number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Quantity, E> {
        Ok(Quantity(text))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_whole_numbers_are_read_and_text_is_written() {
        for (json, text) in [("\"1.5Gi\"", "1.5Gi"), ("4", "4"), ("-1", "-1"), ("\"\"", "")] {
            let quantity: Quantity = serde_json::from_str(json).unwrap();
            assert_eq!(quantity, Quantity::from(text));
            assert_eq!(serde_json::to_string(&quantity).unwrap(), format!("\"{text}\""));
        }
        for json in ["1.5", "null", "[]", "true"] {
            assert!(serde_json::from_str::<Quantity>(json).is_err(), "{json}");
        }
    }
}
