//! Frames: a head of fixed size, then a compressed piece.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a head.
pub(super) const HEAD_BYTES: usize = 56;
/// The most a piece may be when it is unpacked: a head that says more is damaged.
const MOST_RAW_BYTES: u32 = 1 << 30;
/// Measured in docs/adr/0008: higher levels cost more time than they save space.
pub(super) const LEVEL: i32 = 1;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The options of the records after it.
    Options,
    /// A cycle as changes.
    Changes,
    /// A cycle with the whole input.
    Full,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Options, Self::Changes, Self::Full];
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// Bytes of the piece as it lies in the file.
    pub(super) packed_bytes: u32,
    /// Bytes of the piece when it is unpacked.
    pub(super) raw_bytes: u32,
    /// Where in the segment the options of this record are; 0 for options.
    pub(super) options_at: u64,
    pub(super) cycle: u64,
    pub(super) now_unix_nanos: i64,
    sum: u64,
}

impl Head {
    pub(super) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let kind = Kind::ALL.iter().position(|kind| *kind == self.kind).expect("all are listed") as u32;
        let mut bytes = [0; HEAD_BYTES];
        bytes[0..4].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.packed_bytes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.raw_bytes.to_le_bytes());
        // Four bytes are kept for later.
        bytes[16..24].copy_from_slice(&self.options_at.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.cycle.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.now_unix_nanos.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.sum.to_le_bytes());
        let own = xxh3_64(&bytes[..48]);
        bytes[48..56].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// The head, if these bytes are one.
    pub(super) fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let eight = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if eight(48) != xxh3_64(&bytes[..48]) {
            return None;
        }
        let kind = *Kind::ALL.get(four(0) as usize)?;
        let (packed_bytes, raw_bytes) = (four(4), four(8));
        if raw_bytes > MOST_RAW_BYTES {
            return None;
        }
        let (options_at, cycle, sum) = (eight(16), eight(24), eight(40));
        Some(Self {
            kind,
            packed_bytes,
            raw_bytes,
            options_at,
            cycle,
            now_unix_nanos: eight(32).cast_signed(),
            sum,
        })
    }

    /// Bytes of the whole frame.
    pub(super) fn frame_bytes(&self) -> u64 {
        HEAD_BYTES as u64 + u64::from(self.packed_bytes)
    }

    /// Whether these are the bytes that were written.
    pub(super) fn matches(&self, packed: &[u8]) -> bool {
        packed.len() == self.packed_bytes as usize && xxh3_64(packed) == self.sum
    }

    /// The piece, unpacked.
    pub(super) fn unpack(&self, packed: &[u8]) -> Result<Vec<u8>, String> {
        if !self.matches(packed) {
            return Err("the frame does not match its checksum".into());
        }
        let raw =
            zstd::bulk::decompress(packed, self.raw_bytes as usize).map_err(|error| error.to_string())?;
        if raw.len() != self.raw_bytes as usize {
            return Err("the frame has another size than its head says".into());
        }
        Ok(raw)
    }
}

/// Puts frames together.
pub(super) struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    pub(super) fn new() -> std::io::Result<Self> {
        zstd::bulk::Compressor::new(LEVEL).map(Self)
    }

    /// Appends a frame to `out`.
    pub(super) fn pack(
        &mut self,
        kind: Kind,
        options_at: u64,
        (cycle, now_unix_nanos): (u64, i64),
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        let too_large = || std::io::Error::other("a record of a gigabyte is not taken");
        let raw_bytes =
            u32::try_from(raw.len()).ok().filter(|bytes| *bytes <= MOST_RAW_BYTES).ok_or_else(too_large)?;
        let packed = self.0.compress(raw)?;
        let packed_bytes = u32::try_from(packed.len()).map_err(|_| too_large())?;
        let head =
            Head { kind, packed_bytes, raw_bytes, options_at, cycle, now_unix_nanos, sum: xxh3_64(&packed) };
        out.extend_from_slice(&head.to_bytes());
        out.extend_from_slice(&packed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(raw: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Packer::new().unwrap().pack(Kind::Full, 16, (7, -5), raw, &mut out).unwrap();
        out
    }

    #[test]
    fn a_frame_reads_back_as_it_was_written() {
        for raw in [&b""[..], b"x", &[7; 10_000]] {
            let bytes = frame(raw);
            let head = Head::from_bytes(bytes[..HEAD_BYTES].try_into().unwrap()).unwrap();
            assert_eq!(
                (head.kind, head.options_at, head.cycle, head.now_unix_nanos),
                (Kind::Full, 16, 7, -5)
            );
            assert_eq!(head.frame_bytes(), bytes.len() as u64);
            assert_eq!(head.unpack(&bytes[HEAD_BYTES..]), Ok(raw.to_vec()));
        }
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed() {
        let good = frame(b"the quick brown fox and the quick brown dog");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let read = Head::from_bytes(bad[..HEAD_BYTES].try_into().unwrap())
                .ok_or_else(String::new)
                .and_then(|head| head.unpack(&bad[HEAD_BYTES..]));
            assert!(read.is_err(), "bit {bit}");
        }
    }
}
