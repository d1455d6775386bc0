//! Segments: the files of a tape, and walking through one from head to head.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bigfleet_engine::Options;

use super::error::{Damage, TapeError};
use super::frame::{HEAD_BYTES, Head, Kind};
use crate::codec::{decode_options, decode_record};
use crate::recorded::Recorded;

/// What a segment begins with: a name, a version, the end of a line.
pub(super) const OPENING: &[u8; 16] = b"bigfleet tape 1\n";
const EXTENSION: &str = "bfr";

/// The segments of a folder, oldest first. A folder that is not there has none.
pub(super) fn list(folder: &Path) -> Result<Vec<u64>, TapeError> {
    let failed = TapeError::io("list", folder);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let path = entry.map_err(&failed)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            numbers.extend(path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok()));
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

pub(super) fn path_of(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:06}.{EXTENSION}"))
}

/// What lies at a place in a segment.
#[derive(Debug)]
pub(super) enum Found {
    /// A frame.
    Frame(Head),
    /// Nothing: the end, as far as it is written.
    End,
    /// The beginning of a frame that is not all there.
    Torn,
    /// Something else.
    Damaged(String),
}

/// A segment being read.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    file: File,
    /// The options last used, and where they are.
    options: Option<(u64, Options)>,
}

impl Segment {
    /// Opens a segment; `None` if it has been dropped meanwhile or has no beginning yet.
    pub(super) fn open(folder: &Path, number: u64) -> Result<Option<Self>, TapeError> {
        let path = path_of(folder, number);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TapeError::io("open", &path)(error)),
        };
        let mut opening = [0; OPENING.len()];
        match file.read_exact_at(&mut opening, 0) {
            Ok(()) if opening == *OPENING => {}
            Ok(()) if opening.starts_with(&OPENING[..14]) => {
                let found = String::from_utf8_lossy(&opening[14..]).trim().to_owned();
                return Err(TapeError::Newer { path, found });
            }
            Ok(()) => {
                let bytes = file.metadata().map_or(0, |data| data.len());
                return Err(
                    Damage { path, at: 0, bytes, reason: "it does not begin like a tape".into() }.into()
                );
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(TapeError::io("read", &path)(error)),
        }
        Ok(Some(Self { number, path, file, options: None }))
    }

    pub(super) fn bytes(&self) -> Result<u64, TapeError> {
        Ok(self.file.metadata().map_err(TapeError::io("read", &self.path))?.len())
    }

    /// What lies at `at`, by its head alone.
    pub(super) fn look(&self, at: u64) -> Result<Found, TapeError> {
        let failed = TapeError::io("read", &self.path);
        let mut bytes = [0; HEAD_BYTES];
        let read = read_up_to(&self.file, &mut bytes, at).map_err(&failed)?;
        if read < HEAD_BYTES {
            return Ok(if read == 0 { Found::End } else { Found::Torn });
        }
        let Some(head) = Head::from_bytes(&bytes) else {
            return Ok(Found::Damaged("the head of a frame does not match its checksum".into()));
        };
        if at + head.frame_bytes() > self.bytes()? {
            return Ok(Found::Torn);
        }
        Ok(Found::Frame(head))
    }

    fn packed(&self, at: u64, head: &Head) -> Result<Vec<u8>, TapeError> {
        let mut packed = vec![0; head.packed_bytes as usize];
        let from = at + HEAD_BYTES as u64;
        self.file.read_exact_at(&mut packed, from).map_err(TapeError::io("read", &self.path))?;
        Ok(packed)
    }

    /// Whether the frame at `at` is as it was written.
    pub(super) fn is_whole(&self, at: u64, head: &Head) -> Result<bool, TapeError> {
        Ok(head.matches(&self.packed(at, head)?))
    }

    /// A damage at `at`, up to the end.
    #[expect(clippy::needless_pass_by_value, reason = "errors, texts and arguments of a format alike")]
    pub(super) fn damage(&self, at: u64, reason: impl ToString) -> Damage {
        let bytes = self.bytes().map_or(0, |bytes| bytes.saturating_sub(at));
        Damage { path: self.path.clone(), at, bytes, reason: reason.to_string() }
    }

    /// The record at `at`.
    pub(super) fn record(&mut self, at: u64, head: &Head) -> Result<Recorded, TapeError> {
        let raw = head.unpack(&self.packed(at, head)?).map_err(|reason| self.damage(at, reason))?;
        let options = self.options(at, head)?;
        Ok(decode_record(&raw, options).map_err(|error| self.damage(at, error))?)
    }

    fn options(&mut self, at: u64, head: &Head) -> Result<Options, TapeError> {
        if let Some((place, options)) = &self.options
            && *place == head.options_at
        {
            return Ok(options.clone());
        }
        let Found::Frame(options_head) = self.look(head.options_at)? else {
            return Err(self.damage(at, "the options it refers to are not there").into());
        };
        if options_head.kind != Kind::Options {
            return Err(self.damage(at, "what it refers to are no options").into());
        }
        let raw = options_head
            .unpack(&self.packed(head.options_at, &options_head)?)
            .map_err(|reason| self.damage(head.options_at, reason))?;
        let options = decode_options(&raw).map_err(|error| self.damage(head.options_at, error))?;
        self.options = Some((head.options_at, options.clone()));
        Ok(options)
    }
}

fn read_up_to(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
