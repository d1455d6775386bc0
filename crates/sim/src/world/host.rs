//! A host: one shard with its disk, through all its lives.
//!
//! The rule for drivers is kept here as by the server: what a step wants remembered is on disk before what it wants done
//! begins. A host can be killed between any two of these, and starts again from its disk.

use std::collections::BTreeMap;

use bigfleet_border::provider::Lister;
use bigfleet_engine::ShortNeed;
use bigfleet_model::release::ReleasePolicy;
use bigfleet_shard::{
    Config, Effect, Event, Memory, Pace, ProviderConfig, RailConfig, SessionId, Shard, Step, Urgency,
};

use super::happening::Happening;
use super::line::Line;
use super::{Moment, START_UNIX_NANOS, World};
use crate::planted::{self, Planted};
use crate::scenario::{Measure, Scenario};

/// One shard and its disk.
pub(crate) struct Host {
    pub(crate) shard: Option<Shard>,
    pub(crate) memory: Memory,
    /// Which of the scenario's shards it is.
    pub(super) index: usize,
    pub(super) epoch: i64,
    /// Told apart from the lives before, so that answers to a dead life are dropped.
    pub(super) life: u64,
    /// How far its clock is ahead of the world's.
    pub(super) clock_offset: i64,
    /// A newer life has taken over.
    pub(crate) superseded: bool,
    pub(super) sessions: BTreeMap<SessionId, Line>,
    /// What its life has learned about each provider.
    pub(super) listers: BTreeMap<usize, Lister>,
    /// Steps until it is killed, if somebody does that again and again.
    pub(super) kill_in: Option<u64>,
    pub(super) kills: u64,
    /// When its life began.
    pub(super) started: i64,
}

/// How long a killed shard is away.
const AWAY: i64 = 1_000_000;
/// How long one is away that was killed as soon as it had begun: whoever starts it again loses patience.
const AWAY_LONG: i64 = 1_000_000_000;
/// Lives shorter than this had hardly begun.
const SHORT_LIFE: i64 = 100_000_000;

/// Where in a step a kill strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    BeforeFacts,
    BeforeEffects,
    AmidEffects,
    AfterAll,
}

impl Host {
    pub(super) fn next_wake(&self) -> i64 {
        self.shard
            .as_ref()
            .map_or(i64::MAX, |shard| shard.next_wake_unix_nanos().saturating_sub(self.clock_offset))
    }
}

/// The shard's configuration as the scenario states it.
pub(crate) fn config(scenario: &Scenario, index: usize, epoch: i64) -> Config {
    let setup = &scenario.shard;
    let providers = scenario.providers().into_iter().map(|name| ProviderConfig {
        list_every: setup.list_every.nanos(),
        full_list_every: setup.full_list_every.nanos(),
        stale_after: setup.list_every.nanos().saturating_mul(6),
        ..ProviderConfig::named(name)
    });
    let mut config = Config::new(format!("shard-{index}"), epoch, providers.collect());
    config.seed = scenario.seed;
    config.pace = Pace { tick: setup.tick.nanos(), min_spacing: setup.min_spacing.nanos() };
    config.rails = RailConfig {
        reclaim_fraction: setup.reclaim_fraction,
        reclaim_window: setup.reclaim_window.nanos(),
        max_actions_per_cycle: setup.max_actions,
        dry_run: setup.dry_run,
        ..RailConfig::default()
    };
    config.release = ReleasePolicy::from_nanos(
        setup.on_demand_hold.nanos().unsigned_abs(),
        setup.spot_hold.nanos().unsigned_abs(),
    );
    if setup.max_moves > 0 {
        config.limits.flights = setup.max_moves;
    }
    if setup.watchdog.nanos() > 0 {
        let patience = &mut config.patience;
        (patience.creating, patience.configuring) = (setup.watchdog.nanos(), setup.watchdog.nanos());
        (patience.draining, patience.deleting) = (setup.watchdog.nanos(), setup.watchdog.nanos());
    }
    config.is_assigned = setup.council.is_some();
    if let Some(zones) = setup.zones.get(index) {
        let zone = |zone: &String| (bigfleet_model::label::ZONE.into(), zone.as_str().into());
        config.domains = zones.iter().map(zone).collect();
    }
    config
}

impl World {
    /// A new host for one of the scenario's shards.
    pub(super) fn start_host(&mut self, index: usize, host: usize) {
        let memory = self.setup.present.as_ref().map(|present| present.memory()).unwrap_or_default();
        let host_state = Host {
            shard: None,
            memory,
            index,
            epoch: 0,
            life: 0,
            clock_offset: 0,
            superseded: false,
            sessions: BTreeMap::new(),
            listers: BTreeMap::new(),
            kill_in: None,
            kills: 0,
            started: 0,
        };
        debug_assert_eq!(host, self.hosts.len());
        self.hosts.push(host_state);
        self.restart(host);
    }

    /// Starts a host's next life.
    pub(super) fn restart(&mut self, index: usize) {
        let newest = self.hosts.iter().filter(|h| h.index == self.hosts[index].index).map(|h| h.epoch).max();
        let host = &mut self.hosts[index];
        if host.shard.is_some() {
            return;
        }
        host.epoch = newest.unwrap_or(0) + 1;
        host.life += 1;
        host.started = self.now;
        let mut config = match &self.setup.present {
            Some(present) => present.config(host.epoch, self.scenario.seed),
            None => config(&self.scenario, host.index, host.epoch),
        };
        if let Some(planted) = self.setup.planted {
            planted::config(planted, &mut config);
            planted::memory(planted, &mut host.memory);
        }
        let now = self.now + host.clock_offset;
        host.shard = Some(Shard::new(config, host.memory.clone(), now));
        let (epoch, life) = (host.epoch, host.life);
        self.trace.note(self.now, format_args!("host {index} starts life {life} epoch {epoch}"));
        self.count(Measure::Starts, None, 1);
        if self.council.is_some() && life > 1 {
            self.report_soon(index, 1_000_000_000);
        }
        let shard = self.hosts[index].index;
        self.show(&Moment::Started { host: index, index: shard });
        for cluster in 0..self.operators.len() {
            if self.operators[cluster].host == index {
                let life = self.operators[cluster].life;
                self.queue.put(self.now + 500_000_000, Happening::Connect { cluster, life });
            }
        }
    }

    /// Kills a host: what was not on disk is gone, and so are its connections.
    pub(super) fn kill(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.shard = None;
        host.life += 1;
        host.kills += 1;
        host.listers.clear();
        let sessions = std::mem::take(&mut host.sessions);
        if let Some(council) = &mut self.council {
            council.cut(index);
        }
        self.trace.note(self.now, format_args!("host {index} is killed"));
        for (session, line) in sessions {
            self.operators[line.cluster].lose_session(session);
        }
    }

    /// Tells a shard something.
    pub(super) fn tell(&mut self, index: usize, event: Event) {
        let host = &mut self.hosts[index];
        let Some(shard) = &mut host.shard else { return };
        let event = match &self.distorter {
            Some(distorter) => distorter.event(event),
            None => event,
        };
        let mut step = Step::default();
        let before = shard.tally().carried_on;
        shard.handle(event, self.now + host.clock_offset, &mut step);
        let carried_on = shard.tally().carried_on - before;
        if carried_on > 0 {
            self.count(Measure::CarriedOn, None, carried_on);
        }
        self.carry_out(index, step);
    }

    /// Lets a shard do what is due.
    pub(super) fn advance_host(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if host.next_wake() > self.now {
            return;
        }
        let Some(shard) = &mut host.shard else { return };
        let mut step = Step::default();
        let mut cycled = false;
        shard.advance_probed(self.now + host.clock_offset, &mut step, &mut |_| cycled = true);
        self.tally.cycles += u64::from(cycled);
        self.carry_out(index, step);
    }

    /// Remembers what a step wants remembered, then does what it wants done; or dies in between.
    pub(super) fn carry_out(&mut self, index: usize, step: Step) {
        self.tally.steps += 1;
        let killed = self.killed_at(index);
        if killed == Some(Place::BeforeFacts) {
            return self.die(index);
        }
        let host = &mut self.hosts[index];
        for fact in &step.facts {
            host.memory.learn(fact.clone());
        }
        if killed == Some(Place::BeforeEffects) {
            // What is on disk is a fact, whatever becomes of the rest.
            self.watch_step(index, &Step { facts: step.facts, ..Step::default() });
            return self.die(index);
        }
        if !step.facts.is_empty() || !step.effects.is_empty() {
            self.watch_step(index, &step);
        }
        let some = if killed == Some(Place::AmidEffects) { step.effects.len() / 2 } else { usize::MAX };
        for effect in step.effects.into_iter().take(some) {
            self.carry_out_effect(index, effect);
        }
        if killed.is_some() {
            self.die(index);
        }
    }

    fn watch_step(&mut self, index: usize, step: &Step) {
        if self.setup.unwatched {
            return;
        }
        let host = &self.hosts[index];
        let Some(shard) = &host.shard else { return };
        let clock = self.now + host.clock_offset;
        let moment =
            Moment::Step { host: index, index: host.index, clock, shard, memory: &host.memory, step };
        self.watch.see(self.now, &moment);
    }

    /// Whether a kill strikes in this step, and where.
    fn killed_at(&mut self, index: usize) -> Option<Place> {
        let host = &mut self.hosts[index];
        let left = host.kill_in.as_mut()?;
        *left -= 1;
        let places = [Place::BeforeFacts, Place::BeforeEffects, Place::AmidEffects, Place::AfterAll];
        (*left == 0).then(|| places[host.kills as usize % places.len()])
    }

    fn die(&mut self, index: usize) {
        self.kill(index);
        let steps = self.active.kill_steps;
        let host = &mut self.hosts[index];
        host.kill_in = steps;
        let away = if self.now - host.started < SHORT_LIFE { AWAY_LONG } else { AWAY };
        self.queue.put(self.now + away, Happening::Restart { host: index });
    }

    fn carry_out_effect(&mut self, index: usize, effect: Effect) {
        match effect {
            Effect::List { call, provider, since, timeout_nanos } => {
                self.ask_list(index, call, usize::from(provider.0), since, timeout_nanos);
            }
            Effect::Call { call, provider, request, sequence, timeout_nanos } => {
                self.trace.note(self.now, format_args!("host {index} calls {request:?} #{sequence}"));
                self.ask_machine(index, call, usize::from(provider.0), request, sequence, timeout_nanos);
            }
            Effect::Send { session, frame } => self.send(index, session, frame),
            Effect::HangUp { session, why } => {
                self.trace.note(self.now, format_args!("host {index} hangs up on {} for {why:?}", session.0));
                if let Some(line) = self.hosts[index].sessions.remove(&session) {
                    self.hung_up(line.cluster, session);
                }
            }
            Effect::Record(record) => self.record(index, &record),
            Effect::Say(notice) => {
                self.trace.note(self.now, format_args!("host {index} says {}: {}", notice.code, notice.text));
                if notice.urgency == Urgency::Alarm {
                    self.count(Measure::Alarms, None, 1);
                }
                if notice.code == "fenced" {
                    self.count(Measure::Fenced, None, 1);
                }
            }
        }
    }

    /// A cycle went on the record.
    fn record(&mut self, index: usize, record: &bigfleet_shard::CycleRecord) {
        use bigfleet_engine::ActionKind;
        if let Some(shard) = &self.hosts[index].shard
            && self.setup.present.is_some()
        {
            let shorts = shard.engine().short_needs();
            let unmet = |short: &&ShortNeed<'_>| short.unresolved.is_some() || short.demand.need.parked;
            self.tally.unmet_now = shorts.iter().filter(unmet).count() as u64;
        }
        for ordered in &record.actions {
            let action = &ordered.action;
            self.trace.note(
                self.now,
                format_args!(
                    "host {index} cycle {} {} {} {} {}",
                    record.cycle,
                    action.kind,
                    action.machine,
                    action.cluster.as_deref().unwrap_or("-"),
                    ordered.fate.code()
                ),
            );
            if ordered.fate != bigfleet_shard::Fate::Begun {
                continue;
            }
            let measure = match action.kind {
                ActionKind::Bootstrap => Measure::Bootstraps,
                ActionKind::Provision => Measure::Provisions,
                ActionKind::Preempt => Measure::Preempts,
                ActionKind::Reclaim => Measure::Reclaims,
                ActionKind::Delete => Measure::Deletes,
            };
            let cluster = action.cluster.as_deref().and_then(|name| self.cluster_of(name));
            self.count(measure, cluster, 1);
            self.count(Measure::Actions, cluster, 1);
            if measure == Measure::Preempts && self.setup.planted == Some(Planted::PreemptionsForgotten) {
                self.queue.put(self.now + 30_000_000_000, Happening::Kill { host: index });
            }
        }
        if !self.setup.unwatched {
            let host = &self.hosts[index];
            if let Some(shard) = &host.shard {
                let superseded = host.superseded;
                self.watch.see(self.now, &Moment::Cycle { host: index, superseded, shard, record });
            }
        }
    }

    pub(super) fn cluster_of(&self, name: &str) -> Option<usize> {
        self.operators.iter().position(|operator| **operator.pods.name() == *name)
    }

    /// How long after the start this is.
    pub(super) fn since_start(&self) -> i64 {
        self.now - START_UNIX_NANOS
    }
}
