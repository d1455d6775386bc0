//! A copy of the fleet that can be changed and let run: the engine's fork and the machines it is about.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind, Decision, Fleet, Options};
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::stamp::Assignment;
use bigfleet_shard::is_paid_for;

/// A copy of the fleet.
#[derive(Clone)]
pub(super) struct World {
    pub(super) fleet: Fleet,
    pub(super) machines: BTreeMap<Box<str>, Arc<Machine>>,
    pub(super) options: Options,
    pub(super) now_unix_nanos: i64,
}

/// What a world costs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WorldBill {
    pub(super) usd_per_hour: f64,
    pub(super) bound: usize,
    pub(super) spot: usize,
    pub(super) interruptions_per_hour: f64,
}

impl World {
    pub(super) fn cycle(&mut self) -> Arc<Decision> {
        self.fleet.cycle(&self.options, self.now_unix_nanos)
    }

    /// Puts a machine; a record the engine refuses changes nothing.
    pub(super) fn put(&mut self, machine: Machine) {
        if self.fleet.observe(&machine).is_ok() {
            self.machines.insert(machine.id.clone(), Arc::new(machine));
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.fleet.remove(id);
        self.machines.remove(id);
    }

    /// Everything that was ordered, and everything that was under way, is done.
    pub(super) fn arrive(&mut self, decision: &Decision) {
        for action in &decision.actions {
            if let Some(machine) = self.machines.get(&action.machine) {
                let arrived = done(Machine::clone(machine), action, self.now_unix_nanos);
                self.put(arrived);
            }
        }
        let moving: Vec<Arc<Machine>> =
            self.machines.values().filter(|machine| machine.state.is_transitional()).cloned().collect();
        for machine in moving {
            self.put(landed(Machine::clone(&machine), self.now_unix_nanos));
        }
    }

    pub(super) fn bill(&self) -> WorldBill {
        let mut bill = WorldBill::default();
        for machine in self.machines.values() {
            if is_paid_for(machine.state) {
                bill.usd_per_hour += machine.price_usd_per_hour;
            }
            if machine.state.is_bound() {
                bill.bound += 1;
                bill.spot += usize::from(machine.capacity_type == CapacityType::Spot);
                bill.interruptions_per_hour += machine.interruption_probability;
            }
        }
        bill
    }
}

fn host(machine: &mut Machine) {
    if machine.host.is_none() {
        machine.host = Some(HostRef { provider: "what-if".into(), reference: machine.id.clone() });
    }
}

fn free(machine: &mut Machine, now_unix_nanos: i64) {
    host(machine);
    machine.state = MachineState::Idle;
    machine.cluster = "".into();
    machine.assigned = Assignment::default();
    machine.draining_for = None;
    machine.idle_since_unix_nanos = Some(now_unix_nanos);
}

fn quota(machine: &mut Machine) {
    machine.state = MachineState::Speculative;
    machine.host = None;
    machine.idle_since_unix_nanos = None;
    machine.assigned = Assignment::default();
}

fn bind(machine: &mut Machine, cluster: &str) {
    host(machine);
    machine.state = MachineState::Configured;
    machine.cluster = cluster.into();
    machine.idle_since_unix_nanos = None;
}

/// A machine after what was ordered for it.
fn done(mut machine: Machine, action: &Action, now_unix_nanos: i64) -> Machine {
    match action.kind {
        ActionKind::Bootstrap | ActionKind::Provision => {
            if let Some(demand) = &action.need {
                let profile = &demand.need.profile;
                machine.assigned = Assignment {
                    cluster: demand.need.cluster.clone(),
                    priority: profile.priority(),
                    interruption_penalty_usd: profile.interruption().upper_bound_dollars(),
                    reclamation_penalty_usd: profile.reclamation().upper_bound_dollars(),
                    fingerprint: profile.fingerprint().into(),
                    group: demand.need.group.clone(),
                };
            }
            bind(&mut machine, action.cluster.as_deref().unwrap_or_default());
        }
        ActionKind::Preempt | ActionKind::Reclaim => free(&mut machine, now_unix_nanos),
        ActionKind::Delete => quota(&mut machine),
    }
    machine
}

/// A machine at the end of the move it is in.
fn landed(mut machine: Machine, now_unix_nanos: i64) -> Machine {
    match machine.state {
        MachineState::Creating if !machine.assigned.cluster.is_empty() => {
            let cluster = machine.assigned.cluster.clone();
            bind(&mut machine, &cluster);
        }
        MachineState::Creating | MachineState::Draining => free(&mut machine, now_unix_nanos),
        MachineState::Configuring => machine.state = MachineState::Configured,
        MachineState::Deleting => quota(&mut machine),
        _ => {}
    }
    machine
}
