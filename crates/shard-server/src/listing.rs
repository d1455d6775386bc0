//! A provider's listing, split into records that are read only if somebody has to.
//!
//! A full List of 225,000 machines decodes into hundreds of megabytes of maps, and nearly all of them are as they were.
//! So the answer is kept as the bytes it came in. Each record gets a hash over its content; the shard reads those whose
//! hash it has not seen.
//!
//! Providers may write the entries of a map in any order, and many do so at random. The hash adds up entries, so that
//! order does not count where it means nothing.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;

use bigfleet_proto::convert::machine::Received;
use bigfleet_proto::v1alpha1;
use bigfleet_shard::{BadRecord, Report, Reports, Told};
use bytes::Bytes;
use foldhash::quality::FixedState;
use prost::Message;

use crate::wire::{Malformed, fields};

#[cfg(test)]
mod tests;

// MachineList
const MACHINES: u32 = 1;
const REVISION: u32 = 2;
// Machine
const ID: u32 = 1;
const RESOURCES: u32 = 9;
const LABELS: u32 = 10;
const ALLOCATABLE: u32 = 13;
const SHARD_METADATA: u32 = 15;

/// The same in every process: hashes are compared within one life only, but a run must repeat under its seed.
const HASH: FixedState = FixedState::with_seed(0x6269_6766_6c65_6574);

/// A listing, split.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// What to ask from next time.
    pub(crate) revision: Arc<[u8]>,
    body: Bytes,
    records: Arc<[Place]>,
}

/// Where a record lies and what is known of it without reading it. A message is at most 256 MiB, so 32 bits do.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: u32,
    end: u32,
    id_start: u32,
    id_end: u32,
    content: u64,
}

impl Listing {
    /// Splits an answer. One that is malformed at the outside is refused as a whole; a record that is malformed in
    /// itself is not, and will be refused when it is read.
    pub(crate) fn split(body: &Bytes) -> Result<Self, Malformed> {
        let mut records = Vec::new();
        let mut revision: &[u8] = &[];
        for field in fields(body) {
            let field = field?;
            match field.number {
                MACHINES | REVISION if !field.is_delimited => {
                    let what = "a field is not of the type it should be";
                    return Err(Malformed { at: field.start, len: body.len(), what });
                }
                MACHINES => records.push(place(field.payload(body), field.payload)),
                REVISION => revision = field.payload(body),
                _ => {}
            }
        }
        Ok(Self { revision: revision.into(), records: records.into(), body: body.clone() })
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Some of the records.
    pub(crate) fn part(&self, range: Range<usize>) -> Part {
        Part { body: self.body.clone(), records: self.records.clone(), range }
    }
}

fn place(record: &[u8], offset: usize) -> Place {
    let (id, content) = scan(record).unwrap_or_else(|| (0..0, HASH.hash_one(record)));
    Place {
        start: offset as u32,
        end: (offset + record.len()) as u32,
        id_start: (offset + id.start) as u32,
        id_end: (offset + id.end) as u32,
        content,
    }
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
pub(crate) struct Part {
    body: Bytes,
    records: Arc<[Place]>,
    range: Range<usize>,
}

impl Reports for Part {
    fn each(&self, take: &mut dyn FnMut(&dyn Report)) {
        for place in &self.records[self.range.clone()] {
            take(&Record { body: &self.body, place });
        }
    }
}

/// One record, still bytes.
struct Record<'p> {
    body: &'p [u8],
    place: &'p Place,
}

impl Report for Record<'_> {
    fn id(&self) -> &str {
        let id = &self.body[self.place.id_start as usize..self.place.id_end as usize];
        std::str::from_utf8(id).unwrap_or_default()
    }

    fn content(&self) -> u64 {
        self.place.content
    }

    fn read(&self) -> Result<Told, BadRecord> {
        let bytes = &self.body[self.place.start as usize..self.place.end as usize];
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
pub(crate) fn told(message: &v1alpha1::Machine) -> Result<Told, BadRecord> {
    match Received::try_from(message) {
        Ok(received) => {
            for problem in &received.stamp_problems {
                tracing::debug!(machine = %received.machine.id, %problem, "a stamp could not be read");
            }
            Ok(Told { machine: received.machine, bad_stamps: received.stamp_problems.len() })
        }
        Err(error) => {
            Err(BadRecord { id: message.id.as_str().into(), code: error.code(), text: error.to_string() })
        }
    }
}
