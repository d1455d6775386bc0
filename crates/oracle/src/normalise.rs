//! Normalise: fold gangs smaller than a machine.
//!
//! A gang that fits one machine has no use for a domain. Equal gangs of that kind are one plain need whose
//! smallest piece is a gang.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_scenario::Scenario;
use bigfleet_scenario::answer::{Amounts, amounts};

use crate::amounts::{add, covers};
use crate::cycle::{Row, provides};
use crate::matching::{matches, same_key, value};
use crate::met::Met;
use crate::order;

/// The demand after folding, in demand order.
pub(crate) fn normalise(scenario: &Scenario, met: &Met) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for need in &scenario.needs {
        let folds = same_key(&need.profile).is_some() && fits_one_machine(need, &scenario.machines, met);
        if !folds {
            rows.push(Row::new(need.clone()));
        } else if is_at_home(need, &scenario.machines) {
            met.note(format_args!("fold: at home"));
            rows.push(Row::new(need.clone()));
        } else {
            fold(&mut rows, need, met);
        }
    }
    rows.sort_by(|a, b| order::demand(a, b).1);
    for pair in rows.windows(2) {
        met.note(format_args!("demand order: {}", order::demand(&pair[0], &pair[1]).0));
    }
    rows
}

/// Whether some machine could hold the whole gang. Who claims that machine and `min_unit` do not matter.
fn fits_one_machine(need: &Need, machines: &[Machine], met: &Met) -> bool {
    let folded = NeedKey {
        cluster: need.cluster.clone(),
        fingerprint: without_same(&need.profile).fingerprint().into(),
        group: Arc::from(""),
    };
    let within_reach = |machine: &Machine| match machine.state {
        MachineState::Configured | MachineState::Configuring => *machine.cluster == *need.cluster,
        // A cluster without a fingerprint is no stamp: such a machine is nobody's.
        MachineState::Creating => {
            machine.assigned.cluster == need.cluster && !machine.assigned.fingerprint.is_empty()
        }
        MachineState::Idle | MachineState::Speculative => true,
        MachineState::Draining => machine.draining_for.as_ref() == Some(&folded),
        MachineState::Deleting | MachineState::Failed => false,
    };
    let mut holds_it = machines.iter().filter(|machine| {
        within_reach(machine)
            && matches(machine, &need.profile)
            && covers(&provides(machine), &amounts(&need.aggregate))
    });
    let first = holds_it.next();
    if let Some(first) = first
        && holds_it.all(|machine| machine.state == first.state)
    {
        met.note(format_args!("fold: by {} alone", first.state));
    }
    first.is_some()
}

/// Whether the gang's own machines in one domain cover it: what runs is not moved.
fn is_at_home(need: &Need, machines: &[Machine]) -> bool {
    use MachineState::{Configured, Configuring, Creating};
    let Some(key) = same_key(&need.profile) else { return false };
    let gang = Row::new(need.clone());
    let mut domains: BTreeMap<&str, Amounts> = BTreeMap::new();
    for machine in machines {
        if matches!(machine.state, Configured | Configuring | Creating)
            && gang.owns(machine)
            && matches(machine, &need.profile)
            && covers(&provides(machine), &gang.min_unit)
            && let Some(domain) = value(machine, key)
        {
            add(domains.entry(domain).or_default(), &provides(machine));
        }
    }
    domains.values().any(|own| covers(own, &gang.aggregate))
}

/// Adds a gang to the plain need of its equals, or starts one.
fn fold(rows: &mut Vec<Row>, gang: &Need, met: &Met) {
    let profile = without_same(&gang.profile);
    let one_gang = amounts(&gang.aggregate);
    let equals = rows.iter_mut().find(|row| {
        row.is_folded()
            && row.need.cluster == gang.cluster
            && row.need.profile.fingerprint() == profile.fingerprint()
            && row.min_unit == one_gang
    });
    if let Some(row) = equals {
        met.note(format_args!("fold: with an equal"));
        add(&mut row.aggregate, &one_gang);
        row.missing = row.aggregate.clone();
        row.need.aggregate = row.need.aggregate.add(&gang.aggregate);
        row.need.first_seen_unix_nanos = row.need.first_seen_unix_nanos.min(gang.first_seen_unix_nanos);
        row.gangs.push(gang.key());
        return;
    }
    let plain = Need {
        profile: Arc::new(profile),
        group: Arc::from(""),
        min_unit: gang.aggregate.clone(),
        parked: false,
        ..gang.clone()
    };
    rows.push(Row { gangs: vec![gang.key()], ..Row::new(plain) });
}

/// The profile without `Same`: where it listed values these become `In`, otherwise the key must exist.
fn without_same(profile: &Profile) -> Profile {
    let plain = |requirement: &Requirement| {
        if requirement.operator() != Operator::Same {
            return requirement.clone();
        }
        let operator = if requirement.values().is_empty() { Operator::Exists } else { Operator::In };
        Requirement::new(requirement.key(), operator, requirement.values().iter().cloned())
    };
    let requirements = profile.requirements().iter().map(plain).collect();
    let spread = profile.spread().to_vec();
    Profile::new(requirements, spread, profile.priority(), profile.interruption(), profile.reclamation())
}
