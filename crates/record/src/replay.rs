//! Replay: a tape through the engine again.
//!
//! The engine is a pure function and the tape holds all of its input, so the same decisions must come out, in the same
//! order, down to the last second of grace. [`replay`] compares them; [`Reader::state_at`] stops at one cycle, so that
//! somebody can ask the fleet of that moment whatever they would ask the fleet of now.
//!
//! That holds within one [edition](bigfleet_engine::EDITION) of the rules. A cycle that was decided under another one
//! is decided again under this build's, from what was known then, and what comes out differently is listed.

mod compare;

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Decision, Fleet, Options};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_shard::{Around, Input, ShortSince, Surroundings};
use thiserror::Error;

use crate::recorded::Recorded;
use crate::tape::{Entry, Reader, TapeError};

pub use compare::{Difference, OtherRules, ReplayReport, What, replay, replay_with};

/// Why a tape cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// A part of it cannot be read.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// The engine does not take an input it took then.
    #[error("cycle {cycle}: the engine refuses an input it took then: {reason}")]
    Refused {
        /// Which cycle.
        cycle: u64,
        /// What it said.
        reason: String,
    },
}

/// The engine's input as it was, rebuilt from a full state and changes.
#[derive(Clone, Default)]
pub struct Replay {
    fleet: Fleet,
    machines: BTreeMap<Box<str>, Arc<Machine>>,
    needs: BTreeMap<Arc<str>, Arc<[Need]>>,
    around: Option<PastAround>,
}

/// What was around the engine, as far as it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastAround {
    /// Providers, sessions, pauses.
    pub surroundings: Surroundings,
    /// Since when needs were short.
    pub short_since: BTreeMap<NeedKey, ShortSince>,
    /// The provider of each machine, by its place in the settings; empty if there was one provider.
    pub owners: BTreeMap<Box<str>, u16>,
}

impl PastAround {
    fn take(&mut self, inputs: &[Input], around: &Around) {
        self.surroundings.take_inputs(inputs);
        self.surroundings.take(around);
        for (key, since) in &around.short {
            match since {
                Some(since) => self.short_since.insert(key.clone(), *since),
                None => self.short_since.remove(key),
            };
        }
        let mut owners = around.owners.iter();
        for input in inputs {
            match input {
                Input::Observe(machine) => {
                    owners.next().map(|owner| self.owners.insert(machine.id.clone(), *owner));
                }
                Input::Remove(id) => drop(self.owners.remove(id)),
                Input::Replace { .. } | Input::Park { .. } => {}
            }
        }
    }

    /// The name of a machine's provider; empty if nobody wrote it down.
    pub fn provider_of(&self, machine: &str) -> Option<&Arc<str>> {
        let place = if self.owners.is_empty() { 0 } else { *self.owners.get(machine)? };
        Some(&self.surroundings.settings.providers.get(usize::from(place))?.name)
    }
}

impl Replay {
    /// Takes in what a record says of the input, without deciding anything.
    pub fn take(&mut self, record: &Recorded) -> Result<(), ReplayError> {
        if record.full.is_some() {
            *self = Self::default();
        }
        let inputs = record.full.as_deref().unwrap_or(&record.inputs);
        for input in inputs {
            self.input(input).map_err(|reason| ReplayError::Refused { cycle: record.cycle, reason })?;
        }
        if let Some(around) = &record.around {
            if around.settings.is_some() {
                self.around = Some(PastAround::default());
            }
            if let Some(past) = &mut self.around {
                past.take(inputs, around);
            }
        }
        Ok(())
    }

    /// Takes in a record and decides its cycle.
    pub fn step(&mut self, record: &Recorded) -> Result<Arc<Decision>, ReplayError> {
        self.take(record)?;
        Ok(self.fleet.cycle(&record.options, record.now_unix_nanos))
    }

    /// Decides on what was taken in so far.
    pub fn decide(&mut self, options: &Options, now_unix_nanos: i64) -> Arc<Decision> {
        self.fleet.cycle(options, now_unix_nanos)
    }

    /// The fleet as it stands.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// All machines, by id.
    pub fn machines(&self) -> impl ExactSizeIterator<Item = &Arc<Machine>> {
        self.machines.values()
    }

    /// What is around the engine, as far as it was recorded.
    pub fn around(&self) -> Option<&PastAround> {
        self.around.as_ref()
    }

    fn input(&mut self, input: &Input) -> Result<(), String> {
        match input {
            Input::Observe(machine) => {
                self.fleet.observe(machine).map_err(|error| error.to_string())?;
                self.machines.insert(machine.id.clone(), machine.clone());
            }
            Input::Remove(id) => {
                self.fleet.remove(id);
                self.machines.remove(id);
            }
            Input::Replace { cluster, needs, at_unix_nanos } => {
                let replaced = self.fleet.replace(cluster, needs.to_vec(), *at_unix_nanos);
                replaced.map_err(|error| error.to_string())?;
                self.replace(cluster, needs, *at_unix_nanos);
            }
            Input::Park { key, parked } => {
                self.fleet.set_parked(key, *parked);
                self.park(key, *parked);
            }
        }
        Ok(())
    }

    /// Does with the rows what the engine does: one that was known keeps the time it was first seen.
    fn replace(&mut self, cluster: &Arc<str>, needs: &Arc<[Need]>, at_unix_nanos: i64) {
        if needs.is_empty() {
            self.needs.remove(cluster);
            return;
        }
        let before = self.needs.get(cluster).map_or(&[][..], |rows| rows);
        let first_seen: BTreeMap<NeedKey, i64> =
            before.iter().map(|need| (need.key(), need.first_seen_unix_nanos)).collect();
        let rows = needs.iter().map(|need| {
            let unseen =
                if need.first_seen_unix_nanos == 0 { at_unix_nanos } else { need.first_seen_unix_nanos };
            let first_seen_unix_nanos = first_seen.get(&need.key()).copied().unwrap_or(unseen);
            Need { first_seen_unix_nanos, ..need.clone() }
        });
        let rows = rows.collect();
        self.needs.insert(cluster.clone(), rows);
    }

    fn park(&mut self, key: &NeedKey, parked: bool) {
        let Some(rows) = self.needs.get_mut(&key.cluster) else { return };
        let mut changed = rows.to_vec();
        for need in changed.iter_mut().filter(|need| need.profile.same().is_some() && need.key() == *key) {
            need.parked = parked;
        }
        *rows = changed.into();
    }
}

/// A fleet as it was at one cycle.
#[derive(Clone)]
pub struct ReplayState {
    /// What was recorded then.
    pub record: Recorded,
    /// The fleet, with that cycle just decided: it explains and forks like the fleet of now.
    pub fleet: Fleet,
    /// What the engine decides now from what it knew then. The same as in the record, if that is of the same edition.
    pub decision: Arc<Decision>,
    /// All machines.
    pub machines: BTreeMap<Box<str>, Arc<Machine>>,
    /// All demand by cluster.
    pub needs: BTreeMap<Arc<str>, Arc<[Need]>>,
    /// What was around the engine; `None` if the build that wrote the record did not keep it.
    pub around: Option<PastAround>,
}

impl ReplayState {
    /// The edition the record was decided under, if it is not this build's. What the fleet says of that cycle is then
    /// what today's rules make of it.
    pub fn other_edition(&self) -> Option<u32> {
        self.record.other_edition()
    }
}

impl Reader {
    /// The fleet as it was at a record; find the record with [`Reader::at_cycle`] or [`Reader::at_time`].
    pub fn state_at(&self, entry: &Entry) -> Result<ReplayState, ReplayError> {
        let mut replay = Replay::default();
        let from = self.full_before(entry)?;
        for record in self.records_from(&from) {
            let record = record?;
            if (record.cycle, record.now_unix_nanos) == (entry.cycle, entry.now_unix_nanos) {
                let decision = replay.step(&record)?;
                let Replay { fleet, machines, needs, around } = replay;
                return Ok(ReplayState { record, fleet, decision, machines, needs, around });
            }
            replay.take(&record)?;
        }
        Err(TapeError::Dropped.into())
    }
}
