//! A census: what is in a scenario, counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bigfleet_model::machine::MachineState;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_scenario::Scenario;

use crate::place::RACK;

/// What is in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    /// All machines.
    pub machines: usize,
    /// Machines by state; states without machines are left out.
    pub states: BTreeMap<MachineState, usize>,
    /// Distinct (type, zone, capacity type, price).
    pub classes: usize,
    /// Distinct racks.
    pub racks: usize,
    /// Clusters that ask for something.
    pub clusters: usize,
    /// Rows of the largest roll-up.
    pub largest_roll_up: usize,
    /// All rows of demand.
    pub needs: usize,
    /// Rows with `Same`.
    pub same_needs: usize,
    /// Rows with a spread the engine enforces.
    pub spread_needs: usize,
    /// Distinct lists of requirements, `Same` included.
    pub requirement_sets: usize,
    /// Distinct profiles.
    pub profiles: usize,
    /// Rows by priority.
    pub priorities: BTreeMap<i32, usize>,
    /// Distinct interruption buckets.
    pub interruption_buckets: usize,
    /// Distinct reclamation buckets.
    pub reclamation_buckets: usize,
    /// Whole cpus asked for.
    pub demanded_cpus: u64,
    /// Whole cpus of Configured machines.
    pub bound_cpus: u64,
    /// Whole cpus of all machines.
    pub supplied_cpus: u64,
}

/// Counts what is in a scenario.
pub fn census(scenario: &Scenario) -> Census {
    let mut states = BTreeMap::new();
    let mut classes = BTreeSet::new();
    let mut racks = BTreeSet::new();
    let (mut bound_milli, mut supplied_milli) = (0, 0);
    for machine in &scenario.machines {
        *states.entry(machine.state).or_insert(0) += 1;
        let price = machine.price_usd_per_hour.to_bits();
        classes.insert((&*machine.instance_type, &*machine.zone, machine.capacity_type, price));
        racks.extend(machine.labels.get(RACK));
        supplied_milli += cpu_milli(machine.provides());
        if machine.state == MachineState::Configured {
            bound_milli += cpu_milli(machine.provides());
        }
    }
    let mut roll_ups: BTreeMap<&str, usize> = BTreeMap::new();
    let mut priorities = BTreeMap::new();
    let (mut requirement_sets, mut profiles) = (BTreeSet::new(), BTreeSet::new());
    let (mut interruption, mut reclamation) = (BTreeSet::new(), BTreeSet::new());
    for need in &scenario.needs {
        *roll_ups.entry(&need.cluster).or_insert(0) += 1;
        let profile = &need.profile;
        *priorities.entry(profile.priority()).or_insert(0) += 1;
        requirement_sets.insert(profile.requirements());
        profiles.insert(profile.fingerprint());
        interruption.insert(profile.interruption());
        reclamation.insert(profile.reclamation());
    }
    let demanded_milli: u64 = scenario.needs.iter().map(|need| cpu_milli(&need.aggregate)).sum();
    Census {
        machines: scenario.machines.len(),
        states,
        classes: classes.len(),
        racks: racks.len(),
        clusters: roll_ups.len(),
        largest_roll_up: roll_ups.values().copied().max().unwrap_or(0),
        needs: scenario.needs.len(),
        same_needs: scenario.needs.iter().filter(|need| need.profile.same().is_some()).count(),
        spread_needs: scenario.needs.iter().filter(|need| need.profile.strict_spread().is_some()).count(),
        requirement_sets: requirement_sets.len(),
        profiles: profiles.len(),
        priorities,
        interruption_buckets: interruption.len(),
        reclamation_buckets: reclamation.len(),
        demanded_cpus: demanded_milli / 1000,
        bound_cpus: bound_milli / 1000,
        supplied_cpus: supplied_milli / 1000,
    }
}

fn cpu_milli(vector: &ResourceVec) -> u64 {
    vector.get(&ResourceName::CPU)
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |part: usize| 100.0 * part as f64 / self.needs.max(1) as f64;
        writeln!(f, "machines             {:>9}", self.machines)?;
        for (state, count) in &self.states {
            writeln!(f, "  {:<18} {count:>9}", state.name())?;
        }
        writeln!(f, "classes              {:>9}  (type, zone, capacity type, price)", self.classes)?;
        writeln!(f, "racks                {:>9}", self.racks)?;
        writeln!(
            f,
            "clusters             {:>9}  largest roll-up {} rows",
            self.clusters, self.largest_roll_up
        )?;
        writeln!(f, "needs                {:>9}", self.needs)?;
        writeln!(f, "  Same               {:>9}  {:.1} %", self.same_needs, share(self.same_needs))?;
        writeln!(f, "  strict spread      {:>9}  {:.1} %", self.spread_needs, share(self.spread_needs))?;
        for (priority, count) in &self.priorities {
            writeln!(f, "  priority {priority:<9} {count:>9}  {:.1} %", share(*count))?;
        }
        writeln!(f, "requirement sets     {:>9}", self.requirement_sets)?;
        writeln!(f, "profiles             {:>9}", self.profiles)?;
        let buckets = (self.interruption_buckets, self.reclamation_buckets);
        writeln!(f, "buckets              {:>9}  interruption, {} reclamation", buckets.0, buckets.1)?;
        writeln!(f, "cpus demanded        {:>9}", self.demanded_cpus)?;
        writeln!(f, "cpus bound           {:>9}", self.bound_cpus)?;
        write!(f, "cpus supplied        {:>9}", self.supplied_cpus)
    }
}
