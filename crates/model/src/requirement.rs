//! Requirements: which machines may serve a need.
//!
//! The first four operators mean what they mean in Kubernetes. `Same` is ours: all machines of the need
//! must agree on the value of the key, which the engine settles by choosing one domain. For a single
//! machine `Same` asks only that the key is there and, if values are listed, that its value is one of them.
//!
//! ```
//! use bigfleet_model::label::{Facts, Labels, ZONE};
//! use bigfleet_model::requirement::{Operator, Requirement};
//!
//! let labels = Labels::new([("example.org/pool", "blue")]).unwrap();
//! let machine = Facts { instance_type: "m6i.large", zone: "zone-a", labels: &labels };
//! assert!(Requirement::is_in(ZONE, ["zone-b", "zone-a"]).matches(machine));
//! assert!(Requirement::new("example.org/pool", Operator::NotIn, ["red"]).matches(machine));
//! assert!(Requirement::new("example.org/rack", Operator::NotIn, ["r1"]).matches(machine), "it has no rack");
//! assert!(!Requirement::same("example.org/rack").matches(machine));
//! ```

use std::fmt;

use thiserror::Error;

use crate::label::Facts;
use crate::profile::FINGERPRINT_SEPARATORS;
use crate::text::Quoted;

/// What a requirement asks of a key. The discriminants are the wire numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operator {
    /// Not said: matches nothing.
    Unspecified = 0,
    /// The value is one of the listed ones.
    In = 1,
    /// The value is none of the listed ones, or the key is absent.
    NotIn = 2,
    /// The key is there.
    Exists = 3,
    /// The key is absent.
    DoesNotExist = 4,
    /// All machines of the need agree on the value.
    Same = 5,
}

impl Operator {
    /// All of them, in wire order.
    pub const ALL: [Self; 6] =
        [Self::Unspecified, Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist, Self::Same];

    /// The operator with this wire number; an unknown one is refused.
    pub fn from_wire(number: i32) -> Result<Self, RequirementError> {
        Self::ALL.into_iter().find(|op| *op as i32 == number).ok_or(RequirementError::UnknownOperator(number))
    }

    /// The wire number.
    pub fn to_wire(self) -> i32 {
        self as i32
    }

    /// The name people see and files use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "Unspecified",
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Same => "Same",
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a requirement was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequirementError {
    /// An operator number nobody defined.
    #[error("operator number {0} is unknown; this build knows 0 to 5, so the sender may be newer")]
    UnknownOperator(i32),
    /// A requirement without a key.
    #[error("a requirement ({operator}) has an empty key; name the label it is about")]
    EmptyKey {
        /// What it asks.
        operator: Operator,
    },
    /// A character that the fingerprint text uses as a separator: two different profiles would read alike.
    #[error("requirement on {}: {} contains one of , ; : | which no label may; correct the spelling", Quoted(.key), Quoted(.text))]
    Separator {
        /// The key it is about.
        key: String,
        /// The offending key or value.
        text: String,
    },
}

/// One condition on a machine's value for a key. Values are sorted and unique.
///
/// Any values may be given to any operator; `Exists`, `DoesNotExist` and `Unspecified` do not look at them.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    values: Box<[Box<str>]>,
}

impl Requirement {
    /// A requirement; values may come in any order and repeated.
    pub fn new<V: Into<Box<str>>>(
        key: impl Into<Box<str>>,
        operator: Operator,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let mut values: Vec<Box<str>> = values.into_iter().map(Into::into).collect();
        values.sort_unstable();
        values.dedup();
        Self { key: key.into(), operator, values: values.into() }
    }

    /// `key In values`.
    pub fn is_in<V: Into<Box<str>>>(key: impl Into<Box<str>>, values: impl IntoIterator<Item = V>) -> Self {
        Self::new(key, Operator::In, values)
    }

    /// `key Same`, any value.
    pub fn same(key: impl Into<Box<str>>) -> Self {
        Self::new(key, Operator::Same, [""; 0])
    }

    /// Checks what the border must refuse: an empty key, and text that would make the fingerprint ambiguous.
    pub fn validate(&self) -> Result<(), RequirementError> {
        if self.key.is_empty() {
            return Err(RequirementError::EmptyKey { operator: self.operator });
        }
        let mut texts = std::iter::once(&*self.key).chain(self.values.iter().map(|value| &**value));
        if let Some(text) = texts.find(|text| text.contains(FINGERPRINT_SEPARATORS)) {
            return Err(RequirementError::Separator { key: self.key.to_string(), text: text.to_string() });
        }
        Ok(())
    }

    /// The label it is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What it asks.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The listed values, sorted and unique.
    pub fn values(&self) -> &[Box<str>] {
        &self.values
    }

    /// Whether a value is listed.
    pub fn lists(&self, value: &str) -> bool {
        self.values.binary_search_by(|v| (**v).cmp(value)).is_ok()
    }

    /// Whether a machine with this value for the key (`None`: it lacks the key) passes.
    pub fn admits(&self, value: Option<&str>) -> bool {
        match (self.operator, value) {
            (Operator::Unspecified, _) => false,
            (Operator::In, value) => value.is_some_and(|v| self.lists(v)),
            (Operator::NotIn, value) => !value.is_some_and(|v| self.lists(v)),
            (Operator::Exists, value) => value.is_some(),
            (Operator::DoesNotExist, value) => value.is_none(),
            (Operator::Same, value) => value.is_some_and(|v| self.values.is_empty() || self.lists(v)),
        }
    }

    /// Whether a machine passes.
    pub fn matches(&self, facts: Facts<'_>) -> bool {
        self.admits(facts.value(&self.key))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.operator)?;
        if !self.values.is_empty() {
            write!(f, " ({})", self.values.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Operator::{DoesNotExist, Exists, In, NotIn, Same, Unspecified};
    use super::*;

    #[test]
    fn wire_numbers_are_0_to_5_and_nothing_else() {
        for (number, operator) in (0..).zip([Unspecified, In, NotIn, Exists, DoesNotExist, Same]) {
            assert_eq!(operator.to_wire(), number);
            assert_eq!(Operator::from_wire(number), Ok(operator));
            assert_eq!(operator.to_string(), format!("{operator:?}"), "people and files see the name");
        }
        for number in [i32::MIN, -1, 6, 256, i32::MAX] {
            assert_eq!(Operator::from_wire(number), Err(RequirementError::UnknownOperator(number)));
        }
    }

    #[test]
    fn each_operator_admits_exactly_this() {
        // Columns: the key is absent, its value is empty, is listed ("a"), is not listed ("z").
        let table: [(Operator, &[&str], [bool; 4]); 13] = [
            (Unspecified, &[], [false, false, false, false]),
            (Unspecified, &["a"], [false, false, false, false]),
            (In, &[], [false, false, false, false]),
            (In, &["a", "b"], [false, false, true, false]),
            (In, &[""], [false, true, false, false]),
            (NotIn, &[], [true, true, true, true]),
            (NotIn, &["a", "b"], [true, true, false, true]),
            (NotIn, &[""], [true, false, true, true]),
            (Exists, &[], [false, true, true, true]),
            (Exists, &["b"], [false, true, true, true]),
            (DoesNotExist, &["b"], [true, false, false, false]),
            (Same, &[], [false, true, true, true]),
            (Same, &["a", "b"], [false, false, true, false]),
        ];
        for (operator, values, expected) in table {
            let requirement = Requirement::new("k", operator, values.iter().copied());
            let admitted = [None, Some(""), Some("a"), Some("z")].map(|value| requirement.admits(value));
            assert_eq!(admitted, expected, "{requirement}");
        }
    }

    #[test]
    fn values_are_sorted_and_unique() {
        let requirement = Requirement::is_in("k", ["b", "a", "b", "", "a"]);
        assert_eq!(requirement, Requirement::is_in("k", ["", "a", "b"]));
        assert_eq!(requirement.values().iter().map(|v| &**v).collect::<Vec<_>>(), ["", "a", "b"]);
        assert_eq!(["", "a", "b", "c"].map(|v| requirement.lists(v)), [true, true, true, false]);
    }

    #[test]
    fn validation_refuses_what_would_blur_the_fingerprint() {
        assert_eq!(
            Requirement::new("", Exists, [""; 0]).validate(),
            Err(RequirementError::EmptyKey { operator: Exists })
        );
        for separator in [',', ';', ':', '|'] {
            for text in [format!("{separator}"), format!("a{separator}"), format!("{separator}b")] {
                let refused =
                    Err(RequirementError::Separator { key: "k".into(), text: text.as_str().into() });
                assert_eq!(Requirement::is_in("k", ["fine", &text]).validate(), refused);
                let refused = Err(RequirementError::Separator {
                    key: text.as_str().into(),
                    text: text.as_str().into(),
                });
                assert_eq!(Requirement::is_in(text.as_str(), ["fine"]).validate(), refused);
            }
        }
        for (key, values) in [("k", vec![]), ("example.org/pool", vec!["", "a b", "é\u{0}", "=?"])] {
            for operator in Operator::ALL {
                assert_eq!(Requirement::new(key, operator, values.iter().copied()).validate(), Ok(()));
            }
        }
    }

    #[test]
    fn messages_name_the_object_and_the_remedy() {
        let error = Requirement::is_in("pool", ["a,b"]).validate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "requirement on \"pool\": \"a,b\" contains one of , ; : | which no label may; correct the spelling"
        );
        let error = Requirement::same("").validate().unwrap_err();
        assert_eq!(error.to_string(), "a requirement (Same) has an empty key; name the label it is about");
    }

    #[test]
    fn people_read_key_operator_values() {
        assert_eq!(Requirement::is_in("pool", ["b", "a"]).to_string(), "pool In (a, b)");
        assert_eq!(format!("{:?}", Requirement::same("rack")), "rack Same");
    }
}
