//! Topology spread: how evenly a need's machines must lie over domains.
//!
//! A domain is a value of the constraint's key, such as one zone. Only a strict constraint binds the engine;
//! the others are part of a profile's identity and nothing else.
//!
//! ```
//! use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
//!
//! let spread = TopologySpread::new("topology.kubernetes.io/zone", 2, WhenUnsatisfiable::DoNotSchedule);
//! assert!(spread.is_strict());
//! assert_eq!(spread.headroom(), 1, "a domain one machine ahead of the emptiest may still take another");
//! ```

use std::fmt;

use thiserror::Error;

use crate::profile::FINGERPRINT_SEPARATORS;
use crate::text::Quoted;

/// What to do when an even spread is not to be had. The discriminants are the wire numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum WhenUnsatisfiable {
    /// Not said; treated like [`Self::ScheduleAnyway`].
    Unspecified = 0,
    /// Strict: rather leave the need short.
    DoNotSchedule = 1,
    /// A wish the cluster's scheduler may weigh; the engine does not.
    ScheduleAnyway = 2,
}

impl WhenUnsatisfiable {
    /// The mode with this wire number. Unknown numbers become unspecified: the one lenient value on the
    /// wire, because an unknown wish is best ignored.
    pub fn from_wire(number: i32) -> Self {
        match number {
            1 => Self::DoNotSchedule,
            2 => Self::ScheduleAnyway,
            _ => Self::Unspecified,
        }
    }

    /// The wire number.
    pub fn to_wire(self) -> i32 {
        self as i32
    }

    /// The name people see and files use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "Unspecified",
            Self::DoNotSchedule => "DoNotSchedule",
            Self::ScheduleAnyway => "ScheduleAnyway",
        }
    }
}

/// Why a spread constraint was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpreadError {
    /// A constraint without a key.
    #[error("a topology spread has an empty key; name the label whose values are the domains")]
    EmptyKey,
    /// A character that the fingerprint text uses as a separator: two different profiles would read alike.
    #[error("topology spread: key {} contains one of , ; : | which no label may; correct the spelling", Quoted(.0))]
    Separator(String),
}

/// One spread constraint. Orders by key, skew, mode.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopologySpread {
    /// The label whose values are the domains.
    pub key: Box<str>,
    /// How far domains may differ; below 1 counts as 1.
    pub max_skew: i32,
    /// What to do when that is not to be had.
    pub when: WhenUnsatisfiable,
}

impl TopologySpread {
    /// A spread constraint.
    pub fn new(key: impl Into<Box<str>>, max_skew: i32, when: WhenUnsatisfiable) -> Self {
        Self { key: key.into(), max_skew, when }
    }

    /// Checks what the border must refuse: an empty key, and a key that would make the fingerprint ambiguous.
    pub fn validate(&self) -> Result<(), SpreadError> {
        if self.key.is_empty() {
            return Err(SpreadError::EmptyKey);
        }
        if self.key.contains(FINGERPRINT_SEPARATORS) {
            return Err(SpreadError::Separator(self.key.to_string()));
        }
        Ok(())
    }

    /// Whether the engine must enforce it.
    pub fn is_strict(&self) -> bool {
        self.when == WhenUnsatisfiable::DoNotSchedule
    }

    /// How many machines a domain may be ahead of the emptiest one before it takes another.
    pub fn headroom(&self) -> u64 {
        (self.max_skew.max(1) - 1) as u64
    }
}

impl fmt::Display for TopologySpread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spread over {} within {} ({})", self.key, self.max_skew.max(1), self.when.name())
    }
}

impl fmt::Debug for TopologySpread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::WhenUnsatisfiable::{DoNotSchedule, ScheduleAnyway, Unspecified};
    use super::*;

    #[test]
    fn an_unknown_mode_is_unspecified() {
        for (number, mode) in [
            (0, Unspecified),
            (1, DoNotSchedule),
            (2, ScheduleAnyway),
            (3, Unspecified),
            (-1, Unspecified),
            (i32::MAX, Unspecified),
        ] {
            assert_eq!(WhenUnsatisfiable::from_wire(number), mode, "{number}");
        }
        assert_eq!([Unspecified, DoNotSchedule, ScheduleAnyway].map(WhenUnsatisfiable::to_wire), [0, 1, 2]);
    }

    #[test]
    fn only_do_not_schedule_is_strict() {
        for (mode, strict) in [(Unspecified, false), (DoNotSchedule, true), (ScheduleAnyway, false)] {
            assert_eq!(TopologySpread::new("zone", 1, mode).is_strict(), strict);
        }
    }

    #[test]
    fn skew_below_one_counts_as_one() {
        for (skew, headroom) in [(i32::MIN, 0), (-1, 0), (0, 0), (1, 0), (2, 1), (i32::MAX, 2_147_483_646)] {
            assert_eq!(TopologySpread::new("zone", skew, DoNotSchedule).headroom(), headroom, "{skew}");
        }
        let spread = TopologySpread::new("zone", 0, DoNotSchedule);
        assert_eq!(spread.to_string(), "spread over zone within 1 (DoNotSchedule)");
    }

    #[test]
    fn keys_that_would_blur_the_fingerprint_are_refused() {
        let check = |key: &str| TopologySpread::new(key, 1, DoNotSchedule).validate();
        assert_eq!(check("topology.kubernetes.io/zone"), Ok(()));
        assert_eq!(check(""), Err(SpreadError::EmptyKey));
        for key in ["a,b", "a;b", "a:1:1;b", "|"] {
            assert_eq!(check(key), Err(SpreadError::Separator(key.into())));
        }
    }

    #[test]
    fn constraints_order_by_key_then_skew_then_mode() {
        let order = [("a", 9, 2), ("b", -1, 2), ("b", 1, 0), ("b", 1, 1), ("b", 2, 0)];
        let order =
            order.map(|(key, skew, when)| TopologySpread::new(key, skew, WhenUnsatisfiable::from_wire(when)));
        assert!(order.is_sorted());
    }
}
