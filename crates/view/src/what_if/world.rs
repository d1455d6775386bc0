//! A copy of the fleet that can be changed and let run: the engine's fork and the machines it is about.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind, Decision, Fleet, Options};
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::stamp::Assignment;
use bigfleet_shard::is_paid_for;

/// A copy of the fleet.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) fleet: Fleet,
    pub(crate) machines: BTreeMap<Box<str>, Arc<Machine>>,
    pub(crate) options: Options,
    pub(crate) now_unix_nanos: i64,
}

/// What a world costs.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct WorldBill {
    pub(crate) usd_per_hour: f64,
    /// Of what is rented: hardware of one's own is paid for anyway.
    pub(crate) rented_usd_per_hour: f64,
    pub(crate) bound: usize,
    pub(crate) spot: usize,
    pub(crate) interruptions_per_hour: f64,
}

impl World {
    /// A world in which nobody has anything yet.
    pub(crate) fn afresh<'a>(
        machines: impl Iterator<Item = &'a Machine>,
        needs: Vec<Need>,
        options: Options,
        now_unix_nanos: i64,
    ) -> Self {
        let (fleet, nothing) = (Fleet::default(), BTreeMap::new());
        let mut world = Self { fleet, machines: nothing, options, now_unix_nanos };
        for machine in machines {
            world.put(Self::afresh_machine(machine, now_unix_nanos));
        }
        let mut rows: BTreeMap<Arc<str>, Vec<Need>> = BTreeMap::new();
        for need in needs {
            rows.entry(need.cluster.clone()).or_default().push(Need { parked: false, ..need });
        }
        for (cluster, rows) in rows {
            // Rows that differed only in what was taken away are merged, as a roll-up's are.
            let _ = world.fleet.replace(&cluster, rows, now_unix_nanos);
        }
        world
    }

    /// A machine that nobody has: quota if it is rented, idle if it is owned.
    pub(crate) fn afresh_machine(machine: &Machine, now_unix_nanos: i64) -> Machine {
        let mut machine = machine.clone();
        if machine.capacity_type.is_elastic() {
            quota(&mut machine);
            machine.cluster = "".into();
            machine.draining_for = None;
        } else if machine.state != MachineState::Speculative {
            free(&mut machine, now_unix_nanos);
        }
        machine
    }

    pub(crate) fn cycle(&mut self) -> Arc<Decision> {
        self.fleet.cycle(&self.options, self.now_unix_nanos)
    }

    /// Puts a machine; a record the engine refuses changes nothing.
    pub(crate) fn put(&mut self, machine: Machine) {
        if self.fleet.observe(&machine).is_ok() {
            self.machines.insert(machine.id.clone(), Arc::new(machine));
        }
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.fleet.remove(id);
        self.machines.remove(id);
    }

    /// Everything that was ordered, and everything that was under way, is done.
    pub(crate) fn arrive(&mut self, decision: &Decision) {
        for action in &decision.actions {
            if let Some(machine) = self.machines.get(&action.machine) {
                let arrived = done(Machine::clone(machine), action, self.now_unix_nanos);
                self.put(arrived);
            }
        }
        self.land();
    }

    /// Everything that is under way is done.
    pub(crate) fn land(&mut self) {
        let moving: Vec<Arc<Machine>> =
            self.machines.values().filter(|machine| machine.state.is_transitional()).cloned().collect();
        for machine in moving {
            self.put(landed(Machine::clone(&machine), self.now_unix_nanos));
        }
    }

    pub(crate) fn bill(&self) -> WorldBill {
        let mut bill = WorldBill::default();
        for machine in self.machines.values() {
            if is_paid_for(machine.state) {
                bill.usd_per_hour += machine.price_usd_per_hour;
                if machine.capacity_type.is_elastic() {
                    bill.rented_usd_per_hour += machine.price_usd_per_hour;
                }
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
