//! A machine bought for a need goes on to be bound for it.
//!
//! A Provision is one action in two halves: the machine is created, then configured for the need's cluster. Creating
//! takes from seconds to an hour, so nobody waits for it: the machine carries the stamp of its need meanwhile, and every
//! cycle credits it to that need or does not. When it is there and the last cycle still did, the second half begins at
//! once. The engine never sees the machine Idle, so for a gang it never stops counting where the gang is assembled.
//!
//! If the need is gone, the claim has lapsed, somebody more important is short of the like of it, or a rail holds
//! binding back, the machine is Idle like any other and the next cycle decides who gets it.

use bigfleet_engine::{Action, ActionKind, Demand};
use bigfleet_model::machine::{Machine, MachineState};

use crate::effect::Step;
use crate::shard::Shard;
use crate::table::Slot;

/// Whether a machine was ordered for a need.
fn is_ordered_for(machine: &Machine, demand: &Demand) -> bool {
    let (stamp, need) = (&machine.assigned, &demand.need);
    stamp.cluster == need.cluster
        && *stamp.fingerprint == *need.profile.fingerprint()
        && stamp.group == need.group
}

/// Whether a machine that came is what was ordered: it counts for the need, in the domain it was ordered in.
fn is_as_ordered(came: &Machine, ordered: &Machine, demand: &Demand) -> bool {
    let need = &demand.need;
    let is_there = need
        .profile
        .same()
        .is_none_or(|same| came.facts().value(same.key()) == ordered.facts().value(same.key()));
    is_there && need.profile.matches(came.facts()) && need.fits_on(came.provides())
}

impl Shard {
    /// The second half of the Provision that `came` is the end of, if it may begin now.
    pub(crate) fn second_half(&self, slot: Slot, came: &Machine, now: i64) -> Option<Action> {
        let ordered = &self.table.row(slot).machine;
        if (ordered.state, came.state) != (MachineState::Creating, MachineState::Idle) {
            return None;
        }
        let demand = self.engine.demand_claiming(&ordered.id)?;
        let goes_on = is_ordered_for(ordered, demand)
            && is_as_ordered(came, ordered, demand)
            && self.is_still_wanted(demand)
            && !self.engine.is_wanted_above(&demand.need, came);
        let bootstrap = Action {
            kind: ActionKind::Bootstrap,
            machine: came.id.clone(),
            cluster: Some(demand.need.cluster.clone()),
            need: Some(demand.clone()),
            grace_secs: None,
        };
        (goes_on && self.holds_alone(slot, &bootstrap, now).is_none()).then_some(bootstrap)
    }

    /// Begins the second half of a Provision.
    pub(crate) fn carry_on(
        &mut self,
        slot: Slot,
        came: Machine,
        second_half: &Action,
        now: i64,
        step: &mut Step,
    ) {
        self.tally.carried_on += 1;
        self.table.row_mut(slot).told = came.state;
        self.set_off(slot, came, second_half, now, step);
    }

    /// Whether a need of the last cycle is still reported, and asks for no less.
    fn is_still_wanted(&self, demand: &Demand) -> bool {
        if !self.news.demand {
            return true;
        }
        if demand.folded {
            // Nobody reports a folded need; what it was made of must be as it was.
            let (Some(cluster), Some(last_cycle)) =
                (self.clusters.get(&demand.need.cluster), self.last_cycle)
            else {
                return false;
            };
            return cluster.changed_unix_nanos < last_cycle;
        }
        let reported = self.engine.need(&demand.need.key());
        reported.is_some_and(|now| now.need.aggregate.covers(&demand.need.aggregate))
    }
}
