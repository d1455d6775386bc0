//! Normalise: fold gangs smaller than a machine.
//!
//! A gang that fits one machine has no use for a domain. Equal gangs of that kind are one plain need whose
//! smallest piece is a gang.

use std::sync::Arc;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_scenario::Scenario;
use bigfleet_scenario::answer::amounts;

use crate::amounts::{add, covers};
use crate::cycle::{Row, provides};
use crate::matching::{matches, same_key};
use crate::order;

/// The demand after folding, in demand order.
pub(crate) fn normalise(scenario: &Scenario) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for need in &scenario.needs {
        if same_key(&need.profile).is_some() && fits_one_machine(need, &scenario.machines) {
            fold(&mut rows, need);
        } else {
            rows.push(Row::new(need.clone()));
        }
    }
    rows.sort_by(order::demand);
    rows
}

/// Whether some machine could hold the whole gang. Who holds that machine now and `min_unit` do not matter.
fn fits_one_machine(need: &Need, machines: &[Machine]) -> bool {
    let within_reach = |machine: &Machine| match machine.state {
        MachineState::Configured | MachineState::Configuring => *machine.cluster == *need.cluster,
        MachineState::Idle | MachineState::Speculative => true,
        _ => false,
    };
    machines.iter().any(|machine| {
        within_reach(machine)
            && matches(machine, &need.profile)
            && covers(&provides(machine), &amounts(&need.aggregate))
    })
}

/// Adds a gang to the plain need of its equals, or starts one.
fn fold(rows: &mut Vec<Row>, gang: &Need) {
    let profile = without_same(&gang.profile);
    let one_gang = amounts(&gang.aggregate);
    let equals = rows.iter_mut().find(|row| {
        row.folded
            && row.need.cluster == gang.cluster
            && row.need.profile.fingerprint() == profile.fingerprint()
            && row.min_unit == one_gang
    });
    if let Some(row) = equals {
        add(&mut row.aggregate, &one_gang);
        row.missing = row.aggregate.clone();
        row.need.aggregate = row.need.aggregate.add(&gang.aggregate);
        row.need.first_seen_unix_nanos = row.need.first_seen_unix_nanos.min(gang.first_seen_unix_nanos);
        return;
    }
    let plain = Need {
        profile: Arc::new(profile),
        group: Arc::from(""),
        min_unit: gang.aggregate.clone(),
        parked: false,
        ..gang.clone()
    };
    rows.push(Row { folded: true, ..Row::new(plain) });
}

/// The profile without `Same`: where it listed values these become `In`, otherwise it vanishes.
fn without_same(profile: &Profile) -> Profile {
    let mut kept: Vec<Requirement> = Vec::new();
    for requirement in profile.requirements() {
        if requirement.operator() != Operator::Same {
            kept.push(requirement.clone());
        } else if !requirement.values().is_empty() {
            kept.push(Requirement::new(
                requirement.key(),
                Operator::In,
                requirement.values().iter().cloned(),
            ));
        }
    }
    let spread = profile.spread().to_vec();
    Profile::new(kept, spread, profile.priority(), profile.interruption(), profile.reclamation())
}
