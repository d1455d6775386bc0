//! Cordons of drains that are off, until they are seen to be gone.
//!
//! A cordon is ordered and lands later. If the shard leaves a machine where it is in between, its node bears no mark yet, and
//! to lift nothing would leave it cordoned for ever when the cordon lands after all: a machine that is paid for and takes no
//! pods. An uncordon beside a cordon under way could overtake it. So the mark is waited for, and lifted when it is seen.

use std::collections::BTreeMap;

use super::{Order, STEP_RETRY_NANOS, World};

/// How long after it was ordered a cordon may still land: longer than any call waits.
const LANDS_WITHIN_NANOS: i64 = 120_000_000_000;

/// Machines whose node should bear no mark of ours.
#[derive(Debug, Default)]
pub(super) struct Lifts {
    machines: BTreeMap<String, Lift>,
}

#[derive(Debug)]
struct Lift {
    /// Until when a mark may still appear.
    until: i64,
    /// When the uncordon was last ordered.
    ordered_at: Option<i64>,
}

impl Lift {
    fn due(&self) -> i64 {
        self.ordered_at.map_or(self.until, |at| at.saturating_add(STEP_RETRY_NANOS))
    }
}

impl Lifts {
    /// The drain of a machine is off. `cordoned_at` is when its cordon was ordered, if that was not seen yet.
    pub(super) fn add(&mut self, machine: &str, cordoned_at: Option<i64>) {
        let until = cordoned_at.map_or(i64::MIN, |at| at.saturating_add(LANDS_WITHIN_NANOS));
        self.machines.insert(machine.into(), Lift { until, ordered_at: None });
    }

    /// The machine is let go again, or is no node here any more.
    pub(super) fn forget(&mut self, machine: &str) {
        self.machines.remove(machine);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.machines.is_empty()
    }

    /// Lifts what is seen, and says so again while it is.
    pub(super) fn step(&mut self, now: i64, world: &dyn World, orders: &mut Vec<Order>) {
        self.machines.retain(|machine, lift| {
            let Some(node) = world.node_of(machine) else { return false };
            if node.mark.is_none() {
                return now < lift.until;
            }
            if lift.ordered_at.is_none_or(|at| at.saturating_add(STEP_RETRY_NANOS) <= now) {
                lift.ordered_at = Some(now);
                orders.push(Order::Uncordon { node: node.name });
            }
            true
        });
    }

    /// When to look again if nothing happens before.
    pub(super) fn next_due(&self) -> Option<i64> {
        self.machines.values().map(Lift::due).min()
    }
}
