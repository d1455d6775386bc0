//! Why a need is short: the first reason that applies.

use std::collections::BTreeMap;

use bigfleet_model::machine::MachineState;
use bigfleet_scenario::answer::{Amounts, Reason};

use crate::amounts::{add, contributes, covers};
use crate::cycle::Cycle;
use crate::matching::strict_spread;

/// The reason of a need that phase 1 left short; none if it is not.
pub(crate) fn reason(cycle: &Cycle<'_>, need: usize) -> Option<Reason> {
    let row = &cycle.rows[need];
    let freed = row.freed.as_ref()?;
    Some(if row.need.parked {
        Reason::Parked
    } else if freed.missing.is_empty() {
        Reason::InFlight
    } else if !any_supply(cycle, need) {
        Reason::NoMatchingSupply
    } else if topology_forbids(cycle, need) {
        Reason::TopologyUnsatisfiable
    } else if !freed.in_flight.is_empty() || !freed.victims.is_empty() {
        Reason::PreemptionExhausted
    } else {
        Reason::PriorityStarved
    })
}

/// Whether the machine is or will be there at all.
fn lives(cycle: &Cycle<'_>, machine: usize) -> bool {
    !matches!(cycle.machines[machine].state, MachineState::Deleting | MachineState::Failed)
}

/// Whether some machine that the need does not hold would help, whoever holds it.
fn any_supply(cycle: &Cycle<'_>, need: usize) -> bool {
    (0..cycle.machines.len()).any(|machine| {
        lives(cycle, machine)
            && cycle.claimed_by[machine] != Some(need)
            && cycle.counts(machine, need)
            && contributes(&cycle.provides[machine], &cycle.rows[need].missing)
    })
}

fn topology_forbids(cycle: &Cycle<'_>, need: usize) -> bool {
    let row = &cycle.rows[need];
    if row.same_key().is_some() {
        return no_domain_could_cover(cycle, need);
    }
    // A machine was free at its turn, would still help, and was not taken: only the spread kept it out.
    strict_spread(&row.need.profile).is_some()
        && row
            .free_at_turn
            .iter()
            .filter(|machine| cycle.claimed_by[**machine] != Some(need))
            .any(|machine| contributes(&cycle.provides[*machine], &row.missing))
}

/// Whether no domain holds enough counting machines for the gang, whoever holds them now.
fn no_domain_could_cover(cycle: &Cycle<'_>, need: usize) -> bool {
    let mut totals: BTreeMap<&str, Amounts> = BTreeMap::new();
    for machine in 0..cycle.machines.len() {
        if lives(cycle, machine)
            && cycle.counts(machine, need)
            && let Some(domain) = cycle.domain_of(machine, need)
        {
            add(totals.entry(domain).or_default(), &cycle.provides[machine]);
        }
    }
    !totals.values().any(|total| covers(total, &cycle.rows[need].aggregate))
}
