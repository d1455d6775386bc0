//! Shrinking keeps the failure and drops everything else.

use bigfleet_model::machine::MachineState;
use bigfleet_oracle::{Size, as_vector, decide, disagreement, random_scenario, shrink};
use bigfleet_scenario::answer::{Action, ActionKind};
use bigfleet_scenario::{Answer, Scenario, input};

/// An engine that forgets one kind of action.
fn forgets(kind: ActionKind) -> impl Fn(&Scenario) -> Answer {
    move |scenario| {
        let mut answer = decide(scenario);
        answer.actions.retain(|action: &Action| action.kind != kind);
        answer
    }
}

#[test]
fn a_forgotten_action_needs_little_to_be_shown() {
    use ActionKind::{Bootstrap, Delete, Preempt, Provision, Reclaim};
    for (kind, machines, needs) in
        [(Bootstrap, 1, 1), (Provision, 1, 1), (Preempt, 1, 1), (Reclaim, 1, 0), (Delete, 1, 0)]
    {
        let seed = (0..1_000).find(|seed| {
            decide(&random_scenario(*seed, Size::Small)).actions.iter().any(|action| action.kind == kind)
        });
        let scenario = random_scenario(seed.expect("every kind of action is met"), Size::Small);
        let message = disagreement(&scenario, forgets(kind)).expect("an action is missing");
        let (difference, vector) = message.split_once('\n').expect("a sentence, then a file");
        assert!(difference.starts_with("actions["), "{difference}");
        let file = input::read_vector(vector.as_bytes()).expect("a vector file");
        assert_eq!(file.expect, decide(&file.scenario));
        assert_eq!((file.scenario.machines.len(), file.scenario.needs.len()), (machines, needs), "{message}");
    }
}

#[test]
fn engines_that_agree_have_nothing_to_show() {
    assert_eq!(disagreement(&random_scenario(1, Size::Tiny), decide), None);
}

#[test]
fn what_is_left_still_fails_and_nothing_can_go() {
    let fails = |scenario: &Scenario| {
        scenario.machines.iter().filter(|machine| machine.state == MachineState::Idle).count() >= 2
    };
    let scenario =
        (0..1_000).map(|seed| random_scenario(seed, Size::Medium)).find(&fails).expect("idle machines");
    let small = shrink(scenario, fails);
    assert!(fails(&small));
    assert_eq!((small.machines.len(), small.needs.len()), (2, 0));
    assert_eq!((&*small.machines[0].zone, small.machines[0].labels.len()), ("", 0));
}

#[test]
fn gangs_and_their_stamps_shrink_together() {
    // Fails as long as a gang is credited with a machine of its own in a domain.
    let fails = |scenario: &Scenario| {
        let answer = decide(scenario);
        answer.domains.iter().any(|domain| {
            let need = &answer.normalized_needs[domain.need as usize];
            scenario.machines.iter().any(|machine| {
                *machine.assigned.fingerprint == *need.fingerprint
                    && *machine.assigned.group == *need.group
                    && answer.claims.get(&*machine.id) == Some(&domain.need)
            })
        })
    };
    let scenario =
        (0..1_000).map(|seed| random_scenario(seed, Size::Small)).find(&fails).expect("a served gang");
    let small = shrink(scenario, fails);
    assert_eq!((small.machines.len(), small.needs.len()), (1, 1), "{}", as_vector("x", "y", &small));
    assert_eq!(small.needs[0].profile.requirements().len(), 1);
}
