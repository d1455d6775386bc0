//! Labels: what a provider says about a machine beyond type, zone and size.
//!
//! Requirements ask for the value of a key. Two keys that everybody uses, instance type and zone, have a
//! field of their own on every machine; the field is asked first and the label of that name only if the field
//! says nothing. [`Facts`] is where that rule lives.
//!
//! ```
//! use bigfleet_model::label::{Facts, Labels, ZONE};
//! let labels = Labels::new([(ZONE, "zone-b"), ("example.org/pool", "")]).unwrap();
//! let facts = Facts { instance_type: "", zone: "zone-a", labels: &labels };
//! assert_eq!(facts.value(ZONE), Some("zone-a"));
//! assert_eq!(Facts { zone: "", ..facts }.value(ZONE), Some("zone-b"));
//! assert_eq!(facts.value("example.org/pool"), Some(""), "an empty value is a value");
//! ```

use std::fmt;

use thiserror::Error;

use crate::text::Quoted;

/// The key whose value comes from a machine's instance type field before its labels.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// The key whose value comes from a machine's zone field before its labels.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// A machine's labels: unique keys in byte order. An empty value is a value.
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Labels(Vec<(Box<str>, Box<str>)>);

/// Why a set of labels was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LabelError {
    /// A label without a key.
    #[error("a label key is empty (its value is {}); remove the label or name it", Quoted(.value))]
    EmptyKey {
        /// The value it carries.
        value: String,
    },
    /// One key twice.
    #[error("label {} is given twice; keep one value", Quoted(.0))]
    Duplicate(String),
}

impl Labels {
    /// No labels.
    pub const EMPTY: Self = Self(Vec::new());

    /// Labels from pairs in any order.
    pub fn new<K: Into<Box<str>>, V: Into<Box<str>>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, LabelError> {
        let mut pairs: Vec<(Box<str>, Box<str>)> =
            pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        pairs.sort_unstable();
        if let Some((_, value)) = pairs.iter().find(|(key, _)| key.is_empty()) {
            return Err(LabelError::EmptyKey { value: value.to_string() });
        }
        if let Some(pair) = pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(LabelError::Duplicate(pair[0].0.to_string()));
        }
        Ok(Self(pairs))
    }

    /// The value of a key, if the key is there.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|at| &*self.0[at].1)
    }

    /// All pairs in key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + '_ {
        self.0.iter().map(|(k, v)| (&**k, &**v))
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Where a value for a key is looked up: a machine's fields first, then its labels.
///
/// This is the one place that knows about the two special keys.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The instance type field; empty means it has no value.
    pub instance_type: &'a str,
    /// The zone field; empty means it has no value.
    pub zone: &'a str,
    /// The labels.
    pub labels: &'a Labels,
}

impl<'a> Facts<'a> {
    /// The machine's value for `key`.
    pub fn value(&self, key: &str) -> Option<&'a str> {
        let field = match key {
            INSTANCE_TYPE => self.instance_type,
            ZONE => self.zone,
            _ => "",
        };
        if field.is_empty() { self.labels.get(key) } else { Some(field) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_same_in_any_order() {
        let labels = Labels::new([("b", "2"), ("a", ""), ("c", "1")]).unwrap();
        assert_eq!(labels, Labels::new([("c", "1"), ("b", "2"), ("a", "")]).unwrap());
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", ""), ("b", "2"), ("c", "1")]);
        assert_eq!((labels.len(), labels.is_empty()), (3, false));
        assert_eq!(["a", "b", "d", ""].map(|key| labels.get(key)), [Some(""), Some("2"), None, None]);
        assert!(Labels::EMPTY.is_empty());
    }

    #[test]
    fn bad_labels_are_refused_by_name() {
        for (pairs, error, message) in [
            (
                vec![("a", "1"), ("", "x")],
                LabelError::EmptyKey { value: "x".into() },
                "a label key is empty (its value is \"x\"); remove the label or name it",
            ),
            (
                vec![("a", "1"), ("b", "2"), ("a", "3")],
                LabelError::Duplicate("a".into()),
                "label \"a\" is given twice; keep one value",
            ),
            (
                vec![("a", "1"), ("a", "1")],
                LabelError::Duplicate("a".into()),
                "label \"a\" is given twice; keep one value",
            ),
        ] {
            let refused = Labels::new(pairs).unwrap_err();
            assert_eq!(refused, error);
            assert_eq!(refused.to_string(), message);
        }
    }

    #[test]
    fn a_field_goes_before_the_label_of_its_name() {
        let labels =
            Labels::new([(ZONE, "label-zone"), (INSTANCE_TYPE, "label-type"), ("rack", "r1")]).unwrap();
        let full = Facts { instance_type: "field-type", zone: "field-zone", labels: &labels };
        let keys = [INSTANCE_TYPE, ZONE, "rack", "zone"];
        assert_eq!(
            keys.map(|key| full.value(key)),
            [Some("field-type"), Some("field-zone"), Some("r1"), None]
        );
        let bare = Facts { instance_type: "", zone: "", labels: &labels };
        assert_eq!(
            keys.map(|key| bare.value(key)),
            [Some("label-type"), Some("label-zone"), Some("r1"), None]
        );
        let nothing = Facts { labels: &Labels::EMPTY, ..bare };
        assert_eq!(keys.map(|key| nothing.value(key)), [None; 4]);
    }
}
