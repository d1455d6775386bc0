//! What is said between shards and replicas, and what becomes of it.

use std::collections::BTreeSet;

use bigfleet_coordinator::{
    Ask, Fleet, Offered, Order as Told, Outcome as Became, Report, Shortfall, Source, Writes, acknowledge,
    pending,
};
use bigfleet_model::label::ZONE;
use bigfleet_model::machine::MachineState;
use bigfleet_shard::{Answer, Domain, Instruction, Order, Outcome, Quota, Shard, Spared, Step, Wanted};

use super::check::HELP_HARMS_NOBODY;
use super::{SECOND, World};
use crate::world::happening::Happening;

/// How long a shard waits for an answer.
const PATIENCE: i64 = 10 * SECOND;
/// How soon a shard reports again that has something to say.
const SOON: i64 = 2 * SECOND;

/// What a shard knows of the coordinator.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Which replica it talks to.
    at: usize,
    owed: Vec<Answer>,
    /// The report that is under way, or was last.
    number: u64,
    is_waiting: bool,
    /// Instructions that have taken effect in any life.
    pub(super) done: BTreeSet<Box<str>>,
    /// When what its shard owns or may hold last changed.
    pub(super) changed: i64,
}

impl Link {
    /// Its shard is gone, with all that it had not said.
    pub(super) fn cut(&mut self) {
        self.owed.clear();
        self.is_waiting = false;
    }
}

/// What a replica says to a report.
#[derive(Debug)]
pub(in crate::world) enum Said {
    Taken { term: i64, instructions: Vec<Instruction>, quotas: Vec<Quota> },
    NotLeader(Option<usize>),
    Failed,
}

/// Something between shards, replicas and people.
#[derive(Debug)]
pub(in crate::world) enum Talk {
    Tick { replica: usize },
    People(usize),
    Wrong { place: usize, on: bool },
    Report { host: usize, life: u64 },
    Arrives { host: usize, life: u64, number: u64, replica: usize, report: Box<Report>, answers: Vec<Answer> },
    Back { host: usize, life: u64, number: u64, said: Box<Said> },
    Late { host: usize, life: u64, number: u64 },
    Asked { host: usize, replica: usize, ask: Box<Ask> },
    Given { host: usize, replica: usize, ask: u64, in_use: Option<i32>, machines: Vec<Offered> },
}

fn report(shard: &Shard) -> Report {
    let mut report =
        Report { epoch: shard.config().epoch, cycle: shard.cycle().cast_signed(), ..Report::default() };
    for view in shard.machines_from(0) {
        report.total_machines += 1;
        let is_free = matches!(view.machine.state, MachineState::Idle | MachineState::Speculative);
        report.free_machines += i32::from(is_free);
    }
    let short = shard.ledger().top(shard.config().limits.reported_shortfalls);
    report.shortfalls = short
        .into_iter()
        .map(|(_, short)| {
            let profile = &short.demand.need.profile;
            Shortfall {
                requirements: profile.requirements().to_vec(),
                deficit: short.missing.clone(),
                priority: profile.priority(),
                age_cycles: i32::try_from(shard.cycle().saturating_sub(short.since.cycle))
                    .unwrap_or(i32::MAX),
                interruption: profile.interruption(),
            }
        })
        .collect();
    report
}

fn instructions(fleet: &Fleet, shard: &str) -> Vec<Instruction> {
    let domain = |key: &str, value: &str| -> Domain { (key.into(), value.into()) };
    let of = |told: &Told| match told {
        Told::AssignDomain { key, value } => Order::Take(domain(key, value)),
        Told::UnassignDomain { key, value } => Order::LetGo(domain(key, value)),
        Told::Transfer { machines, from, to } => {
            Order::Transfer { machines: machines.clone(), from: from.clone(), to: to.clone() }
        }
    };
    let said = pending(fleet, shard).map(|instruction| Instruction {
        term: fleet.term(),
        id: instruction.id().into(),
        order: Some(of(&instruction.order)),
    });
    said.collect()
}

fn quotas(fleet: &Fleet, shard: &str) -> Vec<Quota> {
    let quotas = fleet.quotas_of(shard).map(|quota| Quota {
        provider: quota.provider.clone(),
        instance_type: quota.instance_type.clone(),
        zone: quota.zone.clone(),
        capacity_type: None,
        machines: quota.machines,
    });
    quotas.collect()
}

impl World {
    fn shard_name(&self, host: usize) -> String {
        format!("shard-{}", self.hosts[host].index)
    }

    /// A shard reports after this long.
    pub(in crate::world) fn report_soon(&mut self, host: usize, after: i64) {
        let life = self.hosts[host].life;
        self.queue.put(self.now + after, Happening::Council(Talk::Report { host, life }));
    }

    pub(super) fn report_to_council(&mut self, host: usize, life: u64) {
        let now = self.now;
        let latency = self.scenario.latency.nanos();
        let Some(council) = &mut self.council else { return };
        let Some(shard) = self.hosts[host].shard.as_ref().filter(|_| self.hosts[host].life == life) else {
            return;
        };
        let link = &mut council.links[host];
        link.number += 1;
        link.is_waiting = true;
        let (number, replica, answers) = (link.number, link.at, link.owed.clone());
        let report = Box::new(report(shard));
        if !council.is_lost() {
            let arrives = Talk::Arrives { host, life, number, replica, report, answers };
            self.queue.put(now + latency, Happening::Council(arrives));
        }
        self.queue.put(now + PATIENCE, Happening::Council(Talk::Late { host, life, number }));
    }

    /// A report reaches a replica. One that stands still reads it when it goes on.
    pub(super) fn council_hears(
        &mut self,
        (host, life, number): (usize, u64, u64),
        replica: usize,
        report: Report,
        answers: &[Answer],
    ) {
        let (now, latency) = (self.now, self.scenario.latency.nanos());
        let shard = self.shard_name(host);
        let Some(council) = &mut self.council else { return };
        let away_until = council.replicas[replica].away_until;
        if away_until > now {
            // A killed one has forgotten whom it was talking to.
            if council.replicas[replica].made.is_some() {
                let (report, answers) = (Box::new(report), answers.to_vec());
                let arrives = Talk::Arrives { host, life, number, replica, report, answers };
                self.queue.put(away_until, Happening::Council(arrives));
            }
            return;
        }
        let lead = council.etcd.lead().map(|lead| lead.replica);
        let said = if council.replicas[replica].made.is_none() {
            Said::NotLeader(lead)
        } else {
            let decided = council.decide(replica, |of| {
                let mut writes = Self::registered(of, &shard, now)?;
                let mut fleet = of.fleet.clone();
                fleet.apply(&writes);
                of.standing.hear(&shard, report, now)?;
                for answer in answers {
                    let became =
                        if answer.outcome == Outcome::Accepted { Became::Accepted } else { Became::Refused };
                    let more: Writes = acknowledge(&fleet, &shard, &answer.id, became, now);
                    fleet.apply(&more);
                    writes.append(&more);
                }
                Ok((writes, ()))
            });
            match decided {
                Some(Ok(())) => {
                    let fleet = &council.replicas[replica].fleet;
                    let (instructions, quotas) = (instructions(fleet, &shard), quotas(fleet, &shard));
                    Said::Taken { term: fleet.term(), instructions, quotas }
                }
                Some(Err(_)) | None => Said::Failed,
            }
        };
        if !council.is_lost() {
            let said = Box::new(said);
            self.queue.put(now + latency, Happening::Council(Talk::Back { host, life, number, said }));
        }
    }

    /// An answer reaches a shard, if it still waits for it.
    pub(super) fn council_answers(&mut self, (host, life, number): (usize, u64, u64), said: Said) {
        let now = self.now;
        let Some(council) = &mut self.council else { return };
        let (every, replicas) = (council.setup.report_every.nanos(), council.replicas.len());
        let link = &mut council.links[host];
        if self.hosts[host].life != life || !link.is_waiting || link.number != number {
            return;
        }
        link.is_waiting = false;
        let wait = match said {
            Said::Taken { term, instructions, quotas } => {
                link.owed.clear();
                let are_there = !instructions.is_empty();
                self.be_told(host, term, &instructions, quotas);
                if are_there { SOON } else { every }
            }
            Said::NotLeader(lead) => {
                link.at = lead.unwrap_or((link.at + 1) % replicas);
                SOON
            }
            Said::Failed => {
                link.at = (link.at + 1) % replicas;
                SOON
            }
        };
        if self.hosts[host].life == life {
            self.report_soon(host, wait);
        }
        self.check_hands();
        self.trace.note(now, format_args!("host {host} was answered by the coordinator"));
    }

    /// A shard is told something, as by its server: what it answers is said only when the facts are on disk.
    fn be_told(&mut self, host: usize, term: i64, instructions: &[Instruction], quotas: Vec<Quota>) {
        let life = self.hosts[host].life;
        let now = self.now + self.hosts[host].clock_offset;
        for instruction in instructions {
            let Some(shard) = &mut self.hosts[host].shard else { return };
            let mut step = Step::default();
            let before = self.truth.machines.iter();
            let acts = |shard: &Shard, id: &str, zone: &str| shard.owned().acts_on(id, (ZONE, zone));
            let before: Vec<bool> = before.map(|(id, real)| acts(shard, id, &real.zone)).collect();
            let answers = shard.instruct(term, std::slice::from_ref(instruction), now, &mut step);
            let after = self.truth.machines.iter().map(|(id, real)| acts(shard, id, &real.zone));
            let changes = !after.eq(before);
            self.trace
                .note(self.now, format_args!("host {host} is told {instruction:?} and says {answers:?}"));
            self.check_once(host, instruction, &answers, changes);
            self.carry_out(host, step);
            if self.hosts[host].life != life {
                return;
            }
            let now = self.now;
            let Some(council) = &mut self.council else { return };
            let link = &mut council.links[host];
            link.owed.extend(answers);
            link.changed = if changes { now } else { link.changed };
        }
        let Some(shard) = &mut self.hosts[host].shard else { return };
        if term >= shard.coordinator_term() {
            let mut step = Step::default();
            shard.set_quotas(quotas, &mut step);
            if !step.facts.is_empty()
                && let Some(council) = &mut self.council
            {
                council.links[host].changed = self.now;
            }
            self.carry_out(host, step);
        }
    }

    pub(super) fn council_is_late(&mut self, (host, life, number): (usize, u64, u64)) {
        let Some(council) = &mut self.council else { return };
        let replicas = council.replicas.len();
        let link = &mut council.links[host];
        if self.hosts[host].life == life && link.is_waiting && link.number == number {
            link.is_waiting = false;
            link.at = (link.at + 1) % replicas;
            self.report_soon(host, SOON);
        }
    }

    /// The leader's questions go out.
    pub(super) fn ask_donors(&mut self, replica: usize) {
        let (now, latency) = (self.now, self.scenario.latency.nanos());
        let Some(council) = &mut self.council else { return };
        if council.replicas[replica].made.is_none() || council.replicas[replica].away_until > now {
            return;
        }
        let asks: Vec<Ask> = council.replicas[replica].help.asks().cloned().collect();
        for ask in asks {
            let is_new = council.replicas[replica].asked.insert(ask.id);
            let host =
                self.hosts.iter().rposition(|h| format!("shard-{}", h.index) == *ask.donor && !h.superseded);
            let Some(host) = host.filter(|_| is_new && !council.is_lost()) else { continue };
            let asked = Talk::Asked { host, replica, ask: Box::new(ask) };
            self.queue.put(now + latency, Happening::Council(asked));
        }
    }

    pub(super) fn donor_hears(&mut self, host: usize, replica: usize, ask: &Ask) {
        let (now, latency) = (self.now, self.scenario.latency.nanos());
        let Some(shard) = &self.hosts[host].shard else { return };
        let source = match ask.source {
            Source::Idle => bigfleet_shard::Source::Idle,
            Source::Quota => bigfleet_shard::Source::Slots,
            Source::InUse => bigfleet_shard::Source::InUse,
        };
        let wanted = Wanted {
            source,
            requirements: ask.requirements.clone(),
            deficit: ask.deficit.clone(),
            priority: ask.priority,
        };
        let spared = shard.spare(&wanted, now + self.hosts[host].clock_offset);
        let misses = shard.ledger().iter().find(|(_, short)| short.demand.priority() >= ask.priority);
        if let Some((key, _)) = misses.filter(|_| !spared.is_empty()) {
            let text = format!(
                "shard-{} gives {spared:?} for priority {} and is short of {key:?}",
                self.hosts[host].index, ask.priority
            );
            self.watch.fail(now, HELP_HARMS_NOBODY, text);
        }
        // In use it may only be for something that is strictly less important.
        let is_missed = |spared: &&Spared| {
            let claiming = shard.engine().demand_claiming(&spared.machine);
            claiming.is_some_and(|demand| ask.source != Source::InUse || demand.priority() >= ask.priority)
        };
        let claimed = spared.iter().find(is_missed);
        if let Some(spared) = claimed {
            self.watch.fail(now, HELP_HARMS_NOBODY, format!("{spared:?} is given and somebody counts on it"));
        }
        let machines = spared
            .into_iter()
            .map(|spared| Offered { machine: spared.machine, domain: spared.domain })
            .collect();
        let in_use = (ask.source == Source::InUse).then_some(ask.priority);
        let given = Talk::Given { host, replica, ask: ask.id, in_use, machines };
        let Some(council) = &mut self.council else { return };
        if !council.is_lost() {
            self.queue.put(now + latency, Happening::Council(given));
        }
    }

    pub(super) fn council_is_given(
        &mut self,
        (host, replica): (usize, usize),
        ask: u64,
        in_use: Option<i32>,
        machines: &[Offered],
    ) {
        let (now, donor) = (self.now, self.shard_name(host));
        let Some(council) = &mut self.council else { return };
        if council.replicas[replica].away_until > now {
            return;
        }
        let decided = council.decide(replica, |of| {
            let writes = of.help.answer(&of.fleet, &donor, ask, machines, now)?;
            Ok((writes, ()))
        });
        if decided == Some(Ok(())) && !machines.is_empty() {
            for offered in machines {
                *council.moved.entry(offered.machine.clone()).or_default() += 1;
            }
            self.trace.note(now, format_args!("{donor} gives {machines:?}"));
            if let Some(priority) = in_use {
                council.preempted += machines.len() as u32;
                let machines: Vec<Box<str>> =
                    machines.iter().map(|offered| offered.machine.clone()).collect();
                let now = self.now + self.hosts[host].clock_offset;
                let Some(shard) = &mut self.hosts[host].shard else { return };
                let mut step = Step::default();
                shard.promise(&machines, priority, now, &mut step);
                self.carry_out(host, step);
            }
        }
    }
}
