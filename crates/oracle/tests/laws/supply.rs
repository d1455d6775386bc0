//! Laws about machines: what may be done to them, and when it must be.

use std::collections::BTreeSet;

use bigfleet_model::cost::{drain_grace_secs, priority_gap};
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::resource::ResourceVec;
use bigfleet_scenario::answer::ActionKind;

use crate::case::{Case, is_acquirable, vector};
use crate::{ensure, hold};

#[test]
fn a_machine_is_told_one_thing_that_its_state_allows() {
    hold(|case| {
        let mut told = BTreeSet::new();
        for action in &case.answer.actions {
            ensure(told.insert(&action.machine), || format!("{} is told two things", action.machine))?;
            let expected = match action.kind {
                ActionKind::Bootstrap | ActionKind::Delete => MachineState::Idle,
                ActionKind::Provision => MachineState::Speculative,
                ActionKind::Preempt | ActionKind::Reclaim => MachineState::Configured,
            };
            let state = case.machine(&action.machine).state;
            ensure(state == expected, || format!("{action:?} on a machine that is {state}"))?;
        }
        Ok(())
    });
}

#[test]
fn what_is_acquired_is_bound_and_nothing_else() {
    hold(|case| {
        for machine in case.machines() {
            let acquired = |state| machine.state == state && case.holder(machine).is_some();
            let right = case.is_told(ActionKind::Bootstrap, machine) == acquired(MachineState::Idle)
                && case.is_told(ActionKind::Provision, machine) == acquired(MachineState::Speculative);
            ensure(right, || format!("{} is claimed and not bound, or the other way round", machine.id))?;
        }
        let binding = case
            .answer
            .actions
            .iter()
            .filter(|a| matches!(a.kind, ActionKind::Bootstrap | ActionKind::Provision));
        for action in binding {
            let need = action.need.expect("bound for a need");
            ensure(case.answer.claims.get(&action.machine) == Some(&need), || {
                format!("{action:?} is claimed by another")
            })?;
            let cluster = &case.needs[need as usize].row.cluster;
            ensure(action.cluster.as_ref() == Some(cluster), || format!("{action:?} goes to {cluster}"))?;
        }
        Ok(())
    });
}

#[test]
fn exactly_the_unclaimed_is_reclaimed() {
    hold(|case| {
        for machine in case.machines() {
            let due = machine.state == MachineState::Configured
                && case.scenario.options.is_ready(&machine.cluster)
                && case.holder(machine).is_none()
                && !case.is_told(ActionKind::Preempt, machine);
            ensure(due == case.is_told(ActionKind::Reclaim, machine), || {
                format!("{} due: {due}", machine.id)
            })?;
        }
        Ok(())
    });
}

#[test]
fn exactly_what_is_idle_for_too_long_is_released() {
    hold(|case| {
        for machine in case.machines() {
            let since = machine.idle_since_unix_nanos.filter(|_| machine.state == MachineState::Idle);
            let end = since
                .and_then(|since| case.scenario.options.release.due_unix_nanos(machine.capacity_type, since));
            let due =
                case.holder(machine).is_none() && end.is_some_and(|end| end <= case.scenario.now_unix_nanos);
            ensure(due == case.is_told(ActionKind::Delete, machine), || {
                format!("{} due: {due}", machine.id)
            })?;
        }
        Ok(())
    });
}

/// Whether a machine may be a victim of a need, going by priorities.
fn is_below(case: &Case, machine: &Machine, need: usize) -> bool {
    let priority = case.needs[need].profile.priority();
    machine.state == MachineState::Configured
        && machine.assigned.priority < priority
        && case.holder(machine).is_none_or(|holder| case.needs[holder].profile.priority() < priority)
}

#[test]
fn victims_are_lower_and_of_use() {
    hold(|case| {
        for action in case.actions(ActionKind::Preempt) {
            let victim = case.machine(&action.machine);
            let at = action.need.expect("preempted for a need") as usize;
            let need = &case.needs[at];
            ensure(is_below(case, victim, at), || format!("{action:?} is not below need {at}"))?;
            let helps = if need.is_gang() {
                need.counts(victim) && victim.provides().contributes(&need.aggregate)
            } else {
                need.misses(victim)
            };
            ensure(helps, || format!("{action:?} does not help need {at}"))?;
            let grace = drain_grace_secs(priority_gap(need.profile.priority(), victim.assigned.priority));
            ensure(action.grace_secs == Some(grace), || format!("{action:?} has {grace} s by the gap"))?;
            ensure(action.cluster.as_deref() == Some(&*victim.cluster), || {
                format!("{action:?} names another cluster")
            })?;
        }
        Ok(())
    });
}

#[test]
fn no_victim_is_taken_beyond_what_is_missing() {
    hold(|case| {
        for (index, need) in case.needs.iter().enumerate() {
            let victims: Vec<&Machine> = case
                .actions(ActionKind::Preempt)
                .filter(|action| action.need == Some(index as u32))
                .map(|action| case.machine(&action.machine))
                .collect();
            let mut missing = if need.is_gang() { need.aggregate.clone() } else { need.deficit.clone() };
            for victim in victims {
                ensure(victim.provides().contributes(&missing), || {
                    format!("{} is one victim too many", victim.id)
                })?;
                missing = missing.saturating_sub(victim.provides());
            }
        }
        Ok(())
    });
}

#[test]
fn nobody_stays_short_while_a_victim_is_left() {
    hold(|case| {
        for shortfall in &case.answer.unresolved {
            let at = shortfall.need as usize;
            let need = &case.needs[at];
            // Nobody is disturbed for a gang that still could not run.
            if need.is_gang() || need.profile.strict_spread().is_some() {
                continue;
            }
            let missing = vector(&shortfall.missing);
            let spared = case.machines().iter().find(|machine| {
                is_below(case, machine, at)
                    && need.could_use(machine)
                    && machine.provides().contributes(&missing)
                    && !case.is_told(ActionKind::Preempt, machine)
            });
            ensure(spared.is_none(), || format!("need {at} could have {:?}", spared.unwrap().id))?;
        }
        Ok(())
    });
}

/// A gang has victims in one domain, and with them it is complete there.
#[test]
fn victims_complete_a_gang() {
    hold(|case| {
        for (index, need) in case.needs.iter().enumerate().filter(|(_, need)| need.is_gang()) {
            let is_victim = |machine: &Machine| {
                let mut told = case.actions(ActionKind::Preempt);
                told.any(|action| *action.machine == *machine.id && action.need == Some(index as u32))
            };
            let domains: BTreeSet<Option<&str>> = case
                .machines()
                .iter()
                .filter(|machine| is_victim(machine))
                .map(|machine| need.domain_of(machine))
                .collect();
            ensure(domains.len() <= 1, || format!("need {index} has victims in {domains:?}"))?;
            let Some(domain) = domains.first() else { continue };
            let adds = |machine: &&Machine| {
                need.domain_of(machine) == *domain
                    && need.counts(machine)
                    && (case.holder(machine) == Some(index)
                        || is_acquirable(machine) && case.holder(machine).is_none()
                        || need.drained_for(machine)
                        || is_victim(machine))
            };
            let there = case.machines().iter().filter(adds);
            let total = there.fold(ResourceVec::ZERO, |sum, machine| sum.add(machine.provides()));
            ensure(total.covers(&need.aggregate), || format!("need {index} is not complete in {domain:?}"))?;
        }
        Ok(())
    });
}
