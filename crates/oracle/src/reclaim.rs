//! Phase 3: reclaim what no need claims, release what has been idle for long enough.

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};

use crate::cycle::Cycle;
use crate::order;

/// The Configured machines to drain: by cluster, in keep order.
pub(crate) fn reclaim(cycle: &Cycle<'_>) -> Vec<usize> {
    let preempted = |at: usize| {
        cycle.rows.iter().filter_map(|row| row.freed.as_ref()).any(|freed| freed.victims.contains(&at))
    };
    cycle.machines_where(
        |at, m| {
            m.state == MachineState::Configured
                && cycle.has_reported(&m.cluster)
                && cycle.is_unclaimed(at)
                && !preempted(at)
        },
        |a, b| a.cluster.as_bytes().cmp(b.cluster.as_bytes()).then_with(|| order::keep(a, b)),
    )
}

/// The Idle machines to give back, by id.
pub(crate) fn release(cycle: &Cycle<'_>) -> Vec<usize> {
    let policy = &cycle.options.release;
    let is_due = |machine: &Machine| {
        let hold = match machine.capacity_type {
            CapacityType::OnDemand => policy.on_demand_hold_nanos,
            CapacityType::Spot => policy.spot_hold_nanos,
            CapacityType::BareMetal | CapacityType::Reserved | CapacityType::Unspecified => None,
        };
        let (Some(hold), Some(since)) = (hold, machine.idle_since_unix_nanos) else { return false };
        i128::from(cycle.now_unix_nanos) - i128::from(since) >= i128::from(hold.get())
    };
    cycle.machines_where(
        |at, m| m.state == MachineState::Idle && cycle.is_unclaimed(at) && is_due(m),
        order::by_id,
    )
}
