//! How much a cycle does, counted, not timed: what changed, and no more.

use std::sync::Arc;

use bigfleet_engine::{Fleet, Options, Parallelism, Step, Work};
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::release::ReleasePolicy;
use bigfleet_model::stamp::Assignment;

use super::build::{configured, decide, everything, fleet_of, idle, need, outcomes};

const CLUSTERS: usize = 200;

fn cluster(number: usize) -> String {
    format!("cluster-{number:03}")
}

fn bound(number: usize) -> Machine {
    configured(&format!("m{number:04}"), &cluster(number / 5))
}

/// 200 clusters of five machines each, all in use, and some idle ones.
fn calm(parallelism: Parallelism) -> Fleet {
    let mut fleet = Fleet::new(parallelism);
    for n in 0..CLUSTERS * 5 {
        fleet.observe(&bound(n)).expect("a good record");
    }
    for n in 0..20 {
        fleet.observe(&idle(&format!("spare{n:02}"))).expect("a good record");
    }
    for n in 0..CLUSTERS {
        fleet.replace(&cluster(n), vec![need(&cluster(n), 10, 40)], 1).expect("a good roll-up");
    }
    assert_eq!(decide(&mut fleet), [""; 0], "everybody is served");
    fleet
}

/// What the next cycle decides and how much work it was.
fn next(fleet: &mut Fleet) -> (Vec<String>, Work) {
    let decision = fleet.cycle(&Options::default(), 1_000);
    (decision.actions.iter().map(|a| format!("{} {}", a.kind, a.machine)).collect(), decision.work)
}

fn failed(machine: Machine) -> Machine {
    Machine { state: MachineState::Failed, last_error: "gone".into(), ..machine }
}

#[test]
fn the_first_cycle_walks_everybody() {
    let mut fleet = calm(Parallelism::default());
    fleet.forget_cache();
    let (_, work) = next(&mut fleet);
    assert_eq!((work.clusters_walked, work.short_needs, work.rebuilt), (CLUSTERS, 0, true));
}

#[test]
fn a_quiet_cycle_repeats_the_answer_and_takes_no_step() {
    let mut fleet = calm(Parallelism::default());
    let options = Options::default();
    fleet.observe(&failed(bound(7))).expect("a good record");
    let decision = fleet.cycle(&options, 1_000);
    fleet.observe(&failed(bound(7))).expect("told again");
    let mut steps = 0;
    let again = fleet.cycle_probed(&options, 2_000, &mut |_| steps += 1);
    assert!(Arc::ptr_eq(&decision, &again));
    assert_eq!(steps, 0);
}

#[test]
fn every_other_cycle_takes_every_step_in_order() {
    let mut fleet = calm(Parallelism::default());
    fleet.observe(&failed(bound(7))).expect("a good record");
    let mut steps = Vec::new();
    fleet.cycle_probed(&Options::default(), 1_000, &mut |step| steps.push(step));
    assert_eq!(steps, Step::ALL);
}

#[test]
fn one_machine_concerns_one_cluster() {
    let mut fleet = calm(Parallelism::default());
    fleet.observe(&failed(bound(7))).expect("a good record");
    let (actions, work) = next(&mut fleet);
    assert_eq!(actions, ["Bootstrap spare00"]);
    let looked_at = |work: Work| (work.clusters_walked, work.needs_renewed, work.short_needs, work.rebuilt);
    assert_eq!(looked_at(work), (0, 1, 1, false));

    fleet.observe(&Machine { price_usd_per_hour: 3.0, ..bound(444) }).expect("a good record");
    let (_, work) = next(&mut fleet);
    assert_eq!(looked_at(work), (0, 1, 1, false));

    fleet.remove("m0321");
    let (actions, work) = next(&mut fleet);
    assert_eq!((actions.len(), looked_at(work)), (2, (0, 1, 2, false)));
}

#[test]
fn a_machine_that_moves_concerns_two_clusters() {
    let mut fleet = calm(Parallelism::default());
    fleet.observe(&configured("m0007", &cluster(150))).expect("a good record");
    let (actions, work) = next(&mut fleet);
    assert_eq!(actions, ["Bootstrap spare00", "Reclaim m0754"]);
    assert_eq!((work.clusters_walked, work.needs_renewed), (0, 2));
}

/// A machine bound for a need.
fn bound_for(id: &str, need: &Need) -> Machine {
    let assigned = Assignment {
        cluster: need.cluster.clone(),
        fingerprint: need.profile.fingerprint().into(),
        ..Assignment::default()
    };
    Machine { assigned, ..configured(id, &need.cluster) }
}

#[test]
fn a_need_that_stands_alone_is_not_looked_at_when_another_changes() {
    let (high, middle, low) = (need("shop", 30, 16), need("shop", 20, 16), need("shop", 10, 8));
    let mut fleet = fleet_of([
        bound_for("high-1", &high),
        bound_for("high-2", &high),
        bound_for("middle-1", &middle),
        bound_for("middle-2", &middle),
        // Nobody's: the last need lives on it.
        configured("nobodys", "shop"),
        idle("spare"),
    ]);
    fleet.replace("shop", vec![high, middle, low], 1).expect("a good roll-up");
    assert_eq!(decide(&mut fleet), [""; 0], "everybody is served");
    // The middle one takes what the last one lived on, and the last one buys: two of three needs.
    fleet.observe(&failed(configured("middle-2", "shop"))).expect("a good record");
    let (actions, work) = next(&mut fleet);
    assert_eq!(actions, ["Bootstrap spare"]);
    assert_eq!((work.clusters_walked, work.needs_renewed, work.short_needs), (0, 2, 1));
    assert_eq!(next(&mut fleet), (actions, work), "nothing has changed since");
    let renewed = outcomes(&fleet);
    assert_eq!(everything(&mut fleet), (vec!["Bootstrap spare shop".to_owned()], renewed));
}

#[test]
fn a_free_machine_concerns_no_cluster() {
    let mut fleet = calm(Parallelism::default());
    fleet.observe(&Machine { price_usd_per_hour: 3.0, ..idle("spare03") }).expect("a good record");
    fleet.observe(&idle("spare99")).expect("a good record");
    fleet.remove("spare05");
    let (actions, work) = next(&mut fleet);
    assert_eq!((actions.len(), work.clusters_walked, work.rebuilt), (0, 0, false));
}

#[test]
fn one_roll_up_concerns_one_cluster() {
    let mut fleet = calm(Parallelism::default());
    fleet.replace(&cluster(9), vec![need(&cluster(9), 10, 48)], 1).expect("a good roll-up");
    let (actions, work) = next(&mut fleet);
    let looked_at = (work.clusters_walked, work.needs_renewed, work.short_needs);
    assert_eq!((actions.len(), looked_at), (1, (0, 1, 1)), "the row that changed");
    let two = vec![need(&cluster(9), 10, 40), need(&cluster(9), 20, 8)];
    fleet.replace(&cluster(9), two, 1).expect("a good roll-up");
    let (_, work) = next(&mut fleet);
    assert_eq!((work.clusters_walked, work.needs_renewed), (1, 0), "a row that is new");
}

#[test]
fn time_and_options_concern_nobody_until_a_hold_is_over() {
    let mut fleet = calm(Parallelism::default());
    let rented =
        Machine { capacity_type: CapacityType::Spot, idle_since_unix_nanos: Some(5_000), ..idle("spare07") };
    fleet.observe(&rented).expect("a good record");
    let options = Options { release: ReleasePolicy::from_nanos(0, 1_000), ..Options::default() };
    let decision = fleet.cycle(&options, 5_000);
    assert_eq!(decision.actions.len(), 0);
    assert!(Arc::ptr_eq(&decision, &fleet.cycle(&options, 5_999)), "not yet");
    let due = fleet.cycle(&options, 6_000);
    assert_eq!((due.actions.len(), due.work.clusters_walked), (1, 0));
    assert_eq!(&*due.actions[0].machine, "spare07");
    // A clock that goes back is believed as well.
    assert_eq!(fleet.cycle(&options, 5_999).actions.len(), 0);
}

#[test]
fn any_number_of_threads_does_the_same_work() {
    let run = |threads| {
        let mut fleet = calm(Parallelism { threads, from_clusters: 0 });
        for n in (0..CLUSTERS * 5).step_by(3) {
            fleet.observe(&failed(bound(n))).expect("a good record");
        }
        let (actions, work) = next(&mut fleet);
        assert_eq!(actions.len(), 20, "every spare machine is used");
        (actions, work, outcomes(&fleet))
    };
    let alone = run(1);
    for threads in [0, 2, 3, 8, 500] {
        assert_eq!(run(threads), alone, "{threads} threads");
    }
}
