//! The wire form of a message, read without knowing what it means.

use prost::encoding::{WireType, decode_key, decode_varint};

/// One value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// Whatever has a fixed number of bits, as bits.
    Number(u64),
    /// Text, a message, or packed numbers.
    Bytes(&'a [u8]),
}

/// The fields of a message in the order they were sent. Ends where the bytes make no sense, which our own encoder never
/// lets happen.
pub(super) fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u32, Value<'_>)> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let (number, wire_type) = decode_key(&mut bytes).ok()?;
        let value = match wire_type {
            WireType::Varint => Value::Number(decode_varint(&mut bytes).ok()?),
            WireType::SixtyFourBit => {
                let (first, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                Value::Number(u64::from_le_bytes(*first))
            }
            WireType::ThirtyTwoBit => {
                let (first, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                Value::Number(u32::from_le_bytes(*first).into())
            }
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
                let (first, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Value::Bytes(first)
            }
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        Some((number, value))
    })
}

/// Numbers sent one behind the other without keys.
pub(super) fn packed(mut bytes: &[u8], fixed: bool) -> Vec<Value<'_>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let number = if fixed {
            let Some((first, rest)) = bytes.split_first_chunk() else { break };
            bytes = rest;
            u64::from_le_bytes(*first)
        } else {
            let Ok(number) = decode_varint(&mut bytes) else { break };
            number
        };
        values.push(Value::Number(number));
    }
    values
}
