//! The engine's input, rebuilt from the decision record alone, and the decision made again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Decision, Fleet};
use bigfleet_model::machine::Machine;
use bigfleet_shard::{CycleRecord, Input};

/// What a reader of the record knows.
#[derive(Default)]
pub(crate) struct Mirror {
    /// The machines, as the engine saw them.
    pub(crate) machines: BTreeMap<Box<str>, Arc<Machine>>,
    /// The engine after the cycle.
    pub(crate) fleet: Fleet,
    /// What it decides from this input.
    pub(crate) decision: Arc<Decision>,
    /// What is wrong with the record, if anything.
    pub(crate) trouble: Option<String>,
    begun: bool,
}

impl Mirror {
    /// Takes in a record and decides again. False for a record that cannot be followed, because the first ones of its
    /// life are missing.
    pub(crate) fn follow(&mut self, record: &CycleRecord) -> bool {
        self.trouble = None;
        if let Some(full) = &record.full {
            self.machines.clear();
            self.fleet = Fleet::default();
            self.begun = true;
            self.take(full);
        }
        if !self.begun {
            return false;
        }
        self.take(&record.inputs);
        self.decision = self.fleet.cycle(&record.options, record.now_unix_nanos);
        true
    }

    fn take(&mut self, inputs: &[Input]) {
        for input in inputs {
            match input {
                Input::Observe(machine) => {
                    if let Err(error) = self.fleet.observe(machine) {
                        self.trouble = Some(error.to_string());
                    }
                    self.machines.insert(machine.id.clone(), machine.clone());
                }
                Input::Remove(id) => {
                    self.fleet.remove(id);
                    self.machines.remove(id);
                }
                Input::Replace { cluster, needs, at_unix_nanos } => {
                    if let Err(error) = self.fleet.replace(cluster, needs.to_vec(), *at_unix_nanos) {
                        self.trouble = Some(error.to_string());
                    }
                }
                Input::Park { key, parked } => {
                    self.fleet.set_parked(key, *parked);
                }
            }
        }
    }
}
