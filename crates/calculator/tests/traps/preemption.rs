//! Preemption: from whom, how often, and what is already on its way.

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;

use super::build::{actions, assigned, claims, configured, decided, need, reasons};

/// A machine of a cluster that leaves it for this need.
fn draining_for(id: &str, need: &Need) -> Machine {
    let machine = assigned(configured(id, "8", "bank"), 0);
    Machine { state: MachineState::Draining, draining_for: Some(need.key()), ..machine }
}

#[test]
fn a_victim_preempted_from_its_own_claimant() {
    // The machine was bound at priority 0 and now serves the very need that is short.
    let answer = decided([assigned(configured("m", "8", "shop"), 0)], [need("shop", 1_000, "16", "1")]);
    assert_eq!((actions(&answer), claims(&answer)), (vec![], vec![("m", 0)]));
    assert_eq!((answer.unresolved[0].missing["cpu"], answer.unresolved[0].victims), (8_000, 0));
}

#[test]
fn a_victim_preempted_from_a_higher_claimant() {
    // Bound at priority 0, credited to somebody else: what it is worth now is what its claimant is worth.
    for (claimant, expected) in [(2_000, None), (1_000, None), (999, Some("Preempt m bank need 0 in 600s"))] {
        let machine = assigned(configured("m", "8", "bank"), 0);
        let needs = [need("shop", 1_000, "8", "1"), need("bank", claimant, "8", "1")];
        let answer = decided([machine], needs);
        assert_eq!(actions(&answer), Vec::from_iter(expected), "claimed at {claimant}");
    }
}

#[test]
fn a_machine_bound_at_a_higher_priority_taken() {
    // Its claimant is lower, but it was bound for more.
    let machine = assigned(configured("m", "8", "bank"), 1_000);
    let needs = [need("shop", 1_000, "8", "1"), need("bank", 10, "8", "1")];
    assert_eq!(actions(&decided([machine], needs)), [""; 0]);
}

#[test]
fn one_machine_gets_a_preempt_and_a_reclaim() {
    let machines = ["a", "b"].map(|id| configured(id, "8", "bank"));
    let answer = decided(machines, [need("shop", 1_000, "8", "1")]);
    assert_eq!(actions(&answer), ["Preempt a bank need 0 in 600s", "Reclaim b bank in 600s"]);
}

#[test]
fn one_victim_serves_two_needs() {
    let needs = [need("shop", 1_000, "8", "1"), need("stop", 1_000, "8", "1")];
    let answer = decided([configured("m", "8", "bank")], needs);
    assert_eq!(actions(&answer), ["Preempt m bank need 0 in 600s"]);
    assert_eq!(reasons(&answer), [(0, "in_flight".to_owned()), (1, "priority_starved".to_owned())]);
}

#[test]
fn preemptions_in_flight_forgotten() {
    let wanted = need("shop", 1_000, "8", "1");
    let victim = || assigned(configured("v", "8", "bank"), 0);
    let keep = || need("bank", 0, "8", "1");
    let answer = decided([draining_for("d", &wanted), victim()], [wanted.clone(), keep()]);
    assert_eq!(actions(&answer), [""; 0]);
    assert_eq!(reasons(&answer), [(0, "in_flight".to_owned())]);

    // Twice as much: one is on its way, one more is taken, and not two.
    let more = Need { aggregate: super::build::cpu("16"), ..wanted.clone() };
    let answer = decided([draining_for("d", &wanted), victim()], [more, keep()]);
    assert_eq!(actions(&answer), ["Preempt v bank need 0 in 600s"]);

    // What drains for somebody else, or for nobody, is not on its way to us.
    let other = draining_for("d", &need("stop", 1_000, "8", "1"));
    let reclaimed = Machine { draining_for: None, ..draining_for("d", &wanted) };
    for draining in [other, reclaimed] {
        let answer = decided([draining, victim()], [wanted.clone(), keep()]);
        assert_eq!(actions(&answer), ["Preempt v bank need 0 in 600s"]);
    }
}
