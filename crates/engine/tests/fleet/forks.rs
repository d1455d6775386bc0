//! A fork is a snapshot: cheap to take, and independent of everything that happens later.

use bigfleet_engine::{Fleet, Options};
use bigfleet_model::machine::Machine;

use super::build::{configured, decide, everything, fleet_of, gang, idle, need, racked};

/// Bound, idle and gang demand, so that every table and index is in use.
fn busy() -> Fleet {
    let racked = |id: &str, rack| racked(idle(id), rack);
    let mut fleet = fleet_of([configured("a", "shop"), configured("b", "bank"), idle("c"), idle("d")]);
    for machine in [racked("e", "r1"), racked("f", "r1"), racked("g", "r2")] {
        fleet.observe(&machine).expect("a good record");
    }
    fleet.replace("shop", vec![need("shop", 500, 24), gang("shop", "g", 16)], 1).expect("a good roll-up");
    fleet.replace("bank", vec![need("bank", 5, 80)], 2).expect("a good roll-up");
    fleet
}

/// Everything that can be told to a fleet.
fn shake(fleet: &mut Fleet) {
    fleet.remove("c");
    fleet.observe(&Machine { price_usd_per_hour: 7.0, ..idle("d") }).expect("a good record");
    fleet.observe(&configured("g", "shop")).expect("a good record");
    fleet.observe(&idle("aa")).expect("a good record");
    fleet.observe(&racked(idle("h"), "r9")).expect("a good record");
    fleet.replace("shop", vec![need("shop", 700, 8), gang("shop", "other", 24)], 8).expect("a good roll-up");
    fleet.replace("bank", vec![], 8).expect("a good roll-up");
    fleet.replace("attic", vec![need("attic", 900, 400)], 8).expect("a good roll-up");
}

#[test]
fn a_fork_is_independent_of_later_writes() {
    for cycles_before in [0, 1, 2] {
        let mut fleet = busy();
        for now in 0..cycles_before {
            fleet.cycle(&Options::default(), now);
        }
        let expected = everything(&mut busy());
        let mut snapshot = fleet.fork();
        shake(&mut fleet);
        let shaken = decide(&mut fleet);
        assert_ne!(shaken, expected.0, "the edits matter");
        decide(&mut snapshot);
        assert_eq!(
            (decide(&mut snapshot), everything(&mut snapshot)),
            (expected.0.clone(), expected.clone())
        );

        // And the other way round: what is tried on a fork is not felt by the fleet.
        let mut fleet = busy();
        let mut what_if = fleet.fork();
        shake(&mut what_if);
        assert_eq!(decide(&mut what_if), shaken);
        assert_eq!(everything(&mut fleet), expected);
        assert_eq!((fleet.machine_count(), fleet.need_count()), (7, 3));
    }
}

#[test]
fn a_fork_of_a_fork_remembers_its_own_past() {
    let mut first = busy();
    let mut second = first.fork();
    second.remove("c");
    let mut third = second.fork();
    third.remove("d");
    let decided: Vec<bool> = [&mut first, &mut second, &mut third]
        .into_iter()
        .flat_map(|fleet| {
            let actions = decide(fleet).join("\n");
            ["Bootstrap c ", "Bootstrap d "].map(|action| actions.contains(action))
        })
        .collect();
    assert_eq!(decided, [true, true, false, true, false, false]);
}

#[test]
fn a_decision_outlives_its_fleet() {
    let mut fleet = busy();
    let decision = fleet.cycle(&Options::default(), 1_000);
    let lines = || decision.actions.iter().map(|action| action.machine.to_string()).collect::<Vec<_>>();
    let before = lines();
    shake(&mut fleet);
    fleet.cycle(&Options::default(), 1_000);
    drop(fleet);
    assert_eq!(lines(), before);
}
