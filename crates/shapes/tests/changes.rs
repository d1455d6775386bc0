//! Churn and storms: changes that keep a scenario sound and are as many as asked for.

use std::collections::BTreeSet;

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_scenario::answer::{Action, ActionKind, NormalizedNeed};
use bigfleet_scenario::{Answer, Scenario};
use bigfleet_shapes::settled::apply_answer;
use bigfleet_shapes::{Change, Shape, apply_changes, census, churn, generate, reports, storm};

#[test]
fn churn_changes_the_fraction_it_is_given() {
    let before = generate(Shape::Fleet5k, 1);
    let changes = churn(&before, 9, 0.01);
    let machines = changes.iter().filter(|change| matches!(change, Change::Machine(_))).count();
    assert_eq!(machines, 225);

    let mut after = before.clone();
    apply_changes(&mut after, &changes);
    assert_sound(&after);
    let changed = before.machines.iter().zip(&after.machines).filter(|(old, new)| old != new).count();
    assert_eq!(changed, machines);
    let rows = |scenario: &Scenario| -> BTreeSet<(NeedKey, String)> {
        scenario.needs.iter().map(|need| (need.key(), need.aggregate.to_string())).collect()
    };
    // 26 rows. Every changed row differs once before and once after; the new one and the removed one on one side only.
    let differing = rows(&before).symmetric_difference(&rows(&after)).count();
    assert!((46..=50).contains(&differing), "{differing}");
    let states = census(&after).states;
    assert!(states[&MachineState::Creating] > 0 && states[&MachineState::Failed] > 0);
}

#[test]
fn a_storm_changes_every_roll_up_a_little() {
    let before = generate(Shape::Fleet5k, 1);
    let changes = storm(&before, 9);
    assert_eq!(changes.len(), 20);
    for change in &changes {
        let Change::Needs { cluster, rows } = change else { panic!("a storm moves no machines") };
        let old: Vec<&Need> = before.needs.iter().filter(|need| need.cluster == *cluster).collect();
        assert_eq!(old.len(), rows.len());
        assert!(old.iter().zip(rows).any(|(old, new)| **old != *new), "{cluster} did not change");
    }
    let mut after = before.clone();
    apply_changes(&mut after, &changes);
    assert_sound(&after);
    let demanded = |scenario| census(scenario).demanded_cpus as f64;
    assert!((0.95..1.05).contains(&(demanded(&after) / demanded(&before))));
}

#[test]
fn as_many_clusters_report_as_are_asked_for_each_with_one_row_changed() {
    let before = generate(Shape::Fleet5k, 1);
    let changes = reports(&before, 9, 7);
    let clusters: BTreeSet<_> = changes
        .iter()
        .map(|change| {
            let Change::Needs { cluster, rows } = change else { panic!("a report moves no machines") };
            let old: Vec<&Need> = before.needs.iter().filter(|need| need.cluster == *cluster).collect();
            assert_eq!(old.iter().zip(rows).filter(|(old, new)| **old != *new).count(), 1);
            cluster
        })
        .collect();
    assert_eq!((changes.len(), clusters.len()), (7, 7));
    assert_eq!(reports(&before, 9, 1_000).len(), 20);
    assert_ne!(reports(&before, 10, 7), changes);
}

#[test]
fn changes_come_from_their_seed() {
    let scenario = generate(Shape::Fleet5k, 1);
    assert_eq!(churn(&scenario, 5, 0.01), churn(&scenario, 5, 0.01));
    assert_ne!(churn(&scenario, 5, 0.01), churn(&scenario, 6, 0.01));
    assert_eq!(storm(&scenario, 5), storm(&scenario, 5));
    assert_ne!(storm(&scenario, 5), storm(&scenario, 6));
}

#[test]
fn carried_out_actions_leave_sound_machines() {
    let mut scenario = generate(Shape::Fleet5k, 1);
    let gang = scenario.needs.iter().find(|need| need.profile.same().is_some()).unwrap();
    let mut folded = gang.clone();
    (folded.profile, folded.group) = (gang.profile.without_same().into(), "".into());
    let place = |state| scenario.machines.iter().position(|machine| machine.state == state).unwrap();
    let (bound, idle) = (place(MachineState::Configured), place(MachineState::Idle));
    let last_idle = scenario.machines.iter().rposition(|m| m.state == MachineState::Idle).unwrap();
    let slot = place(MachineState::Speculative);
    let action = |kind, at: usize, need| Action {
        cluster: None,
        grace_secs: None,
        kind,
        machine: scenario.machines[at].id.to_string(),
        need,
    };
    let answer = Answer {
        actions: vec![
            action(ActionKind::Bootstrap, idle, Some(0)),
            action(ActionKind::Provision, slot, Some(1)),
            action(ActionKind::Reclaim, bound, None),
            action(ActionKind::Delete, last_idle, None),
        ],
        normalized_needs: vec![NormalizedNeed::from(gang), NormalizedNeed::from(&folded)],
        ..Answer::default()
    };
    let key = gang.key();
    apply_answer(&mut scenario, &answer);
    assert_sound(&scenario);

    let machine = |at: usize| &scenario.machines[at];
    assert_eq!(machine(idle).state, MachineState::Configured);
    assert_eq!(machine(idle).assigned.fingerprint, key.fingerprint);
    assert_eq!(machine(idle).assigned.group, key.group);
    assert_eq!(machine(slot).state, MachineState::Configured);
    assert_eq!(*machine(slot).assigned.fingerprint, *folded.profile.fingerprint());
    assert_eq!(*machine(slot).cluster, *key.cluster);
    assert_eq!(machine(bound).state, MachineState::Idle);
    assert_eq!(machine(bound).idle_since_unix_nanos, Some(scenario.now_unix_nanos));
    assert_eq!(machine(last_idle).state, MachineState::Speculative);
}

fn assert_sound(scenario: &Scenario) {
    scenario.machines.iter().for_each(|machine| machine.check().unwrap());
    let keys: BTreeSet<NeedKey> = scenario.needs.iter().map(Need::key).collect();
    assert_eq!(keys.len(), scenario.needs.len());
}
