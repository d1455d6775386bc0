//! What goes wrong right now.

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::Machine;
use bigfleet_shard::{Mode, ModeOrder, Pause, PauseScope, Step};

use super::happening::Happening;
use super::host::Host;
use super::{Moment, World};
use crate::cloud::Trouble;
use crate::scenario::{Call, Lie, What};

/// The faults in force, in a form that is quick to ask.
#[derive(Debug, Default)]
pub(super) struct Active {
    on: std::collections::BTreeMap<usize, What>,
    pub(super) calls_fail: f64,
    pub(super) answers_lost: f64,
    pub(super) answers_late: f64,
    pub(super) answers_twice: f64,
    pub(super) truncated: Option<f64>,
    pub(super) reordered: bool,
    pub(super) moves_denied: f64,
    pub(super) halves: bool,
    pub(super) doubles: f64,
    /// Machines a provider lies about: how, and until when it names them in listings of changes.
    pub(super) lied_about: std::collections::BTreeMap<String, (Lie, i64)>,
    /// What stale lists say, by provider; empty while lists are true.
    pub(super) stale: Vec<(Vec<Machine>, Vec<u8>)>,
    /// A kill after so many steps.
    pub(super) kill_steps: Option<u64>,
    /// No fault will ever begin again.
    pub(super) lifted: bool,
}

impl Active {
    fn any(&self, is: impl Fn(&What) -> bool) -> bool {
        self.on.values().any(is)
    }

    pub(super) fn is_down(&self, provider: &str) -> bool {
        self.any(|what| matches!(what, What::ProviderDown { provider: p } if p.is_empty() || p == provider))
    }

    pub(super) fn is_gone(&self, name: &str) -> bool {
        self.any(|what| matches!(what, What::OperatorGone { cluster } if cluster == name))
    }

    pub(super) fn is_garbage(&self, name: &str) -> bool {
        self.any(|what| matches!(what, What::OperatorGarbage { cluster } if cluster == name))
    }

    pub(super) fn is_empty(&self, name: &str) -> bool {
        self.any(|what| matches!(what, What::OperatorEmpty { cluster } if cluster == name))
    }

    pub(super) fn is_stuck(&self, name: &str) -> bool {
        self.any(|what| matches!(what, What::OperatorStuck { cluster } if cluster == name))
    }

    pub(super) fn refuses(&self, name: &str) -> bool {
        self.any(|what| matches!(what, What::OperatorRefuses { cluster } if cluster == name))
    }

    pub(super) fn is_out(&self, zone: &str) -> bool {
        self.any(|what| matches!(what, What::ZoneOutage { zone: z } if z == zone))
    }

    pub(super) fn crash_loop(&self, name: &str) -> Option<(i64, bool)> {
        self.on.values().find_map(|what| match what {
            What::OperatorCrashLoops { cluster, every, empty } if cluster == name => {
                Some((every.nanos(), *empty))
            }
            _ => None,
        })
    }

    /// Works out the numbers again.
    fn refresh(&mut self) {
        let most = |chance: fn(&What) -> Option<f64>| self.on.values().filter_map(chance).fold(0.0, f64::max);
        let calls_fail = most(|w| if let What::CallsFail { p } = w { Some(*p) } else { None });
        let answers_lost = most(|w| if let What::AnswersLost { p } = w { Some(*p) } else { None });
        let answers_late = most(|w| if let What::AnswersLate { p } = w { Some(*p) } else { None });
        let answers_twice = most(|w| if let What::AnswersTwice { p } = w { Some(*p) } else { None });
        self.moves_denied = most(|w| if let What::MovesDenied { p } = w { Some(*p) } else { None });
        self.doubles = most(|w| if let What::ListDoubles { p } = w { Some(*p) } else { None });
        self.halves = self.any(|what| matches!(what, What::ListHalves));
        (self.calls_fail, self.answers_lost) = (calls_fail, answers_lost);
        (self.answers_late, self.answers_twice) = (answers_late, answers_twice);
        let keep = |what: &What| if let What::ListTruncated { keep } = what { Some(*keep) } else { None };
        self.truncated = self.on.values().find_map(keep);
        self.reordered = self.any(|what| matches!(what, What::ListReordered));
        if !self.any(|what| matches!(what, What::ListStale)) {
            self.stale.clear();
        }
        let steps =
            |what: &What| if let What::ShardKilledOften { steps } = what { Some(*steps) } else { None };
        self.kill_steps = self.on.values().find_map(steps);
    }
}

impl World {
    pub(super) fn fault_begins(&mut self, index: usize) {
        let fault = self.scenario.faults[index].clone();
        self.mark(format!("{:?}", fault.what));
        if fault.lasts.nanos() > 0 {
            self.active.on.insert(index, fault.what.clone());
            self.queue.put(self.now + fault.lasts.nanos(), Happening::FaultEnds(index));
        }
        match fault.what {
            What::ListStale => {
                self.active.stale = (0..self.clouds.len()).map(|p| self.clouds.list(p, &[])).collect();
            }
            What::ShownAs { lie, share, cluster } => self.begin_to_lie(lie, share, &cluster),
            What::MovesFail { call, pool, p } => self.trouble(index, call, &pool, "", p, false),
            What::MovesHang { call, pool, p } => self.trouble(index, call, &pool, "", p, true),
            What::MachinesDie { count, pool, zone, cluster, state } => {
                self.machines_die(count, &pool, &zone, &cluster, &state);
            }
            What::ZoneOutage { zone } => {
                for call in [Call::Create, Call::Configure] {
                    self.trouble(index, call, "", &zone, 1.0, false);
                }
                self.machines_die(usize::MAX, "", &zone, "", "");
            }
            What::Price { pool, usd } => {
                let prefix = format!("{pool}-");
                let ids = self.truth.machines.iter().filter(|(id, _)| id.starts_with(&prefix));
                let ids: Vec<(usize, String)> = ids.map(|(id, real)| (real.provider, id.clone())).collect();
                for (provider, id) in ids {
                    self.clouds.update(provider, &id, |machine| machine.price_per_hour = usd);
                }
            }
            What::OperatorGone { cluster } => {
                if let Some(index) = self.cluster_of(&cluster) {
                    self.disconnect(index);
                    self.operators[index].life += 1;
                }
            }
            What::OperatorCrashLoops { cluster, .. } => {
                if let Some(index) = self.cluster_of(&cluster) {
                    let life = self.operators[index].life;
                    self.active.refresh();
                    self.operator_crashes(index, life);
                }
            }
            What::ShardKilled { away, shard, disk_lost } => {
                let host = self.hosts.iter().rposition(|host| host.index == shard && !host.superseded);
                if let Some(host) = host {
                    self.kill(host);
                    if disk_lost {
                        self.hosts[host].memory = bigfleet_shard::Memory::default();
                        self.watch.disk_lost(host);
                    }
                    self.queue.put(self.now + away.nanos().max(1), Happening::Restart { host });
                }
            }
            What::ShardKilledOften { steps } => {
                for host in self.hosts.iter_mut().filter(|host| !host.superseded) {
                    host.kill_in = Some(steps.max(1));
                }
            }
            What::ShardTwice => self.take_over(),
            What::ClockJumps { secs } => {
                for host in &mut self.hosts {
                    host.clock_offset += secs * 1_000_000_000;
                }
            }
            What::Paused { dry_run, cluster } => {
                let name = cluster.clone();
                let cluster = (!cluster.is_empty()).then(|| cluster.as_str().into());
                let scope = PauseScope { cluster, kind: None };
                let mut everybody = true;
                for host in 0..self.hosts.len() {
                    everybody &= self.hosts[host].shard.is_some();
                    self.pause(host, &scope, dry_run, true);
                    everybody &= self.hosts[host].shard.is_some();
                }
                // One that is away does not hear it, and one that dies over it may not have heard it.
                if everybody {
                    self.show(&Moment::Paused { cluster: &name, on: true });
                }
            }
            What::Trusted { to, cluster, looks_every } => {
                self.trust(&cluster, Some(to.mode()));
                if looks_every.nanos() > 0 {
                    self.queue.put(self.now + looks_every.nanos(), Happening::Approve(index));
                }
            }
            _ => {}
        }
        self.active.refresh();
    }

    pub(super) fn fault_ends(&mut self, index: usize) {
        let Some(what) = self.active.on.remove(&index) else { return };
        self.active.refresh();
        self.clouds.troubles.lift(index);
        self.mark(format!("over: {what:?}"));
        match what {
            What::OperatorGone { cluster } | What::OperatorCrashLoops { cluster, .. } => {
                if let Some(index) = self.cluster_of(&cluster) {
                    let life = self.operators[index].life;
                    self.queue.put(self.now + 1, Happening::Connect { cluster: index, life });
                }
            }
            What::ShownAs { .. } => self.end_lies(),
            What::OperatorStuck { cluster } => {
                if let Some(index) = self.cluster_of(&cluster) {
                    self.read_on(index);
                }
            }
            What::ShardKilledOften { .. } => {
                for host in &mut self.hosts {
                    host.kill_in = None;
                }
            }
            What::ShardTwice => {
                // The old life is found and stopped at last.
                for host in 0..self.hosts.len() {
                    if self.hosts[host].superseded {
                        self.kill(host);
                    }
                }
            }
            What::Trusted { cluster, .. } => self.trust(&cluster, None),
            What::Paused { dry_run, cluster } => {
                self.show(&Moment::Paused { cluster: &cluster, on: false });
                let cluster = (!cluster.is_empty()).then(|| cluster.as_str().into());
                let scope = PauseScope { cluster, kind: None };
                for host in 0..self.hosts.len() {
                    self.pause(host, &scope, dry_run, false);
                }
            }
            _ => {}
        }
    }

    fn trouble(&mut self, fault: usize, call: Call, pool: &str, zone: &str, p: f64, hangs: bool) {
        let prefix = if pool.is_empty() { String::new() } else { format!("{pool}-") };
        self.clouds.troubles.add(Trouble { fault, kind: call.kind(), prefix, zone: zone.into(), p, hangs });
    }

    fn machines_die(&mut self, count: usize, pool: &str, zone: &str, cluster: &str, state: &str) {
        let cluster = self.cluster_of(cluster);
        let prefix = format!("{pool}-");
        let concerned = self.truth.machines.iter().filter(|(id, real)| {
            let exists = !matches!(real.state, MachineState::Speculative | MachineState::Failed);
            exists
                && (pool.is_empty() || id.starts_with(&prefix))
                && (zone.is_empty() || real.zone == zone)
                && (cluster.is_none() || real.cluster == cluster)
                && (state.is_empty() || real.state.name() == state)
        });
        let mut ids: Vec<String> = concerned.map(|(id, _)| id.clone()).collect();
        self.random.shuffle(&mut ids);
        ids.truncate(count);
        ids.sort_unstable();
        for id in ids {
            self.die_machine(&id, "the hardware is gone");
        }
    }

    /// A new life of each shard begins while the old one goes on.
    fn take_over(&mut self) {
        let old: Vec<usize> = (0..self.hosts.len()).filter(|host| !self.hosts[*host].superseded).collect();
        for host in old {
            if self.hosts[host].shard.is_none() {
                continue;
            }
            self.hosts[host].superseded = true;
            self.hosts[host].kill_in = None;
            let (index, memory) = (self.hosts[host].index, self.hosts[host].memory.clone());
            let new = self.hosts.len();
            let epoch = self.hosts[host].epoch;
            self.hosts.push(Host {
                shard: None,
                memory,
                index,
                epoch,
                life: 0,
                clock_offset: self.hosts[host].clock_offset,
                superseded: false,
                sessions: std::collections::BTreeMap::new(),
                listers: std::collections::BTreeMap::new(),
                kill_in: None,
                kills: 0,
                started: 0,
            });
            for cluster in 0..self.operators.len() {
                if self.operators[cluster].host == host {
                    self.disconnect(cluster);
                    self.operators[cluster].host = new;
                }
            }
            self.restart(new);
        }
    }

    /// Sets a mode on every shard, or takes the order back.
    fn trust(&mut self, cluster: &str, mode: Option<Mode>) {
        if mode.is_none() {
            self.show(&Moment::Mode { cluster, mode });
        }
        let scope = PauseScope { cluster: (!cluster.is_empty()).then(|| cluster.into()), kind: None };
        let mut everybody = true;
        for index in 0..self.hosts.len() {
            let host = &mut self.hosts[index];
            let now = self.now + host.clock_offset;
            let Some(shard) = &mut host.shard else {
                if mode.is_none() {
                    host.memory.modes.remove(&scope);
                }
                everybody = false;
                continue;
            };
            let order = mode.map(|mode| ModeOrder {
                mode,
                reason: "the scenario says so".into(),
                author: "simulator".into(),
                since_unix_nanos: now,
            });
            let mut step = Step::default();
            let done = shard.set_mode(&scope, order, &mut step).is_ok();
            self.trace.note(self.now, format_args!("host {index} mode {mode:?} {done}"));
            self.carry_out(index, step);
            everybody &= self.hosts[index].shard.is_some();
        }
        // One that is away does not hear it, and one that dies over it may not have heard it.
        if everybody && mode.is_some() {
            self.show(&Moment::Mode { cluster, mode });
        }
    }

    /// Somebody looks at what is proposed and approves two of three, as long as the fault lasts.
    pub(super) fn approve(&mut self, fault: usize) {
        let Some(What::Trusted { looks_every, .. }) = self.active.on.get(&fault) else { return };
        self.queue.put(self.now + looks_every.nanos(), Happening::Approve(fault));
        for index in 0..self.hosts.len() {
            let host = &mut self.hosts[index];
            let now = self.now + host.clock_offset;
            let Some(shard) = &mut host.shard else { continue };
            let waiting = shard.proposals().iter().filter(|(_, standing)| {
                let proposal = &standing.proposal;
                proposal.approved.is_none() && now < proposal.until_unix_nanos && proposal.id % 3 != 0
            });
            let chosen: Vec<(u32, Box<str>, ActionKind)> = waiting
                .map(|(machine, standing)| (standing.proposal.id, machine.clone(), standing.proposal.kind))
                .collect();
            let ids: Vec<u32> = chosen.iter().map(|(id, ..)| *id).collect();
            let mut step = Step::default();
            let done = shard.approve(&ids, "simulator", now, &mut step).is_ok();
            self.trace.note(self.now, format_args!("host {index} approves {ids:?} {done}"));
            if done {
                for (_, machine, kind) in &chosen {
                    self.show(&Moment::Approved { machine, kind: *kind });
                }
            }
            self.carry_out(index, step);
        }
    }

    fn pause(&mut self, index: usize, scope: &PauseScope, dry_run: bool, on: bool) {
        let host = &mut self.hosts[index];
        let now = self.now + host.clock_offset;
        let Some(shard) = &mut host.shard else {
            // Whoever paused it resumes it when it is back; on disk that is the same.
            if !on {
                host.memory.pauses.retain(|_, pause| pause.scope != *scope);
            }
            return;
        };
        let mut step = Step::default();
        let done = if on {
            let pause = Pause {
                scope: scope.clone(),
                dry_run,
                reason: "the scenario says so".into(),
                author: "simulator".into(),
                since_unix_nanos: now,
                until_unix_nanos: None,
            };
            shard.pause(pause, now, &mut step).map(drop)
        } else {
            shard.resume(scope, now, &mut step).map(drop)
        };
        let done = done.is_ok();
        self.trace.note(self.now, format_args!("host {index} pause {on} {done}"));
        self.carry_out(index, step);
    }
}
