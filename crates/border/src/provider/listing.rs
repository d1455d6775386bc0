//! A provider's listing, split into records that are read only if somebody has to.
//!
//! A full List of 225,000 machines decodes into hundreds of megabytes of maps, and nearly all of them are as they were.
//! So the answer is kept as the bytes it came in. Each record gets a digest over its bytes, by which the shard knows it
//! again without looking at anything else; the shard reads those it does not know.
//!
//! Providers may write the entries of a map in any order, and many do so at random. Then the bytes differ although
//! nothing changed. So there is a second hash over the content, which adds up entries, so that order does not count
//! where it means nothing. It costs ten times as much and is worked out for those whose digest is new.

use std::cell::OnceCell;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bigfleet_proto::convert::machine::Received;
use bigfleet_proto::v1alpha1;
use bigfleet_shard::{BadRecord, Report, Reports, Told};
use bytes::Bytes;
use foldhash::quality::FixedState;
use prost::Message;
use xxhash_rust::xxh3::xxh3_128_with_secret;

use crate::wire::{Malformed, fields};

#[cfg(test)]
mod tests;

// MachineList and ListChunk, whose records are written alike
const MACHINES: u32 = 1;
const TAIL: u32 = 2;
// Machine
const ID: u32 = 1;
const RESOURCES: u32 = 9;
const LABELS: u32 = 10;
const ALLOCATABLE: u32 = 13;
const SHARD_METADATA: u32 = 15;

/// The same in every process: hashes are compared within one life only, but a run must repeat under its seed.
const HASH: FixedState = FixedState::with_seed(0x6269_6766_6c65_6574);

/// What digests are made with: chosen at random for each provider and life, so that nobody can prepare two records with
/// one digest. Decisions do not depend on it.
#[derive(Clone)]
pub struct DigestKey([u8; SECRET_BYTES]);

/// As much as XXH3 mixes in.
const SECRET_BYTES: usize = 192;

impl DigestKey {
    /// A key of so many words. They must differ from one another, and in a server nobody may be able to foresee them.
    pub fn new(mut word: impl FnMut(usize) -> u64) -> Self {
        let mut secret = [0; SECRET_BYTES];
        for (index, eight) in secret.chunks_exact_mut(8).enumerate() {
            eight.copy_from_slice(&word(index).to_le_bytes());
        }
        Self(secret)
    }

    /// Never 0, which stands for none.
    fn digest(&self, record: &[u8]) -> u128 {
        xxh3_128_with_secret(record, &self.0).max(1)
    }
}

/// How much is found out of a record before somebody asks. Where most are asked about, it is done here, where it holds
/// nobody up; where hardly any is, it is not done at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// The digest alone.
    Digest,
    /// The digest, the id and the hash over the content.
    Scan,
}

impl Care {
    /// What to do with the next records, after `asked` of `all` had to be scanned.
    pub(super) fn after(self, asked: usize, all: usize) -> Self {
        match self {
            Self::Digest if asked * 4 > all => Self::Scan,
            Self::Scan if asked * 16 < all => Self::Digest,
            same => same,
        }
    }
}

/// What splits answers: made where the answer is expected, used wherever there is time.
#[derive(Clone)]
pub struct Splitter {
    pub(super) key: DigestKey,
    pub(super) care: Care,
}

impl Splitter {
    /// Splits an answer.
    pub fn split(&self, body: &Bytes) -> Result<Listing, Malformed> {
        Listing::split(body, &self.key, self.care)
    }
}

/// A listing or a piece of one, split.
#[derive(Clone, Debug)]
pub struct Listing {
    /// What the field after the machines holds: a revision, or the end of a stream.
    pub tail: Option<Bytes>,
    body: Bytes,
    records: Arc<[Place]>,
    /// How many records somebody had to look into so far.
    asked: Arc<AtomicUsize>,
}

/// Where a record lies and what is known of it without reading it. A message is at most 256 MiB, so 32 bits do.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: u32,
    end: u32,
    digest: u128,
    scanned: Option<Scanned>,
}

/// Where the id lies within a record, and the hash over its content.
#[derive(Clone, Copy, Debug)]
struct Scanned {
    id_start: u32,
    id_end: u32,
    content: u64,
}

impl Listing {
    /// Splits an answer. One that is malformed at the outside is refused as a whole; a record that is malformed in
    /// itself is not, and will be refused when it is read.
    fn split(body: &Bytes, key: &DigestKey, care: Care) -> Result<Self, Malformed> {
        let mut records = Vec::new();
        let mut tail = None;
        for field in fields(body) {
            let field = field?;
            match field.number {
                MACHINES | TAIL if !field.is_delimited => {
                    let what = "a field is not of the type it should be";
                    return Err(Malformed { at: field.start, len: body.len(), what });
                }
                MACHINES => records.push(place(field.payload(body), field.payload, key, care)),
                TAIL => tail = Some(body.slice(field.payload..field.end)),
                _ => {}
            }
        }
        Ok(Self { tail, records: records.into(), body: body.clone(), asked: Arc::default() })
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether it names no machine.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many records somebody had to look into, beyond their digest.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Some of the records.
    pub fn part(&self, range: Range<usize>) -> Part {
        let Self { body, records, asked, .. } = self.clone();
        Part { body, records, range, asked }
    }
}

fn place(record: &[u8], offset: usize, key: &DigestKey, care: Care) -> Place {
    Place {
        start: offset as u32,
        end: (offset + record.len()) as u32,
        digest: key.digest(record),
        scanned: (care == Care::Scan).then(|| scanned(record)),
    }
}

/// A record that is malformed has no id, and the hash of its bytes.
fn scanned(record: &[u8]) -> Scanned {
    let (id, content) = scan(record).unwrap_or_else(|| (0..0, HASH.hash_one(record)));
    Scanned { id_start: id.start as u32, id_end: id.end as u32, content }
}

/// Where the id lies, and the hash over everything; none if the record is malformed.
fn scan(record: &[u8]) -> Option<(Range<usize>, u64)> {
    let mut id = 0..0;
    let mut ordered = HASH.build_hasher();
    let mut entries = 0_u64;
    for field in fields(record) {
        let field = field.ok()?;
        let payload = field.payload(record);
        match field.number {
            LABELS | SHARD_METADATA => entries = entries.wrapping_add(entry(field.number, payload)),
            RESOURCES | ALLOCATABLE => {
                ordered.write_u32(field.number);
                ordered.write_u64(map(payload)?);
            }
            number => {
                if number == ID {
                    std::str::from_utf8(payload).ok().filter(|_| field.is_delimited)?;
                    id = field.payload..field.end;
                }
                ordered.write_u32(number);
                ordered.write_usize(payload.len());
                ordered.write(payload);
            }
        }
    }
    ordered.write_u64(entries);
    Some((id, ordered.finish()))
}

fn entry(number: u32, payload: &[u8]) -> u64 {
    let mut hasher = HASH.build_hasher();
    hasher.write_u32(number);
    hasher.write(payload);
    hasher.finish()
}

fn map(message: &[u8]) -> Option<u64> {
    fields(message).try_fold(0_u64, |sum, field| {
        let field = field.ok()?;
        Some(sum.wrapping_add(entry(field.number, field.payload(message))))
    })
}

/// Some records of a listing.
pub struct Part {
    body: Bytes,
    records: Arc<[Place]>,
    range: Range<usize>,
    asked: Arc<AtomicUsize>,
}

impl Reports for Part {
    fn each(&self, take: &mut dyn FnMut(&dyn Report)) {
        let mut asked = 0;
        for place in &self.records[self.range.clone()] {
            let bytes = &self.body[place.start as usize..place.end as usize];
            let record = Record { bytes, place, scanned: OnceCell::new() };
            take(&record);
            asked += usize::from(record.scanned.get().is_some());
        }
        self.asked.fetch_add(asked, Ordering::Relaxed);
    }
}

/// One record, still bytes.
struct Record<'p> {
    bytes: &'p [u8],
    place: &'p Place,
    /// Filled when somebody asks for more than the digest.
    scanned: OnceCell<Scanned>,
}

impl Record<'_> {
    fn scanned(&self) -> &Scanned {
        self.scanned.get_or_init(|| self.place.scanned.unwrap_or_else(|| scanned(self.bytes)))
    }
}

impl Report for Record<'_> {
    fn id(&self) -> &str {
        let Scanned { id_start, id_end, .. } = *self.scanned();
        std::str::from_utf8(&self.bytes[id_start as usize..id_end as usize]).unwrap_or_default()
    }

    fn digest(&self) -> u128 {
        self.place.digest
    }

    fn content(&self) -> u64 {
        self.scanned().content
    }

    fn read(&self) -> Result<Told, BadRecord> {
        let bytes = self.bytes;
        let message = v1alpha1::Machine::decode(bytes).map_err(|error| BadRecord {
            id: self.id().into(),
            code: "malformed",
            text: format!(
                "a record of {} bytes is no machine: {error}; the provider must correct it",
                bytes.len()
            ),
        })?;
        told(&message)
    }
}

/// A record, checked.
pub fn told(message: &v1alpha1::Machine) -> Result<Told, BadRecord> {
    match Received::try_from(message) {
        Ok(received) => Ok(Told { machine: received.machine, bad_stamps: received.stamp_problems.len() }),
        Err(error) => {
            Err(BadRecord { id: message.id.as_str().into(), code: error.code(), text: error.to_string() })
        }
    }
}
