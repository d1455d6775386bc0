//! Execution: decided actions become flights, and flights become calls, one per machine at a time.

use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind};
use bigfleet_model::backoff::Backoff;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::NeedKey;
use bigfleet_model::stamp::Assignment;

use crate::config::SECOND;
use crate::effect::{Effect, Frame, Request, Step, Urgency};
use crate::event::{Blob, SessionId, WireId};
use crate::flight::{Flight, Stage};
use crate::memory::LettingGo;
use crate::moves::{Open, place_of};
use crate::pauses;
use crate::planted::Bug;
use crate::shard::Shard;
use crate::table::Slot;
use crate::tally::Tally;
use crate::tape::Fate;
use crate::timers::Timer;

/// The state a machine must be in for an action, and the one it enters.
pub(crate) fn passage(kind: ActionKind) -> (MachineState, MachineState) {
    match kind {
        ActionKind::Bootstrap => (MachineState::Idle, MachineState::Configuring),
        ActionKind::Provision => (MachineState::Speculative, MachineState::Creating),
        ActionKind::Preempt | ActionKind::Reclaim => (MachineState::Configured, MachineState::Draining),
        ActionKind::Delete => (MachineState::Idle, MachineState::Deleting),
    }
}

impl Shard {
    /// Begins an action, or says why not.
    pub(crate) fn begin(&mut self, action: &Action, now: i64, step: &mut Step) -> Fate {
        if let Some(fate) = self.obstacle(action, 0) {
            return fate;
        }
        let Some(slot) = self.table.find(&action.machine) else { return Fate::Busy };
        let machine = Machine::clone(&self.table.row(slot).machine);
        self.set_off(slot, machine, action, now, step);
        Fate::Begun
    }

    /// Sets off on an action that nothing stands in the way of. `machine` is the machine before it.
    pub(crate) fn set_off(
        &mut self,
        slot: Slot,
        machine: Machine,
        action: &Action,
        now: i64,
        step: &mut Step,
    ) {
        let priority = action.need.as_ref().map_or(0, |demand| demand.priority());
        self.set_off_for(slot, machine, action, priority, now, step);
    }

    /// The same, for somebody of this priority, who need not be one of ours.
    pub(crate) fn set_off_for(
        &mut self,
        slot: Slot,
        mut machine: Machine,
        action: &Action,
        priority: i32,
        now: i64,
        step: &mut Step,
    ) {
        let (from, to) = passage(action.kind);
        let idle_since = machine.idle_since_unix_nanos.take();
        machine.state = to;
        let need = action.need.clone();
        let stamp = need.as_ref().map(|demand| Assignment {
            cluster: demand.need.cluster.clone(),
            priority: demand.priority(),
            interruption_penalty_usd: demand.need.profile.interruption().upper_bound_dollars(),
            reclamation_penalty_usd: demand.need.profile.reclamation().upper_bound_dollars(),
            fingerprint: demand.need.profile.fingerprint().into(),
            group: demand.need.group.clone(),
        });
        match action.kind {
            ActionKind::Bootstrap => {
                machine.cluster = action.cluster.as_deref().unwrap_or_default().into();
                machine.assigned = stamp.unwrap_or_default();
            }
            ActionKind::Provision => machine.assigned = stamp.unwrap_or_default(),
            ActionKind::Preempt => machine.draining_for = need.as_ref().map(|demand| demand.need.key()),
            ActionKind::Reclaim | ActionKind::Delete => {}
        }
        let wire = WireId(self.ids.next());
        let grace = i64::from(action.grace_secs.unwrap_or(0)) * SECOND;
        let preemptor_priority = match action.kind {
            ActionKind::Preempt => priority,
            _ => 0,
        };
        let stage = match action.kind {
            ActionKind::Bootstrap => Stage::Blob(wire),
            ActionKind::Provision | ActionKind::Delete => Stage::Queued,
            ActionKind::Preempt | ActionKind::Reclaim => Stage::LettingGo(wire),
        };
        let flight = Flight {
            kind: action.kind,
            cluster: action.cluster.clone(),
            need,
            begun_unix_nanos: now,
            cycle: self.cycle,
            from,
            idle_since,
            tries: 0,
            stage,
            grace_until_unix_nanos: now + grace,
            preemptor_priority,
            instruction: wire,
            acks: 0,
            denied: false,
            blob: None,
            number: self.moves.next_flight(),
        };
        self.take_off(slot, machine, flight, now, step);
    }

    /// Puts a flight on a machine and sets it going.
    fn take_off(&mut self, slot: Slot, machine: Machine, flight: Flight, now: i64, step: &mut Step) {
        let stage = flight.stage;
        self.moves.take_off(stage);
        self.table.row_mut(slot).flight = Some(Box::new(flight));
        self.overwrite(slot, machine, now, step);
        match stage {
            Stage::Blob(request) => self.ask_for_blob(slot, request, now, step),
            Stage::LettingGo(instruction) => {
                self.moves.wait_for(instruction, slot);
                let until = self.flight(slot).grace_until_unix_nanos;
                self.announce(slot, now, step);
                let until = if self.config.has(Bug::GraceHalved) { now.midpoint(until) } else { until };
                self.timers.set(until, Timer::LetGo(slot, instruction));
            }
            _ => self.enqueue(slot),
        }
    }

    /// Goes on with a drain that a life before had announced.
    pub(crate) fn resume_drain(
        &mut self,
        slot: Slot,
        mut told: Machine,
        goes: &LettingGo,
        draining_for: Option<NeedKey>,
        now: i64,
        step: &mut Step,
    ) {
        told.state = MachineState::Draining;
        told.draining_for = draining_for;
        let instruction = WireId(goes.instruction);
        let flight = Flight {
            kind: goes.kind,
            cluster: Some(Arc::from(&*told.cluster)),
            need: None,
            begun_unix_nanos: now,
            cycle: self.cycle,
            from: MachineState::Configured,
            idle_since: None,
            tries: 0,
            stage: Stage::LettingGo(instruction),
            grace_until_unix_nanos: goes.until_unix_nanos,
            preemptor_priority: goes.preemptor_priority,
            instruction,
            acks: 0,
            denied: false,
            blob: None,
            number: self.moves.next_flight(),
        };
        self.take_off(slot, told, flight, now, step);
    }

    pub(crate) fn flight(&self, slot: Slot) -> &Flight {
        self.table.row(slot).flight.as_ref().expect("the machine is in flight")
    }

    fn flight_mut(&mut self, slot: Slot) -> &mut Flight {
        self.table.row_mut(slot).flight.as_mut().expect("the machine is in flight")
    }

    /// Asks the operator for what the node needs to join.
    fn ask_for_blob(&mut self, slot: Slot, request: WireId, now: i64, step: &mut Step) {
        self.flight_mut(slot).stage = Stage::Blob(request);
        self.moves.wait_for(request, slot);
        let flight = self.flight(slot);
        let session =
            flight.cluster.as_ref().and_then(|name| self.clusters.get(name)).and_then(|c| c.session);
        let Some(session) = session else {
            self.no_blob(slot, "its operator is not connected", now, step);
            return;
        };
        let requirements = flight.need.as_ref().map(|demand| demand.need.profile.requirements().into());
        let frame = Frame::Bootstrap { request, requirements: requirements.unwrap_or_default() };
        step.effects.push(Effect::Send { session, frame });
        self.timers.set(now + self.config.patience.blob, Timer::Blob(slot, request));
    }

    /// A blob, or why there is none.
    pub(crate) fn take_blob(
        &mut self,
        session: SessionId,
        request: WireId,
        blob: Result<Blob, String>,
        now: i64,
        step: &mut Step,
    ) {
        let Some(slot) = self.waiting_for(session, Stage::Blob(request)) else {
            self.tally.late_answers += 1;
            return;
        };
        match blob {
            Err(why) => self.no_blob(slot, &why, now, step),
            Ok(blob) => {
                let until = if blob.ttl_secs > 0 {
                    now.saturating_add(blob.ttl_secs.saturating_mul(SECOND))
                } else {
                    i64::MAX
                };
                self.operator_is_well(slot);
                self.flight_mut(slot).blob = Some((blob, until));
                self.enqueue(slot);
            }
        }
    }

    fn operator_is_well(&mut self, slot: Slot) {
        let name = self.flight(slot).cluster.clone();
        if let Some(cluster) = name.and_then(|name| self.clusters.get_mut(&name)) {
            cluster.operator_failures = 0;
            cluster.operator_backoff_until_unix_nanos = 0;
            cluster.operator_error = "".into();
        }
    }

    /// The machine of a session's cluster that is in this very stage.
    fn waiting_for(&self, session: SessionId, stage: Stage) -> Option<Slot> {
        let (Stage::Blob(id) | Stage::LettingGo(id)) = stage else { return None };
        let slot = self.moves.who_waits_for(id)?;
        let is_theirs = *self.table.get(slot)?.machine.cluster == **self.sessions.get(&session)?;
        (is_theirs && self.stage(slot) == Some(stage)).then_some(slot)
    }

    pub(crate) fn blob_is_late(&mut self, slot: Slot, request: WireId, now: i64, step: &mut Step) {
        if self.stage(slot) == Some(Stage::Blob(request)) {
            self.no_blob(slot, "its operator did not answer in time", now, step);
        }
    }

    /// There is no blob: the machine goes back to Idle as if nothing had been, and the cluster is left alone for a while.
    pub(crate) fn no_blob(&mut self, slot: Slot, why: &str, now: i64, step: &mut Step) {
        self.tally.blob_failures += 1;
        let patience = self.config.patience;
        let name = self.flight(slot).cluster.clone().unwrap_or_default();
        if let Some(cluster) = self.clusters.get_mut(&name)
            && cluster.operator_backoff_until_unix_nanos <= now
        {
            cluster.operator_failures = cluster.operator_failures.saturating_add(1);
            let backoff =
                Backoff { first: patience.operator_backoff_first, limit: patience.operator_backoff_most };
            let until = now + backoff.after(cluster.operator_failures);
            cluster.operator_backoff_until_unix_nanos = until;
            cluster.operator_error = why.into();
            self.timers.set(until, Timer::Wake);
            let text = format!(
                "cluster {name}: no bootstrap data: {why}; its machines are bound again in {} s at the earliest",
                (until - now) / SECOND
            );
            Self::say(step, Urgency::Warning, "no_blob", text);
        }
        self.roll_back(slot, "no_blob", now, step);
    }

    /// Tells the cluster to let go of a machine.
    pub(crate) fn announce(&self, slot: Slot, now: i64, step: &mut Step) {
        let row = self.table.row(slot);
        let Some(flight) = &row.flight else { return };
        let session = self.clusters.get(&*row.machine.cluster).and_then(|cluster| cluster.session);
        if let (Stage::LettingGo(instruction), Some(session)) = (flight.stage, session) {
            let left = (flight.grace_until_unix_nanos - now).max(0);
            let frame = Frame::Reclaim {
                instruction,
                machine: row.machine.id.clone(),
                grace_secs: (left + SECOND - 1) / SECOND,
                preemptor_priority: flight.preemptor_priority,
            };
            step.effects.push(Effect::Send { session, frame });
        }
    }

    /// A cluster acknowledged an instruction. Most operators do so once, when they have cordoned: nothing more will come
    /// from them, so the drain begins, with the rest of the grace for the provider to keep. One that says it acknowledges
    /// twice is waited for: the second time it is done. One that had nothing to cordon is done at once.
    pub(crate) fn take_reclaim_ack(
        &mut self,
        session: SessionId,
        instruction: WireId,
        nodes_started: i32,
        step: &mut Step,
    ) {
        let Some(slot) = self.waiting_for(session, Stage::LettingGo(instruction)) else {
            self.tally.late_answers += 1;
            self.say_again_that_it_stays(session, instruction, step);
            return;
        };
        let cluster = self.clusters.get(&*self.table.row(slot).machine.cluster);
        let acks_done = cluster.is_some_and(|cluster| cluster.acks_done);
        let flight = self.flight_mut(slot);
        flight.acks += 1;
        if nodes_started <= 0 || !acks_done || flight.acks >= 2 {
            self.tally.early_drains += 1;
            self.enqueue(slot);
        }
    }

    pub(crate) fn grace_is_over(&mut self, slot: Slot, instruction: WireId) {
        if self.stage(slot) == Some(Stage::LettingGo(instruction)) {
            self.enqueue(slot);
        }
    }

    /// Puts a flight in line for a place. The line moves at the end of the step.
    pub(crate) fn enqueue(&mut self, slot: Slot) {
        let flight = self.flight_mut(slot);
        let was = std::mem::replace(&mut flight.stage, Stage::Queued);
        let place = place_of(flight, slot);
        self.moves.enqueue(was, place);
    }

    /// Gives free places to those in line, preemptions first. What a pause covers stays in line.
    ///
    /// Called once at the end of every step, never from within one: giving a place can end the flight it is given to (a
    /// blob that expired in line, and no operator to ask for another), and whatever ends a flight must not find the line
    /// half walked. Such a flight touches no other machine, so the rest of the line is still as it was copied.
    pub(crate) fn pump(&mut self, now: i64, step: &mut Step) {
        let unbounded = self.config.has(Bug::PlacesUnbounded);
        let places = if unbounded { usize::MAX } else { self.config.limits.flights };
        for place in self.moves.line_if_due(places).unwrap_or_default() {
            if self.moves.calling() >= places {
                return;
            }
            let slot = place.2;
            debug_assert_eq!(self.stage(slot), Some(Stage::Queued), "who is in line waits for a place");
            let flight = self.flight(slot);
            let gets = flight.need.as_ref().map(|demand| &*demand.need.cluster);
            let held = pauses::holds(&self.pauses, now, flight.kind, [flight.cluster.as_deref(), gets]);
            if held.is_some() || self.config.rails.dry_run {
                continue;
            }
            if !self.may_go_on(slot) {
                self.roll_back(slot, "mode", now, step);
                continue;
            }
            self.moves.leave_line(&place);
            self.call(slot, now, step);
        }
    }

    /// Calls the provider.
    fn call(&mut self, slot: Slot, now: i64, step: &mut Step) {
        let row = self.table.row(slot);
        let flight = self.flight(slot);
        let machine = row.machine.id.clone();
        let request = match flight.kind {
            ActionKind::Provision => Request::Create { machine },
            ActionKind::Delete => Request::Delete { machine },
            ActionKind::Preempt | ActionKind::Reclaim => {
                let left = (flight.grace_until_unix_nanos - now).max(0);
                Request::Drain { machine, grace_secs: left / SECOND }
            }
            ActionKind::Bootstrap => match &flight.blob {
                Some((blob, until)) if now <= *until => Request::Configure {
                    machine,
                    cluster: flight.cluster.clone().unwrap_or_default(),
                    blob: blob.user_data.clone(),
                    metadata: row.machine.assigned.encode(),
                },
                // It waited too long in line: the blob is no good any more.
                _ => {
                    let request = WireId(self.ids.next());
                    self.ask_for_blob(slot, request, now, step);
                    return;
                }
            },
        };
        let (provider, number) = (row.provider, flight.number);
        let call = self.moves.call(Open::Move(slot, number));
        let flight = self.flight_mut(slot);
        flight.stage = Stage::Calling(call);
        flight.tries += 1;
        if !self.config.has(Bug::SequenceStands) {
            self.sequence += 1;
        }
        let (sequence, timeout_nanos) = (self.sequence, self.config.patience.call);
        step.effects.push(Effect::Call { call, provider, request, sequence, timeout_nanos });
    }

    /// Takes a flight off a machine, whatever stage it is in.
    pub(crate) fn end_flight(&mut self, slot: Slot, outcome: &'static str) -> Option<Flight> {
        let flight = *self.table.row_mut(slot).flight.take()?;
        self.moves.land(flight.stage, &place_of(&flight, slot), !self.config.has(Bug::PlaceKept));
        self.may_move(slot);
        Tally::bump(&mut self.tally.flights, (flight.kind, outcome));
        Some(flight)
    }

    /// Undoes an order the provider never carried out.
    pub(crate) fn roll_back(&mut self, slot: Slot, outcome: &'static str, now: i64, step: &mut Step) {
        let Some(flight) = self.end_flight(slot, outcome) else { return };
        assert!(!self.config.has(Bug::PanicsOnUndoing), "planted: nobody thought of an order that is undone");
        let row = self.table.row(slot);
        let mut machine = Machine::clone(&row.machine);
        machine.state = flight.from;
        machine.draining_for = None;
        if flight.from != MachineState::Configured {
            machine.cluster = "".into();
            machine.assigned = Assignment::default();
            machine.idle_since_unix_nanos =
                flight.idle_since.filter(|_| !self.config.has(Bug::IdleSinceLost));
        }
        self.overwrite(slot, machine, now, step);
    }
}
