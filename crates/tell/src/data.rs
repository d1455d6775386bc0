//! Messages of the view as data, exactly as the proto file describes them.
//!
//! A message is walked along its descriptor, so that every field of every answer is there without a second set of types
//! that could fall behind. Names are those of the proto file, with four changes for readers:
//!
//! * a time (`…_unix_nanos`) loses its ending, or changes it to `_time` where the bare name is taken, and is RFC 3339 in
//!   UTC, or null if there is none;
//! * a span (`…_nanos`) ends in `_secs` and is in seconds;
//! * an enumeration is its name in lower case without the prefix, or null if it says nothing;
//! * an infinite number is the text "infinite".
//!
//! Fields that are not set are there with their default; members of a choice only if they were chosen.

mod schema;
mod wire;

use bigfleet_view::FILE_DESCRIPTOR_SET;
use prost::Message;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::sync::LazyLock;

use schema::{Field, Form, Kind, Schema};
use wire::{Value, fields};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::read(FILE_DESCRIPTOR_SET));

/// A message that can be serialized.
pub struct Shown {
    shape: usize,
    bytes: Vec<u8>,
    simulated: bool,
}

impl Shown {
    /// `message`, which is a `bigfleet.view.v1` message called `name`.
    pub fn new(name: &str, message: &impl Message) -> Self {
        Self { shape: SCHEMA.shape(name), bytes: message.encode_to_vec(), simulated: false }
    }

    /// Marks it as simulated, for messages that do not say so themselves.
    #[must_use]
    pub fn simulated(self, simulated: bool) -> Self {
        Self { simulated, ..self }
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        Part { shape: self.shape, bytes: &self.bytes }.entries(&mut map)?;
        if self.simulated {
            map.serialize_entry("simulated", &true)?;
        }
        map.end()
    }
}

/// A message inside a message.
struct Part<'a> {
    shape: usize,
    bytes: &'a [u8],
}

impl Part<'_> {
    fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let mut found: Vec<(u32, Value<'_>)> = fields(self.bytes).collect();
        // As our encoder writes them; a stable sort of what is sorted costs one look.
        found.sort_by_key(|(number, _)| *number);
        let (mut at, mut last_number) = (0, 0);
        for field in SCHEMA.fields(self.shape) {
            // Proto files list fields by number nearly always, so both lists are walked together.
            if field.number < last_number {
                at = 0;
            }
            last_number = field.number;
            let before = |number: u32| number < field.number;
            at += found[at..].iter().take_while(|(number, _)| before(*number)).count();
            let count = found[at..].iter().take_while(|(number, _)| *number == field.number).count();
            let values = &found[at..at + count];
            at += count;
            match field.form {
                Form::Many => map.serialize_entry(&field.name, &Many { field, values })?,
                Form::Map => map.serialize_entry(&field.name, &Pairs { field, values })?,
                Form::Choice if values.is_empty() => {}
                Form::One | Form::Optional | Form::Choice => {
                    // The last one counts, as everywhere in this encoding.
                    let value = values.last().map(|(_, value)| *value);
                    map.serialize_entry(&field.name, &One { field, value })?;
                }
            }
        }
        Ok(())
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

struct One<'a> {
    field: &'a Field,
    value: Option<Value<'a>>,
}

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.value.is_none() && self.field.form == Form::Optional {
            return serializer.serialize_none();
        }
        let number = match self.value {
            Some(Value::Number(number)) => number,
            _ => 0,
        };
        let bytes = match self.value {
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        };
        match &self.field.kind {
            Kind::Message(shape) => match self.value {
                Some(_) => Part { shape: *shape, bytes }.serialize(serializer),
                None => serializer.serialize_none(),
            },
            Kind::Text => serializer.serialize_str(&String::from_utf8_lossy(bytes)),
            Kind::Bool => serializer.serialize_bool(number != 0),
            Kind::Unsigned => serializer.serialize_u64(number),
            // Negative numbers of any width are sent as 64 bits.
            Kind::Signed => serializer.serialize_i64(number.cast_signed()),
            Kind::Double => match f64::from_bits(number) {
                value if value.is_finite() => serializer.serialize_f64(value),
                value if value > 0.0 => serializer.serialize_str("infinite"),
                _ => serializer.serialize_none(),
            },
            Kind::Time if number == 0 => serializer.serialize_none(),
            Kind::Time => serializer.serialize_str(&crate::words::rfc3339(number.cast_signed())),
            Kind::Span => serializer.serialize_f64(number.cast_signed() as f64 / 1e9),
            Kind::Enum(names) if number == 0 && names.contains_key(&0) => serializer.serialize_none(),
            Kind::Enum(names) => match names.get(&number) {
                Some(name) => serializer.serialize_str(name),
                // From a newer server.
                None => serializer.serialize_u64(number),
            },
        }
    }
}

struct Many<'a> {
    field: &'a Field,
    values: &'a [(u32, Value<'a>)],
}

impl Serialize for Many<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let packable = !matches!(self.field.kind, Kind::Message(_) | Kind::Text);
        let unpacked = self.values.iter().flat_map(|(_, value)| match value {
            Value::Bytes(bytes) if packable => wire::packed(bytes, matches!(self.field.kind, Kind::Double)),
            value => vec![*value],
        });
        serializer.collect_seq(unpacked.map(|value| One { field: self.field, value: Some(value) }))
    }
}

/// A map from text to text.
struct Pairs<'a> {
    field: &'a Field,
    values: &'a [(u32, Value<'a>)],
}

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.values.len()))?;
        for (_, value) in self.values {
            let Value::Bytes(bytes) = value else { continue };
            let mut pair: [&[u8]; 2] = [&[], &[]];
            for (number, value) in fields(bytes) {
                if let (1 | 2, Value::Bytes(text)) = (number, value) {
                    pair[number as usize - 1] = text;
                }
            }
            debug_assert!(matches!(self.field.kind, Kind::Text), "the view has no other maps");
            let [key, text] = pair.map(String::from_utf8_lossy);
            map.serialize_entry(&*key, &*text)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
