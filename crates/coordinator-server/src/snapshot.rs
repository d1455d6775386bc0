//! A fleet in one file: what `save` writes and `restore` reads. One JSON object per line, a checksum over all.

use bigfleet_coordinator::{EDITION, Entry, Fleet, LoadError, Writes};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use crate::store::{Leadership, Store, StoreError};

/// Says that a file is one of ours.
const FORMAT: &str = "bigfleet-fleet";
/// The largest file that is read: a million domains, clusters and quotas.
pub const LIMIT_BYTES: usize = 2 << 30;

/// What a snapshot is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    format: String,
    /// The form of the entries.
    pub edition: u32,
    /// The term of the leader that wrote it.
    pub term: i64,
    /// How many entries there are.
    pub entries: u64,
    /// Over the lines of the entries.
    checksum: String,
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// A [`Meta`].
    pub meta: Vec<u8>,
    /// One entry per line.
    pub data: Vec<u8>,
}

/// Why a file is no snapshot that can be used. Nothing was changed.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// Not ours, or cut off.
    #[error("this is no snapshot of a fleet: {0}")]
    Foreign(String),
    /// Written by a newer build.
    #[error(
        "this snapshot is of edition {0}, and this build knows {EDITION}; restore it with the build that wrote it"
    )]
    Newer(u32),
    /// Its entries are damaged.
    #[error("this snapshot is damaged: {0}")]
    Damaged(String),
    /// What it says makes no fleet.
    #[error("this snapshot is damaged: {0}")]
    Load(#[from] LoadError),
    /// Something is there already.
    #[error("the store holds a fleet of {0} entries; restore into an empty one, or move that one away first")]
    NotEmpty(usize),
    /// The store does not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    key: String,
    #[serde(borrow)]
    value: &'a serde_json::value::RawValue,
}

/// Everything, as of now.
pub fn save(fleet: &Fleet) -> Snapshot {
    let (mut data, mut entries) = (Vec::new(), 0);
    for entry in fleet.entries() {
        let encoded = entry.encode();
        let value = serde_json::from_slice(&encoded).expect("entries are JSON");
        serde_json::to_writer(&mut data, &Line { key: entry.key().to_string(), value })
            .expect("a vector takes all");
        data.push(b'\n');
        entries += 1;
    }
    let meta = Meta {
        format: FORMAT.into(),
        edition: EDITION,
        term: fleet.term(),
        entries,
        checksum: checksum(&data),
    };
    Snapshot { meta: serde_json::to_vec(&meta).expect("plain data"), data }
}

impl Snapshot {
    /// As one file: the meta line, then the entries.
    pub fn to_file(&self) -> Vec<u8> {
        let mut file = self.meta.clone();
        file.push(b'\n');
        file.extend_from_slice(&self.data);
        file
    }
}

/// Reads a file, whole or not at all.
pub fn read(file: &[u8]) -> Result<(Meta, Fleet), SnapshotError> {
    let end = file.iter().position(|byte| *byte == b'\n').filter(|end| *end < 4096);
    let end = end.ok_or_else(|| SnapshotError::Foreign("its first line says nothing".into()))?;
    let meta: Meta =
        serde_json::from_slice(&file[..end]).map_err(|error| SnapshotError::Foreign(error.to_string()))?;
    if meta.format != FORMAT {
        return Err(SnapshotError::Foreign(format!("its format is {:?}", meta.format)));
    }
    if meta.edition > EDITION {
        return Err(SnapshotError::Newer(meta.edition));
    }
    let data = &file[end + 1..];
    if checksum(data) != meta.checksum {
        return Err(SnapshotError::Damaged("its checksum is another: it was cut off or changed".into()));
    }
    let mut entries = Vec::new();
    for line in data.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Line<'_> =
            serde_json::from_slice(line).map_err(|error| SnapshotError::Damaged(error.to_string()))?;
        entries.push((line.key, line.value.get().as_bytes()));
    }
    if entries.len() as u64 != meta.entries {
        let (there_are, wanted) = (entries.len(), meta.entries);
        return Err(SnapshotError::Damaged(format!("it has {there_are} entries and says {wanted}")));
    }
    let fleet = Fleet::load(entries.iter().map(|(key, value)| (key.as_str(), *value)))?;
    Ok((meta, fleet))
}

/// Puts a snapshot into an empty store, which nobody must use meanwhile.
///
/// Instructions come back as they were: shards know those they have carried out by their ids and answer again. The term
/// rises above that of the snapshot, so what a leader from before says is stale.
pub async fn restore(fleet: &Fleet, store: &Store, leadership: &Leadership) -> Result<(), SnapshotError> {
    let present = store.load().await?;
    if !present.entries.is_empty() {
        return Err(SnapshotError::NotEmpty(present.entries.len()));
    }
    let mut writes = Writes::default();
    for entry in fleet.entries() {
        // The meta entry goes last: a store without it was not restored to the end, and holds entries.
        if matches!(entry, Entry::Meta(_)) {
            continue;
        }
        if !writes.have_room(1) {
            store.commit(leadership, &writes).await?;
            writes = Writes::default();
        }
        writes.append(&Writes::of(entry));
    }
    writes.append(&fleet.begin(leadership.term));
    store.commit(leadership, &writes).await?;
    Ok(())
}

/// Not against people who forge files, only against damage.
fn checksum(data: &[u8]) -> String {
    format!("{:016x}", xxh3_64(data))
}
