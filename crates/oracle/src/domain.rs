//! The domain of a gang: one value of its `Same` key, chosen at its turn.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bigfleet_scenario::answer::Amounts;

use crate::amounts::{add, amount, covers, less};
use crate::bargain::{asking_price, bargains, is_fixed_idle};
use crate::cycle::{Cycle, Domain};
use crate::met::first_difference;
use crate::pick::trimmed;

/// What one domain has to offer.
#[derive(Default)]
struct Supply {
    own: Vec<usize>,
    /// Its own machines are among these.
    creditable: Vec<usize>,
    draining: Vec<usize>,
    free: Vec<usize>,
}

impl Supply {
    /// Everything in it.
    fn joint(&self) -> Vec<usize> {
        [&self.creditable, &self.draining, &self.free].into_iter().flatten().copied().collect()
    }
}

/// Chooses the domain of a gang; none if there is no machine in any. What other needs keep counts only if no
/// domain covers without it.
pub(crate) fn choose(cycle: &Cycle<'_>, need: usize) -> Option<Domain> {
    let bound: Vec<usize> = cycle.bound(need).into_iter().filter(|m| cycle.is_unclaimed(*m)).collect();
    let creditable: Vec<usize> = bound
        .iter()
        .copied()
        .filter(|machine| cycle.is_own(*machine, need) || cycle.kept_by[*machine].is_none())
        .collect();
    let first = best(cycle, need, &creditable);
    if first.as_ref().is_some_and(|domain| domain.covers) {
        return first;
    }
    let again = best(cycle, need, &bound);
    cycle.met.note_if(again.is_none(), "domain: none");
    cycle.met.note_if(again.as_ref().is_some_and(|domain| domain.covers), "domain: with what others keep");
    again
}

fn best(cycle: &Cycle<'_>, need: usize, creditable: &[usize]) -> Option<Domain> {
    let key = |machine: usize| {
        cycle.domain_of(machine, need).expect("a machine that counts for a gang has its key")
    };
    let mut domains: BTreeMap<&str, Supply> = BTreeMap::new();
    for machine in creditable.iter().copied() {
        let supply = domains.entry(key(machine)).or_default();
        supply.creditable.push(machine);
        if cycle.is_own(machine, need) {
            supply.own.push(machine);
        }
    }
    for machine in cycle.draining_for(need) {
        domains.entry(key(machine)).or_default().draining.push(machine);
    }
    if !cycle.rows[need].need.parked {
        for machine in cycle.free(need) {
            domains.entry(key(machine)).or_default().free.push(machine);
        }
    }
    let mut offers: Vec<(&str, Offer)> =
        domains.into_iter().map(|(value, supply)| (value, Offer::new(cycle, need, &supply))).collect();
    // Smaller values come first and stay first among equals.
    offers.sort_by(|(_, a), (_, b)| better_first(a, b).1);
    if let [(_, first), (_, second), ..] = &offers[..] {
        cycle.met.note(format_args!("domain: {}", better_first(first, second).0));
    }
    offers.into_iter().next().map(|(value, offer)| Domain { value: value.to_owned(), covers: offer.covers })
}

/// What a domain is compared by.
struct Offer {
    covers: bool,
    own: f64,
    creditable: f64,
    joint: f64,
    /// These three count as 0 where creditable machines alone cover.
    new_money_usd: f64,
    tightness: f64,
    machines_beyond_credit: usize,
    machines: usize,
}

impl Offer {
    fn new(cycle: &Cycle<'_>, need: usize, supply: &Supply) -> Self {
        let demand = &cycle.rows[need].aggregate;
        let joint = cycle.total(&supply.joint());
        let creditable = cycle.total(&supply.creditable);
        let credit_covers = covers(&creditable, demand);
        let machines = supply.joint().len();
        Self {
            covers: covers(&joint, demand),
            own: capped(&cycle.total(&supply.own), demand),
            creditable: capped(&creditable, demand),
            joint: capped(&joint, demand),
            new_money_usd: if credit_covers { 0.0 } else { new_money_usd(cycle, need, supply) },
            tightness: if credit_covers { 0.0 } else { uncapped(&joint, demand) },
            machines_beyond_credit: if credit_covers { 0 } else { machines },
            machines,
        }
    }
}

/// Which of two domains is better, and by what.
fn better_first(a: &Offer, b: &Offer) -> (&'static str, Ordering) {
    match (a.covers, b.covers) {
        (true, true) => first_difference(&[
            ("both cover, own", &|| b.own.total_cmp(&a.own)),
            ("both cover, creditable", &|| b.creditable.total_cmp(&a.creditable)),
            ("both cover, new money", &|| a.new_money_usd.total_cmp(&b.new_money_usd)),
            ("both cover, tightness", &|| a.tightness.total_cmp(&b.tightness)),
            ("both cover, machines", &|| b.machines_beyond_credit.cmp(&a.machines_beyond_credit)),
        ]),
        (false, false) => first_difference(&[
            ("none covers, own", &|| b.own.total_cmp(&a.own)),
            ("none covers, joint", &|| b.joint.total_cmp(&a.joint)),
            ("none covers, creditable", &|| b.creditable.total_cmp(&a.creditable)),
            ("none covers, machines", &|| b.machines.cmp(&a.machines)),
        ]),
        (a, b) => ("one covers", b.cmp(&a)),
    }
}

/// The asking prices of what acquisition would pick there for what creditable machines and those draining
/// for the gang leave missing. Fixed Idle machines are paid for anyway.
fn new_money_usd(cycle: &Cycle<'_>, need: usize, supply: &Supply) -> f64 {
    let row = &cycle.rows[need];
    let mut coming = cycle.total(&supply.creditable);
    add(&mut coming, &cycle.total(&supply.draining));
    let missing = less(&row.aggregate, &coming);
    let picks = trimmed(cycle, bargains(cycle, need, &supply.free, &missing), &missing);
    let paid = picks.iter().map(|machine| &cycle.machines[*machine]).filter(|m| !is_fixed_idle(m));
    paid.fold(0.0, |sum, machine| sum + asking_price(machine, row))
}

/// How much of the demand a total is, summed over the demanded dimensions.
fn uncapped(total: &Amounts, demand: &Amounts) -> f64 {
    demand.iter().fold(0.0, |sum, (name, wanted)| sum + amount(total, name) as f64 / *wanted as f64)
}

/// The same, where no dimension makes up for another.
fn capped(total: &Amounts, demand: &Amounts) -> f64 {
    demand
        .iter()
        .fold(0.0, |sum, (name, wanted)| sum + (amount(total, name) as f64 / *wanted as f64).min(1.0))
}
