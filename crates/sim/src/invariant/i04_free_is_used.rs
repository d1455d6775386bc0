//! 4: no need is short while a matching free machine exists.

use std::collections::BTreeSet;

use bigfleet_model::machine::{Machine, MachineState};

use bigfleet_engine::Outcome;

use super::{Invariant, Moment};

pub(super) struct FreeIsUsed;

/// Whether a need could use a machine, as far as requirements, sizes and domain go. A strict spread may still forbid it.
pub(super) fn could_use(outcome: &Outcome<'_>, machine: &Machine) -> bool {
    let need = &outcome.demand.need;
    let in_domain = match need.profile.same() {
        None => true,
        Some(same) => {
            outcome.domain.is_some_and(|domain| machine.facts().value(same.key()) == Some(domain.value))
        }
    };
    in_domain
        && need.profile.matches(machine.facts())
        && need.fits_on(machine.provides())
        && machine.provides().contributes(&outcome.deficit)
}

impl Invariant for FreeIsUsed {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Decided { mirror, .. } = moment else { return None };
        let outcomes = mirror.fleet.outcomes();
        let mut short = outcomes.iter().filter(|o| {
            !o.deficit.is_zero() && !o.demand.need.parked && o.demand.need.profile.strict_spread().is_none()
        });
        let taken: BTreeSet<&str> = outcomes.iter().flat_map(|o| o.acquired.iter()).copied().collect();
        short.find_map(|outcome| {
            let free = mirror.machines.values().find(|machine| {
                matches!(machine.state, MachineState::Idle | MachineState::Speculative)
                    && !taken.contains(&*machine.id)
                    && could_use(outcome, machine)
            })?;
            let key = outcome.demand.need.key();
            Some(format!("need {key:?} is short of {} while machine {} is free", outcome.deficit, free.id))
        })
    }
}
