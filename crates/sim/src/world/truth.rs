//! What is really there: machines as their providers have them, nodes in clusters, and what it all costs.

use std::collections::BTreeMap;

use bigfleet_border::provider::told;
use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::Machine;
use bigfleet_shard::is_paid_for;

use super::happening::Happening;
use super::{MINUTE, Moment, World};
use crate::cloud::state_of;
use crate::present::is_taken;
use crate::scenario::{Measure, Scenario};

/// One machine as it really is.
#[derive(Clone, Debug)]
pub(crate) struct Real {
    pub(crate) provider: usize,
    pub(crate) state: MachineState,
    pub(crate) cluster: Option<usize>,
    pub(crate) price: f64,
    pub(crate) interruption: f64,
    pub(crate) owned: bool,
    pub(crate) zone: String,
    /// When it entered its state.
    pub(crate) since: i64,
}

/// All machines as they really are.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) machines: BTreeMap<String, Real>,
    names: BTreeMap<String, usize>,
    counts: BTreeMap<MachineState, u64>,
    pub(crate) money: Money,
}

/// A meter that runs: dollars spent so far, and at which rate.
///
/// Prices are kept in billionths of a dollar an hour and time in nanoseconds, so that the sum is exact and does not
/// depend on the order of additions.
#[derive(Clone, Debug, Default)]
pub struct Money {
    /// Billionths of a dollar an hour, all machines together.
    rate: i128,
    /// Billionths of a dollar an hour, times nanoseconds.
    spent: i128,
    at: i64,
}

impl Money {
    fn run_to(&mut self, now: i64) {
        self.spent += self.rate * i128::from(now - self.at);
        self.at = now;
    }

    fn change(&mut self, now: i64, usd_per_hour: f64, sign: i128) {
        self.run_to(now);
        self.rate += sign * billionths(usd_per_hour);
    }

    /// Dollars an hour now.
    pub fn usd_per_hour(&self) -> f64 {
        self.rate as f64 / 1e9
    }

    /// Dollars spent up to this instant.
    pub fn usd(&self, now: i64) -> f64 {
        (self.spent + self.rate * i128::from(now - self.at)) as f64 / 1e9 / 3.6e12
    }
}

/// A price in whole numbers.
pub(crate) fn billionths(usd: f64) -> i128 {
    (usd * 1e9).round() as i128
}

impl Truth {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let names =
            scenario.clusters.iter().enumerate().map(|(index, cluster)| (cluster.name.clone(), index));
        let money = Money { at: super::START_UNIX_NANOS, ..Money::default() };
        Self { names: names.collect(), money, ..Self::default() }
    }

    pub(super) fn state(&self, id: &str) -> Option<MachineState> {
        self.machines.get(id).map(|real| real.state)
    }

    /// How many machines there are of a kind, of one cluster or of all.
    pub(crate) fn count(&self, measure: Measure, cluster: Option<&str>) -> u64 {
        let wanted = |state: MachineState| match measure {
            Measure::Configured => state == MachineState::Configured,
            Measure::Idle => state == MachineState::Idle,
            Measure::Speculative => state == MachineState::Speculative,
            Measure::Failed => state == MachineState::Failed,
            Measure::Moving => state.is_transitional(),
            _ => false,
        };
        match cluster {
            None => self.counts.iter().filter(|(state, _)| wanted(**state)).map(|(_, count)| count).sum(),
            Some(name) => {
                let index = self.names.get(name).copied();
                self.machines.values().filter(|real| real.cluster == index && wanted(real.state)).count()
                    as u64
            }
        }
    }

    pub(crate) fn hardware(&self) -> u64 {
        self.counts.iter().filter(|(state, _)| is_paid_for(**state)).map(|(_, count)| count).sum()
    }

    /// Takes in a machine as it is now; what it was before.
    fn take(&mut self, provider: usize, machine: &Machine, now: i64) -> Option<Real> {
        let state = state_of(machine);
        let mut real = Real {
            provider,
            state,
            cluster: self.names.get(&machine.cluster).copied(),
            price: machine.price_per_hour,
            interruption: machine.interruption_probability,
            owned: matches!(machine.capacity_type, 1 | 2),
            zone: machine.zone.clone(),
            since: now,
        };
        let before = self.machines.remove(&machine.id);
        if let Some(before) = &before {
            *self.counts.entry(before.state).or_default() -= 1;
            if is_paid_for(before.state) {
                self.money.change(now, before.price, -1);
            }
            if before.state == state {
                real.since = before.since;
            }
        }
        *self.counts.entry(state).or_default() += 1;
        if is_paid_for(state) {
            self.money.change(now, real.price, 1);
        }
        self.machines.insert(machine.id.clone(), real);
        before
    }
}

impl World {
    /// Looks at what machines became, and lets clusters feel it.
    pub(super) fn look_at_machines(&mut self) {
        for (provider, machine) in self.clouds.changes() {
            let state = state_of(&machine);
            let before = self.truth.take(provider, &machine, self.now);
            let after = &self.truth.machines[&machine.id];
            if before.as_ref().is_some_and(|b| b.state == after.state && b.cluster == after.cluster) {
                self.show(&Moment::Changed { machine: &machine, before: None });
                continue;
            }
            let (was, cluster) = (before.as_ref().and_then(|b| b.cluster), after.cluster);
            self.trace.note(self.now, format_args!("machine {} is {state} {}", machine.id, machine.cluster));
            self.show(&Moment::Changed { machine: &machine, before: before.as_ref().map(|b| b.state) });
            let stays = was == cluster && matches!(state, MachineState::Configured | MachineState::Draining);
            if let Some(was) = was.filter(|_| !stays) {
                let lost = self.operators[was].pods.leave(&machine.id);
                self.count(Measure::PodsLost, Some(was), lost);
            }
            // What was broken when the world began stays so.
            if state == MachineState::Failed && before.is_some() {
                self.count(Measure::MachinesFailed, was, 1);
                let repair = self.scenario.dwell.repair.nanos();
                if repair > 0 {
                    let again = Happening::Repair { provider, machine: machine.id.clone() };
                    self.queue.put(self.now + repair, again);
                }
            }
            if let (MachineState::Configured, Some(cluster)) = (state, cluster) {
                let join = self.scenario.clusters[cluster].join.nanos();
                let joining = Happening::Join { cluster, machine: machine.id.clone(), since: self.now };
                self.queue.put(self.now + join, joining);
            }
        }
    }

    /// A machine becomes a node, if it is still what it was.
    pub(super) fn join(&mut self, cluster: usize, id: &str, since: i64) {
        let real = &self.truth.machines[id];
        if real.state != MachineState::Configured || real.cluster != Some(cluster) || real.since != since {
            return;
        }
        let found = self.clouds.machine(real.provider, id);
        if let Some(Ok(told)) = found.as_deref().map(told) {
            self.operators[cluster].pods.join(told.machine.into());
        }
    }

    /// A machine dies.
    pub(super) fn die_machine(&mut self, id: &str, why: &str) {
        let provider = self.truth.machines[id].provider;
        self.clouds.update(provider, id, |machine| {
            machine.state = MachineState::Failed.to_wire();
            machine.last_error = why.into();
        });
        self.look_at_machines();
    }

    /// What failed is there again: hardware of ours as hardware, rented hardware as quota.
    pub(super) fn repair(&mut self, provider: usize, id: &str) {
        let real = &self.truth.machines[id];
        if real.state != MachineState::Failed || self.active.is_out(&real.zone) {
            if real.state == MachineState::Failed {
                let again = Happening::Repair { provider, machine: id.into() };
                self.queue.put(self.now + MINUTE, again);
            }
            return;
        }
        let owned = real.owned;
        self.clouds.update(provider, id, |machine| {
            let state = if owned { MachineState::Idle } else { MachineState::Speculative };
            machine.state = state.to_wire();
            if !owned {
                machine.host = None;
            } else if machine.host.is_none() {
                let reference = format!("host-{}", machine.id);
                machine.host =
                    Some(bigfleet_proto::v1alpha1::HostRef { provider: "cloud".into(), r#ref: reference });
            }
        });
        self.look_at_machines();
    }

    /// Machines that may be taken away are, by their chance.
    pub(super) fn interruptions(&mut self) {
        if self.active.lifted {
            return;
        }
        self.queue.put(self.now + MINUTE, Happening::Interruptions);
        let exists = |state| is_paid_for(state) && state != MachineState::Failed;
        let mut taken = Vec::new();
        let (is_present, seed) = (self.setup.present.is_some(), self.scenario.seed);
        let minute = self.since_start() / MINUTE;
        for (id, real) in &self.truth.machines {
            if real.interruption <= 0.0 || !exists(real.state) {
                continue;
            }
            let chance = real.interruption / 60.0;
            let is_taken =
                if is_present { is_taken(seed, minute, id, chance) } else { self.random.happens(chance) };
            if is_taken {
                taken.push(id.clone());
            }
        }
        for id in taken {
            self.die_machine(&id, "taken back by the provider");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meter_adds_up_whatever_the_order() {
        let hour = 3_600_000_000_000;
        let mut money = Money::default();
        money.change(0, 0.1, 1);
        money.change(hour, 0.2, 1);
        money.change(2 * hour, 0.1, -1);
        assert_eq!(money.usd_per_hour(), 0.2);
        assert_eq!(money.usd(3 * hour), 0.6, "one hour at 0.1, one at 0.3, one at 0.2");
        money.change(3 * hour, 0.2, -1);
        assert_eq!((money.usd_per_hour(), money.usd(9 * hour)), (0.0, 0.6));
    }
}
