//! Changes between two cycles, as a provider and an operator would report them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_scenario::Scenario;
use bigfleet_scenario::seed::Seed;

/// One thing a shard is told.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all changes are machines; a box each would cost more")]
pub enum Change {
    /// A machine's record is now this one.
    Machine(Machine),
    /// A cluster's roll-up is now this one: rows that are not in it are gone.
    Needs {
        /// Whose.
        cluster: Arc<str>,
        /// All its rows.
        rows: Vec<Need>,
    },
}

/// Makes the changes to a scenario. Machines it does not have and clusters it does not have are added.
pub fn apply_changes(scenario: &mut Scenario, changes: &[Change]) {
    let mut places = crate::settled::places(scenario);
    for change in changes {
        match change {
            Change::Machine(machine) => {
                let at = *places.entry(machine.id.clone()).or_insert(scenario.machines.len());
                if at < scenario.machines.len() {
                    scenario.machines[at] = machine.clone();
                } else {
                    scenario.machines.push(machine.clone());
                }
            }
            Change::Needs { cluster, rows } => {
                let first = scenario.needs.iter().position(|need| need.cluster == *cluster);
                let first = first.unwrap_or(scenario.needs.len());
                scenario.needs.retain(|need| need.cluster != *cluster);
                scenario.needs.splice(first..first, rows.iter().cloned());
            }
        }
    }
}

/// The roll-ups of a scenario: rows by cluster, in the order they stand in.
pub(crate) fn roll_ups(scenario: &Scenario) -> BTreeMap<Arc<str>, Vec<Need>> {
    let mut roll_ups: BTreeMap<Arc<str>, Vec<Need>> = BTreeMap::new();
    for need in &scenario.needs {
        roll_ups.entry(need.cluster.clone()).or_default().push(need.clone());
    }
    roll_ups
}

/// How many whole pieces a need asks for.
pub(crate) fn pieces(need: &Need) -> u64 {
    let each = need.min_unit.iter().map(|(name, unit)| need.aggregate.get(name) / unit);
    each.min().unwrap_or(1).max(1)
}

/// Another number of pieces, up to `share` more or fewer and at least one. What is less than a piece is
/// rounded at random, so that small needs change too, if rarely.
pub(crate) fn resized(pieces: u64, share: f64, seed: &mut Seed) -> u64 {
    let step = (pieces as f64 * share * seed.unit() + seed.unit()) as u64;
    if seed.chance(0.5) { pieces + step } else { pieces.saturating_sub(step).max(1) }
}

/// Gives a need so many pieces.
pub(crate) fn set_pieces(need: &mut Need, pieces: u64) {
    need.aggregate = need.min_unit.scale(pieces);
}
