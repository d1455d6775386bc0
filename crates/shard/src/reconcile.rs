//! Reconcile: providers are listed, and what they say is adopted.
//!
//! A provider's word always wins, with one exception in time: a listing that was begun before a machine's last answer
//! knows less than that answer, and a listing of a machine whose call is under way may know more or less than we do.
//! Such a record is passed over and the machine is asked about once the answer is there.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::backoff::Backoff;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::text::Quoted;

use crate::config::SECOND;
use crate::confirmation::{self, Confirmation};
use crate::effect::{Effect, Step, Urgency};
use crate::event::{BadRecord, CallError, CallId, ListEnd, ProviderId, Reports};
use crate::flight::Stage;
use crate::memory::MachineMemo;
use crate::moves::Open;
use crate::planted::Bug;
use crate::provider::{HeldListing, Listing};
use crate::shard::Shard;
use crate::table::{Care, Row, Slot, Words};
use crate::tally::Tally;

/// How many machines that a pieced listing did not name are asked about after it.
const ASKED_AT_ONCE: usize = 256;

/// What is remembered of most machines.
static NOTHING: MachineMemo = MachineMemo {
    idle_since: None,
    creating_for: None,
    draining_for: None,
    letting_go: None,
    failed_tries: 0,
    since: None,
};

/// The longest wait after a listing that failed.
const LIST_BACKOFF_MOST: i64 = 60 * SECOND;

impl Shard {
    /// Begins a listing.
    pub(crate) fn list(&mut self, id: ProviderId, now: i64, step: &mut Step) {
        let index = id.0 as usize;
        if self.providers[index].listing.is_some() {
            return;
        }
        let call = self.moves.call(Open::List(id));
        let full = self.wants_full_list(id, now);
        let provider = &mut self.providers[index];
        provider.generation = provider.generation.wrapping_add(1);
        provider.listing = Some(Listing { begun: now, full, is_outdated: false });
        provider.named_twice = 0;
        let since = if full { [].into() } else { provider.revision.clone() };
        let timeout_nanos = self.config.patience.list;
        step.effects.push(Effect::List { call, provider: id, since, timeout_nanos });
    }

    /// Whether a listing begun now would be of everything.
    pub(crate) fn wants_full_list(&self, id: ProviderId, now: i64) -> bool {
        let (provider, settings) = (&self.providers[id.0 as usize], &self.config.providers[id.0 as usize]);
        let due = provider.full_listed_unix_nanos.is_none_or(|last| now - last >= settings.full_list_every);
        due || provider.revision.is_empty() || provider.held.is_some() || self.losses.doubts(id)
    }

    /// Takes in a part of a listing.
    pub(crate) fn take_listing(
        &mut self,
        call: CallId,
        records: &dyn Reports,
        end: Option<ListEnd>,
        now: i64,
        step: &mut Step,
    ) {
        let Some(Open::List(id)) = self.moves.about(call) else {
            self.tally.late_answers += 1;
            return;
        };
        let listing = self.providers[id.0 as usize].listing.expect("an open listing is noted");
        self.take_records(id, records, listing.begun, now, step);
        if let Some(end) = end {
            self.moves.close(call);
            self.end_listing(id, listing, end, now, step);
        }
    }

    /// Counts a record that cannot be used. The last good one stays.
    pub(crate) fn refuse(&mut self, id: ProviderId, bad: &BadRecord, step: &mut Step) {
        Tally::bump(&mut self.tally.bad_records, bad.code);
        let text = format!("provider {}: {}", self.providers[id.0 as usize].name, bad.text);
        Self::say(step, Urgency::Warning, "bad_record", text);
    }

    /// The end of a listing: what a full one does not name is gone, if that can be believed.
    fn end_listing(&mut self, id: ProviderId, listing: Listing, end: ListEnd, now: i64, step: &mut Step) {
        let index = id.0 as usize;
        self.providers[index].listing = None;
        self.providers[index].is_pieced = end.is_pieced;
        let believed = !listing.full || self.take_losses(id, listing.begun, end.is_pieced, now, step);
        self.providers[index].failures = 0;
        if believed {
            self.believe(id, listing, end, step);
            if listing.full {
                self.compare_losses(id, now, step);
            }
        } else {
            Tally::bump(&mut self.tally.listings, "held");
        }
        self.list_again(id, listing, now);
    }

    /// Notes a listing as the one we go by.
    fn believe(&mut self, id: ProviderId, listing: Listing, end: ListEnd, step: &mut Step) {
        let provider = &mut self.providers[id.0 as usize];
        Tally::bump(&mut self.tally.listings, if listing.full { "full" } else { "changes" });
        let first = provider.listed_unix_nanos.is_none();
        provider.listed_unix_nanos = Some(listing.begun);
        provider.has_revisions = !end.revision.is_empty();
        provider.revision = end.revision;
        provider.last_error = "".into();
        if listing.full {
            provider.full_listed_unix_nanos = Some(listing.begun);
        }
        if listing.is_outdated {
            provider.revision = [].into();
            provider.full_listed_unix_nanos = None;
        }
        if first {
            self.news.supply = true;
            self.forget_unlisted(step);
        }
    }

    /// Removes what a full listing did not name, unless that is too much to be believed at once.
    ///
    /// A listing that was pieced together does not show the fleet at one instant. Seen twice is no trouble: the pieces
    /// are taken in one after the other, the later word is the newer one, and a machine has one row. Seen in no piece
    /// is: a machine that was Idle when Configured ones were listed, and Configured when Idle ones were, is alive. So
    /// absence is only a reason to ask, and what is gone is gone by its provider's own word about that machine.
    fn take_losses(
        &mut self,
        id: ProviderId,
        begun: i64,
        is_pieced: bool,
        now: i64,
        step: &mut Step,
    ) -> bool {
        let index = id.0 as usize;
        let generation = self.providers[index].generation;
        let is_gone = |row: &Row| {
            let busy = row.flight.as_ref().is_some_and(|flight| flight.stage.provider_may_know());
            row.provider == id && row.touched < begun && !busy
        };
        let unnamed = self.table.unnamed_in(generation);
        let gone: Vec<Slot> = unnamed.filter(|(_, row)| is_gone(row)).map(|(slot, _)| slot).collect();
        let known = self.providers[index].machines;
        let guard = &self.config.guard;
        let suspicious = known >= guard.supply_floor
            && gone.len() as f64 > guard.supply_drop * known as f64
            && !self.config.has(Bug::ListingGuardOff);
        let mut gone: BTreeSet<Slot> = gone.into_iter().collect();
        if suspicious {
            let provider = &mut self.providers[index];
            let missing = gone.len();
            // Three that each lose another half lie three times.
            let agrees = confirmation::agree(&provider.missing, &gone, guard.supply_drop)
                || self.config.has(Bug::ListsUncompared);
            if agrees && !self.config.has(Bug::ListsUncompared) {
                gone = gone.intersection(&provider.missing).copied().collect();
            }
            let before = provider.held.map(|held| held.confirmation);
            let confirmation = Confirmation::after(before.as_ref(), agrees, guard.spacing, now);
            let held = HeldListing { confirmation, missing };
            let believed = confirmation.seen >= guard.confirmations;
            provider.missing.clone_from(&gone);
            let text = format!(
                "provider {} no longer lists {missing} of its {known} machines; {}",
                provider.name,
                if believed {
                    format!("{} listings agree, those that all of them miss are gone", confirmation.seen)
                } else {
                    format!(
                        "kept until {} listings agree, this is number {}; nothing is taken from it meanwhile",
                        guard.confirmations, confirmation.seen
                    )
                }
            );
            provider.held = (!believed).then_some(held);
            Self::say(step, Urgency::Alarm, "listing_lost_machines", text);
            if !believed {
                return false;
            }
        }
        self.providers[index].held = None;
        self.providers[index].missing.clear();
        self.providers[index].left_out.clear();
        if is_pieced {
            // The others are asked about after the next listing.
            let asked: Vec<Slot> = gone.into_iter().take(ASKED_AT_ONCE).collect();
            self.providers[index].left_out.extend(&asked);
            for slot in asked {
                self.ask(slot, step);
            }
            return true;
        }
        for slot in gone {
            self.lose(slot, "is gone from its provider's listing", now, step);
        }
        true
    }

    /// A listing failed.
    pub(crate) fn list_failed(&mut self, id: ProviderId, error: &CallError, now: i64, step: &mut Step) {
        Tally::bump(&mut self.tally.listings, "failed");
        let provider = &mut self.providers[id.0 as usize];
        provider.listing = None;
        provider.failures = provider.failures.saturating_add(1);
        provider.last_error = error.to_string().into();
        let wait = Backoff { first: 2 * SECOND, limit: LIST_BACKOFF_MOST }.after(provider.failures);
        let is_first = provider.failures == 1;
        if !self.config.has(Bug::ListTimerLost) {
            self.list_at(id, now + wait);
        }
        if is_first {
            let provider = &self.providers[id.0 as usize];
            let text = format!(
                "provider {} could not be listed: {error}; trying again, and taking nothing away once its listing is \
                 stale",
                provider.name
            );
            Self::say(step, Urgency::Warning, "listing_failed", text);
        }
    }

    /// Whether a provider's listing is fresh enough to take things away by.
    pub(crate) fn is_fresh(&self, id: ProviderId, now: i64) -> bool {
        if self.config.has(Bug::StaleTaken) {
            return true;
        }
        let (provider, settings) = (&self.providers[id.0 as usize], &self.config.providers[id.0 as usize]);
        provider.held.is_none() && provider.age_nanos(now).is_some_and(|age| age <= settings.stale_after)
    }

    /// Asks a provider about one machine, off the books of flights.
    pub(crate) fn ask(&mut self, slot: Slot, step: &mut Step) {
        let call = self.moves.call(Open::Ask(slot));
        let row = self.table.row_mut(slot);
        row.missed = false;
        let request = crate::effect::Request::Get { machine: row.machine.id.clone() };
        let timeout_nanos = self.config.patience.call;
        step.effects.push(Effect::Call { call, provider: row.provider, request, sequence: 0, timeout_nanos });
    }

    /// Whether a record can be adopted at all: it must break no invariant. Checked before anything follows from it, so
    /// that what is told, kept and counted is never of a machine the engine would refuse.
    fn is_sound(&mut self, id: ProviderId, told: &Machine, step: &mut Step) -> bool {
        let (code, text) = match told.check() {
            Err(error) => (error.problem.code(), error.to_string()),
            // Of a machine that is not ours the engine hears nothing, unless it has to end something first.
            Ok(()) if !self.owns(told) && !self.is_ending(&told.id) => return true,
            Ok(()) => match self.names.learn_of_machine(told.provides()) {
                Ok(()) => return true,
                Err(error) => ("over_limit", format!("machine {}: {error}", Quoted(&told.id))),
            },
        };
        let bad = BadRecord { id: told.id.clone(), code, text };
        self.refuse(id, &bad, step);
        false
    }

    /// Takes a provider's word about a machine we know. Of a record that breaks an invariant nothing is taken.
    pub(crate) fn adopt(&mut self, slot: Slot, mut told: Machine, content: u64, now: i64, step: &mut Step) {
        if !self.is_sound(self.table.row(slot).provider, &told, step) {
            self.table.heard(slot).content = content;
            return;
        }
        let leaves = self.owned.leaving.contains(&slot);
        if !leaves && !self.owns(&told) {
            self.tally.foreign_records += 1;
            self.lose(slot, "left the domains of this shard", now, step);
            return;
        }
        let row = self.table.row(slot);
        let said = told.state;
        // An order the provider does not know of yet stays on top, as long as the machine is where it was.
        let unaware = row.flight.as_ref().filter(|flight| !flight.stage.provider_may_know());
        let stays = unaware.is_some_and(|flight| {
            let at_home = flight.from != MachineState::Configured || told.cluster == row.machine.cluster;
            told.state == flight.from && at_home
        });
        if stays {
            told.state = row.machine.state;
            told.cluster.clone_from(&row.machine.cluster);
            told.assigned = row.machine.assigned.clone();
            told.draining_for.clone_from(&row.machine.draining_for);
        } else {
            let was = &row.machine;
            match told.state {
                MachineState::Idle if self.providers[row.provider.0 as usize].supports_delete => {
                    let since = was.idle_since_unix_nanos.filter(|_| was.state == MachineState::Idle);
                    told.idle_since_unix_nanos = Some(since.unwrap_or(now));
                }
                MachineState::Creating if was.state == MachineState::Creating => {
                    told.assigned = was.assigned.clone();
                }
                MachineState::Draining if was.state == MachineState::Draining => {
                    told.draining_for.clone_from(&was.draining_for);
                }
                _ => {}
            }
            if row.flight.is_some() {
                self.end_flight(slot, "overtaken");
            }
            if !leaves && let Some(action) = self.second_half(slot, &told, now) {
                self.table.heard(slot).content = content;
                self.carry_on(slot, told, &action, now, step);
                return;
            }
        }
        self.table.heard(slot).content = content;
        self.put(slot, told, said, now, step);
    }

    /// Takes a provider's word about a machine we have not met in this life.
    pub(crate) fn meet(
        &mut self,
        id: ProviderId,
        mut told: Machine,
        content: u64,
        now: i64,
        step: &mut Step,
    ) -> Option<Slot> {
        if !self.is_sound(id, &told, step) {
            return None;
        }
        if !self.owns(&told) {
            self.met_foreign(&told, step);
            return None;
        }
        if self.config.has(Bug::FailedUnmet) && told.state == MachineState::Failed {
            return None;
        }
        let memo = self.remembered.remove(&told.id);
        let past = |at: i64| at.min(now);
        let kept = memo.as_ref().unwrap_or(&NOTHING);
        let said = told.state;
        match said {
            MachineState::Idle => told.idle_since_unix_nanos = Some(kept.idle_since.map_or(now, past)),
            MachineState::Creating => told.assigned = kept.creating_for.clone().unwrap_or_default(),
            MachineState::Draining => told.draining_for.clone_from(&kept.draining_for),
            _ => {}
        }
        let since = kept.since.filter(|_| said.is_transitional()).map_or(now, past);
        let care = match said {
            // Quarantine outlives a restart: nothing was learned about the machine by starting.
            MachineState::Failed if kept.failed_tries == u32::MAX => Care::Quarantined,
            MachineState::Failed => Care::Failed { tries: kept.failed_tries },
            _ => Care::Fine,
        };
        let goes = kept.letting_go.clone().filter(|_| said == MachineState::Configured);
        let draining_for = kept.draining_for.clone().filter(|_| goes.is_some());
        self.providers[id.0 as usize].machines += 1;
        let machine = Arc::new(told);
        let row = Row {
            machine: machine.clone(),
            provider: id,
            told: said,
            since,
            touched: i64::MIN,
            missed: false,
            care,
            words: Words { listed: Some(said), ..Words::default() },
            refusals: 0,
            flight: None,
            memo: memo.map(Box::new),
            shown: false,
            is_beyond_quota: false,
        };
        let slot = self.table.insert(row, content, self.providers[id.0 as usize].generation);
        self.begin_count(slot);
        self.note_for_quotas();
        self.set_watch(slot, now);
        match goes {
            None => self.met(slot, &machine, step),
            Some(goes) => {
                self.resume_drain(slot, Machine::clone(&machine), &goes, draining_for, now, step);
            }
        }
        Some(slot)
    }

    /// What is remembered of machines that nobody lists is worth nothing once all providers were heard.
    fn forget_unlisted(&mut self, step: &mut Step) {
        if self.providers.iter().all(|provider| provider.listed_unix_nanos.is_some()) {
            let gone = std::mem::take(&mut self.remembered).into_keys();
            step.facts.extend(gone.map(|id| crate::memory::Fact::Machine(id, None)));
        }
    }

    /// A machine we knew is no longer there for us.
    pub(crate) fn lose(&mut self, slot: Slot, how: &str, now: i64, step: &mut Step) {
        if self.table.row(slot).flight.is_some() {
            self.end_flight(slot, "lost");
        }
        let row = self.table.row(slot);
        let was = row.machine.clone();
        if was.state.is_bound() {
            Tally::bump(&mut self.tally.lost, "gone");
            self.tell_gone(&was, how, step);
        }
        self.end_count(slot);
        if matches!(was.state, MachineState::Configured | MachineState::Configuring) {
            self.note_loss(&was, self.table.row(slot).provider, now, step);
        }
        self.forget_row(slot, step);
    }

    /// A cluster learns that a machine of its is no longer there as a failure: there is no state for "gone" on the wire.
    pub(crate) fn tell_gone(&self, was: &Machine, how: &str, step: &mut Step) {
        let mut last = was.clone();
        last.last_error = format!("machine {} {how}", last.id).into();
        let cluster = std::mem::take(&mut last.cluster);
        last.state = MachineState::Failed;
        self.tell_cluster(&cluster, last.into(), step);
    }

    /// Takes a machine out of the table and out of the engine's sight; it is no longer counted by now.
    pub(crate) fn forget_row(&mut self, slot: Slot, step: &mut Step) {
        self.note_for_quotas();
        let row = self.table.remove(slot).expect("the row was there");
        self.providers[row.provider.0 as usize].machines -= 1;
        if row.memo.is_some() {
            step.facts.push(crate::memory::Fact::Machine(row.machine.id.clone(), None));
        }
        if row.shown {
            self.engine.remove(&row.machine.id);
            self.journal.note(crate::tape::Input::Remove(row.machine.id.clone()));
            self.news.supply = true;
        }
    }

    /// The stage of the flight on a machine, if there is one.
    pub(crate) fn stage(&self, slot: Slot) -> Option<Stage> {
        self.table.get(slot)?.flight.as_ref().map(|flight| flight.stage)
    }
}
