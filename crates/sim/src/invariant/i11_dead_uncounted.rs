//! 11: dead, failed and overdue machines are never counted as supply, once the shard was told.

use std::collections::BTreeMap;

use bigfleet_model::machine::MachineState;

use bigfleet_shard::Patience;

use super::{Invariant, Moment};
use crate::cloud::state_of;

pub(super) struct DeadUncounted {
    patience: Patience,
    /// How far clocks may have jumped.
    slack: i64,
    /// Machines a host was told are dead, and when.
    dead: BTreeMap<(usize, String), i64>,
    /// Machines on their way, and since when.
    moving: BTreeMap<String, (MachineState, i64)>,
    /// When hosts began their lives.
    started: BTreeMap<usize, i64>,
}

impl DeadUncounted {
    pub(super) fn new(patience: Patience, slack: i64) -> Self {
        let (dead, moving, started) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { patience, slack, dead, moving, started }
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
        now - since > limit + self.slack + 2 * PATIENCE
    }
}

/// How long a shard may take to look at what it was told while a call of the machine is under way: two refused tries on a
/// network that takes half a minute for each answer, and the pauses after them.
const PATIENCE: i64 = 120_000_000_000;

impl Invariant for DeadUncounted {
    fn see(&mut self, now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Started { host, .. } => {
                self.started.insert(*host, now);
                self.dead.retain(|(other, _), _| other != host);
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
                        self.dead.entry(key).or_insert(now);
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
                let dead = counted.find(|id| {
                    self.dead.get(&(*host, (**id).to_string())).is_some_and(|told| now - told > PATIENCE)
                })?;
                Some(format!("machine {dead} is Failed and credited to a need"))
            }
            _ => None,
        }
    }
}
