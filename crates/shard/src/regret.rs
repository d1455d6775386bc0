//! A machine is not taken back if the like of it would be bound in its place.
//!
//! What a cluster's needs are credited with can depend on a machine none of them claims: a gang chooses its domain by
//! everything there is. Taken back, such a machine changes the choice, another need of the cluster comes up short and
//! gets the like of it; once that is there, the old choice holds again and a machine is left over. At steady demand that
//! would go on for ever.
//!
//! So before machines are taken back, the next cycle is tried on a fork: with these machines Draining, and with them Idle.
//! A reclaim after which a need of the same cluster would get more machines than it gets now, and could use that very
//! machine, is held back. The rail changes no decision and remembers nothing: every cycle asks anew.
//!
//! Only gangs look at machines that nobody claims, when they choose a domain and when they fold. A machine that no gang of
//! its cluster could use is not tried.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind, Decision, Demand, ShortNeed};
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::stamp::Assignment;

use crate::shard::Shard;
use crate::tape::Fate;

/// With more machines to try than this in one cycle a fleet shrinks; to and fro is a matter of a few machines.
const MOST_TRIED: usize = 64;
/// The larger the fleet, the dearer a trial and the fewer there are in one cycle. What no trial is left for is let
/// through.
const TRIES_TIMES_MACHINES: usize = 500_000;

/// How many trials a cycle may still make.
pub(crate) struct Tries(usize);

impl Tries {
    fn take(&mut self) -> bool {
        let any = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        any
    }
}

/// How many machines each need gets.
fn gets(decision: &Decision) -> BTreeMap<NeedKey, usize> {
    let mut gets = BTreeMap::new();
    for demand in decision.actions.iter().filter_map(|action| action.need.as_ref()) {
        *gets.entry(demand.need.key()).or_default() += 1;
    }
    gets
}

/// Whether a machine may be counted for a need.
fn counts(machine: &Machine, need: &Need) -> bool {
    need.profile.matches(machine.facts()) && need.fits_on(machine.provides())
}

/// Whether a machine could have served one of these needs of its own cluster.
fn is_like(machine: &Machine, demands: &[Arc<Demand>]) -> bool {
    demands.iter().any(|demand| *demand.need.cluster == *machine.cluster && counts(machine, &demand.need))
}

/// Whether somebody else is short of what a machine has: then moving it helps.
fn is_awaited(machine: &Machine, shorts: &[ShortNeed<'_>]) -> bool {
    shorts.iter().any(|short| {
        let need = &short.demand.need;
        let missing = short.unresolved.as_ref();
        *need.cluster != *machine.cluster
            && missing.is_some_and(|missing| machine.provides().contributes(missing))
            && counts(machine, need)
    })
}

fn draining(machine: &Machine) -> Machine {
    Machine { state: MachineState::Draining, ..machine.clone() }
}

fn idle(machine: &Machine) -> Machine {
    let (cluster, assigned) = ("".into(), Assignment::default());
    Machine { state: MachineState::Idle, cluster, assigned, ..machine.clone() }
}

impl Shard {
    /// The trials of one cycle.
    pub(crate) fn tries(&self) -> Tries {
        Tries((TRIES_TIMES_MACHINES / self.table.len().max(1)).clamp(1, 32))
    }

    /// Of the reclaims that were let through, the places of those that would be regretted.
    pub(crate) fn regretted(
        &self,
        decision: &Decision,
        fates: &[Fate],
        tries: &mut Tries,
        now: i64,
    ) -> BTreeSet<usize> {
        let begun = |(index, action): (usize, &Action)| {
            let is_begun = action.kind == ActionKind::Reclaim && fates[index] == Fate::Begun;
            let slot = self.table.find(&action.machine).filter(|_| is_begun)?;
            let machine = &*self.table.row(slot).machine;
            self.is_for_gangs(machine).then_some((index, machine))
        };
        let reclaims: Vec<(usize, &Machine)> =
            decision.actions.iter().enumerate().filter_map(begun).collect();
        if reclaims.is_empty() || reclaims.len() > MOST_TRIED || !tries.take() {
            return BTreeSet::new();
        }
        let gets = gets(decision);
        let machines: Vec<&Machine> = reclaims.iter().map(|(_, machine)| *machine).collect();
        let grown = self.grown_without(&machines, &gets, now);
        if grown.is_empty() {
            return BTreeSet::new();
        }
        let shorts = self.engine.short_needs();
        let suspects = reclaims
            .into_iter()
            .filter(|(_, machine)| is_like(machine, &grown) && !is_awaited(machine, &shorts));
        let regretted = suspects.filter(|(_, machine)| {
            tries.take() && is_like(machine, &self.grown_without(&[machine], &gets, now))
        });
        regretted.map(|(index, _)| index).collect()
    }

    /// Whether a gang of its cluster could use a machine.
    fn is_for_gangs(&self, machine: &Machine) -> bool {
        let demand = self.clusters.get(&*machine.cluster).map(|cluster| &cluster.demand);
        demand
            .into_iter()
            .flat_map(|needs| needs.iter())
            .any(|need| need.profile.same().is_some() && need.profile.matches(machine.facts()))
    }

    /// The needs that would get more than they do now if these machines were taken back: next, or once they are free.
    fn grown_without(
        &self,
        machines: &[&Machine],
        gets_now: &BTreeMap<NeedKey, usize>,
        now: i64,
    ) -> Vec<Arc<Demand>> {
        let mut fleet = self.engine.fork();
        for after in [draining, idle] {
            for machine in machines {
                // The engine took this machine in as it is now, and the copy breaks no rule that one kept.
                let _ = fleet.observe(&after(machine));
            }
            let decision = fleet.cycle(&self.options(), now);
            let gets_then = gets(&decision);
            let grows = |demand: &&Arc<Demand>| {
                let key = demand.need.key();
                gets_then.get(&key) > gets_now.get(&key)
            };
            let demands = decision.actions.iter().filter_map(|action| action.need.as_ref());
            let grown: Vec<Arc<Demand>> = demands.filter(grows).cloned().collect();
            if !grown.is_empty() {
                return grown;
            }
        }
        Vec::new()
    }
}
