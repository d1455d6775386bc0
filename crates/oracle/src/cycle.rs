//! What a cycle knows while it decides: the snapshot, and who has claimed what so far.

use std::cmp::Ordering;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_scenario::answer::{self, Amounts};
use bigfleet_scenario::{CycleOptions, Scenario};

use crate::amounts::{contributes, covers, subtract};
use crate::matching::{self, matches};
use crate::order;

/// A need after folding, and where it stands. Everything below its first four fields grows as phases pass.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The need itself.
    pub(crate) need: Need,
    /// What it asks for.
    pub(crate) aggregate: Amounts,
    /// What every machine must hold alone.
    pub(crate) min_unit: Amounts,
    /// Whether folding made it.
    pub(crate) folded: bool,
    /// What is still missing in phase 1.
    pub(crate) missing: Amounts,
    /// The domain chosen for a gang.
    pub(crate) domain: Option<Domain>,
    /// Machines it had and keeps.
    pub(crate) credited: Vec<usize>,
    /// Machines it gets.
    pub(crate) acquired: Vec<usize>,
    /// What was free and counted for it when its turn to acquire came.
    pub(crate) free_at_turn: Vec<usize>,
    /// What phase 2 did for it; none if it was not short.
    pub(crate) freed: Option<Freed>,
}

/// A chosen domain.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    /// The value of the `Same` key.
    pub(crate) value: String,
    /// Whether its joint supply covers the demand.
    pub(crate) covers: bool,
}

/// What phase 2 did for a need.
#[derive(Clone, Debug)]
pub(crate) struct Freed {
    /// Machines that were draining for it already.
    pub(crate) in_flight: Vec<usize>,
    /// Machines that are to be drained now, in the order they were picked.
    pub(crate) victims: Vec<usize>,
    /// What neither of them covers.
    pub(crate) missing: Amounts,
}

impl Row {
    /// A need as it was asked for.
    pub(crate) fn new(need: Need) -> Self {
        let aggregate = answer::amounts(&need.aggregate);
        Self {
            missing: aggregate.clone(),
            min_unit: answer::amounts(&need.min_unit),
            aggregate,
            need,
            folded: false,
            domain: None,
            credited: Vec::new(),
            acquired: Vec::new(),
            free_at_turn: Vec::new(),
            freed: None,
        }
    }

    /// The key of its domains, if it is a gang.
    pub(crate) fn same_key(&self) -> Option<&str> {
        matching::same_key(&self.need.profile)
    }

    /// What it asks for above all others.
    pub(crate) fn priority(&self) -> i32 {
        self.need.profile.priority()
    }

    /// Everything it claims.
    pub(crate) fn held(&self) -> impl Iterator<Item = usize> + '_ {
        self.credited.iter().chain(&self.acquired).copied()
    }
}

/// One cycle under way. Machines and needs are named by their index.
pub(crate) struct Cycle<'a> {
    /// The fleet.
    pub(crate) machines: &'a [Machine],
    /// What each machine provides.
    pub(crate) provides: Vec<Amounts>,
    /// The need that claims each machine.
    pub(crate) claimed_by: Vec<Option<usize>>,
    /// The demand, in demand order.
    pub(crate) rows: Vec<Row>,
    /// The options.
    pub(crate) options: &'a CycleOptions,
    /// The instant.
    pub(crate) now_unix_nanos: i64,
}

impl<'a> Cycle<'a> {
    /// A cycle before its first phase.
    pub(crate) fn new(scenario: &'a Scenario, rows: Vec<Row>) -> Self {
        Self {
            machines: &scenario.machines,
            provides: scenario.machines.iter().map(provides).collect(),
            claimed_by: vec![None; scenario.machines.len()],
            rows,
            options: &scenario.options,
            now_unix_nanos: scenario.now_unix_nanos,
        }
    }

    /// The machines for which `wanted` holds, in the given order.
    pub(crate) fn machines_where(
        &self,
        wanted: impl Fn(usize, &Machine) -> bool,
        order: impl Fn(&Machine, &Machine) -> Ordering,
    ) -> Vec<usize> {
        let mut found: Vec<usize> =
            (0..self.machines.len()).filter(|at| wanted(*at, &self.machines[*at])).collect();
        found.sort_by(|a, b| order(&self.machines[*a], &self.machines[*b]));
        found
    }

    /// Whether a machine counts for a need: it matches and covers `min_unit`.
    pub(crate) fn counts(&self, machine: usize, need: usize) -> bool {
        let row = &self.rows[need];
        matches(&self.machines[machine], &row.need.profile) && covers(&self.provides[machine], &row.min_unit)
    }

    /// Whether nobody claims the machine.
    pub(crate) fn is_free(&self, machine: usize) -> bool {
        self.claimed_by[machine].is_none()
    }

    /// The machine's domain for a gang.
    pub(crate) fn domain_of(&self, machine: usize, need: usize) -> Option<&'a str> {
        matching::value(&self.machines[machine], self.rows[need].same_key()?)
    }

    /// Whether a machine lies where a gang must lie; always true for a plain need, never without a domain.
    pub(crate) fn in_chosen_domain(&self, machine: usize, need: usize) -> bool {
        let row = &self.rows[need];
        row.same_key().is_none()
            || row.domain.as_ref().is_some_and(|d| self.domain_of(machine, need) == Some(&d.value))
    }

    /// Whether a machine still helps a need in phase 1.
    pub(crate) fn contributes(&self, machine: usize, need: usize) -> bool {
        contributes(&self.provides[machine], &self.rows[need].missing)
    }

    /// Gives the whole machine to the need.
    pub(crate) fn claim(&mut self, machine: usize, need: usize) {
        assert!(self.claimed_by[machine].is_none(), "a machine is claimed once");
        self.claimed_by[machine] = Some(need);
        subtract(&mut self.rows[need].missing, &self.provides[machine]);
    }

    /// What the need may acquire now, in the order it takes it: counting free Idle machines, cheapest first,
    /// then counting free Speculative ones, lowest effective cost first.
    pub(crate) fn acquirable(&self, need: usize) -> Vec<usize> {
        let penalty_usd = self.rows[need].need.profile.interruption().upper_bound_dollars();
        let free = |state: MachineState| {
            move |at: usize, m: &Machine| m.state == state && self.is_free(at) && self.counts(at, need)
        };
        let mut list = self.machines_where(free(MachineState::Idle), order::idle);
        let slots = self
            .machines_where(free(MachineState::Speculative), |a, b| order::speculative(a, b, penalty_usd));
        list.extend(slots);
        list
    }
}

/// What a machine provides: its allocatable, or its resources if that says nothing.
pub(crate) fn provides(machine: &Machine) -> Amounts {
    let allocatable = answer::amounts(&machine.allocatable);
    if allocatable.is_empty() { answer::amounts(&machine.resources) } else { allocatable }
}
