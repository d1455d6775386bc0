//! 11: dead, failed and overdue machines are never counted as supply, once the shard was told.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::machine::MachineState;
use bigfleet_shard::{CallId, Effect, Patience, SECOND, Shard, Stage};

use super::{Invariant, Moment};
use crate::cloud::state_of;

pub(super) struct DeadUncounted {
    patience: Patience,
    /// How far clocks may have jumped.
    slack: i64,
    /// Machines a host was told are dead.
    dead: BTreeMap<(usize, String), Dead>,
    /// Calls of hosts about machines that are not answered, and since when.
    open: BTreeMap<(usize, CallId), (Box<str>, i64)>,
    /// Machines on their way, and since when.
    moving: BTreeMap<String, (MachineState, i64)>,
    /// When hosts began their lives.
    started: BTreeMap<usize, i64>,
}

/// A machine that a host was told is dead.
struct Dead {
    /// When.
    told: i64,
    /// When the host last had a call about it under way, or waited to try one again: until then it may pass over what a
    /// listing says of it.
    busy: i64,
}

impl DeadUncounted {
    pub(super) fn new(patience: Patience, slack: i64) -> Self {
        let (dead, open, moving, started) = Default::default();
        Self { patience, slack, dead, open, moving, started }
    }

    /// Whether a machine has been on its way for so long that it must not count.
    fn is_overdue(&self, host: usize, id: &str, now: i64) -> bool {
        let Some((state, since)) = self.moving.get(id) else { return false };
        let limit = match state {
            MachineState::Creating => self.patience.creating,
            MachineState::Configuring => self.patience.configuring,
            _ => return false,
        };
        // Since when it moves may be news to a life that has just begun, and a call may be under way.
        let since = (*since).max(self.started.get(&host).copied().unwrap_or(0));
        now - since > limit + self.slack + 2 * LOOK
    }

    /// Notes which of the dead a host is busy with.
    fn look(&mut self, of: usize, shard: &Shard, now: i64) {
        let most = self.patience.call + SECOND;
        let asked: BTreeSet<&str> = self
            .open
            .iter()
            .filter(|((host, _), (_, since))| *host == of && now - since <= most)
            .map(|(_, (id, _))| &**id)
            .collect();
        for ((_, id), dead) in self.dead.iter_mut().filter(|((host, _), _)| *host == of) {
            let stage = shard.machine(id).and_then(|view| view.flight.map(|flight| flight.stage));
            let waits = matches!(stage, Some(Stage::Calling(_) | Stage::Backoff | Stage::Asking(_)));
            if waits || asked.contains(&**id) {
                dead.busy = now;
            }
        }
    }

    /// Whether it must not count any more.
    fn is_known_dead(&self, host: usize, id: &str, now: i64) -> bool {
        let tries = i64::from(self.patience.retry_budget) + 1;
        let longest = tries * (self.patience.call + self.patience.retry_most);
        let dead = self.dead.get(&(host, id.to_owned()));
        dead.is_some_and(|dead| now - dead.busy > LOOK || now - dead.told > LOOK + longest)
    }
}

/// How long a shard may take to look at what it was told once no call about the machine is under way: some listings.
const LOOK: i64 = 45 * SECOND;

impl Invariant for DeadUncounted {
    fn see(&mut self, now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Started { host, .. } => {
                self.started.insert(*host, now);
                self.dead.retain(|(other, _), _| other != host);
                self.open.retain(|(other, _), _| other != host);
                None
            }
            Moment::Step { host, step, .. } => {
                for effect in &step.effects {
                    if let Effect::Call { call, request, .. } = effect {
                        self.open.insert((*host, *call), (request.machine().into(), now));
                    }
                }
                None
            }
            Moment::Returned { host, call } => {
                if let Some((id, _)) = self.open.remove(&(*host, *call))
                    && let Some(dead) = self.dead.get_mut(&(*host, id.into_string()))
                {
                    dead.busy = now;
                }
                None
            }
            Moment::Cycle { host, shard, .. } => {
                self.look(*host, shard, now);
                None
            }
            Moment::Changed { machine, before: Some(_) } => {
                self.dead.retain(|(_, id), _| *id != machine.id);
                let state = state_of(machine);
                if state.is_transitional() {
                    self.moving.insert(machine.id.clone(), (state, now));
                } else {
                    self.moving.remove(&machine.id);
                }
                None
            }
            Moment::Heard { clean: false, .. } => {
                self.moving.clear();
                None
            }
            Moment::Listed { host, machines, .. } => {
                for listed in *machines {
                    let key = (*host, listed.id.clone());
                    if listed.state == MachineState::Failed.to_wire() {
                        self.dead.entry(key).or_insert(Dead { told: now, busy: now });
                    } else {
                        // A listing may arrive after the machine was repaired and still call it dead; the next does not.
                        self.dead.remove(&key);
                    }
                }
                None
            }
            Moment::Decided { host, mirror, .. } => {
                let outcomes = mirror.fleet.outcomes();
                let mut counted = outcomes.iter().flat_map(|outcome| &outcome.credited);
                if let Some(late) = counted.clone().find(|id| self.is_overdue(*host, id, now)) {
                    return Some(format!("machine {late} is overdue and credited to a need"));
                }
                let dead = counted.find(|id| self.is_known_dead(*host, id, now))?;
                Some(format!("machine {dead} is Failed and credited to a need"))
            }
            _ => None,
        }
    }
}
