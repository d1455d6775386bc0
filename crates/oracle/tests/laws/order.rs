//! Laws about order: who goes first, and that nothing else has a say.

use std::cmp::Ordering;

use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_model::resource::ResourceVec;
use bigfleet_oracle::{Size, apply, decide, random_edits, random_scenario};
use bigfleet_scenario::Scenario;
use bigfleet_scenario::answer::{ActionKind, difference};
use bigfleet_scenario::seed::Seed;

use crate::case::{Asked, Case, is_acquirable};
use crate::{ensure, hold};

fn shuffle<T>(seed: &mut Seed, items: &mut [T]) {
    for end in (1..items.len()).rev() {
        items.swap(end, seed.below(end as u64 + 1) as usize);
    }
}

fn shuffled(scenario: &Scenario, seed: u64) -> Scenario {
    let mut copy = scenario.clone();
    shuffle(&mut Seed::new(seed), &mut copy.machines);
    shuffle(&mut Seed::new(seed + 1), &mut copy.needs);
    copy
}

#[test]
fn the_order_of_lists_has_no_say() {
    hold(|case| {
        for seed in 0..3 {
            let other = decide(&shuffled(&case.scenario, seed));
            ensure(other == case.answer, || difference(&case.answer, &other).unwrap_or_default())?;
        }
        Ok(())
    });
}

#[test]
fn needs_come_in_demand_order() {
    hold(|case| {
        let needs: Vec<Need> = case.needs.iter().map(Asked::as_need).collect();
        let out_of_order =
            needs.windows(2).position(|pair| pair[0].cmp_demand(&pair[1]) == Ordering::Greater);
        ensure(out_of_order.is_none(), || format!("need {out_of_order:?} comes too early"))
    });
}

#[test]
fn a_contested_machine_goes_to_the_higher_precedence() {
    hold(|case| {
        let needs: Vec<Need> = case.needs.iter().map(Asked::as_need).collect();
        for machine in case.machines().iter().filter(|machine| is_acquirable(machine)) {
            let Some(holder) = case.holder(machine) else { continue };
            for (index, need) in case.needs.iter().enumerate() {
                let first = needs[index].cmp_precedence(&needs[holder]) == Ordering::Less;
                let robbed = first
                    && !need.row.parked
                    && need.profile.strict_spread().is_none()
                    && need.misses(machine);
                ensure(!robbed, || {
                    format!("need {holder} has {}, which is due to need {index}", machine.id)
                })?;
            }
        }
        Ok(())
    });
}

/// A need that stays short has credited or taken over whatever the needs after it live on.
#[test]
fn what_a_cluster_has_goes_to_the_higher_precedence() {
    hold(|case| {
        for machine in case.machines().iter().filter(|machine| !is_acquirable(machine)) {
            let Some(holder) = case.holder(machine) else { continue };
            let earlier = case.needs.iter().position(|need| {
                need.goes_before(&case.needs[holder])
                    && need.profile.strict_spread().is_none()
                    && need.owns(machine)
                    && need.misses(machine)
            });
            ensure(earlier.is_none(), || {
                format!("need {holder} has {}, which is due to {earlier:?}", machine.id)
            })?;
        }
        Ok(())
    });
}

/// What is taken beyond what is needed is given back.
#[test]
fn nothing_superfluous_is_acquired() {
    hold(|case| {
        for (index, need) in case.needs.iter().enumerate() {
            if !need.deficit.is_zero() || need.profile.strict_spread().is_some() {
                continue;
            }
            let held: Vec<&Machine> =
                case.machines().iter().filter(|machine| case.holder(machine) == Some(index)).collect();
            for machine in held.iter().filter(|machine| is_acquirable(machine)) {
                let others = held.iter().filter(|other| other.id != machine.id);
                let total = others.fold(ResourceVec::ZERO, |sum, other| sum.add(other.provides()));
                ensure(!total.covers(&need.aggregate), || {
                    format!("need {index} does not need {}", machine.id)
                })?;
            }
        }
        Ok(())
    });
}

/// The place of a need in precedence order.
fn turn(case: &Case, need: u32) -> u32 {
    let before = case.needs.iter().filter(|other| other.goes_before(&case.needs[need as usize]));
    before.count() as u32
}

#[test]
fn actions_come_phase_by_phase() {
    hold(|case: &Case| {
        let rank = |kind: ActionKind| match kind {
            ActionKind::Bootstrap | ActionKind::Provision => 0,
            ActionKind::Preempt => 1,
            ActionKind::Reclaim => 2,
            ActionKind::Delete => 3,
        };
        let place = |action: &bigfleet_scenario::answer::Action| match action.kind {
            ActionKind::Bootstrap | ActionKind::Provision => {
                (rank(action.kind), action.need, action.kind as u8, action.machine.clone())
            }
            ActionKind::Preempt => (1, action.need.map(|need| turn(case, need)), 0, String::new()),
            ActionKind::Reclaim => (2, None, 0, action.cluster.clone().unwrap_or_default()),
            ActionKind::Delete => (3, None, 0, action.machine.clone()),
        };
        let places: Vec<_> = case.answer.actions.iter().map(place).collect();
        ensure(places.is_sorted(), || format!("{places:?}"))
    });
}

/// A fleet that went through many changes is decided like one that was always as it is now.
#[test]
fn history_has_no_say() {
    for seed in 0..100 {
        let mut scenario = random_scenario(seed, Size::Tiny);
        for edit in random_edits(seed, &scenario, 30) {
            apply(&mut scenario, &edit);
            assert_eq!(decide(&scenario), decide(&shuffled(&scenario, seed)), "seed {seed} after {edit:?}");
        }
    }
}
