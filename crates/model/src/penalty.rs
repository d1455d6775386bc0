//! Penalty buckets: what a disturbance costs, coarse enough to aggregate.
//!
//! Raw dollar amounts would give every workload a profile of its own and defeat aggregation. So dollars are
//! rounded up to a power of two on a fixed ladder, and turned back into the upper bound where a number is
//! needed: the engine errs on the side of safer, dearer capacity. The last rung, *pinned*, is infinite.

use std::fmt;

use thiserror::Error;

/// A rung of the ladder; its ordinal is the wire number, 0 to 27.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PenaltyBucket(u8);

/// Why a penalty was refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PenaltyError {
    /// Not a bucket number.
    #[error("penalty bucket {0} is unknown; buckets are 0 (unspecified) to 27 (pinned)")]
    UnknownBucket(i32),
    /// Dollars below zero or not a number.
    #[error("a penalty of {0} dollars makes no sense; give 0 or more, or leave it out")]
    NotDollars(f64),
}

impl PenaltyBucket {
    /// Nobody said; costs nothing, but is a bucket of its own: absent and an explicit 0 do not merge.
    pub const UNSPECIFIED: Self = Self(0);
    /// Explicitly nothing.
    pub const ZERO: Self = Self(1);
    /// Up to 50 cents.
    pub const HALF_DOLLAR: Self = Self(2);
    /// Up to one dollar: 2⁰. The rungs above it are the further powers of two.
    pub const ONE_DOLLAR: Self = Self(3);
    /// More than 8,388,608 dollars: never interrupt.
    pub const PINNED: Self = Self(27);
    /// How many rungs there are.
    pub const COUNT: usize = 28;

    /// All rungs, lowest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    /// The bucket with this wire number.
    pub fn from_wire(number: i32) -> Result<Self, PenaltyError> {
        u8::try_from(number)
            .ok()
            .filter(|n| (*n as usize) < Self::COUNT)
            .map(Self)
            .ok_or(PenaltyError::UnknownBucket(number))
    }

    /// The wire number.
    pub fn to_wire(self) -> i32 {
        self.0 as i32
    }

    /// The ordinal, usable as an index below [`Self::COUNT`].
    pub fn ordinal(self) -> usize {
        self.0 as usize
    }

    /// The smallest rung whose upper bound is not below `dollars`; [`Self::PINNED`] above the last.
    pub fn for_dollars(dollars: f64) -> Result<Self, PenaltyError> {
        if dollars.is_nan() || dollars < 0.0 {
            return Err(PenaltyError::NotDollars(dollars));
        }
        // UNSPECIFIED has the same bound as ZERO, but means that nobody declared a penalty.
        Ok(Self::all().skip(1).find(|bucket| dollars <= bucket.upper_bound_dollars()).unwrap_or(Self::PINNED))
    }

    /// The most a penalty in this bucket may be, in dollars; infinite when pinned.
    pub fn upper_bound_dollars(self) -> f64 {
        match self.0 {
            0 | 1 => 0.0,
            2 => 0.5,
            27 => f64::INFINITY,
            n => f64::from(1_u32 << (n - Self::ONE_DOLLAR.0)),
        }
    }

    /// A stable short name, fit for a metric label: `unspecified`, `0`, `0.5`, `1`, … `8388608`, `pinned`.
    pub fn label(self) -> String {
        match self {
            Self::UNSPECIFIED => "unspecified".into(),
            Self::PINNED => "pinned".into(),
            bucket => format!("{}", bucket.upper_bound_dollars()),
        }
    }
}

impl fmt::Display for PenaltyBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}

impl fmt::Debug for PenaltyBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PenaltyBucket({})", self.label())
    }
}
