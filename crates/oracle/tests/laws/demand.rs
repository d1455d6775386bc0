//! Laws about needs: what they get, what they miss and what they are told.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::resource::ResourceVec;
use bigfleet_scenario::answer::{ActionKind, Reason};

use crate::case::{is_acquirable, vector};
use crate::{ensure, hold};

#[test]
fn folding_conserves_demand() {
    hold(|case| {
        let mut asked: BTreeMap<(String, i32), ResourceVec> = BTreeMap::new();
        for need in &case.scenario.needs {
            let sum = asked.entry((need.cluster.to_string(), need.profile.priority())).or_default();
            *sum = sum.add(&need.aggregate);
        }
        let mut normalised: BTreeMap<(String, i32), ResourceVec> = BTreeMap::new();
        for need in &case.needs {
            let sum = normalised.entry((need.row.cluster.clone(), need.profile.priority())).or_default();
            *sum = sum.add(&need.aggregate);
        }
        ensure(asked == normalised, || format!("{asked:?} became {normalised:?}"))
    });
}

#[test]
fn a_deficit_is_what_claims_do_not_cover() {
    hold(|case| {
        for (index, need) in case.needs.iter().enumerate() {
            let left = need.aggregate.saturating_sub(&case.claimed_total(index));
            ensure(left == need.deficit, || {
                format!("need {index}: {left} is missing, not {}", need.deficit)
            })?;
        }
        Ok(())
    });
}

#[test]
fn claimed_machines_count_and_gangs_stay_in_their_domain() {
    hold(|case| {
        for machine in case.machines() {
            if let Some(holder) = case.holder(machine) {
                let need = &case.needs[holder];
                ensure(need.could_use(machine), || format!("{} is of no use to need {holder}", machine.id))?;
                let lawful = need.owns(machine) || is_acquirable(machine) && !need.row.parked;
                ensure(lawful, || format!("need {holder} may not have {}", machine.id))?;
            }
        }
        Ok(())
    });
}

#[test]
fn every_claim_helps() {
    hold(|case| {
        for machine in case.machines() {
            if let Some(holder) = case.holder(machine) {
                let helps = machine.provides().contributes(&case.needs[holder].aggregate);
                ensure(helps, || format!("{} does nothing for need {holder}", machine.id))?;
            }
        }
        Ok(())
    });
}

#[test]
fn nobody_is_short_beside_a_machine_of_its_own() {
    hold(|case| {
        for (index, need) in case.needs.iter().enumerate() {
            let idle_own =
                case.machines().iter().find(|m| case.holder(m).is_none() && need.owns(m) && need.misses(m));
            ensure(idle_own.is_none(), || {
                format!("need {index} should be credited with {:?}", idle_own.unwrap().id)
            })?;
        }
        Ok(())
    });
}

#[test]
fn nobody_is_short_beside_a_free_machine() {
    hold(|case| {
        for (index, need) in case.needs.iter().enumerate() {
            if need.row.parked || need.profile.strict_spread().is_some() {
                continue;
            }
            let free = case
                .machines()
                .iter()
                .find(|m| is_acquirable(m) && case.holder(m).is_none() && need.misses(m));
            ensure(free.is_none(), || format!("need {index} should acquire {:?}", free.unwrap().id))?;
        }
        Ok(())
    });
}

#[test]
fn parked_needs_take_nothing() {
    hold(|case| {
        for action in &case.answer.actions {
            let parked = action.need.is_some_and(|need| case.needs[need as usize].row.parked);
            ensure(!parked, || format!("{action:?} is for a parked need"))?;
        }
        Ok(())
    });
}

#[test]
fn no_domain_runs_ahead_of_another() {
    hold(|case| {
        for (index, need) in case.needs.iter().enumerate() {
            let Some(strict) = need.profile.strict_spread() else { continue };
            let mut all: BTreeMap<&str, u64> = BTreeMap::new();
            let mut gained: BTreeSet<&str> = BTreeSet::new();
            for machine in case.machines().iter().filter(|machine| case.holder(machine) == Some(index)) {
                if let Some(domain) = machine.facts().value(&strict.key) {
                    *all.entry(domain).or_insert(0) += 1;
                    gained.extend(is_acquirable(machine).then_some(domain));
                }
                let placed = !is_acquirable(machine) || machine.facts().value(&strict.key).is_some();
                ensure(placed, || format!("need {index} acquired {} outside of all domains", machine.id))?;
            }
            // What drains for it fills its domain already.
            for machine in case.machines().iter().filter(|m| need.drained_for(m) && need.counts(m)) {
                if let Some(domain) = machine.facts().value(&strict.key) {
                    *all.entry(domain).or_insert(0) += 1;
                }
            }
            let emptiest = all.values().min().copied().unwrap_or(0);
            let skew = strict.headroom() + 1;
            // Credit follows the bindings; only what was acquired must keep the spread.
            let ahead = gained.iter().find(|domain| all[*domain] > emptiest + skew);
            ensure(ahead.is_none(), || format!("need {index} runs ahead in {ahead:?}: {all:?}"))?;
        }
        Ok(())
    });
}

#[test]
fn the_short_are_told_why_and_nobody_else() {
    hold(|case| {
        let short: Vec<u32> =
            (0..case.needs.len() as u32).filter(|n| !case.needs[*n as usize].deficit.is_zero()).collect();
        let told: Vec<u32> = case.answer.reasons.iter().map(|verdict| verdict.need).collect();
        ensure(short == told, || format!("{short:?} are short, {told:?} are told why"))?;
        for verdict in &case.answer.reasons {
            let need = &case.needs[verdict.need as usize];
            let unresolved = case.answer.unresolved.iter().any(|shortfall| shortfall.need == verdict.need);
            let fits = match verdict.reason {
                Reason::Parked => need.row.parked,
                Reason::InFlight => !unresolved && !need.row.parked,
                Reason::TopologyUnsatisfiable => unresolved && !need.is_plain(),
                _ => unresolved && !need.row.parked,
            };
            ensure(fits, || format!("{verdict:?} does not fit"))?;
        }
        Ok(())
    });
}

#[test]
fn shortfalls_are_parts_of_deficits_and_their_victims_are_counted() {
    hold(|case| {
        let mut last: Option<usize> = None;
        for shortfall in &case.answer.unresolved {
            let need = &case.needs[shortfall.need as usize];
            let missing = vector(&shortfall.missing);
            ensure(need.deficit.covers(&missing) && !missing.is_zero(), || {
                format!("{shortfall:?} of {}", need.deficit)
            })?;
            let victims =
                case.actions(ActionKind::Preempt).filter(|a| a.need == Some(shortfall.need)).count();
            ensure(victims == shortfall.victims as usize, || {
                format!("{shortfall:?}, but {victims} victims")
            })?;
            // Only victims and what drains for it can make it less than the deficit.
            let helps = case.machines().iter().filter(|m| {
                let victim = case
                    .actions(ActionKind::Preempt)
                    .any(|a| *a.machine == *m.id && a.need == Some(shortfall.need));
                victim || need.drained_for(m) && need.could_use(m)
            });
            let most = helps.fold(ResourceVec::ZERO, |sum, machine| sum.add(machine.provides()));
            ensure(missing.covers(&need.deficit.saturating_sub(&most)), || {
                format!("{shortfall:?} is too little")
            })?;
            ensure(!need.is_gang() || missing == need.deficit && victims == 0, || {
                format!("{shortfall:?} of a gang that is skipped or served in full")
            })?;
            let late = last.is_some_and(|last| need.goes_before(&case.needs[last]));
            ensure(!late, || format!("{shortfall:?} comes too late"))?;
            last = Some(shortfall.need as usize);
        }
        Ok(())
    });
}
