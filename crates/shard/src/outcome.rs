//! How calls end: answered, refused, fenced, unanswered; and what that means for the machine.

use bigfleet_engine::ActionKind;
use bigfleet_model::backoff::Backoff;
use bigfleet_model::machine::MachineState;
use bigfleet_model::text::Quoted;

use crate::effect::{Effect, Request, Step, Urgency};
use crate::event::{BadRecord, CallError, CallErrorKind, CallId, Told};
use crate::flight::Stage;
use crate::moves::Open;
use crate::planted::Bug;
use crate::shard::Shard;
use crate::table::Slot;
use crate::timers::Timer;

impl Shard {
    /// Whether a call's flight is still the one that is under way.
    pub(crate) fn is_flying(&self, slot: Slot, number: u64) -> bool {
        self.table.get(slot).and_then(|row| row.flight.as_ref()).is_some_and(|flight| flight.number == number)
    }

    /// A move was accepted.
    pub(crate) fn move_answered(
        &mut self,
        slot: Slot,
        number: u64,
        machine: Option<Result<Told, BadRecord>>,
        now: i64,
        step: &mut Step,
    ) {
        if !self.is_flying(slot, number) {
            self.tally.late_answers += 1;
            return;
        }
        self.table.unhear(slot);
        let row = self.table.row_mut(slot);
        row.touched = now;
        let missed = std::mem::take(&mut row.missed);
        let provider = row.provider;
        let flight = self.end_flight(slot, "accepted").expect("the flight was there");
        match machine {
            None => {}
            Some(Err(bad)) => self.refuse(provider, &bad, step),
            Some(Ok(told)) => {
                let row = self.table.row(slot);
                let elsewhere = flight.kind == ActionKind::Bootstrap
                    && told.machine.state.is_bound()
                    && Some(&*told.machine.cluster) != flight.cluster.as_deref();
                if elsewhere {
                    let text = format!(
                        "machine {} was to join cluster {} and is bound to {}; its provider's word holds. Two shards \
                         may be driving one provider: give each of them domains of its own",
                        row.machine.id,
                        flight.cluster.as_deref().unwrap_or_default(),
                        Quoted(&told.machine.cluster)
                    );
                    Self::say(step, Urgency::Alarm, "bound_elsewhere", text);
                }
                // An answer that shows the machine where it was is a snapshot from before it moved.
                if told.machine.id == row.machine.id && told.machine.state != flight.from {
                    self.adopt(slot, told.machine, 0, now, step);
                }
            }
        }
        if self.table.get(slot).is_some() {
            self.remember(slot, step);
            if missed {
                self.ask(slot, step);
            }
            self.list_soon(provider, now);
        }
    }

    /// A move was not accepted, or nobody knows.
    pub(crate) fn move_failed(
        &mut self,
        slot: Slot,
        number: u64,
        error: &CallError,
        now: i64,
        step: &mut Step,
    ) {
        if !self.is_flying(slot, number) {
            self.tally.late_answers += 1;
            return;
        }
        self.table.unhear(slot);
        let row = self.table.row_mut(slot);
        row.touched = now;
        let provider = row.provider;
        let patience = self.config.patience;
        match error.kind {
            CallErrorKind::Fenced => {
                self.roll_back(slot, "fenced", now, step);
                self.fence(slot, error, step);
            }
            CallErrorKind::NotFound if self.config.has(Bug::DeniedIsLost) => {
                self.lose(slot, "is unknown to its provider", now, step);
            }
            CallErrorKind::NotSupported => {
                self.not_supported(slot, error, now, step);
            }
            // "I know no such machine" is said of machines that were moved a moment ago. What is bought anew on such a word is
            // bought twice: the machine is asked about, and gone when a listing leaves it out.
            CallErrorKind::Refused | CallErrorKind::NotFound => {
                let call = self.moves.call(Open::Ask(slot));
                let row = self.table.row_mut(slot);
                row.missed = false;
                let flight = row.flight.as_mut().expect("the flight is there");
                flight.stage = Stage::Asking(call);
                flight.denied = error.kind == CallErrorKind::NotFound;
                let text = format!(
                    "machine {}: {} was refused by provider {}: {}; asking what it is",
                    row.machine.id,
                    row.flight.as_ref().map_or("", |flight| flight.kind.name()),
                    self.providers[provider.0 as usize].name,
                    error.text
                );
                let request = Request::Get { machine: row.machine.id.clone() };
                Self::say(step, Urgency::Info, "refused", text);
                let timeout_nanos = patience.call;
                step.effects.push(Effect::Call { call, provider, request, sequence: 0, timeout_nanos });
            }
            CallErrorKind::Unavailable | CallErrorKind::TimedOut => {
                let row = self.table.row_mut(slot);
                let flight = row.flight.as_mut().expect("the flight is there");
                if flight.tries > patience.retry_budget {
                    self.give_up(slot, error, step);
                } else {
                    flight.stage = Stage::Backoff;
                    let backoff = Backoff { first: patience.retry_first, limit: patience.retry_most };
                    let wait = backoff.after(flight.tries);
                    self.timers.set(now + wait, Timer::Retry(slot, number));
                }
            }
        }
    }

    /// Tries a call again, with a new sequence number.
    pub(crate) fn retry(&mut self, slot: Slot, number: u64) {
        if self.is_flying(slot, number) && self.flight(slot).stage == Stage::Backoff {
            self.enqueue(slot);
        }
    }

    /// Nobody knows what became of the order. The machine stays as we see it until its provider says otherwise; it is
    /// asked, and the watchdog has an eye on it.
    fn give_up(&mut self, slot: Slot, error: &CallError, step: &mut Step) {
        let row = self.table.row(slot);
        let text = format!(
            "machine {}: no answer from provider {} in {} tries ({error}); it is left to the next listing",
            row.machine.id,
            self.providers[row.provider.0 as usize].name,
            self.config.patience.retry_budget + 1
        );
        Self::say(step, Urgency::Warning, "gave_up", text);
        self.end_flight(slot, "gave_up");
        self.remember(slot, step);
        self.ask(slot, step);
    }

    /// The provider does not offer this call. For Delete that is an answer: its machines are kept.
    fn not_supported(&mut self, slot: Slot, error: &CallError, now: i64, step: &mut Step) {
        let provider = self.table.row(slot).provider;
        let kind = self.flight(slot).kind;
        self.roll_back(slot, "not_supported", now, step);
        let name = self.providers[provider.0 as usize].name.clone();
        if kind != ActionKind::Delete {
            let text =
                format!("provider {name} does not offer the call for {kind}: {error}; it cannot be used");
            Self::say(step, Urgency::Alarm, "not_supported", text);
            self.cool(slot, now, step);
            return;
        }
        self.providers[provider.0 as usize].supports_delete = false;
        let text = format!("provider {name} takes no machines back: {error}; its idle machines are kept");
        Self::say(step, Urgency::Info, "not_supported", text);
        let idle: Vec<Slot> = self
            .table
            .iter()
            .filter(|(_, row)| row.provider == provider && row.machine.state == MachineState::Idle)
            .map(|(slot, _)| slot)
            .collect();
        for slot in idle {
            let row = self.table.row(slot);
            let mut machine = bigfleet_model::machine::Machine::clone(&row.machine);
            machine.idle_since_unix_nanos = None;
            self.overwrite(slot, machine, now, step);
        }
    }

    /// Whether a call asks about a machine whose move was refused.
    pub(crate) fn is_asking(&self, slot: Slot, call: CallId) -> bool {
        self.stage(slot) == Some(Stage::Asking(call))
    }

    /// A refused move, and what the machine is: if it has not moved, it is left alone for a while.
    pub(crate) fn refused_and_told(
        &mut self,
        slot: Slot,
        machine: Option<Result<Told, BadRecord>>,
        now: i64,
        step: &mut Step,
    ) {
        let row = self.table.row_mut(slot);
        row.touched = now;
        let provider = row.provider;
        let flight = self.flight(slot);
        let (from, denied) = (flight.from, flight.denied);
        let is_elsewhere = machine.as_ref().and_then(|told| told.as_ref().ok()).is_some_and(|told| {
            told.machine.id == self.table.row(slot).machine.id && told.machine.state != from
        });
        // An earlier try may have made the machine: then there is nothing left to do, and nothing to undo.
        let is_made = flight.kind == ActionKind::Provision
            && flight.tries > 1
            && machine.as_ref().and_then(|told| told.as_ref().ok()).is_some_and(|told| {
                let exists = matches!(told.machine.state, MachineState::Creating | MachineState::Idle);
                exists && told.machine.id == self.table.row(slot).machine.id
            });
        if is_made || denied && is_elsewhere {
            self.end_flight(slot, "refused");
        } else {
            self.roll_back(slot, "refused", now, step);
        }
        match machine {
            Some(Ok(told)) if *told.machine.id == *self.table.row(slot).machine.id => {
                self.adopt(slot, told.machine, 0, now, step);
            }
            Some(Err(bad)) => self.refuse(provider, &bad, step),
            _ => {}
        }
        if self.table.get(slot).is_some_and(|row| row.machine.state == from) {
            self.cool(slot, now, step);
        }
    }

    /// A refused move, and no word of what the machine is.
    pub(crate) fn refused_and_silent(&mut self, slot: Slot, now: i64, step: &mut Step) {
        let provider = self.table.row(slot).provider;
        let flight = self.flight(slot);
        if flight.denied {
            // Nobody knows whether it was carried out. It stays as we see it, so that nothing is bought in its place, until
            // a listing names it or leaves it out.
            let from = flight.from;
            self.end_flight(slot, "denied");
            self.table.row_mut(slot).words.denied_from = Some(from);
            self.table.unhear(slot);
            self.remember(slot, step);
        } else {
            self.roll_back(slot, "refused", now, step);
            self.cool(slot, now, step);
        }
        self.providers[provider.0 as usize].full_listed_unix_nanos = None;
        self.list_soon(provider, now);
    }
}
