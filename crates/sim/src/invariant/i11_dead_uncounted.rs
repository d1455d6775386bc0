//! 11: dead and failed machines are never counted as supply, once the shard was told.

use std::collections::BTreeMap;

use bigfleet_model::machine::MachineState;

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct DeadUncounted {
    /// Machines a host was told are dead, and when.
    dead: BTreeMap<(usize, String), i64>,
}

/// How long a shard may take to look at what it was told while a call of the machine is under way.
const PATIENCE: i64 = 45_000_000_000;

impl Invariant for DeadUncounted {
    fn see(&mut self, now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Started { host } => {
                self.dead.retain(|(other, _), _| other != host);
                None
            }
            Moment::Changed { machine, before: Some(_) } => {
                self.dead.retain(|(_, id), _| *id != machine.id);
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
                if self.dead.is_empty() {
                    return None;
                }
                let outcomes = mirror.fleet.outcomes();
                let mut counted = outcomes.iter().flat_map(|outcome| &outcome.credited);
                let dead = counted.find(|id| {
                    self.dead.get(&(*host, (**id).to_string())).is_some_and(|told| now - told > PATIENCE)
                })?;
                Some(format!("machine {dead} is Failed and credited to a need"))
            }
            _ => None,
        }
    }
}
