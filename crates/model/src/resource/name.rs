//! Names of resources, interned where they are common.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::ResourceError;
use crate::quantity;

/// How many names are interned.
pub(super) const KNOWN_COUNT: usize = 5;

/// The names nearly all vectors are made of, in byte order, so that they are compared by one byte.
const KNOWN_TEXT: [&str; KNOWN_COUNT] = ["cpu", "ephemeral-storage", "memory", "nvidia.com/gpu", "pods"];

/// The same as values, to be lent out.
pub(super) static KNOWN: [ResourceName; KNOWN_COUNT] = [
    ResourceName(Repr::Known(0)),
    ResourceName(Repr::Known(1)),
    ResourceName(Repr::Known(2)),
    ResourceName(Repr::Known(3)),
    ResourceName(Repr::Known(4)),
];

/// The name of a resource, such as `cpu`, `memory` or `nvidia.com/gpu`.
///
/// Common names are interned as one byte; any other, a *foreign* one, is a shared string, cheap to clone.
/// Names order by their bytes, whichever way they are kept.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceName(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Known(u8),
    Foreign(Arc<str>),
}

impl ResourceName {
    /// Processor time; the one resource kept in thousandths.
    pub const CPU: Self = Self(Repr::Known(0));
    /// Memory in bytes.
    pub const MEMORY: Self = Self(Repr::Known(2));

    /// The resource of this name. An empty name is refused: it could never be asked for on purpose.
    pub fn new(name: &str) -> Result<Self, ResourceError> {
        if name.is_empty() {
            return Err(ResourceError::EmptyName);
        }
        Ok(Self(match KNOWN_TEXT.iter().position(|known| *known == name) {
            Some(index) => Repr::Known(index as u8),
            None => Repr::Foreign(name.into()),
        }))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Known(index) => KNOWN_TEXT[*index as usize],
            Repr::Foreign(name) => name,
        }
    }

    /// Reads a Kubernetes quantity of this resource into engine units: thousandths for cpu, whole units for
    /// everything else, rounded up.
    ///
    /// ```
    /// use bigfleet_model::resource::ResourceName;
    /// assert_eq!(ResourceName::CPU.parse_amount("1.5"), Ok(1_500));
    /// assert_eq!(ResourceName::MEMORY.parse_amount("1.5"), Ok(2));
    /// ```
    pub fn parse_amount(&self, text: &str) -> Result<u64, ResourceError> {
        let parsed = if *self == Self::CPU {
            quantity::parse_milli_ceil(text)
        } else {
            quantity::parse_units_ceil(text)
        };
        parsed.map_err(|source| ResourceError::Amount { resource: self.clone(), source })
    }

    /// The index of a common name among [`KNOWN`].
    #[inline]
    pub(super) fn known_index(&self) -> Option<usize> {
        match &self.0 {
            Repr::Known(index) => Some(*index as usize),
            Repr::Foreign(_) => None,
        }
    }
}

impl Ord for ResourceName {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Known(a), Repr::Known(b)) => a.cmp(b),
            _ => self.as_str().cmp(other.as_str()),
        }
    }
}

impl PartialOrd for ResourceName {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ResourceName {
        ResourceName::new(text).unwrap()
    }

    #[test]
    fn common_names_are_interned_in_byte_order() {
        assert!(KNOWN_TEXT.is_sorted());
        for (index, text) in KNOWN_TEXT.into_iter().enumerate() {
            assert_eq!(name(text).known_index(), Some(index));
            assert_eq!(KNOWN[index], name(text));
            assert_eq!(name(text).as_str(), text);
        }
        assert_eq!((name("cpu"), name("memory")), (ResourceName::CPU, ResourceName::MEMORY));
    }

    #[test]
    fn names_order_by_their_bytes_however_they_are_kept() {
        let texts = ["CPU", "a", "cpu", "cpu ", "cpus", "memory", "nvidia.com/gpu", "pod", "pods", "é"];
        assert!(texts.is_sorted());
        for (i, a) in texts.into_iter().enumerate() {
            for (j, b) in texts.into_iter().enumerate() {
                assert_eq!(name(a).cmp(&name(b)), i.cmp(&j), "{a:?} {b:?}");
                assert_eq!(name(a) == name(b), i == j, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn an_empty_name_is_refused() {
        assert_eq!(ResourceName::new(""), Err(ResourceError::EmptyName));
    }

    #[test]
    fn only_cpu_counts_in_thousandths() {
        for (resource, text, amount) in [
            ("cpu", "1", 1_000),
            ("cpu", "1m", 1),
            ("cpu", "0.1m", 1),
            ("memory", "1", 1),
            ("memory", "1m", 1),
            ("memory", "1Ki", 1_024),
            ("CPU", "1", 1),
            ("nvidia.com/gpu", "0", 0),
        ] {
            assert_eq!(name(resource).parse_amount(text), Ok(amount), "{resource} {text}");
        }
        let error = name("memory").parse_amount("-1").unwrap_err();
        assert!(
            matches!(&error, ResourceError::Amount { resource, .. } if *resource == ResourceName::MEMORY)
        );
        assert!(error.to_string().starts_with("resource \"memory\": "), "{error}");
    }
}
