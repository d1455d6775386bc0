//! What happens to a fleet between two cycles.
//!
//! An engine that keeps things from one cycle to the next must notice everything that changes in between.
//! So here are the changes: machines appear, move on, change and die, roll-ups replace a cluster's demand,
//! time passes, options change. Some of what happens is what the last cycle ordered; the rest is not.

mod invent;

use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_scenario::seed::Seed;
use bigfleet_scenario::{CycleOptions, Scenario};

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// A machine is reported: new, changed, or as it was.
    Observe(Box<Machine>),
    /// The machine with this id is gone.
    Remove(String),
    /// A cluster's roll-up: its needs are now these and no others.
    Replace {
        /// The cluster.
        cluster: String,
        /// Its needs.
        rows: Vec<Need>,
    },
    /// Time passes.
    Advance {
        /// How much of it.
        nanos: i64,
    },
    /// The options are now these.
    SetOptions(CycleOptions),
}

/// Makes one change to a scenario.
pub fn apply(scenario: &mut Scenario, edit: &Edit) {
    match edit {
        Edit::Observe(machine) => match scenario.machines.iter_mut().find(|m| m.id == machine.id) {
            Some(known) => known.clone_from(machine),
            None => scenario.machines.push((**machine).clone()),
        },
        Edit::Remove(id) => scenario.machines.retain(|machine| *machine.id != **id),
        Edit::Replace { cluster, rows } => {
            scenario.needs.retain(|need| *need.cluster != **cluster);
            scenario.needs.extend(rows.iter().cloned());
        }
        Edit::Advance { nanos } => scenario.now_unix_nanos = scenario.now_unix_nanos.saturating_add(*nanos),
        Edit::SetOptions(options) => scenario.options = options.clone(),
    }
}

/// `count` changes to a scenario, each one possible after those before it.
pub fn random_edits(seed: u64, scenario: &Scenario, count: usize) -> Vec<Edit> {
    let mut seed = Seed::new(seed);
    let mut now = scenario.clone();
    let mut orders = Vec::new();
    (0..count)
        .map(|_| {
            let edit = invent::edit(&mut seed, &now, &mut orders);
            apply(&mut now, &edit);
            edit
        })
        .collect()
}
