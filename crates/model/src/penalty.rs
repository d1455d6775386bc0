//! Penalty buckets: what a disturbance costs, coarse enough to aggregate.
//!
//! Raw dollar amounts would give every workload a profile of its own and defeat aggregation. So dollars are
//! rounded up to a power of two on a fixed ladder, and turned back into the upper bound where a number is
//! needed: the engine errs on the side of safer, dearer capacity. The last rung, *pinned*, is infinite.
//!
//! A profile has two penalties, and they are different things. The *interruption* penalty is what it costs
//! to interrupt the workload; it weighs into the price of machines that may be taken away. The *reclamation*
//! penalty is what it costs to give up this very machine, with whatever the workload has built up on it.
//!
//! ```
//! use bigfleet_model::penalty::PenaltyBucket;
//! let bucket = PenaltyBucket::for_dollars(8_000.0).unwrap();
//! assert_eq!(bucket.label(), "8192");
//! assert_eq!(bucket.upper_bound_dollars(), 8_192.0);
//! assert_eq!(PenaltyBucket::for_dollars(20_000_000.0), Ok(PenaltyBucket::PINNED));
//! assert!(PenaltyBucket::for_dollars(f64::NAN).is_err());
//! ```

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_has_28_rungs() {
        let mut expected = vec![("unspecified".to_string(), 0.0), ("0".into(), 0.0), ("0.5".into(), 0.5)];
        expected.extend((0..24).map(|power| ((1_u32 << power).to_string(), f64::from(1_u32 << power))));
        expected.push(("pinned".into(), f64::INFINITY));
        assert_eq!(PenaltyBucket::COUNT, expected.len());

        let rungs: Vec<PenaltyBucket> = PenaltyBucket::all().collect();
        assert_eq!(rungs.len(), 28);
        assert!(rungs.is_sorted());
        for ((number, bucket), (label, bound)) in (0..).zip(rungs).zip(expected) {
            assert_eq!(PenaltyBucket::from_wire(number), Ok(bucket));
            assert_eq!((bucket.to_wire(), bucket.ordinal()), (number, number as usize));
            assert_eq!(bucket.upper_bound_dollars(), bound);
            assert_eq!(bucket.label(), label);
            assert_eq!(bucket.to_string(), label);
            assert_eq!(format!("{bucket:?}"), format!("PenaltyBucket({label})"));
        }
        assert_eq!(PenaltyBucket::default(), PenaltyBucket::UNSPECIFIED);
    }

    #[test]
    fn named_rungs_have_their_wire_numbers() {
        for (bucket, number) in [
            (PenaltyBucket::UNSPECIFIED, 0),
            (PenaltyBucket::ZERO, 1),
            (PenaltyBucket::HALF_DOLLAR, 2),
            (PenaltyBucket::ONE_DOLLAR, 3),
            (PenaltyBucket::PINNED, 27),
        ] {
            assert_eq!(bucket.to_wire(), number);
        }
    }

    #[test]
    fn unknown_numbers_are_refused() {
        for number in [i32::MIN, -1, 28, 255, 256, 283, i32::MAX] {
            assert_eq!(PenaltyBucket::from_wire(number), Err(PenaltyError::UnknownBucket(number)));
        }
    }

    #[test]
    fn dollars_round_up() {
        for (dollars, label) in [
            (0.0, "0"),
            (-0.0, "0"),
            (f64::MIN_POSITIVE, "0.5"),
            (0.5, "0.5"),
            (0.51, "1"),
            (1.0, "1"),
            (1.01, "2"),
            (8_000.0, "8192"),
            (8_192.0, "8192"),
            (8_192.000_001, "16384"),
            (8_388_608.0, "8388608"),
            (8_388_608.01, "pinned"),
            (20_000_000.0, "pinned"),
            (f64::MAX, "pinned"),
            (f64::INFINITY, "pinned"),
        ] {
            assert_eq!(PenaltyBucket::for_dollars(dollars).unwrap().label(), label, "{dollars}");
        }
    }

    #[test]
    fn what_is_no_amount_of_dollars_is_refused() {
        for dollars in [-f64::MIN_POSITIVE, -1.0, f64::NEG_INFINITY, f64::NAN] {
            let error = PenaltyBucket::for_dollars(dollars).unwrap_err();
            assert!(matches!(error, PenaltyError::NotDollars(d) if d.total_cmp(&dollars).is_eq()));
        }
    }
}
