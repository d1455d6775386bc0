//! Bargain order: which free machine a need takes next.

use std::cmp::Ordering;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_scenario::answer::Amounts;

use crate::amounts::{amount, contributes, less};
use crate::cycle::{Cycle, Row};
use crate::met::first_difference;
use crate::order::{by_id, stored};

/// Repeatedly the first in bargain order among the free machines, judged anew after each pick.
pub(crate) fn bargains(cycle: &Cycle<'_>, need: usize, free: &[usize], missing: &Amounts) -> Vec<usize> {
    let mut missing = missing.clone();
    let mut picks: Vec<usize> = Vec::new();
    loop {
        let left: Vec<usize> = free.iter().copied().filter(|machine| !picks.contains(machine)).collect();
        let Some(machine) = first(cycle, need, &left, &missing) else { return picks };
        missing = less(&missing, &cycle.provides[machine]);
        picks.push(machine);
    }
}

/// The first in bargain order of the machines that contribute to what the need misses.
pub(crate) fn first(cycle: &Cycle<'_>, need: usize, free: &[usize], missing: &Amounts) -> Option<usize> {
    let useful = || free.iter().copied().filter(|at| contributes(&cycle.provides[*at], missing));
    let order = |a: usize, b: usize| order(cycle, &cycle.rows[need], missing, a, b);
    let first = useful().min_by(|a, b| order(*a, *b).1)?;
    if cycle.met.counts() {
        for other in useful().filter(|other| *other != first) {
            cycle.met.note(format_args!("bargain order: {}", order(first, other).0));
        }
    }
    Some(first)
}

fn order(cycle: &Cycle<'_>, row: &Row, missing: &Amounts, a: usize, b: usize) -> (&'static str, Ordering) {
    let (x, y) = (&cycle.machines[a], &cycle.machines[b]);
    let asking = |machine: &Machine| asking_price(machine, row);
    let share = |at: usize| share(&cycle.provides[at], missing, &row.aggregate);
    let size = |at: usize| size(&cycle.provides[at], &row.aggregate);
    let is_speculative = |machine: &Machine| machine.state == MachineState::Speculative;
    // Of two answers to a question, "no" sorts before "yes".
    first_difference(&[
        ("finite", &|| asking(x).is_infinite().cmp(&asking(y).is_infinite())),
        ("fixed Idle", &|| is_fixed_idle(y).cmp(&is_fixed_idle(x))),
        ("asking price for its share", &|| (asking(x) / share(a)).total_cmp(&(asking(y) / share(b)))),
        ("Idle", &|| is_speculative(x).cmp(&is_speculative(y))),
        ("share", &|| share(b).total_cmp(&share(a))),
        ("size", &|| size(a).total_cmp(&size(b))),
        ("id", &|| by_id(x, y)),
    ])
}

/// What using the machine adds to the bill of this need, as far as its order goes.
pub(crate) fn asking_price(machine: &Machine, row: &Row) -> f64 {
    let cost = effective_cost(machine, row.need.profile.interruption().upper_bound_dollars());
    if machine.state == MachineState::Idle && is_elastic(machine) { cost / 2.0 } else { cost }
}

/// Whether the machine is there and paid for anyway.
pub(crate) fn is_fixed_idle(machine: &Machine) -> bool {
    machine.state == MachineState::Idle && !is_elastic(machine)
}

fn is_elastic(machine: &Machine) -> bool {
    match machine.capacity_type {
        CapacityType::OnDemand | CapacityType::Spot => true,
        CapacityType::BareMetal | CapacityType::Reserved | CapacityType::Unspecified => false,
    }
}

/// Price plus risk times penalty, where no risk costs nothing even if the penalty is infinite.
fn effective_cost(machine: &Machine, penalty_usd: f64) -> f64 {
    let probability = machine.interruption_probability;
    let risk = if probability == 0.0 { 0.0 } else { probability * penalty_usd };
    stored(machine.price_usd_per_hour) + risk
}

/// What the machine adds to what is missing, as shares of the whole demand.
fn share(machine: &Amounts, missing: &Amounts, demand: &Amounts) -> f64 {
    let mut sum = 0.0;
    for (name, wanted) in demand {
        let lacking = amount(missing, name);
        if lacking > 0 {
            sum += amount(machine, name).min(lacking) as f64 / *wanted as f64;
        }
    }
    sum
}

/// How large the machine is, measured by the demand.
fn size(machine: &Amounts, demand: &Amounts) -> f64 {
    demand.iter().fold(0.0, |sum, (name, wanted)| sum + amount(machine, name) as f64 / *wanted as f64)
}
