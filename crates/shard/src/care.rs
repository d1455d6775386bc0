//! Looking after machines that are not well: failed, overdue, refused, driven by somebody else.
//!
//! Failed is not a grave. The provider is asked again, at growing intervals, and whatever it says is adopted; after a
//! bounded number of tries the machine is quarantined, where people see it. A machine too long in transition stops
//! counting as supply. None of this ever blocks the provider's word: as soon as it says something else, that holds.

use bigfleet_model::backoff::Backoff;
use bigfleet_model::machine::MachineState;

use crate::config::MINUTE;
use crate::effect::{Step, Urgency};
use crate::event::{BadRecord, CallError, CallErrorKind, Told};
use crate::moves::Open;
use crate::shard::Shard;
use crate::table::{Answer, Care, Slot};
use crate::timers::Timer;

impl Shard {
    /// A machine may have been in transition for too long.
    pub(crate) fn watch(&mut self, slot: Slot, since: i64, now: i64, step: &mut Step) {
        let Some(row) = self.table.get_mut(slot) else { return };
        if row.since != since || !row.machine.state.is_transitional() || row.care != Care::Fine {
            return;
        }
        row.care = Care::Overdue;
        self.tally.overdue += 1;
        let text = format!(
            "machine {} has been {} for {} minutes; it no longer counts as supply until its provider {} says more",
            row.machine.id,
            row.machine.state,
            (now - since) / MINUTE,
            self.providers[row.provider.0 as usize].name,
        );
        Self::say(step, Urgency::Warning, "overdue", text);
        self.show(slot);
        self.ask_unless_flying(slot, now, step);
    }

    /// Asks about a machine again if it is still as unwell as it was.
    pub(crate) fn ask_if_still(&mut self, slot: Slot, since: i64, now: i64, step: &mut Step) {
        let Some(row) = self.table.get(slot) else { return };
        if row.since == since && matches!(row.care, Care::Failed { .. } | Care::Overdue) {
            self.ask_unless_flying(slot, now, step);
        }
    }

    fn ask_unless_flying(&mut self, slot: Slot, now: i64, step: &mut Step) {
        let row = self.table.row(slot);
        if row.flight.is_some() {
            self.timers.set(now + MINUTE, Timer::Ask(slot, row.since));
        } else {
            self.ask(slot, step);
        }
    }

    /// The answer to a question about a machine.
    pub(crate) fn take_told(
        &mut self,
        slot: Slot,
        machine: Option<Result<Told, BadRecord>>,
        now: i64,
        step: &mut Step,
    ) {
        let Some(row) = self.table.get_mut(slot) else { return };
        if row.flight.as_ref().is_some_and(|flight| flight.stage.provider_may_know()) {
            // A move was begun meanwhile; its answer is newer than this one.
            row.missed = true;
            return;
        }
        row.touched = now;
        let since = row.since;
        match machine {
            Some(Ok(told)) if told.machine.id == row.machine.id => {
                row.words.asked = Some(Answer::Is(told.machine.state));
                // The listing's own last word no longer says what the row says: if it comes again it is news.
                self.table.unhear(slot);
                self.adopt(slot, told.machine, 0, now, step);
            }
            Some(Ok(_)) | None => {}
            Some(Err(bad)) => {
                let provider = row.provider;
                self.refuse(provider, &bad, step);
            }
        }
        self.still_unwell(slot, since, now, step);
    }

    /// After a question: counts the try if nothing has changed for the better.
    fn still_unwell(&mut self, slot: Slot, since: i64, now: i64, step: &mut Step) {
        let most = self.config.patience.failed_tries;
        let Some(row) = self.table.get_mut(slot) else { return };
        if row.since != since {
            return;
        }
        match row.care {
            Care::Failed { tries } if tries + 1 >= most => {
                row.care = Care::Quarantined;
                self.tally.quarantined += 1;
                let text = format!(
                    "machine {} is still Failed after {most} questions ({}); it is quarantined until its provider says \
                     otherwise",
                    row.machine.id, row.machine.last_error
                );
                Self::say(step, Urgency::Alarm, "quarantined", text);
                self.remember(slot, step);
            }
            Care::Failed { tries } => {
                row.care = Care::Failed { tries: tries + 1 };
                let wait = self.config.patience.failed_wait(tries + 1);
                self.timers.set(now + wait, Timer::Ask(slot, since));
                self.remember(slot, step);
            }
            Care::Overdue => self.timers.set(now + MINUTE, Timer::Ask(slot, since)),
            _ => {}
        }
    }

    /// A question about a machine was not answered.
    pub(crate) fn ask_failed(&mut self, slot: Slot, error: &CallError, now: i64, step: &mut Step) {
        let Some(row) = self.table.get_mut(slot) else { return };
        match error.kind {
            CallErrorKind::NotFound if row.flight.is_none() => self.unknown_when_asked(slot, now, step),
            CallErrorKind::Unavailable | CallErrorKind::TimedOut => {
                // No answer says nothing about the machine: ask again without counting.
                row.missed = true;
                let (since, provider) = (row.since, row.provider);
                let is_fine = row.care == Care::Fine;
                self.table.unhear(slot);
                if is_fine {
                    // Whatever was missed will be in the next full listing.
                    self.providers[provider.0 as usize].full_listed_unix_nanos = None;
                } else {
                    self.timers.set(now + self.config.patience.retry_most, Timer::Ask(slot, since));
                }
            }
            _ => {
                let since = row.since;
                self.still_unwell(slot, since, now, step);
            }
        }
    }

    /// A provider says that it knows no such machine. If its listing leaves it out as well, it is gone; else the listing has
    /// the last word.
    fn unknown_when_asked(&mut self, slot: Slot, now: i64, step: &mut Step) {
        let row = self.table.row_mut(slot);
        let (id, since) = (row.provider, row.since);
        row.words.asked = Some(Answer::Unknown);
        let provider = &mut self.providers[id.0 as usize];
        if provider.left_out.remove(&slot) {
            self.lose(slot, "is unknown to its provider", now, step);
            return;
        }
        if row.words.disputes == 0 {
            provider.full_listed_unix_nanos = None;
            self.list_soon(id, now);
        }
        self.table.unhear(slot);
        self.still_unwell(slot, since, now, step);
    }

    /// A listing told a machine's state. Where it says again what the answer to a question had taken back, one of the two is
    /// wrong, and asking on does not help: the machine is left alone, for longer each time.
    pub(crate) fn hear_listed(&mut self, slot: Slot, state: MachineState, now: i64, step: &mut Step) {
        let most = self.config.patience.failed_tries;
        let Some(row) = self.table.get_mut(slot) else { return };
        let answer = row.words.asked.take();
        let before = row.words.listed.replace(state);
        match answer {
            Some(Answer::Is(said)) if said == state => row.words.disputes = 0,
            Some(_) if before == Some(state) => {
                row.words.disputes = row.words.disputes.saturating_add(1);
                let disputes = u32::from(row.words.disputes);
                self.tally.disputes += 1;
                if let Care::Failed { tries } = &mut row.care {
                    *tries = (*tries).max(disputes).min(most.saturating_sub(1));
                }
                if disputes == 2 {
                    let text = format!(
                        "machine {}: its provider's listings say {state} and its answers say otherwise; it is left alone for \
                         longer each time",
                        row.machine.id
                    );
                    Self::say(step, Urgency::Warning, "disputed", text);
                }
                self.cool(slot, now, step);
            }
            _ => {}
        }
        let row = self.table.row_mut(slot);
        if row.words.denied_from.take() == Some(state) {
            self.cool(slot, now, step);
        }
    }

    /// Leaves a machine alone for a while after a move that did not succeed.
    pub(crate) fn cool(&mut self, slot: Slot, now: i64, step: &mut Step) {
        let patience = self.config.patience;
        let Some(row) = self.table.get_mut(slot) else { return };
        if !matches!(
            row.machine.state,
            MachineState::Speculative | MachineState::Idle | MachineState::Configured
        ) {
            return;
        }
        row.refusals += 1;
        let times = row.refusals.max(row.words.disputes.into());
        let wait = Backoff { first: patience.retry_most, limit: 30 * MINUTE }.after(times);
        let until = now + wait;
        row.care = Care::Cooling { until_unix_nanos: until };
        self.timers.set(until, Timer::Cooled(slot, until));
        self.remember(slot, step);
        self.show(slot);
    }

    /// A machine may be used again.
    pub(crate) fn cooled(&mut self, slot: Slot, until: i64) {
        let Some(row) = self.table.get_mut(slot) else { return };
        if matches!(row.care, Care::Cooling { until_unix_nanos } if until_unix_nanos == until) {
            row.care = Care::Fine;
            self.show(slot);
        }
    }

    /// Somebody with a newer token drives this machine: hands off.
    pub(crate) fn fence(&mut self, slot: Slot, error: &CallError, step: &mut Step) {
        self.tally.fenced += 1;
        let Some(row) = self.table.get_mut(slot) else { return };
        row.care = Care::Fenced;
        let text = format!(
            "machine {}: {error}; another life of shard {} drives it, so this one (epoch {}) does nothing more with \
             it. If no other process should be running under this name, find and stop it; then restart this one",
            row.machine.id, self.config.shard_id, self.config.epoch
        );
        Self::say(step, Urgency::Alarm, "fenced", text);
        self.remember(slot, step);
        self.show(slot);
    }

    /// A call failed.
    pub(crate) fn take_failure(
        &mut self,
        call: crate::event::CallId,
        error: &CallError,
        now: i64,
        step: &mut Step,
    ) {
        match self.moves.close(call) {
            None => self.tally.late_answers += 1,
            Some(Open::List(provider)) => self.list_failed(provider, error, now, step),
            Some(Open::Ask(slot)) => {
                if self.is_asking(slot, call) {
                    self.refused_and_silent(slot, now, step);
                } else {
                    self.ask_failed(slot, error, now, step);
                }
            }
            Some(Open::Move(slot, flight)) => self.move_failed(slot, flight, error, now, step),
        }
    }

    /// A call was answered.
    pub(crate) fn take_answer(
        &mut self,
        call: crate::event::CallId,
        machine: Option<Result<Told, BadRecord>>,
        now: i64,
        step: &mut Step,
    ) {
        match self.moves.close(call) {
            None | Some(Open::List(_)) => self.tally.late_answers += 1,
            Some(Open::Ask(slot)) => {
                if self.is_asking(slot, call) {
                    self.refused_and_told(slot, machine, now, step);
                } else {
                    self.take_told(slot, machine, now, step);
                }
            }
            Some(Open::Move(slot, flight)) => self.move_answered(slot, flight, machine, now, step),
        }
    }
}
