//! Reading a tape, also while it is being written.

use std::path::{Path, PathBuf};

use super::error::{Damage, TapeError};
use super::frame::{Head, Kind};
use super::segment::{Found, OPENING, Segment, list};
use crate::recorded::Recorded;

/// A record by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its cycle.
    pub cycle: u64,
    /// When it ran.
    pub now_unix_nanos: i64,
    /// Whether it holds the full state.
    pub is_full: bool,
    segment: u64,
    at: u64,
}

impl Entry {
    fn new(segment: u64, at: u64, head: &Head) -> Self {
        let (cycle, now_unix_nanos) = (head.cycle, head.now_unix_nanos);
        Self { cycle, now_unix_nanos, is_full: head.kind == Kind::Full, segment, at }
    }
}

/// A tape to look things up in.
#[derive(Debug)]
pub struct Reader {
    folder: PathBuf,
    /// The first record of each segment, oldest first.
    firsts: Vec<Entry>,
}

impl Reader {
    /// Looks at what is there: one head for each segment. A folder without a tape is an empty tape.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, TapeError> {
        let mut reader = Self { folder: folder.as_ref().to_path_buf(), firsts: Vec::new() };
        reader.refresh()?;
        Ok(reader)
    }

    /// Looks again: segments may have been added and dropped.
    pub fn refresh(&mut self) -> Result<(), TapeError> {
        let mut firsts = Vec::new();
        for number in list(&self.folder)? {
            let known = self.firsts.iter().find(|entry| entry.segment == number);
            match known {
                Some(entry) => firsts.push(*entry),
                None => firsts.extend(self.first_of(number)?),
            }
        }
        self.firsts = firsts;
        Ok(())
    }

    /// The first record of a segment, if it can be read.
    fn first_of(&self, number: u64) -> Result<Option<Entry>, TapeError> {
        let segment = match Segment::open(&self.folder, number) {
            Ok(Some(segment)) => segment,
            Ok(None) | Err(TapeError::Damaged(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut at = OPENING.len() as u64;
        while let Found::Frame(head) = segment.look(at)? {
            if head.kind != Kind::Options {
                return Ok(Some(Entry::new(number, at, &head)));
            }
            at += head.frame_bytes();
        }
        Ok(None)
    }

    /// The records of a segment by their heads, and where the damage begins if there is one.
    fn index(&self, number: u64) -> Result<(Vec<Entry>, Option<Damage>), TapeError> {
        let segment = match Segment::open(&self.folder, number) {
            Ok(Some(segment)) => segment,
            Ok(None) => return Ok((Vec::new(), None)),
            Err(TapeError::Damaged(damage)) => return Ok((Vec::new(), Some(damage))),
            Err(error) => return Err(error),
        };
        let mut entries = Vec::new();
        let mut at = OPENING.len() as u64;
        loop {
            match segment.look(at)? {
                Found::Frame(head) => {
                    if head.kind != Kind::Options {
                        entries.push(Entry::new(number, at, &head));
                    }
                    at += head.frame_bytes();
                }
                Found::End | Found::Torn => return Ok((entries, None)),
                Found::Damaged(reason) => return Ok((entries, Some(segment.damage(at, reason)))),
            }
        }
    }

    /// All segments, oldest first: where each lies, and its records by their heads.
    pub fn segments(&self) -> Result<Vec<(PathBuf, Vec<Entry>)>, TapeError> {
        let numbers = self.firsts.iter().map(|first| first.segment);
        let one = |number: u64| Ok((super::segment::path_of(&self.folder, number), self.index(number)?.0));
        numbers.map(one).collect()
    }

    /// The oldest record.
    pub fn first(&self) -> Option<Entry> {
        self.firsts.first().copied()
    }

    /// The newest record.
    pub fn last(&self) -> Result<Option<Entry>, TapeError> {
        match self.firsts.last() {
            Some(first) => Ok(self.index(first.segment)?.0.last().copied()),
            None => Ok(None),
        }
    }

    /// The state of affairs in a cycle: its record, or if nothing changed then, the last one before it. Of two lives
    /// that counted the same cycles, the newer one.
    pub fn at_cycle(&self, cycle: u64) -> Result<Entry, TapeError> {
        self.newest(|entry| entry.cycle <= cycle)
    }

    /// The state of affairs at an instant: the newest record that is not later.
    pub fn at_time(&self, unix_nanos: i64) -> Result<Entry, TapeError> {
        self.newest(|entry| entry.now_unix_nanos <= unix_nanos)
    }

    fn newest(&self, is_reached: impl Fn(&Entry) -> bool) -> Result<Entry, TapeError> {
        let segment = self.firsts.iter().rev().find(|first| is_reached(first));
        let Some(segment) = segment else {
            return Err(match self.firsts.first() {
                Some(first) => TapeError::TooEarly { cycle: first.cycle, unix_nanos: first.now_unix_nanos },
                None => TapeError::Empty(self.folder.clone()),
            });
        };
        let (entries, _) = self.index(segment.segment)?;
        Ok(entries.into_iter().rev().find(is_reached).unwrap_or(*segment))
    }

    /// All records, oldest first.
    pub fn records(&self) -> Records {
        Records::new(self.folder.clone(), 0, OPENING.len() as u64)
    }

    /// This record and all after it.
    pub fn records_from(&self, entry: &Entry) -> Records {
        Records::new(self.folder.clone(), entry.segment, entry.at)
    }

    /// The last full state at or before a record. Everything from there on leads to it.
    pub fn full_before(&self, entry: &Entry) -> Result<Entry, TapeError> {
        let (entries, damage) = self.index(entry.segment)?;
        let full = entries.into_iter().rev().find(|other| other.is_full && other.at <= entry.at);
        full.ok_or_else(|| {
            let lost = || Damage {
                path: super::segment::path_of(&self.folder, entry.segment),
                at: entry.at,
                bytes: 0,
                reason: "no full state leads to this record".into(),
            };
            damage.unwrap_or_else(lost).into()
        })
    }
}

/// Records in order. `None` means that there are no more now; when the tape is still written, ask again later.
///
/// An error costs the rest of a segment: the next record is that of the next one, which begins with a full state.
#[derive(Debug)]
pub struct Records {
    folder: PathBuf,
    segment: Option<Segment>,
    /// The segment to go on with, when none is open.
    number: u64,
    at: u64,
    /// A newer segment was seen; whatever this one has left has been written by now.
    is_complete: bool,
    /// The folder could not be listed; told once, so that a loop over records ends.
    has_failed: bool,
}

impl Records {
    fn new(folder: PathBuf, number: u64, at: u64) -> Self {
        Self { folder, segment: None, number, at, is_complete: false, has_failed: false }
    }

    fn list(&mut self) -> Result<Vec<u64>, TapeError> {
        let listed = list(&self.folder);
        self.has_failed = listed.is_err();
        listed
    }

    /// Goes on with the first segment from `number` on; false if there is none.
    fn turn_to(&mut self, number: u64) -> Result<bool, TapeError> {
        self.segment = None;
        self.is_complete = false;
        for next in self.list()?.into_iter().filter(|next| *next >= number) {
            if next != self.number {
                (self.number, self.at) = (next, OPENING.len() as u64);
            }
            match Segment::open(&self.folder, next) {
                Ok(None) => {}
                Ok(Some(segment)) => {
                    self.segment = Some(segment);
                    return Ok(true);
                }
                Err(error) => {
                    (self.number, self.at) = (next + 1, OPENING.len() as u64);
                    return Err(error);
                }
            }
        }
        Ok(false)
    }

    /// Leaves a damaged segment.
    fn leave(&mut self, error: TapeError) -> TapeError {
        (self.number, self.at) = (self.number + 1, OPENING.len() as u64);
        (self.segment, self.is_complete) = (None, false);
        error
    }

    fn advance(&mut self) -> Result<Option<Recorded>, TapeError> {
        if std::mem::take(&mut self.has_failed) {
            return Ok(None);
        }
        loop {
            if self.segment.is_none() && !self.turn_to(self.number)? {
                return Ok(None);
            }
            let segment = self.segment.as_mut().expect("just opened");
            let found = match segment.look(self.at) {
                Ok(found) => found,
                Err(error) => return Err(self.leave(error)),
            };
            match found {
                Found::Frame(head) if head.kind == Kind::Options => self.at += head.frame_bytes(),
                Found::Frame(head) => {
                    return match segment.record(self.at, &head) {
                        Ok(record) => {
                            self.at += head.frame_bytes();
                            Ok(Some(record))
                        }
                        Err(error) => Err(self.leave(error)),
                    };
                }
                Found::Damaged(reason) => {
                    let damage = segment.damage(self.at, reason);
                    return Err(self.leave(damage.into()));
                }
                Found::End | Found::Torn => {
                    let number = segment.number;
                    if !self.is_complete {
                        // Only then look again at this one: it may have grown until the next one was begun.
                        self.is_complete = self.list()?.last().is_some_and(|last| *last > number);
                        if !self.is_complete {
                            return Ok(None);
                        }
                        continue;
                    }
                    if matches!(found, Found::Torn) {
                        let damage = segment.damage(self.at, "a frame is not all there");
                        return Err(self.leave(damage.into()));
                    }
                    if !self.turn_to(number + 1)? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

impl Iterator for Records {
    type Item = Result<Recorded, TapeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}
