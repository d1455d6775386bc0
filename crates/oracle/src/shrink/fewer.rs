//! Fewer machines, needs and options.

use bigfleet_scenario::{CycleOptions, Scenario};

/// Removes what can be removed, large pieces first.
pub(super) fn fewer(mut smallest: Scenario, still_fails: &mut impl FnMut(&Scenario) -> bool) -> Scenario {
    smallest = remove_pieces(smallest, |s| &mut s.needs, still_fails);
    smallest = remove_pieces(smallest, |s| &mut s.machines, still_fails);
    for propose in OPTIONS {
        let mut candidate = smallest.clone();
        propose(&mut candidate.options);
        if candidate != smallest && still_fails(&candidate) {
            smallest = candidate;
        }
    }
    smallest
}

/// Takes pieces out of a list, halves first, then quarters, down to single items.
fn remove_pieces<T>(
    mut smallest: Scenario,
    list: fn(&mut Scenario) -> &mut Vec<T>,
    still_fails: &mut impl FnMut(&Scenario) -> bool,
) -> Scenario {
    let mut piece = list(&mut smallest).len();
    while piece > 0 {
        let mut start = 0;
        while start < list(&mut smallest).len() {
            let mut candidate = smallest.clone();
            let items = list(&mut candidate);
            let end = items.len().min(start + piece);
            items.drain(start..end);
            if still_fails(&candidate) {
                smallest = candidate;
            } else {
                start += piece;
            }
        }
        piece /= 2;
    }
    smallest
}

/// Back to the defaults, one by one.
const OPTIONS: [fn(&mut CycleOptions); 4] = [
    |options| options.ready_clusters = None,
    |options| options.weights = CycleOptions::default().weights,
    |options| options.estimated_drain_nanos = CycleOptions::default().estimated_drain_nanos,
    |options| options.release = CycleOptions::default().release,
];
