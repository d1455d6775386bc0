//! The shard: one value that holds everything and is driven from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::{Decision, Fleet, Options, Ready};
use bigfleet_model::release::ReleasePolicy;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::cycle::{Explained, Phase};
use crate::effect::{ALARMS, Effect, HangUp, Notice, Step, Urgency};
use crate::event::{Event, ProviderId, SessionId};
use crate::flight::Stage;
use crate::helped::Helped;
use crate::hints::Hints;
use crate::ids::Ids;
use crate::instruct::Heard;
use crate::journal::Journal;
use crate::ledger::Ledger;
use crate::losses::Losses;
use crate::memory::{MachineMemo, Memory};
use crate::modes::{Modes, Proposals, Standing};
use crate::money::Money;
use crate::moves::Moves;
use crate::names::Names;
use crate::owned::Owned;
use crate::parking::Parking;
use crate::pauses::Pauses;
use crate::planted::Bug;
use crate::profiles::Profiles;
use crate::provider::Provider;
use crate::quota::Quotas;
use crate::table::{Care, Table};
use crate::tally::Tally;
use crate::tape::Reasons;
use crate::timers::{Timer, Timers};

/// A map in the order of no seed: the same in every run.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;

/// One shard. See the head of the crate for how to drive it.
pub struct Shard {
    pub(crate) config: Config,
    pub(crate) engine: Fleet,
    pub(crate) table: Table,
    pub(crate) providers: Vec<Provider>,
    pub(crate) clusters: BTreeMap<Arc<str>, Cluster>,
    pub(crate) sessions: BTreeMap<SessionId, Arc<str>>,
    pub(crate) moves: Moves,
    pub(crate) pauses: Pauses,
    pub(crate) modes: Modes,
    /// What is under way must be looked through: it may not be allowed any more.
    pub(crate) modes_changed: bool,
    pub(crate) proposals: Proposals,
    /// How far the wall clock runs ahead of the time this life counts.
    pub(crate) wall_ahead: i64,
    pub(crate) profiles: Profiles,
    /// What the engine has a number for.
    pub(crate) names: Names,
    pub(crate) ledger: Ledger,
    pub(crate) parking: Parking,
    pub(crate) hints: Hints,
    pub(crate) money: Money,
    /// Losses that are not believed yet.
    pub(crate) losses: Losses,
    /// What a coordinator has said that is ours.
    pub(crate) owned: Owned,
    /// What a coordinator was heard to say.
    pub(crate) heard: Heard,
    /// What help was asked for, and what came.
    pub(crate) helped: Helped,
    pub(crate) quotas: Quotas,
    pub(crate) tally: Tally,
    pub(crate) timers: Timers,
    /// What was remembered of machines that have not been listed yet in this life.
    pub(crate) remembered: BTreeMap<Box<str>, MachineMemo>,
    pub(crate) journal: Journal,
    pub(crate) ready: Arc<BTreeSet<Arc<str>>>,
    pub(crate) decision: Option<Arc<Decision>>,
    /// Why its actions were chosen, by their places, as far as anybody asked.
    pub(crate) explained: BTreeMap<usize, Explained>,
    pub(crate) cycle: u64,
    pub(crate) last_cycle: Option<i64>,
    /// Why the next cycle will run.
    pub(crate) news: Reasons,
    pub(crate) ids: Ids,
    pub(crate) sequence: i64,
    pub(crate) started: i64,
}

impl Shard {
    /// A shard that starts, with what it remembers of its life before. [`Shard::advance`] sets it going.
    pub fn new(config: Config, memory: Memory, now_unix_nanos: i64) -> Self {
        let providers: Vec<Provider> =
            config.providers.iter().map(|p| Provider::new(p.name.clone())).collect();
        let owned = Owned::recall(&memory);
        let mut shard = Self {
            engine: Fleet::new(config.parallelism),
            table: Table::default(),
            providers,
            clusters: BTreeMap::new(),
            sessions: BTreeMap::new(),
            moves: Moves::default(),
            pauses: memory.pauses,
            modes: memory.modes,
            modes_changed: false,
            proposals: memory
                .proposals
                .into_iter()
                .map(|(machine, proposal)| (machine, Standing { proposal, ordered: None }))
                .collect(),
            wall_ahead: 0,
            profiles: Profiles::default(),
            names: Names::default(),
            ledger: Ledger::remembering(memory.shortfalls),
            parking: Parking::default(),
            hints: Hints::default(),
            money: Money::default(),
            losses: Losses::default(),
            owned,
            heard: Heard::recall(memory.term),
            helped: Helped::default(),
            quotas: Quotas::recall(memory.quotas),
            tally: Tally::default(),
            timers: Timers::default(),
            remembered: memory.machines,
            journal: Journal::begin(),
            ready: Arc::default(),
            decision: None,
            explained: BTreeMap::new(),
            cycle: memory.cycle,
            last_cycle: None,
            news: Reasons::default(),
            ids: Ids::new(config.seed, config.epoch),
            sequence: 0,
            started: now_unix_nanos,
            config,
        };
        for index in 0..shard.providers.len() {
            shard.list_at(ProviderId(index as u16), now_unix_nanos);
        }
        for until in shard.pauses.values().filter_map(|pause| pause.until_unix_nanos) {
            shard.timers.set(until, Timer::Pauses);
        }
        shard.set_forgetting(now_unix_nanos);
        shard.recall_losses(memory.losses, memory.bought, now_unix_nanos);
        shard.recall_demand(memory.demand, memory.held, memory.reclaims, now_unix_nanos);
        shard
    }

    /// Takes in something that happened.
    pub fn handle(&mut self, event: Event, now_unix_nanos: i64, step: &mut Step) {
        let now = now_unix_nanos;
        match event {
            Event::Listed { call, records, end } => self.take_listing(call, &*records, end, now, step),
            Event::Failed { call, error } => self.take_failure(call, &error, now, step),
            Event::Answered { call, machine } => self.take_answer(call, machine, now, step),
            Event::Opened { session, cluster, protocol } => {
                self.open_session(session, &cluster, protocol, now, step);
            }
            Event::Closed { session } => self.close_session(session, now, step),
            Event::Rollup { session, rollup } => self.take_rollup(session, rollup, now, step),
            Event::RollupAgain { session } => self.take_rollup_again(session, now, step),
            Event::Blob { session, request, blob } => self.take_blob(session, request, blob, now, step),
            Event::ReclaimAcked { session, instruction, nodes_started } => {
                self.take_reclaim_ack(session, instruction, nodes_started, step);
            }
        }
        self.pump(now, step);
        debug_assert!(self.moves.holds(), "what is under way is counted right: {:?}", self.moves);
    }

    /// Does what is due by now: lists providers, tries again, looks after machines, runs a cycle.
    pub fn advance(&mut self, now_unix_nanos: i64, step: &mut Step) {
        self.advance_probed(now_unix_nanos, step, &mut |_| {});
    }

    /// As [`Shard::advance`], calling `probe` at the end of each phase of a cycle, so that a driver with a clock can tell
    /// where the time went. True if a cycle ran.
    pub fn advance_probed(
        &mut self,
        now_unix_nanos: i64,
        step: &mut Step,
        probe: &mut dyn FnMut(Phase),
    ) -> bool {
        let now = now_unix_nanos;
        while let Some(timer) = self.timers.take_due(now) {
            match timer {
                Timer::List(provider, at) if self.is_next_list(provider, at) => {
                    self.list(provider, now, step);
                }
                Timer::List(..) => {}
                Timer::Blob(slot, request) => self.blob_is_late(slot, request, now, step),
                Timer::LetGo(slot, instruction) => self.grace_is_over(slot, instruction),
                Timer::Retry(slot, flight) => self.retry(slot, flight),
                Timer::Watch(slot, since) => self.watch(slot, since, now, step),
                Timer::Ask(slot, since) => self.ask_if_still(slot, since, now, step),
                Timer::Cooled(slot, until) => self.cooled(slot, until),
                Timer::Pauses => self.expire_pauses(now, step),
                Timer::Forget => self.forget_clusters(now, step),
                Timer::Wake => self.news.leftover = true,
            }
        }
        self.thin_timers();
        self.call_off(now, step);
        self.leave(step);
        self.promises_lapse(now);
        self.settle_quotas();
        self.pump(now, step);
        let due = self.cycle_due().is_some_and(|due| due <= now);
        if due {
            self.run_cycle(now, step, probe);
            self.pump(now, step);
        }
        debug_assert!(self.moves.holds(), "what is under way is counted right: {:?}", self.moves);
        due
    }

    /// Forgets timers that would find nothing to do: of machines that are gone, of states they have left, of moves that went on. None of
    /// these comes back: states are entered at later and later times, and every wait within a move has a number of its own.
    fn thin_timers(&mut self) {
        let mut timers = std::mem::take(&mut self.timers);
        let means_something = |timer| match timer {
            Timer::Watch(slot, since) | Timer::Ask(slot, since) => {
                self.table.get(slot).is_some_and(|row| row.since == since)
            }
            Timer::Blob(slot, request) => self.stage(slot) == Some(Stage::Blob(request)),
            Timer::LetGo(slot, instruction) => self.stage(slot) == Some(Stage::LettingGo(instruction)),
            Timer::Retry(slot, number) => self.is_flying(slot, number),
            Timer::Cooled(slot, until_unix_nanos) => {
                self.table.get(slot).is_some_and(|row| row.care == Care::Cooling { until_unix_nanos })
            }
            Timer::List(..) | Timer::Pauses | Timer::Forget | Timer::Wake => true,
        };
        timers.thin(means_something);
        self.timers = timers;
    }

    /// When something will be due next, if nothing happens before. May be in the past.
    pub fn next_wake_unix_nanos(&self) -> i64 {
        let timer = self.timers.next().unwrap_or(i64::MAX);
        self.cycle_due().map_or(timer, |due| due.min(timer))
    }

    /// Ends every session, telling operators to come back later. Moves under way go on by themselves and are found by
    /// the next life.
    pub fn stop(&mut self, step: &mut Step) {
        for session in self.sessions.keys() {
            step.effects.push(Effect::HangUp { session: *session, why: HangUp::Stopping });
        }
    }

    /// When the next cycle is due; `None` while it is too early for any.
    fn cycle_due(&self) -> Option<i64> {
        if !self.may_decide() {
            // The first cycle runs when every provider was heard, or none is waited for any longer.
            return self.last_cycle.is_none().then(|| self.started + self.config.patience.list);
        }
        let Some(last) = self.last_cycle else { return Some(self.started) };
        let news = self.news != Reasons::default();
        Some(last + if news { self.config.pace.min_spacing } else { self.config.pace.tick })
    }

    /// Whether enough is known to decide anything. A provider that was not heard yet may hold machines that serve the
    /// very demand we would buy for.
    fn may_decide(&self) -> bool {
        self.last_cycle.is_some()
            || self.providers.iter().all(|provider| provider.listed_unix_nanos.is_some())
    }

    /// The options of the next cycle.
    pub fn options(&self) -> Options {
        let mut release = self.config.release;
        if self.config.has(Bug::IdleHoldHalved) {
            let half = |hold: Option<std::num::NonZeroU64>| hold.map_or(0, |hold| hold.get() / 2);
            release =
                ReleasePolicy::from_nanos(half(release.on_demand_hold_nanos), half(release.spot_hold_nanos));
        }
        Options {
            release,
            weights: self.config.weights,
            estimated_drain_nanos: self.config.estimated_drain_nanos,
            ready: Ready::Only(self.ready.clone()),
        }
    }

    pub(crate) fn say(step: &mut Step, urgency: Urgency, code: &'static str, text: String) {
        debug_assert!(
            urgency != Urgency::Alarm || ALARMS.contains(&code),
            "{code} is not in the list of alarms"
        );
        step.effects.push(Effect::Say(Notice { urgency, code, text }));
    }
}
