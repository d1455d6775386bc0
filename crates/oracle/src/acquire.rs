//! Phase 1, second half: acquire. Needs that are still short take free machines, in precedence order.

use crate::cycle::Cycle;
use crate::matching::strict_spread;
use crate::order;
use crate::spread::Tally;

/// Lets every need with a deficit acquire, in precedence order.
pub(crate) fn acquire(cycle: &mut Cycle<'_>) {
    let mut turns: Vec<usize> = (0..cycle.rows.len()).collect();
    turns.sort_by(|a, b| order::precedence(&cycle.rows[*a], &cycle.rows[*b]));
    for need in turns {
        if !cycle.rows[need].missing.is_empty() && !cycle.rows[need].need.parked {
            acquire_for(cycle, need);
        }
    }
}

/// Takes candidates until nothing is missing: for each pick, the first that adds something and may be taken.
fn acquire_for(cycle: &mut Cycle<'_>, need: usize) {
    let free = cycle.acquirable(need);
    cycle.rows[need].free_at_turn.clone_from(&free);
    let candidates: Vec<usize> = free.into_iter().filter(|m| cycle.in_chosen_domain(*m, need)).collect();

    let profile = cycle.rows[need].need.profile.clone();
    let credited = cycle.rows[need].credited.clone();
    let mut tally = strict_spread(&profile).map(|strict| Tally::new(cycle, strict, credited, &candidates));

    loop {
        let pick = candidates.iter().copied().find(|machine| {
            cycle.is_free(*machine)
                && cycle.contributes(*machine, need)
                && tally.as_ref().is_none_or(|tally| tally.admits(cycle, *machine))
        });
        let Some(machine) = pick else { return };
        cycle.claim(machine, need);
        cycle.rows[need].acquired.push(machine);
        if let Some(tally) = &mut tally {
            tally.take(cycle, machine);
        }
    }
}
