//! Phase 2: preempt. Needs that are still short take Configured machines from lower priorities.

use std::collections::BTreeSet;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_scenario::answer::Amounts;

use crate::amounts::{contributes, less};
use crate::cycle::{Cycle, Freed, Row};
use crate::matching::strict_spread;
use crate::met::first_difference;
use crate::order;
use crate::pick::{trimmed, until_covered};
use crate::spread::Tally;

/// Finds victims for every need with a deficit, in precedence order.
pub(crate) fn preempt(cycle: &mut Cycle<'_>) {
    // Machines that already serve a need of this pass, draining or about to.
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    for need in cycle.turns() {
        let row = &cycle.rows[need];
        if row.missing.is_empty() {
            continue;
        }
        let freed = if row.need.parked {
            None
        } else if row.same_key().is_some() {
            for_gang(cycle, need, &taken)
        } else {
            Some(for_plain(cycle, need, &taken))
        };
        let skipped = || Freed { in_flight: Vec::new(), victims: Vec::new(), missing: row.missing.clone() };
        let freed = freed.unwrap_or_else(skipped);
        taken.extend(freed.in_flight.iter().chain(&freed.victims));
        cycle.rows[need].freed = Some(freed);
    }
}

/// What drains, and is to drain, for a need that may use machines anywhere.
fn for_plain(cycle: &Cycle<'_>, need: usize, taken: &BTreeSet<usize>) -> Freed {
    let row = &cycle.rows[need];
    let draining = untaken(cycle.draining_for(need), taken);
    cycle.met.note_if(draining.len() < cycle.draining_for(need).len(), "in flight: for another need");
    let in_flight = until_covered(cycle, &draining, &row.missing);
    let missing = less(&row.missing, &cycle.total(&in_flight));
    let list = eligible(cycle, need, taken);
    let by_member = in_flight.iter().filter_map(|at| cycle.machines[*at].draining_for.as_ref());
    let by_member = by_member.filter(|key| row.gangs.contains(key)).count() > 0;
    cycle.met.note_if(by_member, "in flight: for a folded gang");
    cycle.met.note_if(!in_flight.is_empty() && !by_member, "in flight: for the need itself");
    let victims = match strict_spread(&row.need.profile) {
        None => {
            let picks = until_covered(cycle, &list, &missing);
            let necessary = trimmed(cycle, picks.clone(), &missing);
            cycle.met.note_if(necessary.len() < picks.len(), "preempt: superfluous, spared");
            necessary
        }
        Some(strict) => {
            let counted = row.held().chain(cycle.draining_for(need));
            let others = list.iter().copied().chain(cycle.free(need));
            evenly(cycle, Tally::new(cycle, strict, counted, others), &list, &missing)
        }
    };
    Freed { missing: less(&missing, &cycle.total(&victims)), in_flight, victims }
}

/// Victims under a strict spread: for every pick the first that contributes and that the spread permits.
fn evenly(cycle: &Cycle<'_>, mut tally: Tally<'_>, list: &[usize], missing: &Amounts) -> Vec<usize> {
    let mut missing = missing.clone();
    let mut victims: Vec<usize> = Vec::new();
    loop {
        let next = list.iter().copied().find(|machine| {
            !victims.contains(machine)
                && contributes(&cycle.provides[*machine], &missing)
                && tally.admits(cycle, *machine)
        });
        let Some(machine) = next else {
            let refused = list.iter().any(|machine| {
                !victims.contains(machine) && contributes(&cycle.provides[*machine], &missing)
            });
            cycle.met.note_if(refused, "preempt: the spread keeps a victim out");
            return victims;
        };
        cycle.met.note(format_args!("preempt: under a spread"));
        missing = less(&missing, &cycle.provides[machine]);
        victims.push(machine);
        tally.take(cycle, machine);
    }
}

/// What drains, and is to drain, for a gang: in its own domain if that completes it, else where that takes the
/// fewest victims. None if no domain completes it.
fn for_gang(cycle: &Cycle<'_>, need: usize, taken: &BTreeSet<usize>) -> Option<Freed> {
    let own = cycle.rows[need].domain.as_ref().map(|domain| domain.value.as_str());
    if let Some(freed) = own.and_then(|domain| completed_in(cycle, need, domain, taken)) {
        cycle.met.note(format_args!("preempt: a gang in its own domain"));
        cycle.met.note_if(!freed.in_flight.is_empty(), "in flight: for a gang in its own domain");
        return Some(freed);
    }
    let values = (0..cycle.machines.len()).filter_map(|machine| cycle.domain_of(machine, need));
    let domains: BTreeSet<&str> = values.collect();
    let complete: Vec<Freed> =
        domains.into_iter().filter_map(|domain| completed_in(cycle, need, domain, taken)).collect();
    let fewest = complete.iter().map(|freed| freed.victims.len()).min();
    let ties = complete.iter().filter(|freed| Some(freed.victims.len()) == fewest).count();
    cycle.met.note_if(complete.is_empty(), "preempt: a gang that no domain completes");
    cycle.met.note_if(ties < complete.len(), "preempt: a gang by fewest victims");
    cycle.met.note_if(ties > 1, "preempt: a gang by the smaller value");
    // Smaller values come first, and the first of equals is taken.
    let freed = complete.into_iter().min_by_key(|freed| freed.victims.len())?;
    let from = if own.is_some() { "away from its domain" } else { "without a domain" };
    cycle.met.note(format_args!("preempt: a gang {from}"));
    cycle.met.note_if(!freed.in_flight.is_empty(), "in flight: for a gang elsewhere");
    Some(freed)
}

/// What has to drain in a domain so that the gang is complete there; none if nothing does.
fn completed_in(cycle: &Cycle<'_>, need: usize, domain: &str, taken: &BTreeSet<usize>) -> Option<Freed> {
    let row = &cycle.rows[need];
    let here = |machines: Vec<usize>| -> Vec<usize> {
        machines.into_iter().filter(|machine| cycle.domain_of(*machine, need) == Some(domain)).collect()
    };
    let missing = less(&row.aggregate, &cycle.total(&here(row.held().collect())));
    let missing = less(&missing, &cycle.total(&here(cycle.free(need))));
    let in_flight = until_covered(cycle, &here(untaken(cycle.draining_for(need), taken)), &missing);
    let missing = less(&missing, &cycle.total(&in_flight));
    let victims =
        trimmed(cycle, until_covered(cycle, &here(eligible(cycle, need, taken)), &missing), &missing);
    let missing = less(&missing, &cycle.total(&victims));
    missing.is_empty().then_some(Freed { in_flight, victims, missing })
}

fn untaken(machines: Vec<usize>, taken: &BTreeSet<usize>) -> Vec<usize> {
    machines.into_iter().filter(|machine| !taken.contains(machine)).collect()
}

/// The machines that may be taken for a need as long as they add something, best victim first: unclaimed
/// before claimed, then by score, then by id.
fn eligible(cycle: &Cycle<'_>, need: usize, taken: &BTreeSet<usize>) -> Vec<usize> {
    let row = &cycle.rows[need];
    let may_be_taken = |at: usize, machine: &Machine| {
        machine.state == MachineState::Configured
            && machine.assigned.priority < row.priority()
            && cycle.claimed_by[at].is_none_or(|holder| cycle.rows[holder].priority() < row.priority())
            && cycle.counts(at, need)
            && !taken.contains(&at)
    };
    let mut list = cycle.machines_where(may_be_taken, order::by_id);
    // Nobody knows yet what a cluster that has not reported needs.
    let serves = |at: usize| {
        let silent = !cycle.has_reported(&cycle.machines[at].cluster);
        cycle.met.note_if(silent, "victim order: of a cluster that has not reported");
        !cycle.is_unclaimed(at) || silent
    };
    let score = |at: usize| score(cycle, row, &cycle.machines[at]);
    let better_first = |a: usize, b: usize| {
        first_difference(&[
            ("unclaimed", &|| serves(a).cmp(&serves(b))),
            ("score", &|| score(b).total_cmp(&score(a))),
            ("id", &|| order::by_id(&cycle.machines[a], &cycle.machines[b])),
        ])
    };
    list.sort_by(|a, b| better_first(*a, *b).1);
    if let [first, second, ..] = list[..] {
        cycle.met.note(format_args!("victim order: {}", better_first(first, second).0));
    }
    list
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
