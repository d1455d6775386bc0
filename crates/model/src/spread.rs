//! Topology spread: how evenly a need's machines must lie over domains.

use std::fmt;

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
