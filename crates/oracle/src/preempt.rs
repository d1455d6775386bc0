//! Phase 2: preempt. Needs that are still short take Configured machines from lower priorities.

use std::collections::BTreeSet;

use bigfleet_model::machine::{Machine, MachineState};

use crate::amounts::{contributes, subtract};
use crate::cycle::{Cycle, Freed, Row};
use crate::matching::strict_spread;
use crate::order;
use crate::spread::Tally;

/// Finds victims for every need with a deficit: priority down, then demand order, which is demand order.
pub(crate) fn preempt(cycle: &mut Cycle<'_>) {
    // Machines that already serve a need of this pass, draining or about to.
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    for need in 0..cycle.rows.len() {
        let row = &cycle.rows[need];
        if row.missing.is_empty() {
            continue;
        }
        let without_domain = row.same_key().is_some() && row.domain.is_none();
        let freed = if row.need.parked || without_domain {
            Freed { in_flight: Vec::new(), victims: Vec::new(), missing: row.missing.clone() }
        } else {
            free(cycle, need, &mut taken)
        };
        cycle.rows[need].freed = Some(freed);
    }
}

fn free(cycle: &Cycle<'_>, need: usize, taken: &mut BTreeSet<usize>) -> Freed {
    let row = &cycle.rows[need];
    let mut missing = row.missing.clone();

    let draining = cycle.machines_where(
        |at, m| drains_for(m, row) && cycle.counts(at, need) && cycle.in_chosen_domain(at, need),
        order::by_id,
    );
    let mut in_flight = Vec::new();
    for machine in draining {
        if !taken.contains(&machine) && contributes(&cycle.provides[machine], &missing) {
            subtract(&mut missing, &cycle.provides[machine]);
            taken.insert(machine);
            in_flight.push(machine);
        }
    }

    let candidates = cycle.machines_where(
        |at, _| !taken.contains(&at) && may_be_preempted(cycle, at, need),
        |a, b| score(cycle, row, b).total_cmp(&score(cycle, row, a)).then_with(|| order::by_id(a, b)),
    );
    let held = row.held().chain(in_flight.iter().copied());
    let mut tally =
        strict_spread(&row.need.profile).map(|strict| Tally::new(cycle, strict, held, &candidates));
    let mut victims = Vec::new();
    loop {
        let pick = candidates.iter().copied().find(|machine| {
            !taken.contains(machine)
                && contributes(&cycle.provides[*machine], &missing)
                && tally.as_ref().is_none_or(|tally| tally.admits(cycle, *machine))
        });
        let Some(machine) = pick else { break };
        subtract(&mut missing, &cycle.provides[machine]);
        taken.insert(machine);
        victims.push(machine);
        if let Some(tally) = &mut tally {
            tally.take(cycle, machine);
        }
    }
    Freed { in_flight, victims, missing }
}

/// Whether a machine is draining on behalf of this need.
fn drains_for(machine: &Machine, row: &Row) -> bool {
    let need = &row.need;
    machine.state == MachineState::Draining
        && machine.draining_for.as_ref().is_some_and(|key| {
            key.cluster == need.cluster
                && *key.fingerprint == *need.profile.fingerprint()
                && key.group == need.group
        })
}

/// Whether a machine may be taken for a need, as long as it adds something.
fn may_be_preempted(cycle: &Cycle<'_>, at: usize, need: usize) -> bool {
    let machine = &cycle.machines[at];
    let priority = cycle.rows[need].priority();
    machine.state == MachineState::Configured
        && machine.assigned.priority < priority
        && cycle.claimed_by[at].is_none_or(|holder| cycle.rows[holder].priority() < priority)
        && cycle.counts(at, need)
        && cycle.in_chosen_domain(at, need)
}

/// How good a victim is: every reciprocal first, then its weight, summed from left to right.
fn score(cycle: &Cycle<'_>, row: &Row, victim: &Machine) -> f64 {
    let weights = &cycle.options.weights;
    let drain_secs = cycle.options.estimated_drain_nanos as f64 / 1e9;
    gap(row, victim) as f64 * weights.priority
        + (1.0 / drain_secs.max(1.0)) * weights.drain_speed
        + (1.0 / victim.assigned.interruption_penalty_usd.max(0.01)) * weights.interruption
        + (1.0 / victim.assigned.reclamation_penalty_usd.max(0.01)) * weights.reclamation
}

/// How far the need stands above the victim.
fn gap(row: &Row, victim: &Machine) -> i64 {
    i64::from(row.priority()) - i64::from(victim.assigned.priority)
}

/// The seconds a victim gets: the wider the gap, the fewer.
pub(crate) fn grace_secs(row: &Row, victim: &Machine) -> u32 {
    match gap(row, victim) {
        900_001.. => 10,
        500_001.. => 30,
        100_001.. => 120,
        _ => 600,
    }
}
