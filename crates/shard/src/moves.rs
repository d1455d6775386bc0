//! What is under way: calls to providers, clusters whose word is waited for, and the line for places. Everybody else reaches it by the
//! methods here, so that what is counted and what is there change together.

use std::collections::BTreeSet;

use crate::event::{CallId, ProviderId, WireId};
use crate::flight::{Flight, Stage};
use crate::shard::Map;
use crate::table::Slot;

/// Instructions that were taken back and are remembered.
const MOST_REMEMBERED: usize = 4096;

/// What a call to a provider is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// A listing.
    List(ProviderId),
    /// A move: the machine and the flight.
    Move(Slot, u64),
    /// A question about a machine.
    Ask(Slot),
}

/// A place in line: by rank, since when, which machine.
pub(crate) type Place = (u8, i64, Slot);

/// The place in line of a flight.
pub(crate) fn place_of(flight: &Flight, slot: Slot) -> Place {
    (flight.rank(), flight.begun_unix_nanos, slot)
}

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// Calls under way.
    open: Map<CallId, Open>,
    /// Flights that wait for a word of their cluster, by the number of the request or instruction.
    waiting: Map<WireId, Slot>,
    /// Reclaims that were taken back lately: a cluster may hear of them after it heard that the machine stays.
    taken_back: Map<WireId, Slot>,
    /// Flights that wait for a place.
    line: BTreeSet<Place>,
    /// Whether somebody joined the line, or a place or a pause was given up, since the line last moved.
    is_due: bool,
    /// Places taken.
    calling: usize,
    /// Flights that have a place, wait for one, or wait for a blob; all but those whose cluster still has the machine.
    airborne: usize,
    calls: u64,
    flights: u64,
}

/// Whether a flight in this stage counts as in the air: its cluster does not have the machine any more.
fn is_airborne(stage: Stage) -> bool {
    !matches!(stage, Stage::LettingGo(_))
}

impl Moves {
    /// The number of the next flight.
    pub(crate) fn next_flight(&mut self) -> u64 {
        self.flights += 1;
        self.flights
    }

    /// A flight begins in this stage.
    pub(crate) fn take_off(&mut self, stage: Stage) {
        self.airborne += usize::from(is_airborne(stage));
    }

    /// A flight is over, whatever stage it was in. `is_counted` is for planted bugs.
    pub(crate) fn land(&mut self, stage: Stage, place: &Place, is_counted: bool) {
        self.is_due = true;
        self.no_longer_waits(stage);
        if is_counted {
            debug_assert!(self.airborne > 0 || !is_airborne(stage), "who lands was in the air");
            self.airborne -= usize::from(is_airborne(stage));
        }
        match stage {
            Stage::Queued => {
                let was_there = self.line.remove(place);
                debug_assert!(was_there, "who is queued is in line");
            }
            // Its answer will be late.
            Stage::Calling(call) | Stage::Asking(call) => drop(self.close(call)),
            Stage::Blob(_) | Stage::LettingGo(_) | Stage::Backoff => {}
        }
    }

    /// A flight waits for the word of its cluster.
    pub(crate) fn wait_for(&mut self, word: WireId, slot: Slot) {
        self.waiting.insert(word, slot);
    }

    /// Who waits for this word.
    pub(crate) fn who_waits_for(&self, word: WireId) -> Option<Slot> {
        self.waiting.get(&word).copied()
    }

    /// All who wait for a word of a cluster.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Slot> + '_ {
        self.waiting.values().copied()
    }

    /// Nobody waits for the word any more that this stage waited for.
    fn no_longer_waits(&mut self, stage: Stage) {
        if let Stage::Blob(word) | Stage::LettingGo(word) = stage {
            self.waiting.remove(&word);
        }
    }

    /// Puts a flight that was in this stage in line. The line moves at the end of the step.
    pub(crate) fn enqueue(&mut self, was: Stage, place: Place) {
        self.no_longer_waits(was);
        self.airborne += usize::from(!is_airborne(was));
        let is_new = self.line.insert(place);
        debug_assert!(is_new, "nobody stands in line twice");
        self.is_due = true;
    }

    /// Those in line, in order.
    pub(crate) fn line(&self) -> impl Iterator<Item = &Place> {
        self.line.iter()
    }

    /// A copy of the line, if it may move: something happened since it last did, and one of so many places is free.
    pub(crate) fn line_if_due(&mut self, places: usize) -> Option<Vec<Place>> {
        let may_move = std::mem::take(&mut self.is_due) && self.calling < places;
        may_move.then(|| self.line.iter().copied().collect())
    }

    /// The line is to be looked at: a pause ended.
    pub(crate) fn look_at_line(&mut self) {
        self.is_due = true;
    }

    /// It is somebody's turn.
    pub(crate) fn leave_line(&mut self, place: &Place) {
        self.line.remove(place);
    }

    /// A call begins. A move takes a place.
    pub(crate) fn call(&mut self, about: Open) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.open.insert(call, about);
        self.calling += usize::from(matches!(about, Open::Move(..)));
        call
    }

    /// What a call that is under way is about.
    pub(crate) fn about(&self, call: CallId) -> Option<Open> {
        self.open.get(&call).copied()
    }

    /// A call is over. A move gives its place up.
    pub(crate) fn close(&mut self, call: CallId) -> Option<Open> {
        let about = self.open.remove(&call)?;
        if matches!(about, Open::Move(..)) {
            self.calling -= 1;
            self.is_due = true;
        }
        Some(about)
    }

    /// How many calls are under way.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// How many places are taken.
    pub(crate) fn calling(&self) -> usize {
        self.calling
    }

    /// How many flights are in the air.
    pub(crate) fn airborne(&self) -> usize {
        self.airborne
    }

    /// Remembers for a while that a reclaim was taken back.
    pub(crate) fn take_back(&mut self, instruction: WireId, slot: Slot) {
        if self.taken_back.len() >= MOST_REMEMBERED {
            self.taken_back.clear();
        }
        self.taken_back.insert(instruction, slot);
    }

    /// The machine whose reclaim was taken back.
    pub(crate) fn was_taken_back(&self, instruction: WireId) -> Option<Slot> {
        self.taken_back.get(&instruction).copied()
    }

    /// What must hold between steps, as far as it can be said without looking at machines. [`Shard::audit`](crate::Shard::audit)
    /// looks at those too.
    pub(crate) fn holds(&self) -> bool {
        let moves = self.open.values().filter(|about| matches!(about, Open::Move(..))).count();
        moves == self.calling && self.calling + self.line.len() <= self.airborne
    }
}
