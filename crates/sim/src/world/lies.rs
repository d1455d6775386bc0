//! Providers that lie: what really is stays as it is, and what is said of it differs.

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::Machine;

use super::World;
use crate::scenario::Lie;

/// How long after a lie its machines are in every listing of changes: whoever corrects itself says so.
const CORRECTED: i64 = 60_000_000_000;

impl World {
    /// Chooses the machines a provider lies about, of those that are bound.
    pub(super) fn begin_to_lie(&mut self, lie: Lie, share: f64, cluster: &str) {
        let of = self.cluster_of(cluster);
        let bound = self.truth.machines.iter().filter(|(_, real)| {
            real.state == MachineState::Configured && (of.is_none() || real.cluster == of)
        });
        let ids: Vec<String> = bound.map(|(id, _)| id.clone()).collect();
        for id in ids {
            if self.random.happens(share) {
                self.active.lied_about.insert(id, (lie, i64::MAX));
            }
        }
    }

    /// The provider says again what is true, and says so.
    pub(super) fn end_lies(&mut self) {
        let until = self.now + CORRECTED;
        for (_, said_until) in self.active.lied_about.values_mut() {
            *said_until = (*said_until).min(until);
        }
    }

    /// What a provider makes of a listing; whether it is still true.
    pub(super) fn distort_list(&mut self, provider: usize, full: bool, machines: &mut Vec<Machine>) -> bool {
        let mut clean = true;
        let now = self.now;
        self.active.lied_about.retain(|_, (_, until)| *until > now);
        for (id, (lie, until)) in &self.active.lied_about {
            let Some(real) = self.truth.machines.get(id).filter(|real| real.provider == provider) else {
                continue;
            };
            let place = machines.iter().position(|machine| machine.id == *id);
            let record = match place {
                Some(place) => &mut machines[place],
                None if full => continue,
                None => {
                    let Some(machine) = self.clouds.machine(provider, id) else { continue };
                    machines.push(Machine::clone(&machine));
                    machines.last_mut().expect("just pushed")
                }
            };
            if *until == i64::MAX && real.state == MachineState::Configured {
                lie.tell(record);
                clean = false;
            }
        }
        if full && self.active.halves {
            clean = false;
            let random = &mut self.random;
            machines.retain(|_| random.happens(0.5));
        }
        if self.active.doubles > 0.0 {
            let mut doubles = Vec::new();
            for machine in machines.iter() {
                if self.random.happens(self.active.doubles) {
                    let mut double = machine.clone();
                    Lie::Failed.tell(&mut double);
                    doubles.push(double);
                }
            }
            clean &= doubles.is_empty();
            machines.extend(doubles);
        }
        clean
    }

    /// What a provider makes of an answer about one machine.
    pub(super) fn distort_answer(&self, machine: &mut Machine) {
        let lie = self.active.lied_about.get(&machine.id).filter(|(_, until)| *until == i64::MAX);
        if let Some((lie, _)) = lie.filter(|_| machine.state == MachineState::Configured.to_wire()) {
            lie.tell(machine);
        }
    }
}

impl Lie {
    fn tell(self, machine: &mut Machine) {
        match self {
            Self::Failed => {
                machine.state = MachineState::Failed.to_wire();
                machine.last_error = "somebody says it failed".into();
                machine.cluster.clear();
            }
            Self::Elsewhere => "somewhere-else".clone_into(&mut machine.cluster),
            Self::Small => {
                for amounts in [&mut machine.resources, &mut machine.allocatable].into_iter().flatten() {
                    amounts.resources.values_mut().for_each(|amount| "1".clone_into(amount));
                }
            }
        }
    }
}
