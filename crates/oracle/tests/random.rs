//! Random scenarios are possible, repeatable, and rich: every rule is met, most of them often.

use std::collections::BTreeMap;

use bigfleet_model::label::{INSTANCE_TYPE, ZONE};
use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;
use bigfleet_model::requirement::Operator;
use bigfleet_oracle::{Size, apply, decide, random_edits, random_scenario};
use bigfleet_scenario::{Scenario, input};

/// How many seeds of each size are looked at.
const SEEDS: [(Size, u64); 3] = [(Size::Tiny, 2_000), (Size::Small, 150), (Size::Medium, 8)];

fn scenarios() -> impl Iterator<Item = (String, Scenario)> {
    SEEDS.into_iter().flat_map(|(size, count)| {
        (0..count).map(move |seed| (format!("{size:?} {seed}"), random_scenario(seed, size)))
    })
}

fn assert_possible(name: &str, scenario: &Scenario) {
    for machine in &scenario.machines {
        machine.check().expect(name);
    }
    let mut keys: Vec<NeedKey> = scenario.needs.iter().map(bigfleet_model::need::Need::key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), scenario.needs.len(), "{name}: two needs have one identity");
    assert!(scenario.needs.iter().all(|need| !need.parked || need.profile.same().is_some()), "{name}");
    let mut text = Vec::new();
    input::write(&mut text, scenario).expect("writing to memory");
    assert_eq!(input::read(&text).expect(name), *scenario, "{name}: does not survive a file");
}

#[test]
fn scenarios_are_possible_and_fit_into_files() {
    for (name, scenario) in scenarios() {
        assert_possible(&name, &scenario);
    }
}

#[test]
fn sizes_are_as_promised() {
    for seed in 0..200 {
        let tiny = random_scenario(seed, Size::Tiny);
        assert!(tiny.machines.len() <= 18 && (1..=8).contains(&tiny.needs.len()));
    }
    for seed in 0..8 {
        let medium = random_scenario(seed, Size::Medium);
        assert!((200..=400).contains(&medium.machines.len()));
        assert!((40..=120).contains(&medium.needs.len()), "{} needs", medium.needs.len());
    }
}

#[test]
fn one_seed_is_one_scenario() {
    for seed in 0..50 {
        assert_eq!(random_scenario(seed, Size::Small), random_scenario(seed, Size::Small));
        assert_ne!(random_scenario(seed, Size::Small), random_scenario(seed + 1, Size::Small));
    }
}

/// Counts what is met. A rule that random fleets never meet is a rule nobody compares.
#[test]
fn every_rule_is_met() {
    let mut met: BTreeMap<String, u64> = BTreeMap::new();
    for (_, scenario) in scenarios() {
        let mut meet = |what: String| *met.entry(what).or_insert(0) += 1;
        for need in &scenario.needs {
            for requirement in need.profile.requirements() {
                meet(format!("operator {}", requirement.operator()));
                if requirement.operator() == Operator::Same && !requirement.values().is_empty() {
                    meet("same with values".into());
                }
            }
            let same = need.profile.requirements().iter().filter(|r| r.operator() == Operator::Same).count();
            if same > 1 {
                meet("two same".into());
            }
            for spread in need.profile.spread() {
                meet(format!("spread {} {}", spread.max_skew, spread.when.name()));
            }
            meet(format!("bucket {}", need.profile.interruption().to_wire()));
            if need.aggregate.is_zero() {
                meet("zero aggregate".into());
            }
        }
        for machine in &scenario.machines {
            meet(format!("state {}", machine.state));
            if machine.zone.is_empty() && machine.labels.get(ZONE).is_some() {
                meet("zone from label".into());
            }
            if !machine.instance_type.is_empty() && machine.labels.get(INSTANCE_TYPE).is_some() {
                meet("type from field and label".into());
            }
            if machine.state == MachineState::Draining && machine.draining_for.is_some() {
                meet("draining for a need".into());
            }
        }
        let answer = decide(&scenario);
        for action in &answer.actions {
            meet(format!("{:?}", action.kind));
            if let (Some(grace), Some(_)) = (action.grace_secs, action.need) {
                meet(format!("grace {grace}"));
            }
        }
        for verdict in &answer.reasons {
            meet(verdict.reason.to_string());
        }
        for domain in &answer.domains {
            meet(format!("domain {} covers {}", domain.value.is_some(), domain.covers));
        }
        if answer.normalized_needs.len() < scenario.needs.len() {
            meet("folded together".into());
        }
        for shortfall in &answer.unresolved {
            if shortfall.victims > 0 {
                meet("short in spite of victims".into());
            }
        }
        for machine in scenario.machines.iter().filter(|m| m.state == MachineState::Creating) {
            if answer.claims.contains_key(&*machine.id) {
                meet("creating credited".into());
            }
        }
    }
    let operators = Operator::ALL.iter().map(|op| format!("operator {op}"));
    let states = MachineState::ALL.iter().map(|state| format!("state {state}"));
    let buckets = (0..28).map(|bucket| format!("bucket {bucket}"));
    let skews = (-1..=3).map(|skew| format!("spread {skew} DoNotSchedule"));
    let graces = [10, 30, 120, 600].map(|grace| format!("grace {grace}"));
    let others = [
        "same with values",
        "two same",
        "spread 1 ScheduleAnyway",
        "zero aggregate",
        "zone from label",
        "type from field and label",
        "draining for a need",
        "Bootstrap",
        "Provision",
        "Preempt",
        "Reclaim",
        "Delete",
        "parked",
        "in_flight",
        "no_matching_supply",
        "topology_unsatisfiable",
        "preemption_exhausted",
        "priority_starved",
        "domain true covers true",
        "domain true covers false",
        "domain false covers false",
        "folded together",
        "short in spite of victims",
        "creating credited",
    ];
    let expected = operators.chain(states).chain(buckets).chain(skews).chain(graces);
    for what in expected.chain(others.map(String::from)) {
        let times = met.get(&what).copied().unwrap_or(0);
        assert!(times >= 20, "{what}: met {times} times of {met:#?}");
    }
}

#[test]
fn edits_leave_possible_scenarios_behind() {
    for (size, seeds, count) in [(Size::Tiny, 150, 60), (Size::Small, 6, 60)] {
        for seed in 0..seeds {
            let mut scenario = random_scenario(seed, size);
            let edits = random_edits(seed, &scenario, count);
            assert_eq!(edits.len(), count);
            assert_eq!(edits, random_edits(seed, &scenario, count), "one seed is one sequence");
            for edit in &edits {
                apply(&mut scenario, edit);
                assert_possible(&format!("{size:?} {seed} after {edit:?}"), &scenario);
            }
        }
    }
}
