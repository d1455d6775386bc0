//! Reading quantities.
//!
//! One reader splits the text into sign, digits and suffix and refuses what is not in the grammar. Two
//! evaluations follow. Nearly everything in a real cluster has at most 18 digits, which fit a `u64`, so a
//! multiplication or two give the value; the general evaluation takes any number of digits and exists once,
//! for everything else. Tests hold the two against each other.

use super::{Format, MAX_AMOUNT, MAX_NANOS, Quantity, QuantityError};

/// Exponents beyond this are refused, as in Kubernetes.
const MAX_EXPONENT: i64 = i32::MAX as i64;

/// The most digits that always fit a `u64`, with a bit to spare.
const SHORT_DIGITS: usize = 18;

/// Powers of ten in a `u64`.
const POW10: [u64; 20] = {
    let mut powers = [1; 20];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Thousandths of a quantity, rounded up: `Quantity::parse(text)?.to_milli_ceil()`, but quicker.
pub fn parse_milli_ceil(text: &str) -> Result<u64, QuantityError> {
    let spelling = Spelling::read(text)?;
    match spelling.short_amount_ceil(3) {
        Some(amount) => Ok(amount),
        None => spelling.quantity(text)?.to_milli_ceil(),
    }
}

/// Whole units of a quantity, rounded up: `Quantity::parse(text)?.to_units_ceil()`, but quicker.
pub fn parse_units_ceil(text: &str) -> Result<u64, QuantityError> {
    let spelling = Spelling::read(text)?;
    match spelling.short_amount_ceil(0) {
        Some(amount) => Ok(amount),
        None => spelling.quantity(text)?.to_units_ceil(),
    }
}

#[inline]
pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    Spelling::read(text)?.quantity(text)
}

/// What a suffix multiplies by: a power of ten times a power of two, one of them always 1.
#[derive(Clone, Copy)]
struct Suffix {
    pow10: i64,
    pow2: u32,
    format: Format,
}

impl Suffix {
    #[inline]
    fn read(suffix: &[u8], text: &str) -> Result<Self, QuantityError> {
        let decimal = |pow10| Ok(Self { pow10, pow2: 0, format: Format::DecimalSi });
        let binary = |pow2| Ok(Self { pow10: 0, pow2, format: Format::BinarySi });
        match suffix {
            [] => decimal(0),
            b"n" => decimal(-9),
            b"u" => decimal(-6),
            b"m" => decimal(-3),
            b"k" => decimal(3),
            b"M" => decimal(6),
            b"G" => decimal(9),
            b"T" => decimal(12),
            b"P" => decimal(15),
            b"E" => decimal(18),
            b"Ki" => binary(10),
            b"Mi" => binary(20),
            b"Gi" => binary(30),
            b"Ti" => binary(40),
            b"Pi" => binary(50),
            b"Ei" => binary(60),
            [b'e' | b'E', exponent @ ..] => Self::read_exponent(exponent, text),
            _ => Err(QuantityError::unknown_suffix(text, suffix.len())),
        }
    }

    fn read_exponent(exponent: &[u8], text: &str) -> Result<Self, QuantityError> {
        let (negative, digits) = split_sign(exponent);
        if let [first, ..] = exponent
            && !matches!(first, b'+' | b'-' | b'0'..=b'9')
        {
            return Err(QuantityError::unknown_suffix(text, exponent.len() + 1));
        }
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(QuantityError::bad_exponent(text));
        }
        let mut magnitude = 0;
        for digit in digits {
            magnitude = magnitude * 10 + i64::from(digit - b'0');
            if magnitude > MAX_EXPONENT {
                return Err(QuantityError::exponent_out_of_range(text));
            }
        }
        let pow10 = if negative { -magnitude } else { magnitude };
        Ok(Self { pow10, pow2: 0, format: Format::DecimalExponent })
    }
}

/// A text that is in the grammar, split into its parts. There is at least one digit.
struct Spelling<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    /// All digits as one number, without the point; wrapped, so worthless, unless the spelling is short.
    mantissa: u64,
    suffix: Suffix,
}

impl<'a> Spelling<'a> {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "halves the time: the parts stay in registers instead of memory"
    )]
    fn read(text: &'a str) -> Result<Self, QuantityError> {
        let (negative, rest) = split_sign(text.as_bytes());
        let (mantissa, whole, rest) = split_digits(0, rest);
        let (mantissa, fraction, rest) = match rest {
            [b'.', rest @ ..] => split_digits(mantissa, rest),
            _ => (mantissa, &[][..], rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityError::no_number(text));
        }
        let suffix = Suffix::read(rest, text)?;
        Ok(Self { negative, whole, fraction, mantissa, suffix })
    }

    #[inline]
    fn quantity(&self, text: &str) -> Result<Quantity, QuantityError> {
        match self.short_nanos().or_else(|| self.nanos()) {
            Some(nanos) if nanos <= MAX_NANOS => {
                let nanos = nanos.cast_signed();
                let nanos = if self.negative { -nanos } else { nanos };
                Ok(Quantity { nanos, format: self.suffix.format })
            }
            _ => Err(QuantityError::too_large(text, "units")),
        }
    }

    #[inline]
    fn is_short(&self) -> bool {
        self.whole.len() + self.fraction.len() <= SHORT_DIGITS
    }

    /// The value times ten to the `decimals`, rounded up, if 64 bits are enough to find it.
    #[inline]
    fn short_amount_ceil(&self, decimals: i64) -> Option<u64> {
        if self.negative || !self.is_short() || self.mantissa.leading_zeros() < self.suffix.pow2 {
            return None;
        }
        let scaled = self.mantissa << self.suffix.pow2;
        let pow10 = decimals + self.suffix.pow10 - places(self.fraction);
        let amount = match pow10 {
            0 => scaled,
            1.. => scaled.checked_mul(power(pow10)?)?,
            _ => scaled.div_ceil(power(-pow10)?),
        };
        (amount <= MAX_AMOUNT).then_some(amount)
    }

    /// The magnitude in billionths, if the spelling is short and that is a whole number below 2¹²⁸.
    #[inline]
    fn short_nanos(&self) -> Option<u128> {
        if !self.is_short() {
            return None;
        }
        let pow10 = 9 + self.suffix.pow10 - places(self.fraction);
        let nanos = u128::from(self.mantissa) * u128::from(power(pow10)?);
        (nanos.leading_zeros() >= self.suffix.pow2).then(|| nanos << self.suffix.pow2)
    }

    /// The magnitude in billionths, rounded up, for any number of digits; nothing if it is out of range.
    fn nanos(&self) -> Option<u128> {
        // Counting in billionths moves the decimal point nine places to the right; an exponent moves it
        // further, or back. Digits before the new point are whole billionths, those behind it a rest.
        let digits = self.whole.len() + self.fraction.len();
        let point = places(self.whole) + 9 + self.suffix.pow10;
        let before = usize::try_from(point).unwrap_or(0).min(digits);
        let in_whole = before.min(self.whole.len());
        let (whole, whole_rest) = self.whole.split_at(in_whole);
        let (fraction, fraction_rest) = self.fraction.split_at(before - in_whole);

        let mut nanos = 0;
        for digit in whole.iter().chain(fraction) {
            nanos = nanos * 10 + u128::from(digit - b'0');
            if nanos > MAX_NANOS {
                return None;
            }
        }
        if nanos > 0 {
            // At most 28 rounds before the value is out of range, however large the exponent.
            for _ in places(self.whole) + places(self.fraction)..point {
                nanos *= 10;
                if nanos > MAX_NANOS {
                    return None;
                }
            }
        }

        // The rest times the binary suffix, by long multiplication from the last digit. Each step divides by
        // ten and drops a remainder; whether any was dropped is all that rounding up needs to know. (Without
        // a binary suffix the product stays below one, so a point left of all digits changes nothing.)
        let factor = 1_u64 << self.suffix.pow2;
        let mut carry = 0;
        let mut dropped = false;
        for digit in whole_rest.iter().chain(fraction_rest).rev() {
            let sum = u64::from(digit - b'0') * factor + carry;
            carry = sum / 10;
            dropped |= !sum.is_multiple_of(10);
        }
        nanos.checked_mul(factor.into())?.checked_add((carry + u64::from(dropped)).into())
    }
}

/// How many digits, as a number that exponents can be added to.
#[inline]
fn places(digits: &[u8]) -> i64 {
    digits.len().cast_signed() as i64
}

#[inline]
fn power(pow10: i64) -> Option<u64> {
    POW10.get(usize::try_from(pow10).ok()?).copied()
}

#[inline]
fn split_sign(bytes: &[u8]) -> (bool, &[u8]) {
    match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    }
}

/// Takes the digits off the front, and appends them to the mantissa.
#[inline]
fn split_digits(mut mantissa: u64, bytes: &[u8]) -> (u64, &[u8], &[u8]) {
    let mut at = 0;
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(digit.into());
        at += 1;
    }
    let (digits, rest) = bytes.split_at(at);
    (mantissa, digits, rest)
}
