//! What happens between two cycles must be felt in the second.

use bigfleet_engine::{Fleet, Observed};
use bigfleet_model::label::ZONE;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::requirement::Requirement;

use super::build::{
    actions, claims, configured, cpu, idle, need, next, of_profile, priced, profile, running, speculative,
};

fn observe(fleet: &mut Fleet, machine: &Machine) {
    assert_eq!(fleet.observe(machine), Ok(Observed::Changed));
}

/// A need, the machine that serves it, and a dearer one to fall back on.
fn served() -> Fleet {
    let mut fleet = running(
        [configured("m", "8", "shop"), priced(idle("spare", "8"), 2.0)],
        [need("shop", 10, "8", "1")],
    );
    let answer = next(&mut fleet);
    assert_eq!((actions(&answer), claims(&answer)), (vec![], vec![("m", 0)]));
    fleet
}

#[test]
fn a_dead_machine_stays_credited() {
    let failed =
        Machine { last_error: "gone".into(), state: MachineState::Failed, ..configured("m", "8", "shop") };
    let nameless = Machine { cluster: "".into(), host: None, ..failed.clone() };
    for told in [failed, nameless, speculative("m", "1"), Machine::new("m", MachineState::Creating)] {
        let mut fleet = served();
        observe(&mut fleet, &told);
        assert_eq!(actions(&next(&mut fleet)), ["Bootstrap spare shop need 0"], "{}", told.state);
    }
}

#[test]
fn a_machine_that_left_its_cluster_stays_credited() {
    let mut fleet = served();
    observe(&mut fleet, &idle("m", "8"));
    assert_eq!(actions(&next(&mut fleet)), ["Bootstrap m shop need 0"]);

    let mut fleet = served();
    observe(&mut fleet, &configured("m", "8", "bank"));
    let answer = next(&mut fleet);
    assert_eq!(actions(&answer), ["Bootstrap spare shop need 0", "Reclaim m bank in 600s"]);

    let mut fleet = served();
    observe(&mut fleet, &Machine { state: MachineState::Draining, ..configured("m", "8", "shop") });
    assert_eq!(actions(&next(&mut fleet)), ["Bootstrap spare shop need 0"]);
}

#[test]
fn a_machine_nobody_lists_any_more_stays_credited() {
    let mut fleet = served();
    assert!(fleet.remove("m"));
    assert_eq!(actions(&next(&mut fleet)), ["Bootstrap spare shop need 0"]);
    // It was a hiccup: the machine is back before the order was carried out.
    assert_eq!(fleet.observe(&configured("m", "8", "shop")), Ok(Observed::New));
    assert_eq!(actions(&next(&mut fleet)), [""; 0]);
}

#[test]
fn a_machine_back_from_failure_is_refused() {
    let mut fleet = served();
    let failed =
        Machine { last_error: "gone".into(), state: MachineState::Failed, ..configured("m", "8", "shop") };
    observe(&mut fleet, &failed);
    next(&mut fleet);
    observe(&mut fleet, &idle("m", "8"));
    assert_eq!(actions(&next(&mut fleet)), ["Bootstrap m shop need 0"]);
}

#[test]
fn a_price_change_in_the_same_state_skipped() {
    let (a, b) = (priced(idle("a", "8"), 1.0), priced(idle("b", "8"), 2.0));
    let mut fleet = running([a.clone(), b], [need("shop", 10, "8", "1")]);
    assert_eq!(actions(&next(&mut fleet)), ["Bootstrap a shop need 0"]);
    observe(&mut fleet, &priced(a, 3.0));
    assert_eq!(actions(&next(&mut fleet)), ["Bootstrap b shop need 0"]);
}

#[test]
fn a_risk_change_in_the_same_state_skipped() {
    use bigfleet_model::penalty::PenaltyBucket;
    use bigfleet_model::profile::Profile;
    let careful = Profile::new(vec![], vec![], 10, PenaltyBucket::ONE_DOLLAR, PenaltyBucket::ZERO);
    let (a, b) = (priced(speculative("a", "8"), 1.0), priced(speculative("b", "8"), 1.1));
    let mut fleet = running([a.clone(), b], [of_profile("shop", careful, "8", "1")]);
    assert_eq!(actions(&next(&mut fleet)), ["Provision a shop need 0"]);
    observe(&mut fleet, &Machine { interruption_probability: 0.2, ..a });
    assert_eq!(actions(&next(&mut fleet)), ["Provision b shop need 0"]);
}

#[test]
fn a_label_change_in_the_same_state_skipped() {
    let in_zone = Requirement::is_in(ZONE, ["east"]);
    let zoned = |machine, zone: &str| Machine { zone: zone.into(), ..machine };
    let wanted = of_profile("shop", profile(vec![in_zone], 10), "8", "1");
    let bound = configured("m", "8", "shop");
    let mut fleet = running([zoned(bound.clone(), "east"), zoned(idle("spare", "8"), "east")], [wanted]);
    assert_eq!(actions(&next(&mut fleet)), [""; 0]);
    observe(&mut fleet, &zoned(bound.clone(), "west"));
    let moved = actions(&next(&mut fleet));
    assert_eq!(moved, ["Bootstrap spare shop need 0", "Reclaim m shop in 600s"]);
    observe(&mut fleet, &zoned(bound, "east"));
    assert_eq!(actions(&next(&mut fleet)), [""; 0]);
}

#[test]
fn an_allocatable_change_in_the_same_state_skipped() {
    let mut fleet = served();
    observe(&mut fleet, &Machine { allocatable: cpu("7500m"), ..configured("m", "8", "shop") });
    assert_eq!(actions(&next(&mut fleet)), ["Bootstrap spare shop need 0"]);
}

#[test]
fn a_changed_stamp_skipped() {
    // The binding says 2,000 now, so nobody at 1,000 may take it.
    let bound = |priority| super::build::assigned(configured("m", "8", "bank"), priority);
    let needs = || [need("shop", 1_000, "8", "1"), need("bank", 0, "8", "1")];
    let mut fleet = running([bound(0)], needs());
    assert_eq!(actions(&next(&mut fleet)), ["Preempt m bank need 0 in 600s"]);
    observe(&mut fleet, &bound(2_000));
    assert_eq!(actions(&next(&mut fleet)), [""; 0]);
}

#[test]
fn an_order_carried_out_ordered_again() {
    let wanted = need("shop", 10, "8", "1");
    let mut fleet = running([speculative("s", "8"), speculative("t", "8")], [wanted.clone()]);
    assert_eq!(actions(&next(&mut fleet)), ["Provision s shop need 0"]);
    let steps = [MachineState::Creating, MachineState::Configuring, MachineState::Configured];
    for state in steps {
        let bound = if state == MachineState::Creating {
            speculative("s", "8")
        } else {
            configured("s", "8", "shop")
        };
        observe(&mut fleet, &super::build::stamped(Machine { state, ..bound }, &wanted));
        assert_eq!(actions(&next(&mut fleet)), [""; 0], "{state}");
    }
    let more = Need { aggregate: cpu("16"), ..wanted };
    fleet.replace("shop", vec![more], 5).expect("a good roll-up");
    assert_eq!(actions(&next(&mut fleet)), ["Provision t shop need 0"]);
}
