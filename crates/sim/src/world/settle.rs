//! When a world must have come to rest: worked out from its own configuration, not from a number that fits all.
//!
//! After the last fault and the last change of load the world still owes some things, and each of them takes as long as the
//! scenario says. Nothing may be begun later than three cycles after the last of them. What is owed one after the other, in
//! the worst case:
//!
//! 1. the last load is reported, and if it erases most of the demand, confirmed;
//! 2. a gang that cannot be assembled tries for eight cycles;
//! 3. *rounds* of moves: somebody is preempted (grace, drain), the victim's demand is bought anew (create, configure), what
//!    is too much is reclaimed (grace, drain). A need that yields makes another one yield at most once for each priority
//!    there is;
//! 4. reclaims wait for their cap: with one machine in a window, as many windows as there are machines;
//! 5. what idles is held, then deleted.
//!
//! Where something went wrong more is owed: a call that hangs is given up after the kit's time, a machine that failed is
//! repaired, one that was refused or denied is left alone for up to half an hour, an operator for up to five minutes.

use bigfleet_model::machine::MachineState;
use bigfleet_shard::{Config, PARK_AFTER_CYCLES};

use super::MINUTE;
use crate::scenario::{Scenario, What};

/// The longest grace of a drain.
const GRACE: i64 = 10 * MINUTE;
/// The kit's time for a move.
const KIT: i64 = 15 * MINUTE;
/// How long a machine is left alone at most.
const COOLING: i64 = 30 * MINUTE;
/// Cycles after which nothing is begun any more.
const CYCLES: i64 = 3;

/// How long after its end a scenario may still act.
pub(super) fn owed_nanos(scenario: &Scenario, config: &Config) -> i64 {
    let (tick, latency) = (config.pace.tick, scenario.latency.nanos());
    let slow = |usual: bigfleet_provider_sim::Span| {
        usual.nanos() + (usual.nanos() as f64 * scenario.dwell.jitter) as i64 + 2 * latency
    };
    let longest =
        |of: fn(&crate::scenario::Cluster) -> i64| scenario.clusters.iter().map(of).max().unwrap_or(0);
    let report = longest(|cluster| cluster.roll_up.nanos());
    let guard = &config.guard;
    let reported = report + i64::from(guard.confirmations) * report.max(guard.spacing) + 2 * latency;
    let parked = i64::try_from(PARK_AFTER_CYCLES).expect("eight") * tick;

    let dwell = &scenario.dwell;
    let heard = config.providers.iter().map(|provider| provider.list_every).max().unwrap_or(0);
    let freed = GRACE.max(longest(|cluster| cluster.evict.nanos())) + slow(dwell.drain) + heard;
    let bought = slow(dwell.create) + slow(dwell.configure) + 2 * heard;
    let priorities: std::collections::BTreeSet<i32> =
        scenario.clusters.iter().flat_map(|cluster| &cluster.work).map(|work| work.priority).collect();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX / 1_000_000_000_000);
    let rounds = count(priorities.len().max(1));

    let machines = count(scenario.fleet.iter().map(|pool| pool.count).sum::<usize>());
    let per_window = ((config.rails.reclaim_fraction * machines as f64
        / scenario.clusters.len().max(1) as f64)
        .floor() as i64)
        .max(1);
    let capped = if scenario.shard.reclaim_fraction >= 1.0 {
        config.rails.reclaim_window
    } else {
        (machines / per_window + 1) * config.rails.reclaim_window
    };
    let hold = scenario.shard.on_demand_hold.nanos().max(scenario.shard.spot_hold.nanos());
    let released = hold + slow(dwell.delete) + heard;
    // Losses that are doubted are replaced when listings agree, one window apart.
    let doubted = i64::from(guard.confirmations) * (config.rails.purchase_window + heard);
    let bounded = match scenario.shard.max_actions {
        0 => 0,
        most => (machines / count(most) + 1) * config.pace.min_spacing,
    };
    // Where nobody could help, shards are asked again after half an hour; what they give then travels in some reports. Whom that was
    // taken from may ask in turn, of what is less important still.
    let helped = if scenario.shard.council.is_some() { rounds * (75 * MINUTE + freed) } else { 0 };
    let well = helped + reported + parked + rounds * (freed + bought) + capped + released + doubted + bounded;
    well + wrongs(scenario, config) + CYCLES * tick
}

/// What is owed because something went wrong.
fn wrongs(scenario: &Scenario, config: &Config) -> i64 {
    let mut owed = 0_i64;
    let any = |is: fn(&What) -> bool| scenario.faults.iter().any(|fault| is(&fault.what));
    if any(|what| matches!(what, What::MovesHang { .. })) {
        owed += KIT + GRACE;
    }
    let moves_may_fail = any(|what| {
        matches!(
            what,
            What::MovesFail { .. }
                | What::MovesHang { .. }
                | What::ZoneOutage { .. }
                | What::MovesDenied { .. }
        )
    });
    let calls_may_fail = any(|what| {
        matches!(
            what,
            What::ProviderDown { .. }
                | What::CallsFail { .. }
                | What::AnswersLost { .. }
                | What::AnswersLate { .. }
                | What::ListStale
                | What::ListDoubles { .. }
                | What::ShownAs { .. }
        )
    });
    if moves_may_fail || calls_may_fail {
        owed += COOLING;
        let budget = i64::from(config.patience.retry_budget) + 1;
        owed += budget * (config.patience.call + config.patience.retry_most);
    }
    if any(|what| {
        matches!(
            what,
            What::OperatorGone { .. }
                | What::OperatorRefuses { .. }
                | What::OperatorStuck { .. }
                | What::OperatorCrashLoops { .. }
        )
    }) {
        owed += config.patience.operator_backoff_most;
    }
    let machines_may_fail = moves_may_fail
        || any(|what| matches!(what, What::MachinesDie { .. }))
        || scenario.fleet.iter().any(|pool| pool.interruption > 0.0);
    if machines_may_fail {
        // What is repaired is supply again, and somebody may do better with it.
        owed += scenario.dwell.repair.nanos();
    }
    let jumps = scenario.faults.iter().map(|fault| match fault.what {
        What::ClockJumps { secs } => secs.abs() * 1_000_000_000,
        _ => 0,
    });
    owed += jumps.sum::<i64>();
    let full = config.providers.iter().map(|provider| provider.full_list_every).max().unwrap_or(0);
    if !scenario.faults.is_empty() {
        // What was missed is in the next full listing; a watchdog may have to look first.
        owed += full + watchdog(config);
    }
    owed
}

/// The longest a machine may be on its way before it stops counting, where that is shorter than the kit's own time.
fn watchdog(config: &Config) -> i64 {
    let patience = &config.patience;
    let of = |state| match state {
        MachineState::Creating => patience.creating,
        MachineState::Configuring => patience.configuring,
        MachineState::Draining => patience.draining,
        _ => patience.deleting,
    };
    let states =
        [MachineState::Creating, MachineState::Configuring, MachineState::Draining, MachineState::Deleting];
    states.into_iter().map(of).max().unwrap_or(0).min(KIT)
}
