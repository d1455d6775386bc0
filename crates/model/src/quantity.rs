//! Kubernetes quantities, exactly.
//!
//! Amounts reach us as text such as `500m`, `1.5Gi` or `2e3`, written by people and by other programs. An
//! amount read wrongly is capacity bought wrongly, so nothing here goes through floating point, nothing
//! wraps, and whatever cannot be represented is refused with an error that names the text. The accepted
//! spellings, their values and the printed form are those of `resource.Quantity` in Kubernetes:
//!
//! ```text
//! quantity = [+|-] number suffix
//! number   = digits | digits "." [digits] | "." digits
//! suffix   = "" | n u m k M G T P E | Ki Mi Gi Ti Pi Ei | (e|E) [+|-] digits
//! ```
//!
//! A lone `E` is exa; `E` with digits after it is an exponent. Whatever is finer than a billionth (`n`) is
//! rounded away from zero to a whole billionth: somebody who asks for a little gets a little, never nothing.
//!
//! We differ from Kubernetes on purpose in four places, each time towards refusing instead of guessing:
//!
//! * Beyond ±(2⁶³−1) whole units a quantity is refused. Kubernetes silently caps `8Ei` and keeps `100E`,
//!   whose integer accessors then overflow.
//! * A text without any digit (`.`, `-`, `Gi`) is refused. The Kubernetes grammar says so too, but its
//!   scanner reads such a text as zero.
//! * An exponent that does not fit 32 bits is refused, whatever stands before it. Older Kubernetes wraps it.
//! * [`Display`](std::fmt::Display) always prints the canonical form. Kubernetes sometimes repeats the text
//!   it has read, so that `+1` or `1E3` print as they came.
//!
//! Reading an acceptable text allocates nothing and takes one pass; `1e999999999` or a megabyte of zeros
//! costs no more than looking at it.

mod error;
mod parse;
mod print;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

pub use error::QuantityError;
pub use parse::{parse_milli_ceil, parse_units_ceil};

/// The largest whole amount, 2⁶³−1: what the engine computes with.
const MAX_AMOUNT: u64 = i64::MAX as u64;
const NANOS_PER_UNIT: u128 = 1_000_000_000;
const NANOS_PER_MILLI: u128 = 1_000_000;
const MAX_NANOS: u128 = MAX_AMOUNT as u128 * NANOS_PER_UNIT;

/// An exact Kubernetes quantity: a whole number of billionths, at most 2⁶³−1 units either side of zero.
///
/// Two quantities are equal, ordered and hashed by value; how they were written counts only in print, which
/// keeps the family of the suffix (decimal, binary or exponent) as Kubernetes does.
///
/// ```
/// use bigfleet_model::quantity::Quantity;
///
/// let memory: Quantity = "1.5Gi".parse()?;
/// assert_eq!(memory, Quantity::from_units(1_610_612_736));
/// assert_eq!(memory.to_string(), "1536Mi");
/// assert_eq!(Quantity::parse("0.1m")?.to_milli_ceil()?, 1);
/// # Ok::<(), bigfleet_model::quantity::QuantityError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// The family of suffixes a quantity was written with, and prints with.
#[derive(Clone, Copy, Debug)]
enum Format {
    /// n u m k M G T P E, or none.
    DecimalSi,
    /// Ki Mi Gi Ti Pi Ei.
    BinarySi,
    /// e3, e-6.
    DecimalExponent,
}

impl Quantity {
    /// Nothing at all.
    pub const ZERO: Self = Self::from_milli(0);

    /// The largest quantity, 2⁶³−1 units.
    pub const MAX: Self = Self::from_units(MAX_AMOUNT);

    /// A number of thousandths, as the engine keeps cpu.
    pub const fn from_milli(milli: u64) -> Self {
        Self { nanos: milli as i128 * NANOS_PER_MILLI.cast_signed(), format: Format::DecimalSi }
    }

    /// A number of whole units, as the engine keeps everything but cpu.
    ///
    /// Amounts above [`Quantity::MAX`] stay there, like every sum in the engine.
    pub const fn from_units(units: u64) -> Self {
        let units = if units > MAX_AMOUNT { MAX_AMOUNT } else { units };
        Self { nanos: units as i128 * NANOS_PER_UNIT.cast_signed(), format: Format::DecimalSi }
    }

    /// Reads a quantity; the whole text must be one, without spaces around it.
    #[inline]
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }

    /// Reads a quantity from bytes that may be anything.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Self, QuantityError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text),
            Err(_) => Err(QuantityError::not_utf8(bytes)),
        }
    }

    /// The sum, which stops at 2⁶³−1 units either side of zero. It prints in the family of `self`, unless that is zero.
    #[must_use]
    pub fn saturating_add(&self, other: &Self) -> Self {
        let bound = MAX_NANOS.cast_signed();
        // Both are within the bound, so the sum is far from wrapping.
        let nanos = (self.nanos + other.nanos).clamp(-bound, bound);
        Self { nanos, format: if self.is_zero() { other.format } else { self.format } }
    }

    /// Below zero. Minus zero is not.
    pub const fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Exactly zero, however it was written.
    pub const fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Thousandths, rounded up. Refuses negative quantities and results above 2⁶³−1.
    pub fn to_milli_ceil(&self) -> Result<u64, QuantityError> {
        self.to_ceil(NANOS_PER_MILLI, "thousandths")
    }

    /// Whole units, rounded up. Refuses negative quantities.
    pub fn to_units_ceil(&self) -> Result<u64, QuantityError> {
        self.to_ceil(NANOS_PER_UNIT, "units")
    }

    fn to_ceil(self, nanos_per_step: u128, unit: &'static str) -> Result<u64, QuantityError> {
        if self.is_negative() {
            return Err(QuantityError::negative(&self.to_string()));
        }
        match u64::try_from(self.nanos.unsigned_abs().div_ceil(nanos_per_step)) {
            Ok(amount) if amount <= MAX_AMOUNT => Ok(amount),
            _ => Err(QuantityError::too_large(&self.to_string(), unit)),
        }
    }

    /// The nearest floating point number, for amounts of money.
    ///
    /// The result is the one that reading the same decimal number gives: `0.1` is `0.1_f64`.
    pub fn to_f64(&self) -> f64 {
        const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;
        if self.nanos.unsigned_abs() <= EXACT {
            // Both sides are exact, so the division rounds once.
            return self.nanos as f64 / NANOS_PER_UNIT as f64;
        }
        print::to_f64(self.nanos)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_and_stop_at_the_bound() {
        for (a, b, sum) in [
            ("0", "1Gi", "1Gi"),
            ("1Gi", "0", "1Gi"),
            ("512Mi", "512Mi", "1Gi"),
            ("100m", "1n", "100000001n"),
            ("1", "-1500m", "-500m"),
            ("9223372036854775807", "1", "9223372036854775807"),
        ] {
            let (a, b) = (Quantity::parse(a).unwrap(), Quantity::parse(b).unwrap());
            assert_eq!(a.saturating_add(&b).to_string(), sum);
        }
        let minus = Quantity::parse("-9223372036854775807").unwrap();
        assert_eq!(minus.saturating_add(&minus), minus);
    }
}
