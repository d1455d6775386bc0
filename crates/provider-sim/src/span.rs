//! Spans of time as people write them: `250ms`, `45s`, `10m`, `1h30m`, `2d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bigfleet_model::text::Quoted;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A span of time with a text form. Whole nanoseconds, at most what 63 bits hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(Duration);

/// Units, largest first.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// Why a text is no span.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} is no span of time; write it like 250ms, 45s, 10m or 1h30m", Quoted(.0))]
pub struct SpanError(pub String);

impl Span {
    /// This many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// This many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// This many nanoseconds; negative ones are none.
    pub fn from_nanos(nanos: i64) -> Self {
        Self(Duration::from_nanos(nanos.max(0) as u64))
    }

    /// As the standard library has it.
    pub fn duration(self) -> Duration {
        self.0
    }

    /// In nanoseconds.
    pub fn nanos(self) -> i64 {
        i64::try_from(self.0.as_nanos()).unwrap_or(i64::MAX)
    }

    /// In seconds.
    pub fn secs(self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let wrong = || SpanError(text.into());
        let mut rest = text;
        let mut nanos = 0.0_f64;
        let mut last_unit = u64::MAX;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let unit = UNITS.iter().find(|(name, _)| *name == &rest[..letters]).ok_or_else(wrong)?.1;
            if unit >= last_unit {
                return Err(wrong());
            }
            (last_unit, rest) = (unit, &rest[letters..]);
            nanos += number * unit as f64;
        }
        if text.is_empty() || nanos > i64::MAX as f64 / 2.0 {
            return Err(wrong());
        }
        Ok(Self(Duration::from_nanos(nanos.round() as u64)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.nanos() as u64;
        if rest == 0 {
            return f.write_str("0s");
        }
        for (name, unit) in UNITS {
            if rest >= unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for Span {
    type Error = SpanError;

    fn try_from(text: String) -> Result<Self, SpanError> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_and_print() {
        for (text, secs, printed) in [
            ("45s", 45.0, "45s"),
            ("0s", 0.0, "0s"),
            ("10m", 600.0, "10m"),
            ("1h30m", 5400.0, "1h30m"),
            ("250ms", 0.25, "250ms"),
            ("1.5s", 1.5, "1s500ms"),
            ("90s", 90.0, "1m30s"),
            ("2d", 172_800.0, "2d"),
        ] {
            let span: Span = text.parse().expect(text);
            assert_eq!((span.secs(), span.to_string().as_str()), (secs, printed));
            assert_eq!(span.to_string().parse(), Ok(span));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "10", "m", "10 m", "-5s", "5x", "1m1h", "1m1m", "1..5s", "1e9s", "999999999d", "5s "]
        {
            assert_eq!(text.parse::<Span>(), Err(SpanError(text.into())), "{text:?}");
        }
    }
}
