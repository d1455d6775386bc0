//! Picking machines from a list until a demand is covered, and giving back those it did not take.

use bigfleet_scenario::answer::Amounts;

use crate::amounts::{contributes, covers, less};
use crate::cycle::Cycle;

/// Takes, in the order of the list, every machine that contributes to what is missing by then.
pub(crate) fn until_covered(cycle: &Cycle<'_>, list: &[usize], missing: &Amounts) -> Vec<usize> {
    let mut missing = missing.clone();
    let mut picks = Vec::new();
    for machine in list {
        if contributes(&cycle.provides[*machine], &missing) {
            missing = less(&missing, &cycle.provides[*machine]);
            picks.push(*machine);
        }
    }
    picks
}

/// Trim: if the picks cover what was missing, goes through them in reverse order of taking and gives back
/// each without which the others still cover it.
pub(crate) fn trimmed(cycle: &Cycle<'_>, picks: Vec<usize>, missing: &Amounts) -> Vec<usize> {
    let mut kept = picks;
    if !covers(&cycle.total(&kept), missing) {
        return kept;
    }
    for at in (0..kept.len()).rev() {
        let mut others = kept.clone();
        others.remove(at);
        if covers(&cycle.total(&others), missing) {
            kept = others;
        }
    }
    kept
}
