//! Floating point numbers as they are on disk: bit for bit, and fit to be keys of a table.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The bits of a number. Infinities and minus zero come back as they were.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Bits(u64);

impl From<f64> for Bits {
    fn from(number: f64) -> Self {
        Self(number.to_bits())
    }
}

impl From<Bits> for f64 {
    fn from(bits: Bits) -> Self {
        Self::from_bits(bits.0)
    }
}

impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from_bits(self.0))
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::from)
    }
}
