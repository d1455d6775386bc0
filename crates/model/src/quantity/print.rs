//! The canonical form of a quantity, as Kubernetes prints it.
//!
//! No fraction, nothing lost, and the largest suffix of the family that allows both: `1.5` is `1500m`,
//! `0.5Gi` is `512Mi`, `1500e3` is `1500e3`. A binary quantity that is below 1024 or not whole has no exact
//! binary form and prints as a decimal one.

use std::fmt;
use std::io::Write;

use super::{Format, NANOS_PER_UNIT, Quantity};

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const EXPONENT: [&str; 10] = ["e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Room for the longest form: a sign, 28 digits of billionths and a suffix of three.
const LONGEST: usize = 32;

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative() { "-" } else { "" };
        let (number, suffix) = canonical(self.nanos.unsigned_abs(), self.format);
        let mut buffer = [0; LONGEST];
        let text = written(&mut buffer, format_args!("{sign}{number}{suffix}"));
        // Through `pad`, so that a column of quantities lines up when the caller gives a width.
        f.pad(text)
    }
}

/// The number and the suffix that print these billionths.
fn canonical(nanos: u128, format: Format) -> (u128, &'static str) {
    let units = nanos / NANOS_PER_UNIT;
    let suffixes = match format {
        _ if nanos == 0 => return (0, ""),
        Format::BinarySi if units >= 1024 && nanos.is_multiple_of(NANOS_PER_UNIT) => {
            return largest_suffix(units, 1024, &BINARY);
        }
        Format::BinarySi | Format::DecimalSi => &DECIMAL,
        Format::DecimalExponent => &EXPONENT,
    };
    largest_suffix(nanos, 1000, suffixes)
}

fn largest_suffix(mut number: u128, step: u128, suffixes: &[&'static str]) -> (u128, &'static str) {
    let mut steps = 0;
    while steps + 1 < suffixes.len() && number.is_multiple_of(step) {
        number /= step;
        steps += 1;
    }
    (number, suffixes[steps])
}

/// The float nearest to a number of billionths: the decimal reader of the standard library rounds once.
pub(super) fn to_f64(nanos: i128) -> f64 {
    let mut buffer = [0; LONGEST];
    written(&mut buffer, format_args!("{nanos}e-9"))
        .parse()
        .expect("a whole number with an exponent is a float")
}

/// Formats into a buffer on the stack.
fn written<'a>(buffer: &'a mut [u8; LONGEST], text: fmt::Arguments<'_>) -> &'a str {
    let mut rest = &mut buffer[..];
    rest.write_fmt(text).expect("the buffer holds the longest form");
    let used = LONGEST - rest.len();
    std::str::from_utf8(&buffer[..used]).expect("only text was written")
}
