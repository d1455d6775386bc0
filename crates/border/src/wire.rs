//! The outermost layer of a protobuf message, walked without decoding what is inside.
//!
//! A listing of a whole fleet and a roll-up that repeats itself are mostly bytes nobody needs to read. Finding where
//! their parts begin and end costs a hundredth of decoding them.

use thiserror::Error;

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("byte {at} of {len}: {what}")]
pub struct Malformed {
    /// Where.
    pub at: usize,
    /// Of how many.
    pub len: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// One field, with where its whole encoding and its payload lie in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its number.
    pub number: u32,
    /// Whether it is length-delimited: text, bytes or a message.
    pub is_delimited: bool,
    /// Where it begins, tag included.
    pub start: usize,
    /// Where its payload begins.
    pub payload: usize,
    /// Where it ends.
    pub end: usize,
}

impl Field {
    /// Its payload within `message`.
    pub fn payload<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        &message[self.payload..self.end]
    }
}

/// The fields of a message, in order, until the first that is malformed.
pub fn fields(message: &[u8]) -> Fields<'_> {
    Fields { message, at: 0 }
}

/// See [`fields`].
pub struct Fields<'m> {
    message: &'m [u8],
    at: usize,
}

impl Fields<'_> {
    fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { at: self.at, len: self.message.len(), what }
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for index in 0..10 {
            let byte = *self.message.get(self.at).ok_or_else(|| self.malformed("it ends within a number"))?;
            if index == 9 && byte > 1 {
                break;
            }
            self.at += 1;
            value |= u64::from(byte & 0x7F) << (7 * index);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.malformed("a number has more than 64 bits"))
    }

    fn skip(&mut self, len: u64) -> Result<(), Malformed> {
        let left = (self.message.len() - self.at) as u64;
        if len > left {
            return Err(self.malformed("a field is longer than what is left"));
        }
        self.at += len as usize;
        Ok(())
    }

    fn field(&mut self) -> Result<Field, Malformed> {
        let start = self.at;
        let tag = u32::try_from(self.varint()?).map_err(|_| self.malformed("a tag is out of range"))?;
        let number = tag >> 3;
        if number == 0 {
            return Err(self.malformed("a field has number 0"));
        }
        let mut payload = self.at;
        match tag & 7 {
            0 => drop(self.varint()?),
            1 => self.skip(8)?,
            2 => {
                let len = self.varint()?;
                payload = self.at;
                self.skip(len)?;
            }
            5 => self.skip(4)?,
            _ => return Err(self.malformed("a field has a wire type that nobody sends")),
        }
        Ok(Field { number, is_delimited: tag & 7 == 2, start, payload, end: self.at })
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.message.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.message.len();
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_where_they_lie() {
        // 1: "ab", 2: 300, 3: fixed32, 4: fixed64
        let message = [0x0A, 2, b'a', b'b', 0x10, 0xAC, 0x02, 0x1D, 1, 2, 3, 4, 0x21, 1, 2, 3, 4, 5, 6, 7, 8];
        let found: Vec<Field> = fields(&message).map(Result::unwrap).collect();
        let places: Vec<_> =
            found.iter().map(|f| (f.number, f.is_delimited, f.start, f.payload, f.end)).collect();
        assert_eq!(
            places,
            [(1, true, 0, 2, 4), (2, false, 4, 5, 7), (3, false, 7, 8, 12), (4, false, 12, 13, 21)]
        );
        assert_eq!(found[0].payload(&message), b"ab");
    }

    #[test]
    fn what_is_malformed_ends_the_walk_and_says_where() {
        for (message, at, what) in [
            (&[0x0A, 5, b'a'][..], 2, "a field is longer than what is left"),
            (&[0x0A], 1, "it ends within a number"),
            (&[0x00, 1], 1, "a field has number 0"),
            (&[0x0B], 1, "a field has a wire type that nobody sends"),
            (&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], 6, "a tag is out of range"),
            (&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2], 10, "a number has more than 64 bits"),
        ] {
            let mut walk = fields(message);
            assert_eq!(walk.next(), Some(Err(Malformed { at, len: message.len(), what })), "{message:?}");
            assert_eq!(walk.next(), None);
        }
    }
}
