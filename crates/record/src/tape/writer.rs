//! Writing a tape.

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use bigfleet_engine::Options;
use bigfleet_shard::CycleRecord;

use super::error::{AppendError, Damage, TapeError};
use super::frame::{Kind, Packer};
use super::segment::{Found, OPENING, Segment, list, path_of};
use crate::codec::{encode_options, encode_record};

const LOCK_FILE: &str = "lock";

/// How much of the past is kept. First by size, then by age; what goes are whole segments, the oldest first. The newest
/// segment always stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most all segments together may take.
    pub max_bytes: u64,
    /// How old a segment may be, measured from the end of its last record to the newest one.
    pub max_age_nanos: i64,
    /// When a segment is full; at most a quarter of `max_bytes` counts.
    pub segment_bytes: u64,
    /// After so many records a full state is wanted, so that no state is far from one.
    pub full_every: u32,
}

/// A gigabyte, a week, segments of 32 MiB, a full state every 500 records.
impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 1 << 30,
            max_age_nanos: 7 * 24 * 3_600 * 1_000_000_000,
            segment_bytes: 32 << 20,
            full_every: 500,
        }
    }
}

impl Limits {
    fn segment_bytes(&self) -> u64 {
        self.segment_bytes.min(self.max_bytes / 4)
    }
}

/// A segment that is complete, or the one being written.
#[derive(Debug)]
struct Kept {
    number: u64,
    bytes: u64,
    /// When its first record ran.
    first_unix_nanos: i64,
}

#[derive(Debug)]
struct Current {
    file: File,
    path: PathBuf,
    options: Options,
    options_at: u64,
}

/// Appends cycles to a tape.
pub struct Writer {
    folder: PathBuf,
    limits: Limits,
    packer: Packer,
    /// Oldest first; the last one is the current one, if there is one.
    kept: VecDeque<Kept>,
    current: Option<Current>,
    since_full: u32,
    next_number: u64,
    _lock: File,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({}, {} segments)", self.folder.display(), self.kept.len())
    }
}

impl Writer {
    /// Takes a folder, made if it is not there. A torn tail is cut off; what was lost is told.
    pub fn open(folder: impl AsRef<Path>, limits: Limits) -> Result<(Self, Vec<Damage>), TapeError> {
        let folder = folder.as_ref().to_path_buf();
        bigfleet_durable::private_folder(&folder).map_err(TapeError::io("make", &folder))?;
        let lock = take(&folder)?;
        let numbers = list(&folder)?;
        let mut damages = Vec::new();
        let mut kept = VecDeque::new();
        for (index, number) in numbers.iter().enumerate() {
            let is_last = index + 1 == numbers.len();
            kept.extend(examine(&folder, *number, is_last, &mut damages)?);
        }
        let packer = Packer::new().map_err(TapeError::io("begin compressing for", &folder))?;
        let next_number = numbers.last().map_or(1, |last| last + 1);
        let writer =
            Self { folder, limits, packer, kept, current: None, since_full: 0, next_number, _lock: lock };
        Ok((writer, damages))
    }

    /// Whether the next record should hold the full state: there is no segment yet, it is full, or the last full state
    /// is far behind.
    pub fn wants_full(&self) -> bool {
        self.current.is_none() || self.since_full >= self.limits.full_every || self.is_segment_full()
    }

    fn is_segment_full(&self) -> bool {
        self.kept.back().is_some_and(|segment| segment.bytes >= self.limits.segment_bytes())
    }

    /// What all segments together take.
    pub fn bytes(&self) -> u64 {
        self.kept.iter().map(|segment| segment.bytes).sum()
    }

    /// Appends a cycle. It is in the hands of the system when this returns, and on disk when its segment is full or
    /// [`Self::sync`] is called.
    pub fn append(&mut self, record: &CycleRecord) -> Result<(), AppendError> {
        let cycle = record.cycle;
        let is_full = record.full.is_some();
        if !is_full && self.current.is_none() {
            return Err(AppendError::WantsFull { cycle });
        }
        self.write(record, is_full).map_err(|source| {
            // What follows would be changes to something that is not there.
            self.abandon();
            AppendError::Disk { cycle, source }
        })
    }

    fn write(&mut self, record: &CycleRecord, is_full: bool) -> Result<(), TapeError> {
        if is_full && (self.current.is_none() || self.is_segment_full()) {
            self.finish()?;
            self.begin(record)?;
        }
        let current = self.current.as_mut().expect("there is one, or a full state has just begun one");
        let at = self.kept.back().expect("the current one is listed").bytes;
        let failed = TapeError::io("write", &current.path);
        let place = (record.cycle, record.now_unix_nanos);
        let mut frames = Vec::new();
        if current.options_at == 0 || current.options != record.options {
            let raw = encode_options(&record.options);
            self.packer.pack(Kind::Options, 0, place, &raw, &mut frames).map_err(&failed)?;
            current.options = record.options.clone();
            current.options_at = at;
        }
        let kind = if is_full { Kind::Full } else { Kind::Changes };
        let raw = encode_record(record);
        self.packer.pack(kind, current.options_at, place, &raw, &mut frames).map_err(&failed)?;
        let bytes = frames.len() as u64;
        self.drop_old(bytes, record.now_unix_nanos)?;
        // Both frames at once: whoever reads meanwhile sees options before the record that needs them.
        let current = self.current.as_mut().expect("as above");
        current.file.write_all(&frames).map_err(&failed)?;
        self.kept.back_mut().expect("the current one is listed").bytes += bytes;
        self.since_full = if is_full { 0 } else { self.since_full + 1 };
        Ok(())
    }

    /// Begins a segment.
    fn begin(&mut self, record: &CycleRecord) -> Result<(), TapeError> {
        let path = path_of(&self.folder, self.next_number);
        let failed = TapeError::io("write", &path);
        let mut file =
            bigfleet_durable::private_file().create_new(true).append(true).open(&path).map_err(&failed)?;
        file.write_all(OPENING).map_err(&failed)?;
        sync_folder(&self.folder)?;
        let (number, bytes) = (self.next_number, OPENING.len() as u64);
        self.kept.push_back(Kept { number, bytes, first_unix_nanos: record.now_unix_nanos });
        self.next_number += 1;
        self.current = Some(Current { file, path, options: record.options.clone(), options_at: 0 });
        Ok(())
    }

    /// Ends the current segment in order.
    fn finish(&mut self) -> Result<(), TapeError> {
        match self.current.take() {
            Some(current) => current.file.sync_all().map_err(TapeError::io("sync", &current.path)),
            None => Ok(()),
        }
    }

    /// Gives up the current segment after a failure: half a frame is cut off if the system lets us, and otherwise read as
    /// damage.
    fn abandon(&mut self) {
        if let (Some(current), Some(kept)) = (self.current.take(), self.kept.back()) {
            let _ = current.file.set_len(kept.bytes);
        } else {
            // The segment could not even be begun; its number is not used again.
            self.next_number += 1;
        }
    }

    /// Makes room for so many bytes, and lets go of what is too old.
    fn drop_old(&mut self, more_bytes: u64, now_unix_nanos: i64) -> Result<(), TapeError> {
        let oldest_kept = now_unix_nanos.saturating_sub(self.limits.max_age_nanos);
        while self.kept.len() > 1 {
            // A segment ends before the next one begins.
            let is_old = self.kept[1].first_unix_nanos < oldest_kept;
            if !is_old && self.bytes() + more_bytes <= self.limits.max_bytes {
                break;
            }
            let path = path_of(&self.folder, self.kept[0].number);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(TapeError::io("remove", &path)(error));
                }
                _ => self.kept.pop_front(),
            };
        }
        Ok(())
    }

    /// Puts everything appended so far on disk.
    pub fn sync(&self) -> Result<(), TapeError> {
        match &self.current {
            Some(current) => current.file.sync_data().map_err(TapeError::io("sync", &current.path)),
            None => Ok(()),
        }
    }

    /// Ends the tape in order.
    pub fn close(mut self) -> Result<(), TapeError> {
        self.finish()
    }
}

fn take(folder: &Path) -> Result<File, TapeError> {
    let path = folder.join(LOCK_FILE);
    let file = bigfleet_durable::private_file().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(TapeError::io("make", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(TapeError::InUse(folder.into())),
        Err(TryLockError::Error(error)) => Err(TapeError::io("lock", &path)(error)),
    }
}

fn sync_folder(folder: &Path) -> Result<(), TapeError> {
    bigfleet_durable::sync_folder(folder).map_err(TapeError::io("sync", folder))
}

/// Looks at a segment that was there before. The last one is read in full, and a torn tail is cut off.
fn examine(
    folder: &Path,
    number: u64,
    is_last: bool,
    damages: &mut Vec<Damage>,
) -> Result<Option<Kept>, TapeError> {
    let path = path_of(folder, number);
    let segment = match Segment::open(folder, number) {
        Ok(Some(segment)) => segment,
        Ok(None) => {
            // The process ended while it began a segment.
            std::fs::remove_file(&path).map_err(TapeError::io("remove", &path))?;
            return Ok(None);
        }
        Err(TapeError::Damaged(damage)) => {
            let kept = Kept { number, bytes: damage.bytes, first_unix_nanos: i64::MIN };
            damages.push(damage);
            return Ok(Some(kept));
        }
        Err(error) => return Err(error),
    };
    let mut bytes = segment.bytes()?;
    let mut at = OPENING.len() as u64;
    let mut first_unix_nanos = None;
    loop {
        match segment.look(at)? {
            Found::Frame(head) => {
                first_unix_nanos.get_or_insert(head.now_unix_nanos);
                if !is_last {
                    break;
                }
                if !segment.is_whole(at, &head)? {
                    damages.push(segment.damage(at, "the frame does not match its checksum"));
                    if at + head.frame_bytes() == bytes {
                        bytes = cut(&path, at)?;
                    }
                    break;
                }
                at += head.frame_bytes();
            }
            Found::Torn if is_last => {
                damages.push(segment.damage(at, "the last frame is not all there"));
                bytes = cut(&path, at)?;
                break;
            }
            Found::Damaged(reason) if is_last => {
                damages.push(segment.damage(at, reason));
                bytes = cut(&path, at)?;
                break;
            }
            Found::End | Found::Torn | Found::Damaged(_) => break,
        }
    }
    Ok(Some(Kept { number, bytes, first_unix_nanos: first_unix_nanos.unwrap_or(i64::MIN) }))
}

/// Cuts a segment off where it is damaged.
fn cut(path: &Path, at: u64) -> Result<u64, TapeError> {
    let failed = TapeError::io("cut", path);
    let file = File::options().write(true).open(path).map_err(&failed)?;
    file.set_len(at).and_then(|()| file.sync_all()).map_err(&failed)?;
    Ok(at)
}
