//! Phase 1, first half: credit. What a cluster has already is attributed to its needs, in demand order.

use bigfleet_model::machine::{Machine, MachineState};

use crate::cycle::Cycle;
use crate::domain::{self, Earmarks};
use crate::order;

/// Credits every need in demand order. Gangs choose their domain on the way.
pub(crate) fn credit(cycle: &mut Cycle<'_>) {
    let mut earmarks = Earmarks::default();
    for need in 0..cycle.rows.len() {
        let creditable = creditable(cycle, need);
        if cycle.rows[need].same_key().is_none() {
            claim_until_covered(cycle, need, creditable);
            continue;
        }
        cycle.rows[need].domain = domain::choose(cycle, need, &creditable, &earmarks);
        let inside = creditable.into_iter().filter(|m| cycle.in_chosen_domain(*m, need));
        let (own, others): (Vec<usize>, Vec<usize>) = inside.partition(|m| is_own(cycle, *m, need));
        claim_until_covered(cycle, need, own);
        claim_until_covered(cycle, need, others);
        earmarks.earmark(cycle, need);
    }
}

/// The free counting machines of the need's cluster: Configured in keep order, then Configuring, then the
/// ones being created for this very need, by id.
fn creditable(cycle: &Cycle<'_>, need: usize) -> Vec<usize> {
    let asking = &cycle.rows[need].need;
    let in_cluster = |state: MachineState| {
        move |at: usize, m: &Machine| {
            m.state == state && *m.cluster == *asking.cluster && cycle.is_free(at) && cycle.counts(at, need)
        }
    };
    let made_for_it = |at: usize, m: &Machine| {
        m.state == MachineState::Creating
            && m.assigned.cluster == asking.cluster
            && is_own(cycle, at, need)
            && cycle.is_free(at)
            && cycle.counts(at, need)
    };
    let mut list = cycle.machines_where(in_cluster(MachineState::Configured), order::keep);
    list.extend(cycle.machines_where(in_cluster(MachineState::Configuring), order::keep));
    list.extend(cycle.machines_where(made_for_it, order::by_id));
    list
}

/// Whether the machine is stamped with the need's profile and group.
pub(crate) fn is_own(cycle: &Cycle<'_>, machine: usize, need: usize) -> bool {
    let stamp = &cycle.machines[machine].assigned;
    let asking = &cycle.rows[need].need;
    *stamp.fingerprint == *asking.profile.fingerprint() && stamp.group == asking.group
}

/// Claims machines in this order, passing over those that add nothing, until nothing is missing.
fn claim_until_covered(cycle: &mut Cycle<'_>, need: usize, machines: Vec<usize>) {
    for machine in machines {
        if cycle.contributes(machine, need) {
            cycle.claim(machine, need);
            cycle.rows[need].credited.push(machine);
        }
    }
}
