//! Why a quantity was refused.

use thiserror::Error;

use crate::text::{Quoted, SHOWN_CHARS};

/// Why a text is not a quantity, or a quantity not an amount.
///
/// The `text` in each variant is what the messages show: quoted, escaped and cut to a bounded length.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// There is no text.
    #[error("quantity \"\" is empty; use forms like 500m, 2, 1.5Gi")]
    Empty,
    /// The bytes are not text.
    #[error("quantity {text} is not UTF-8; use forms like 500m, 2, 1.5Gi")]
    NotUtf8 {
        /// The offending bytes.
        text: Box<str>,
    },
    /// No number stands at the beginning.
    #[error("quantity {text} does not begin with a number; use forms like 500m, 2, 1.5Gi, without spaces")]
    NoNumber {
        /// The offending text.
        text: Box<str>,
    },
    /// Something other than a suffix follows the number.
    #[error(
        "quantity {text} ends in {suffix}, which is no suffix; \
         use n u m k M G T P E, Ki Mi Gi Ti Pi Ei, an exponent like e3, or nothing"
    )]
    UnknownSuffix {
        /// The offending text.
        text: Box<str>,
        /// The part of it behind the number.
        suffix: Box<str>,
    },
    /// An exponent that is not a whole number.
    #[error("quantity {text} has a malformed exponent; write a whole number behind the e, like 1e3 or 5e-3")]
    BadExponent {
        /// The offending text.
        text: Box<str>,
    },
    /// An exponent no quantity can need: it does not fit 32 bits.
    #[error("quantity {text} has an exponent out of range; use forms like 500m, 2, 1.5Gi")]
    ExponentOutOfRange {
        /// The offending text.
        text: Box<str>,
    },
    /// Further from zero than 2⁶³−1 of the unit.
    #[error("quantity {text} is beyond 2^63-1 {unit}; ask for less")]
    TooLarge {
        /// The offending text.
        text: Box<str>,
        /// What was counted: units or thousandths.
        unit: &'static str,
    },
    /// A quantity below zero where an amount was asked for.
    #[error("quantity {text} is negative; an amount is zero or more")]
    Negative {
        /// The offending text.
        text: Box<str>,
    },
}

// Refusals are rare, and their construction would otherwise be inlined into the hot reader.
impl QuantityError {
    #[cold]
    pub(super) fn not_utf8(bytes: &[u8]) -> Self {
        let shown = bytes[..bytes.len().min(SHOWN_CHARS)].escape_ascii();
        let text = if bytes.len() > SHOWN_CHARS {
            format!("\"{shown}…\" ({} bytes)", bytes.len())
        } else {
            format!("\"{shown}\"")
        };
        Self::NotUtf8 { text: text.into() }
    }

    #[cold]
    pub(super) fn no_number(text: &str) -> Self {
        if text.is_empty() { Self::Empty } else { Self::NoNumber { text: quoted(text) } }
    }

    #[cold]
    pub(super) fn unknown_suffix(text: &str, suffix_len: usize) -> Self {
        let suffix = &text[text.len() - suffix_len..];
        Self::UnknownSuffix { text: quoted(text), suffix: quoted(suffix) }
    }

    #[cold]
    pub(super) fn bad_exponent(text: &str) -> Self {
        Self::BadExponent { text: quoted(text) }
    }

    #[cold]
    pub(super) fn exponent_out_of_range(text: &str) -> Self {
        Self::ExponentOutOfRange { text: quoted(text) }
    }

    #[cold]
    pub(super) fn too_large(text: &str, unit: &'static str) -> Self {
        Self::TooLarge { text: quoted(text), unit }
    }

    #[cold]
    pub(super) fn negative(text: &str) -> Self {
        Self::Negative { text: quoted(text) }
    }
}

fn quoted(text: &str) -> Box<str> {
    Quoted(text).to_string().into()
}
