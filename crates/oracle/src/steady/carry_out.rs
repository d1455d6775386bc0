//! Actions done, and the time they take.

use std::collections::BTreeMap;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::stamp::Assignment;
use bigfleet_scenario::{Answer, Scenario};

use super::Latencies;
use crate::met::Met;
use crate::normalise::normalise;
use crate::orders::begin;
use crate::random::put_in_state;

/// A scenario in which time passes.
pub(super) struct World {
    /// How it stands.
    pub(super) scenario: Scenario,
    latencies: Latencies,
    carries_on: bool,
    /// How many cycles each move under way still takes, by machine.
    under_way: BTreeMap<String, usize>,
    /// Machines that the last cycle claims for the need they are stamped with.
    still_wanted: Vec<String>,
}

impl World {
    /// A world at its start. What is under way has its whole time before it.
    pub(super) fn new(scenario: Scenario, latencies: Latencies, carries_on: bool) -> Self {
        let mut world =
            Self { scenario, latencies, carries_on, under_way: BTreeMap::new(), still_wanted: Vec::new() };
        for machine in &world.scenario.machines {
            world.under_way.extend(world.latency(machine));
        }
        world
    }

    /// The move a machine is in and how long it takes.
    fn latency(&self, machine: &Machine) -> Option<(String, usize)> {
        let cycles = match machine.state {
            MachineState::Creating => self.latencies.create,
            MachineState::Configuring => self.latencies.configure,
            MachineState::Draining => self.latencies.drain,
            MachineState::Deleting => self.latencies.delete,
            _ => return None,
        };
        Some((machine.id.to_string(), cycles))
    }

    /// Begins everything an answer orders.
    pub(super) fn carry_out(&mut self, answer: &Answer) {
        let needs: Vec<Need> =
            normalise(&self.scenario, &Met::default()).into_iter().map(|row| row.need).collect();
        let is_wanted = |machine: &&Machine| {
            answer.claims.get(&*machine.id).is_some_and(|need| {
                let need = &needs[*need as usize];
                need.cluster == machine.assigned.cluster
                    && *need.profile.fingerprint() == *machine.assigned.fingerprint
                    && need.group == machine.assigned.group
            })
        };
        self.still_wanted =
            self.scenario.machines.iter().filter(is_wanted).map(|machine| machine.id.to_string()).collect();
        for action in &answer.actions {
            let need = action.need.map(|need| &needs[need as usize]);
            let machine = self.scenario.machines.iter_mut().find(|machine| *machine.id == *action.machine);
            let machine = machine.expect("an action is about a machine of the world");
            assert!(begin(machine, action, need), "{action:?} on a machine that is {}", machine.state);
            let machine = machine.clone();
            self.under_way.extend(self.latency(&machine));
            // A machine just bought is claimed by the need that bought it.
            self.still_wanted.push(machine.id.to_string());
        }
    }

    /// Lets one cycle's time pass; what is due is done.
    pub(super) fn pass(&mut self, nanos: i64) {
        self.scenario.now_unix_nanos += nanos;
        for at in 0..self.scenario.machines.len() {
            let id = self.scenario.machines[at].id.to_string();
            let Some(left) = self.under_way.get_mut(&id) else { continue };
            *left -= 1;
            if *left == 0 {
                self.under_way.remove(&id);
                self.arrive(at);
                self.under_way.extend(self.latency(&self.scenario.machines[at]));
            }
        }
    }

    /// A move ends.
    fn arrive(&mut self, at: usize) {
        let now = self.scenario.now_unix_nanos;
        let machine = &mut self.scenario.machines[at];
        let goes_on = self.carries_on && self.still_wanted.iter().any(|id| **id == *machine.id);
        let cluster = machine.assigned.cluster.clone();
        match machine.state {
            MachineState::Creating if goes_on => put_in_state(machine, MachineState::Configuring, &cluster),
            MachineState::Creating | MachineState::Draining => {
                put_in_state(machine, MachineState::Idle, &cluster);
                machine.assigned = Assignment::default();
                machine.draining_for = None;
                machine.idle_since_unix_nanos = Some(now);
            }
            MachineState::Configuring => {
                put_in_state(machine, MachineState::Configured, &cluster);
                machine.idle_since_unix_nanos = None;
            }
            MachineState::Deleting => {
                put_in_state(machine, MachineState::Speculative, &cluster);
                machine.assigned = Assignment::default();
                machine.idle_since_unix_nanos = None;
            }
            state => unreachable!("nothing is under way for a machine that is {state}"),
        }
    }
}
