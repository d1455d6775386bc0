//! What may not be when everything rests: a need short beside what it could use.

use bigfleet_model::machine::MachineState;
use bigfleet_scenario::{Answer, Scenario};

use crate::amounts::contributes;
use crate::cycle::{Cycle, Domain};
use crate::matching::strict_spread;
use crate::met::Met;
use crate::normalise::normalise;
use crate::order;

/// Machines that a short need could use and that nobody, or a lesser need, holds; each as a sentence.
///
/// Needs under a strict spread and parked gangs may stay short beside anything. A gang may stay short beside
/// another cluster's machines: nobody is disturbed for a gang that still could not run.
pub fn inversions(scenario: &Scenario, answer: &Answer) -> Vec<String> {
    let mut cycle = Cycle::new(scenario, normalise(scenario, &Met::default()), Met::default());
    for domain in &answer.domains {
        cycle.rows[domain.need as usize].domain =
            domain.value.clone().map(|value| Domain { value, covers: domain.covers });
    }
    let mut found = Vec::new();
    for shortfall in &answer.unresolved {
        let need = shortfall.need as usize;
        let row = &cycle.rows[need];
        if row.need.parked || strict_spread(&row.need.profile).is_some() {
            continue;
        }
        for (at, machine) in scenario.machines.iter().enumerate() {
            let helps = cycle.counts(at, need)
                && cycle.in_chosen_domain(at, need)
                && contributes(&cycle.provides[at], &shortfall.missing);
            if !helps {
                continue;
            }
            let holder = answer.claims.get(&*machine.id).map(|holder| &cycle.rows[*holder as usize]);
            let in_cluster = *machine.cluster == *row.need.cluster
                && matches!(machine.state, MachineState::Configured | MachineState::Configuring);
            let wrong = match (machine.state, holder) {
                (MachineState::Idle | MachineState::Speculative, None) => true,
                (MachineState::Configured, None) => row.same_key().is_none() || in_cluster,
                (_, Some(holder)) if in_cluster => order::precedence(row, holder).1.is_lt(),
                (MachineState::Configured, Some(holder)) => {
                    row.same_key().is_none()
                        && holder.priority() < row.priority()
                        && machine.assigned.priority < row.priority()
                }
                _ => false,
            };
            if wrong {
                let by = holder.map_or("nobody".into(), |holder| format!("{:?}", holder.need.key()));
                found.push(format!("{:?} is short beside {}, held by {by}", row.need.key(), machine.id));
            }
        }
    }
    found
}
