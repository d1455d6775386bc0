//! The domain of a gang: one value of its `Same` key, chosen once, for credit and acquisition alike.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use bigfleet_scenario::answer::Amounts;

use crate::amounts::{add, contributes, covers, subtract};
use crate::credit::is_own;
use crate::cycle::{Cycle, Domain};

/// What one domain has to offer.
#[derive(Default)]
struct Supply {
    creditable: Amounts,
    own: Amounts,
    joint: Amounts,
    machines: usize,
}

/// Chooses the domain of a gang; none if there is no machine in any.
pub(crate) fn choose(
    cycle: &Cycle<'_>,
    need: usize,
    creditable: &[usize],
    earmarks: &Earmarks,
) -> Option<Domain> {
    let key = |machine: usize| {
        cycle.domain_of(machine, need).expect("a machine that counts for a gang has its key")
    };
    let mut domains: BTreeMap<&str, Supply> = BTreeMap::new();
    for machine in creditable {
        let supply = domains.entry(key(*machine)).or_default();
        add(&mut supply.creditable, &cycle.provides[*machine]);
        add(&mut supply.joint, &cycle.provides[*machine]);
        supply.machines += 1;
        if is_own(cycle, *machine, need) {
            add(&mut supply.own, &cycle.provides[*machine]);
        }
    }
    if !cycle.rows[need].need.parked {
        for machine in earmarks.left_for(cycle, need) {
            let supply = domains.entry(key(machine)).or_default();
            add(&mut supply.joint, &cycle.provides[machine]);
            supply.machines += 1;
        }
    }
    let demand = &cycle.rows[need].aggregate;
    // Smaller values come first, so only a strictly better domain replaces the best so far.
    let mut best: Option<(&str, Supply)> = None;
    for (value, supply) in domains {
        if best.as_ref().is_none_or(|(_, leader)| rank(&supply, leader, demand).is_gt()) {
            best = Some((value, supply));
        }
    }
    best.map(|(value, supply)| Domain { value: value.to_owned(), covers: covers(&supply.joint, demand) })
}

/// Which of two domains is better for a demand: greater is better.
fn rank(a: &Supply, b: &Supply, demand: &Amounts) -> Ordering {
    let larger = |of: fn(&Supply) -> &Amounts| capped(of(a), demand).total_cmp(&capped(of(b), demand));
    let creditable = || larger(|s| &s.creditable);
    let by_supply = match (covers(&a.joint, demand), covers(&b.joint, demand)) {
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (true, true) => creditable()
            .then_with(|| larger(|s| &s.own))
            .then_with(|| uncapped(&b.joint, demand).total_cmp(&uncapped(&a.joint, demand))),
        (false, false) => larger(|s| &s.joint).then_with(creditable),
    };
    by_supply.then(a.machines.cmp(&b.machines))
}

/// How much of the demand a total is, summed over the demanded dimensions.
fn uncapped(total: &Amounts, demand: &Amounts) -> f64 {
    demand.iter().fold(0.0, |sum, (name, wanted)| sum + ratio(total, name, *wanted))
}

/// The same, where no dimension makes up for another.
fn capped(total: &Amounts, demand: &Amounts) -> f64 {
    demand.iter().fold(0.0, |sum, (name, wanted)| sum + ratio(total, name, *wanted).min(1.0))
}

fn ratio(total: &Amounts, name: &str, wanted: u64) -> f64 {
    total.get(name).copied().unwrap_or(0) as f64 / wanted as f64
}

/// What earlier gangs of this walk will probably acquire. Informs later choices of a domain; claims nothing.
#[derive(Default)]
pub(crate) struct Earmarks(BTreeSet<usize>);

impl Earmarks {
    /// What the need may acquire and nobody before it has earmarked, in the order it would take it.
    fn left_for(&self, cycle: &Cycle<'_>, need: usize) -> Vec<usize> {
        cycle.acquirable(need).into_iter().filter(|machine| !self.0.contains(machine)).collect()
    }

    /// Earmarks what the need still misses inside its domain. A parked need acquires and earmarks nothing.
    pub(crate) fn earmark(&mut self, cycle: &Cycle<'_>, need: usize) {
        let row = &cycle.rows[need];
        if row.need.parked {
            return;
        }
        let mut missing = row.missing.clone();
        for machine in self.left_for(cycle, need) {
            if cycle.in_chosen_domain(machine, need) && contributes(&cycle.provides[machine], &missing) {
                subtract(&mut missing, &cycle.provides[machine]);
                self.0.insert(machine);
            }
        }
    }
}
