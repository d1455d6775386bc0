//! The engine's input, rebuilt from the decision record alone, and the decision made again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::{Decision, Fleet};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_shard::{CycleRecord, Input};

/// What a reader of the record knows.
#[derive(Default)]
pub(crate) struct Mirror {
    /// The machines, as the engine saw them.
    pub(crate) machines: BTreeMap<Box<str>, Arc<Machine>>,
    needs: BTreeMap<Arc<str>, (Arc<[Need]>, i64)>,
    parked: BTreeSet<NeedKey>,
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
            self.needs.clear();
            self.parked.clear();
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

    /// The decision of an engine that saw nothing before: which of two that disagree is wrong.
    pub(crate) fn decide_afresh(&self, record: &CycleRecord) -> Arc<Decision> {
        let mut fleet = Fleet::default();
        for machine in self.machines.values() {
            // What is refused was noted when it came.
            let _ = fleet.observe(machine);
        }
        for (cluster, (needs, at)) in &self.needs {
            let _ = fleet.replace(cluster, needs.to_vec(), *at);
        }
        for key in &self.parked {
            fleet.set_parked(key, true);
        }
        fleet.cycle(&record.options, record.now_unix_nanos)
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
                    self.parked.retain(|key| key.cluster != *cluster);
                    self.needs.insert(cluster.clone(), (needs.clone(), *at_unix_nanos));
                }
                Input::Park { key, parked } => {
                    self.fleet.set_parked(key, *parked);
                    if *parked {
                        self.parked.insert(key.clone());
                    } else {
                        self.parked.remove(key);
                    }
                }
            }
        }
    }
}
