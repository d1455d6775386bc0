//! The board of faults: what is planned, what is active, and what has been.
//!
//! Whether a fault is active is a matter of the clock, not of somebody having noticed, so that beginnings and
//! ends are exact in virtual time. What is over stays on the board: that is how an incident can be written down.

use thiserror::Error;

use super::{Fault, Kind, Line};
use crate::span::Span;

/// How many faults the board holds, also past ones.
const LIMIT: usize = 10_000;

/// How it stands with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has not begun.
    Planned,
    /// It is on.
    Active,
    /// It has ended, happened, or was lifted.
    Over,
}

impl Status {
    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Active => "active",
            Self::Over => "over",
        }
    }
}

/// One fault on the board.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number, for lifting it.
    pub id: u64,
    /// What goes wrong.
    pub fault: Fault,
    /// When it begins, in Unix nanoseconds.
    pub from_unix_nanos: i64,
    /// When it ends, if that is known.
    pub until_unix_nanos: Option<i64>,
    /// Whether a fault that happens once has happened.
    pub happened: bool,
    /// Whether it outlives a restart: it was added while the cloud ran.
    pub kept: bool,
}

impl Entry {
    /// How it stands at this moment.
    pub fn status(&self, now_unix_nanos: i64) -> Status {
        if self.until_unix_nanos.is_some_and(|until| until <= now_unix_nanos) || self.happened {
            Status::Over
        } else if self.from_unix_nanos > now_unix_nanos {
            Status::Planned
        } else {
            Status::Active
        }
    }

    /// The line that would do the same, counted from `start_unix_nanos`.
    pub fn line_since(&self, start_unix_nanos: i64) -> Line {
        let after = Span::from_nanos(self.from_unix_nanos.saturating_sub(start_unix_nanos));
        let lasts =
            self.until_unix_nanos.map(|until| Span::from_nanos(until.saturating_sub(self.from_unix_nanos)));
        let lasts = lasts.filter(|_| !self.fault.kind().info().once);
        Line { fault: self.fault.clone(), after, lasts }
    }
}

/// Why the board refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BoardError {
    /// Nothing can be forgotten to make room.
    #[error("{LIMIT} faults are planned or active; lift some first")]
    Full,
    /// It is about something the cloud does not have.
    #[error("there is no {what} {name:?} in this cloud; there are {known}")]
    Nowhere {
        /// A zone or a type.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// No such fault.
    #[error("there is no fault {0}; list them to see their numbers")]
    Unknown(u64),
    /// It is over already.
    #[error("fault {0} is over already")]
    Over(u64),
    /// It could not be written down.
    #[error("the fault could not be kept: {0}; nothing was changed")]
    NotKept(String),
}

/// All faults.
#[derive(Debug, Default)]
pub struct Board {
    entries: Vec<Entry>,
    last_id: u64,
}

impl Board {
    /// Puts a fault on the board and returns its number.
    pub fn add(&mut self, line: &Line, now_unix_nanos: i64) -> Result<u64, BoardError> {
        if self.entries.len() >= LIMIT {
            let oldest = self.entries.iter().position(|entry| entry.status(now_unix_nanos) == Status::Over);
            self.entries.remove(oldest.ok_or(BoardError::Full)?);
        }
        self.last_id += 1;
        let from_unix_nanos = now_unix_nanos.saturating_add(line.after.nanos());
        let until_unix_nanos = line.lasts.map(|lasts| from_unix_nanos.saturating_add(lasts.nanos()));
        let (id, fault) = (self.last_id, line.fault.clone());
        self.entries.push(Entry {
            id,
            fault,
            from_unix_nanos,
            until_unix_nanos,
            happened: false,
            kept: false,
        });
        Ok(id)
    }

    /// Ends a fault now. One that has not begun never will, and is forgotten.
    pub fn lift(&mut self, id: u64, now_unix_nanos: i64) -> Result<Fault, BoardError> {
        let place = self.entries.iter().position(|entry| entry.id == id).ok_or(BoardError::Unknown(id))?;
        match self.entries[place].status(now_unix_nanos) {
            Status::Over => Err(BoardError::Over(id)),
            Status::Planned => Ok(self.entries.remove(place).fault),
            Status::Active => {
                self.entries[place].until_unix_nanos = Some(now_unix_nanos);
                Ok(self.entries[place].fault.clone())
            }
        }
    }

    /// Marks everything on the board as outliving a restart.
    #[cfg(test)]
    pub(crate) fn keep_all(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.kept = true);
    }

    /// Puts back what was kept, with its numbers.
    pub(crate) fn restore(&mut self, kept: Vec<Entry>) {
        self.last_id = kept.iter().map(|entry| entry.id).fold(self.last_id, u64::max);
        self.entries.extend(kept);
    }

    /// Marks a fault as outliving a restart.
    pub(crate) fn keep(&mut self, id: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.kept = true;
        }
    }

    /// Takes a fault off the board as if it had never been there.
    pub(crate) fn forget(&mut self, id: u64) {
        self.entries.retain(|entry| entry.id != id);
    }

    /// Everything on the board, in the order in which it was added.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What is on, of this kind.
    pub fn active(&self, kind: Kind, now_unix_nanos: i64) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.fault.kind() == kind && entry.status(now_unix_nanos) == Status::Active)
    }

    /// Takes the faults that happen once and whose time has come.
    pub(crate) fn take_due(&mut self, now_unix_nanos: i64) -> Vec<(u64, Fault)> {
        let due = self
            .entries
            .iter_mut()
            .filter(|entry| entry.fault.kind().info().once && entry.status(now_unix_nanos) == Status::Active);
        due.map(|entry| {
            entry.happened = true;
            (entry.id, entry.fault.clone())
        })
        .collect()
    }

    /// The next moment after `now` at which a fault begins or ends.
    pub(crate) fn next_change(&self, now_unix_nanos: i64) -> Option<i64> {
        let moments = self.entries.iter().filter(|entry| entry.status(now_unix_nanos) != Status::Over);
        let moments = moments.flat_map(|entry| [Some(entry.from_unix_nanos), entry.until_unix_nanos]);
        moments.flatten().filter(|moment| *moment > now_unix_nanos).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEC: i64 = 1_000_000_000;

    fn line(text: &str) -> Line {
        text.parse().expect(text)
    }

    #[test]
    fn a_fault_is_planned_then_active_then_over() {
        let mut board = Board::default();
        let id = board.add(&line("zone-outage a --after 5s --for 10s"), 100 * SEC).expect("room");
        let status = |at: i64| board.entries()[0].status(at * SEC);
        assert_eq!([status(100), status(105), status(114), status(115)], {
            use Status::{Active, Over, Planned};
            [Planned, Active, Active, Over]
        });
        assert_eq!(board.next_change(100 * SEC), Some(105 * SEC));
        assert_eq!(board.next_change(105 * SEC), Some(115 * SEC));
        assert_eq!(board.next_change(115 * SEC), None);
        assert_eq!(board.lift(id, 120 * SEC), Err(BoardError::Over(id)));
    }

    #[test]
    fn lifting_ends_what_is_on_and_forgets_what_is_not() {
        let mut board = Board::default();
        let on = board.add(&line("api-outage"), 0).expect("room");
        let planned = board.add(&line("api-outage --after 1h"), 0).expect("room");
        assert_eq!(board.active(Kind::ApiOutage, SEC).count(), 1);
        assert!(board.lift(on, 7 * SEC).is_ok() && board.lift(planned, 7 * SEC).is_ok());
        assert_eq!(board.active(Kind::ApiOutage, 8 * SEC).count(), 0);
        assert_eq!(board.entries().len(), 1, "what never began is no history");
        assert_eq!(board.entries()[0].line_since(0).to_string(), "api-outage --for 7s");
        assert_eq!(board.lift(99, 0), Err(BoardError::Unknown(99)));
    }

    #[test]
    fn a_single_event_happens_once() {
        let mut board = Board::default();
        board.add(&line("host-loss count=2 --after 3s"), 0).expect("room");
        assert!(board.take_due(2 * SEC).is_empty());
        assert_eq!(board.take_due(3 * SEC).len(), 1);
        assert!(board.take_due(4 * SEC).is_empty());
        assert_eq!(board.entries()[0].line_since(0).to_string(), "host-loss count=2 --after 3s");
    }

    #[test]
    fn a_full_board_forgets_the_past_first() {
        let mut board = Board::default();
        for _ in 0..LIMIT {
            board.add(&line("api-outage --for 1s"), 0).expect("room");
        }
        assert_eq!(board.add(&line("api-outage"), 0), Err(BoardError::Full));
        assert!(board.add(&line("api-outage"), 2 * SEC).is_ok());
        assert_eq!(board.entries().len(), LIMIT);
    }
}
