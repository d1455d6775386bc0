//! What a cycle knows while it decides: the snapshot, and who keeps and who has claimed what so far.

use std::cmp::Ordering;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_scenario::answer::{self, Amounts};
use bigfleet_scenario::{CycleOptions, Scenario};

use crate::amounts::{add, covers, less};
use crate::matching::{self, matches};
use crate::met::Met;
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
    /// The gangs that were folded into it; none for a need that stands as it was asked for.
    pub(crate) gangs: Vec<NeedKey>,
    /// What is still missing in phase 1.
    pub(crate) missing: Amounts,
    /// The domain chosen for a gang.
    pub(crate) domain: Option<Domain>,
    /// Bound machines it was credited with.
    pub(crate) credited: Vec<usize>,
    /// Free machines it gets, and bound ones it takes over.
    pub(crate) gained: Vec<usize>,
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
            gangs: Vec::new(),
            domain: None,
            credited: Vec::new(),
            gained: Vec::new(),
            free_at_turn: Vec::new(),
            freed: None,
        }
    }

    /// Whether folding made it.
    pub(crate) fn is_folded(&self) -> bool {
        !self.gangs.is_empty()
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
        self.credited.iter().chain(&self.gained).copied()
    }

    /// Whether this is its identity or, if it is folded, that of one of its gangs.
    fn goes_by(&self, key: &NeedKey) -> bool {
        self.need.key() == *key || self.gangs.contains(key)
    }

    /// Whether the machine is its own by its stamp.
    pub(crate) fn owns(&self, machine: &Machine) -> bool {
        let stamp = &machine.assigned;
        self.goes_by(&NeedKey {
            cluster: stamp.cluster.clone(),
            fingerprint: stamp.fingerprint.clone(),
            group: stamp.group.clone(),
        })
    }

    /// Whether the machine drains on its behalf.
    pub(crate) fn drains(&self, machine: &Machine) -> bool {
        machine.state == MachineState::Draining
            && machine.draining_for.as_ref().is_some_and(|key| self.goes_by(key))
    }
}

/// One cycle under way. Machines and needs are named by their index.
pub(crate) struct Cycle<'a> {
    /// The fleet.
    pub(crate) machines: &'a [Machine],
    /// What each machine provides.
    pub(crate) provides: Vec<Amounts>,
    /// The need that keeps each machine.
    pub(crate) kept_by: Vec<Option<usize>>,
    /// The need that claims each machine.
    pub(crate) claimed_by: Vec<Option<usize>>,
    /// The demand, in demand order.
    pub(crate) rows: Vec<Row>,
    /// The options.
    pub(crate) options: &'a CycleOptions,
    /// The instant.
    pub(crate) now_unix_nanos: i64,
    /// Which rules decided so far.
    pub(crate) met: Met,
}

impl<'a> Cycle<'a> {
    /// A cycle before its first phase.
    pub(crate) fn new(scenario: &'a Scenario, rows: Vec<Row>, met: Met) -> Self {
        Self {
            machines: &scenario.machines,
            provides: scenario.machines.iter().map(provides).collect(),
            kept_by: vec![None; scenario.machines.len()],
            claimed_by: vec![None; scenario.machines.len()],
            rows,
            options: &scenario.options,
            now_unix_nanos: scenario.now_unix_nanos,
            met,
        }
    }

    /// The needs in precedence order.
    pub(crate) fn turns(&self) -> Vec<usize> {
        let mut turns: Vec<usize> = (0..self.rows.len()).collect();
        turns.sort_by(|a, b| order::precedence(&self.rows[*a], &self.rows[*b]).1);
        turns
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
    pub(crate) fn is_unclaimed(&self, machine: usize) -> bool {
        self.claimed_by[machine].is_none()
    }

    /// Whether the machine is a need's own.
    pub(crate) fn is_own(&self, machine: usize, need: usize) -> bool {
        self.rows[need].owns(&self.machines[machine])
    }

    /// The machines bound to a need: its cluster's Configured ones in keep order, then its Configuring ones,
    /// then its own Creating ones by id; those that count, whoever claims or keeps them.
    pub(crate) fn bound(&self, need: usize) -> Vec<usize> {
        let in_cluster = |state: MachineState| {
            move |at: usize, m: &Machine| {
                m.state == state && *m.cluster == *self.rows[need].need.cluster && self.counts(at, need)
            }
        };
        let made_for_it = |at: usize, m: &Machine| {
            m.state == MachineState::Creating && self.is_own(at, need) && self.counts(at, need)
        };
        let mut list = self.machines_where(in_cluster(MachineState::Configured), order::keep);
        list.extend(self.machines_where(in_cluster(MachineState::Configuring), order::keep));
        list.extend(self.machines_where(made_for_it, order::by_id));
        list
    }

    /// The unclaimed Idle and Speculative machines that count for a need, by id.
    pub(crate) fn free(&self, need: usize) -> Vec<usize> {
        let is_free = |at: usize, m: &Machine| {
            matches!(m.state, MachineState::Idle | MachineState::Speculative)
                && self.is_unclaimed(at)
                && self.counts(at, need)
        };
        self.machines_where(is_free, order::by_id)
    }

    /// The machines Draining on behalf of a need that count, by id.
    pub(crate) fn draining_for(&self, need: usize) -> Vec<usize> {
        self.machines_where(|at, m| self.rows[need].drains(m) && self.counts(at, need), order::by_id)
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

    /// What these machines provide together.
    pub(crate) fn total(&self, machines: &[usize]) -> Amounts {
        let mut total = Amounts::new();
        for machine in machines {
            add(&mut total, &self.provides[*machine]);
        }
        total
    }

    /// Gives whole machines to the need.
    pub(crate) fn claim(&mut self, machines: &[usize], need: usize) {
        for machine in machines {
            assert!(self.claimed_by[*machine].is_none(), "a machine is claimed once");
            self.claimed_by[*machine] = Some(need);
            let row = &mut self.rows[need];
            row.missing = less(&row.missing, &self.provides[*machine]);
        }
    }

    /// Whether a cluster has reported since it was bound to this shard.
    pub(crate) fn has_reported(&self, cluster: &str) -> bool {
        self.options.ready_clusters.as_ref().is_none_or(|ready| ready.iter().any(|name| **name == *cluster))
    }
}

/// What a machine provides: its allocatable, or its resources if that says nothing.
pub(crate) fn provides(machine: &Machine) -> Amounts {
    let allocatable = answer::amounts(&machine.allocatable);
    if allocatable.is_empty() { answer::amounts(&machine.resources) } else { allocatable }
}
