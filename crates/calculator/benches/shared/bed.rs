//! Where benchmarks touch the engine: one place to change when its interface does.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_calculator::{engine_options, load};
use bigfleet_engine::{ActionKind, Decision, Fleet, Options, Parallelism, Step};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_scenario::{Scenario, answer};
use bigfleet_shapes::{Change, settled};

/// An engine with a scenario's machines and needs, and the records a provider would hold.
pub(crate) struct Bed {
    pub(crate) fleet: Fleet,
    pub(crate) options: Options,
    pub(crate) now_unix_nanos: i64,
    pub(crate) machines: BTreeMap<Box<str>, Machine>,
}

/// What a need got.
pub(crate) struct Served {
    pub(crate) need: Need,
    /// Machines it had.
    pub(crate) credited: Vec<Box<str>>,
    /// Machines ordered for it.
    pub(crate) acquired: Vec<Box<str>>,
    pub(crate) short: bool,
}

impl Bed {
    /// Loads a scenario; no cycle has run yet.
    pub(crate) fn new(scenario: &Scenario, parallelism: Parallelism) -> Self {
        Self {
            fleet: load(scenario, parallelism).expect("a generated scenario is valid"),
            options: engine_options(&scenario.options),
            now_unix_nanos: scenario.now_unix_nanos,
            machines: scenario.machines.iter().map(|m| (m.id.clone(), m.clone())).collect(),
        }
    }

    /// One cycle.
    pub(crate) fn cycle(&mut self) -> Arc<Decision> {
        self.fleet.cycle(&self.options, self.now_unix_nanos)
    }

    /// One cycle, with a call at the end of each step.
    pub(crate) fn cycle_probed(&mut self, probe: &mut dyn FnMut(Step)) -> Arc<Decision> {
        self.fleet.cycle_probed(&self.options, self.now_unix_nanos, probe)
    }

    /// Replaces a cluster's demand.
    pub(crate) fn replace(&mut self, cluster: &str, rows: Vec<Need>) {
        self.fleet.replace(cluster, rows, self.now_unix_nanos).expect("a generated roll-up is valid");
    }

    /// Tells the engine of changes; the records stay as they were.
    pub(crate) fn apply(&mut self, changes: &[Change]) {
        apply(&mut self.fleet, changes, self.now_unix_nanos);
    }

    /// Notes changes of machines in the records.
    pub(crate) fn note(&mut self, changes: &[Change]) {
        for change in changes {
            if let Change::Machine(machine) = change {
                self.machines.insert(machine.id.clone(), machine.clone());
            }
        }
    }

    /// Carries a decision out at once, as if providers were instant.
    pub(crate) fn carry_out(&mut self, decision: &Decision) {
        carry_out(&mut self.fleet, &mut self.machines, decision, self.now_unix_nanos);
    }

    /// Cycles and carries out until nothing is ordered any more, at most so many rounds. Returns the rounds made and how many
    /// actions were left.
    pub(crate) fn settle(&mut self, at_most: usize) -> (usize, usize) {
        let mut rounds = 0;
        let mut decision = self.cycle();
        while !decision.actions.is_empty() && rounds < at_most {
            self.carry_out(&decision);
            decision = self.cycle();
            rounds += 1;
        }
        (rounds, decision.actions.len())
    }

    /// What every need got in the last cycle, gangs folded as the cycle folded them.
    pub(crate) fn served(&self) -> Vec<Served> {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).into()).collect();
        let outcomes = self.fleet.outcomes();
        let served = outcomes.iter().map(|outcome| Served {
            need: outcome.demand.need.clone(),
            credited: ids(&outcome.credited),
            acquired: ids(&outcome.acquired),
            short: !outcome.deficit.is_zero(),
        });
        served.collect()
    }
}

/// Tells an engine of changes.
pub(crate) fn apply(fleet: &mut Fleet, changes: &[Change], now_unix_nanos: i64) {
    for change in changes {
        match change {
            Change::Machine(machine) => {
                fleet.observe(machine).expect("a generated machine is valid");
            }
            Change::Needs { cluster, rows } => {
                fleet.replace(cluster, rows.clone(), now_unix_nanos).expect("a generated roll-up is valid");
            }
        }
    }
}

/// Carries a decision out at once, as if providers were instant.
pub(crate) fn carry_out(
    fleet: &mut Fleet,
    machines: &mut BTreeMap<Box<str>, Machine>,
    decision: &Decision,
    now_unix_nanos: i64,
) {
    for action in &decision.actions {
        let machine = machines.get_mut(&action.machine).expect("an action names a known machine");
        let stamp = action
            .need
            .as_ref()
            .map(|demand| settled::stamp(&demand.need.cluster, &demand.need.profile, &demand.need.group));
        let kind = match action.kind {
            ActionKind::Bootstrap => answer::ActionKind::Bootstrap,
            ActionKind::Provision => answer::ActionKind::Provision,
            ActionKind::Preempt => answer::ActionKind::Preempt,
            ActionKind::Reclaim => answer::ActionKind::Reclaim,
            ActionKind::Delete => answer::ActionKind::Delete,
        };
        settled::apply_action(machine, kind, stamp.unwrap_or_default(), now_unix_nanos);
        fleet.observe(machine).expect("a settled machine is valid");
    }
}
