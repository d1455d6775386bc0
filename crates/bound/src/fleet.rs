//! From machines and needs to offers and wants: machines that no need can tell apart are one offer.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::ResourceVec;

use crate::problem::{Offer, OfferId, Problem, SetId};

/// Amounts in an order of their own, to sort by.
#[derive(PartialEq, Eq)]
struct ByName<'a>(&'a ResourceVec);

impl Ord for ByName<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_by_name(other.0)
    }
}

impl PartialOrd for ByName<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What the needs and the bill can see of a machine: its values for the keys asked about, what it provides, price and risk.
type Seen<'a> = (Vec<Option<&'a str>>, ByName<'a>, u64, u64);

impl Problem {
    /// The problem of covering these needs from these machines, whoever holds them now. Failed machines and those on their way
    /// out count as gone.
    pub fn of_fleet<'a>(
        machines: impl IntoIterator<Item = &'a Machine>,
        needs: impl IntoIterator<Item = &'a Need>,
    ) -> Self {
        let needs: Vec<&Need> = needs.into_iter().collect();
        let keys = keys(&needs);
        let mut offers: BTreeMap<Seen<'_>, (&Machine, u64)> = BTreeMap::new();
        for machine in machines {
            if matches!(machine.state, MachineState::Failed | MachineState::Deleting) {
                continue;
            }
            let facts = machine.facts();
            let seen = keys
                .iter()
                .map(|(key, by_value)| facts.value(key).map(|value| if *by_value { value } else { "" }));
            let price = machine.price_usd_per_hour.to_bits();
            let seen = (
                seen.collect(),
                ByName(machine.provides()),
                price,
                machine.interruption_probability.to_bits(),
            );
            offers.entry(seen).or_insert((machine, 0)).1 += 1;
        }
        let mut problem = Self::default();
        let samples: Vec<(OfferId, &Machine)> = offers
            .into_values()
            .map(|(machine, stock)| {
                let offer = Offer {
                    provides: machine.provides().clone(),
                    price_usd_per_hour: machine.price_usd_per_hour,
                    interruption_probability: machine.interruption_probability,
                    stock,
                };
                (problem.offer(offer), machine)
            })
            .collect();
        let mut sets: BTreeMap<(&[Requirement], ByName<'_>), SetId> = BTreeMap::new();
        for need in needs {
            let asked = (need.profile.requirements(), ByName(&need.min_unit));
            let set = *sets.entry(asked).or_insert_with(|| {
                let counts = |machine: &Machine| {
                    need.fits_on(machine.provides()) && need.profile.matches(machine.facts())
                };
                let admitted = samples.iter().filter(|(_, machine)| counts(machine)).map(|(id, _)| *id);
                problem.set(admitted.collect())
            });
            problem.want(&need.aggregate, need.profile.interruption(), set);
        }
        problem
    }
}

/// The keys asked about, and whether anybody looks at the value or only at whether there is one.
fn keys<'a>(needs: &[&'a Need]) -> BTreeMap<&'a str, bool> {
    let mut keys = BTreeMap::new();
    for requirement in needs.iter().flat_map(|need| need.profile.requirements()) {
        let by_value = match requirement.operator() {
            Operator::In | Operator::NotIn => true,
            Operator::Same => !requirement.values().is_empty(),
            Operator::Exists | Operator::DoesNotExist | Operator::Unspecified => false,
        };
        *keys.entry(requirement.key()).or_insert(false) |= by_value;
    }
    keys
}
