//! The rails: what of a decision is begun, and what is held back and why.
//!
//! [`Shard::rehearse`] is the one place where that is worked out, without changing anything. A cycle rehearses its decision
//! and begins what was let through; whoever wants to know what the next cycle would do rehearses too.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind, Decision};

use crate::cluster::Cluster;
use crate::execute::passage;
use crate::pauses;
use crate::planted::Bug;
use crate::purchase::Replacing;
use crate::shard::Shard;
use crate::table::{Care, Slot};
use crate::tape::Fate;

/// How many machines a cluster may lose to reclaims, in one cycle and in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReclaimCap {
    /// How many of its machines are Configured now.
    pub configured: usize,
    /// How many it may lose.
    pub most: u32,
    /// How many it lost within the window that ends now.
    pub used: u32,
    /// When the first of those leaves the window; `None` if there are none.
    pub frees_unix_nanos: Option<i64>,
}

/// What was let through so far in one rehearsal.
#[derive(Default)]
struct LetThrough {
    /// Actions that count against the bound.
    bounded: usize,
    /// Moves that take a place.
    places: usize,
    reclaimed: BTreeMap<Arc<str>, u32>,
}

/// The order in which actions are begun: preemptions first, reclaims last.
pub(crate) fn rank(kind: ActionKind) -> u8 {
    match kind {
        ActionKind::Preempt => 0,
        ActionKind::Bootstrap | ActionKind::Provision => 1,
        ActionKind::Delete => 2,
        ActionKind::Reclaim => 3,
    }
}

/// Whether an action first waits for a cluster to let go of the machine, and so occupies nobody.
fn waits(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::Preempt | ActionKind::Reclaim)
}

/// The places of a decision's actions, in the order in which they are begun.
pub(crate) fn in_order(decision: &Decision) -> Vec<usize> {
    let mut order: Vec<usize> = (0..decision.actions.len()).collect();
    order.sort_by_key(|index| rank(decision.actions[*index].kind));
    order
}

impl Shard {
    /// What would become of each action of a decision if it were begun now. Nothing is changed.
    pub fn rehearse(&self, decision: &Decision, now_unix_nanos: i64) -> Vec<Fate> {
        self.rehearse_replacing(decision, &self.replacing(decision, now_unix_nanos), now_unix_nanos)
    }

    /// As [`Shard::rehearse`], where it is known which Provisions replace what was lost.
    pub(crate) fn rehearse_replacing(
        &self,
        decision: &Decision,
        replacing: &Replacing,
        now_unix_nanos: i64,
    ) -> Vec<Fate> {
        let mut fates = vec![Fate::Busy; decision.actions.len()];
        let mut through = LetThrough::default();
        for index in in_order(decision) {
            let action = &decision.actions[index];
            let unconfirmed = replacing.holds(index).then_some(Fate::LossUnconfirmed);
            let held = self.order_to_hold(action, now_unix_nanos).or(unconfirmed);
            let held = held.or_else(|| self.rail(action, &through, now_unix_nanos));
            let held = held.or_else(|| self.obstacle(action, through.places));
            let held = held.or_else(|| self.not_allowed(action, now_unix_nanos));
            fates[index] = held.unwrap_or(Fate::Begun);
            // What is observed takes its share of the bounds, so that no more is told than would be done.
            if matches!(fates[index], Fate::Begun | Fate::Observed) {
                through.bounded += usize::from(action.kind != ActionKind::Preempt);
                through.places += usize::from(!waits(action.kind));
                if let (ActionKind::Reclaim, Some(cluster)) = (action.kind, &action.cluster) {
                    *through.reclaimed.entry(cluster.clone()).or_default() += 1;
                }
            }
        }
        fates
    }

    /// Whether somebody ordered to hold still.
    fn order_to_hold(&self, action: &Action, now: i64) -> Option<Fate> {
        if self.config.rails.dry_run {
            return Some(Fate::DryRun);
        }
        pauses::fate(&self.pauses, now, action)
    }

    /// The rail that holds an action back, if one does.
    fn rail(&self, action: &Action, through: &LetThrough, now: i64) -> Option<Fate> {
        let rails = &self.config.rails;
        if !matches!(action.kind, ActionKind::Bootstrap | ActionKind::Provision) {
            // Nothing is taken by hearsay; and a drain that cannot be ordered would evict pods for nothing.
            let row = self.table.find(&action.machine).map(|slot| self.table.row(slot));
            if row.is_none_or(|row| !self.is_fresh(row.provider, now)) {
                return Some(Fate::StaleInventory);
            }
        }
        if let Some(demand) = &action.need {
            if self.parking.only_looks(&demand.need.key()) && !self.config.has(Bug::ParkedActs) {
                return Some(Fate::OnlyLooks);
            }
            // A machine nobody could bind is not bought, and nobody is drained for it.
            let cluster = self.clusters.get(&demand.need.cluster);
            if cluster.is_none_or(|c| c.session.is_none() || c.operator_backoff_until_unix_nanos > now) {
                return Some(Fate::OperatorBackoff);
            }
        }
        if action.kind == ActionKind::Reclaim && self.is_capped(action, through, now) {
            return Some(Fate::Capped);
        }
        let bound = rails.max_actions_per_cycle;
        (action.kind != ActionKind::Preempt && bound > 0 && through.bounded >= bound)
            .then_some(Fate::OverBound)
    }

    /// Whether a cluster has lost enough machines for this cycle, or for this window.
    fn is_capped(&self, action: &Action, through: &LetThrough, now: i64) -> bool {
        let Some((name, cluster)) =
            action.cluster.as_ref().and_then(|name| self.clusters.get_key_value(name))
        else {
            return true;
        };
        let cap = self.reclaim_cap(cluster, now);
        through.reclaimed.get(name).copied().unwrap_or(0) + cap.used >= cap.most
    }

    /// How many machines a cluster may lose, and has lost lately.
    pub fn reclaim_cap(&self, cluster: &Cluster, now_unix_nanos: i64) -> ReclaimCap {
        let rails = &self.config.rails;
        let since = now_unix_nanos - rails.reclaim_window;
        // A clock that was set back must not open the window early.
        let lately = cluster.reclaims.iter().filter(|(at, _)| *at > since);
        ReclaimCap {
            configured: cluster.configured,
            most: ((rails.reclaim_fraction * cluster.configured as f64).floor() as u32).max(1),
            used: lately.clone().map(|(_, count)| count).sum(),
            frees_unix_nanos: lately.map(|(at, _)| at + rails.reclaim_window).min(),
        }
    }

    /// What about a machine or about the places for moves stands in the way of an action. `more` places are spoken for.
    pub(crate) fn obstacle(&self, action: &Action, more: usize) -> Option<Fate> {
        let Some(slot) = self.table.find(&action.machine) else { return Some(Fate::Busy) };
        let (from, _) = passage(action.kind);
        if self.table.row(slot).machine.state != from {
            return Some(Fate::Busy);
        }
        self.obstacle_at(slot, action.kind, more)
    }

    /// As [`Shard::obstacle`], for a machine that is known to be in the right state.
    fn obstacle_at(&self, slot: Slot, kind: ActionKind, more: usize) -> Option<Fate> {
        let row = self.table.row(slot);
        if row.flight.is_some() || row.care != Care::Fine {
            return Some(Fate::Busy);
        }
        let full = self.moves.airborne() + more >= 2 * self.config.limits.flights;
        (!waits(kind) && full).then_some(Fate::NoPlace)
    }

    /// What holds back an action that no cycle has to let through, on a machine in the right state. It counts against
    /// no bound: what it belongs to was counted.
    pub(crate) fn holds_alone(&self, slot: Slot, action: &Action, now: i64) -> Option<Fate> {
        let held = self.order_to_hold(action, now);
        let held = held.or_else(|| self.rail(action, &LetThrough::default(), now));
        let held = held.or_else(|| self.obstacle_at(slot, action.kind, 0));
        held.or_else(|| self.not_allowed(action, now))
    }
}
