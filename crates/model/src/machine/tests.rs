//! The invariants of machine records, one row per rule.

use super::*;
use MachineState::{Configured, Configuring, Creating, Deleting, Draining, Failed, Idle, Speculative};

fn host() -> HostRef {
    HostRef { provider: "metal".into(), reference: "rack-7/3".into() }
}

/// The record everybody accepts in this state.
fn good(state: MachineState) -> Machine {
    let mut machine = Machine::new("m-1", state);
    if !matches!(state, Speculative | Creating) {
        machine.host = Some(host());
    }
    if state.is_bound() {
        machine.cluster = "shop".into();
    }
    if state == Failed {
        machine.last_error = "power supply".into();
    }
    machine
}

fn problem(state: MachineState, change: impl FnOnce(&mut Machine)) -> Option<MachineProblem> {
    let mut machine = good(state);
    change(&mut machine);
    machine.check().err().map(|error| {
        // Whatever is wrong, the message says where and what.
        assert_eq!((error.id.as_str(), error.state), (&*machine.id, state));
        let message = error.to_string();
        let opening = format!("machine {} ({state}): {}; ", Quoted(&machine.id), error.problem);
        assert!(message.starts_with(&opening), "{message}");
        error.problem
    })
}

#[test]
fn a_good_record_passes_in_every_state() {
    for state in MachineState::ALL {
        assert_eq!(good(state).check(), Ok(()), "{state}");
    }
}

#[test]
fn an_id_is_needed_in_every_state() {
    for state in MachineState::ALL {
        assert_eq!(problem(state, |m| m.id = "".into()), Some(MachineProblem::EmptyId), "{state}");
    }
}

#[test]
fn a_host_is_absent_before_creation_and_there_after_it() {
    for (state, without, with) in [
        (Speculative, None, Some(MachineProblem::UnexpectedHost)),
        (Creating, None, Some(MachineProblem::UnexpectedHost)),
        (Idle, Some(MachineProblem::MissingHost), None),
        (Configuring, Some(MachineProblem::MissingHost), None),
        (Configured, Some(MachineProblem::MissingHost), None),
        (Draining, Some(MachineProblem::MissingHost), None),
        (Deleting, Some(MachineProblem::MissingHost), None),
        (Failed, None, None),
    ] {
        assert_eq!(problem(state, |m| m.host = None), without, "{state} without a host");
        assert_eq!(problem(state, |m| m.host = Some(host())), with, "{state} with a host");
    }
}

#[test]
fn a_cluster_is_there_while_bound_and_only_then() {
    for (state, without, with) in [
        (Speculative, None, Some(MachineProblem::UnexpectedCluster)),
        (Creating, None, Some(MachineProblem::UnexpectedCluster)),
        (Idle, None, Some(MachineProblem::UnexpectedCluster)),
        // A provider that does not say yet for whom it configures is believed.
        (Configuring, None, None),
        (Configured, Some(MachineProblem::MissingCluster), None),
        (Draining, Some(MachineProblem::MissingCluster), None),
        (Deleting, None, Some(MachineProblem::UnexpectedCluster)),
        // A dead machine may still name its cluster: refusing that would keep it as supply.
        (Failed, None, None),
    ] {
        assert_eq!(problem(state, |m| m.cluster = "".into()), without, "{state} without a cluster");
        assert_eq!(problem(state, |m| m.cluster = "shop".into()), with, "{state} with a cluster");
    }
}

#[test]
fn only_failed_needs_an_error() {
    for state in MachineState::ALL {
        let expected = (state == Failed).then_some(MachineProblem::MissingError);
        assert_eq!(problem(state, |m| m.last_error = "".into()), expected, "{state}");
    }
}

#[test]
fn prices_are_finite_and_not_negative() {
    for price in [0.0, -0.0, 1e-300, 0.37, f64::MAX] {
        assert_eq!(problem(Idle, |m| m.price_usd_per_hour = price), None, "{price}");
    }
    for price in [-1e-300, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let found = problem(Idle, |m| m.price_usd_per_hour = price);
        assert!(matches!(found, Some(MachineProblem::Price(p)) if p.total_cmp(&price).is_eq()), "{found:?}");
    }
}

#[test]
fn probabilities_are_between_0_and_1() {
    for probability in [0.0, -0.0, f64::MIN_POSITIVE, 0.5, 1.0] {
        assert_eq!(problem(Idle, |m| m.interruption_probability = probability), None, "{probability}");
    }
    for probability in [-1e-300, 1.0 + f64::EPSILON, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let found = problem(Idle, |m| m.interruption_probability = probability);
        let same = |p: f64| p.total_cmp(&probability).is_eq();
        assert!(matches!(found, Some(MachineProblem::Probability(p)) if same(p)), "{found:?}");
    }
}

#[test]
fn stamped_penalties_may_be_infinite_but_not_negative() {
    for dollars in [0.0, 0.5, f64::INFINITY] {
        assert_eq!(problem(Configured, |m| m.assigned.interruption_penalty_usd = dollars), None);
        assert_eq!(problem(Configured, |m| m.assigned.reclamation_penalty_usd = dollars), None);
    }
    for dollars in [-0.01, f64::NEG_INFINITY, f64::NAN] {
        let first = problem(Configured, |m| m.assigned.interruption_penalty_usd = dollars);
        let second = problem(Configured, |m| m.assigned.reclamation_penalty_usd = dollars);
        assert!(matches!(first, Some(MachineProblem::Penalty(_))), "{first:?}");
        assert!(matches!(second, Some(MachineProblem::Penalty(_))), "{second:?}");
    }
}

#[test]
fn codes_are_stable_and_distinct() {
    let codes = [
        (MachineProblem::EmptyId, "empty_id"),
        (MachineProblem::UnexpectedHost, "unexpected_host"),
        (MachineProblem::MissingHost, "missing_host"),
        (MachineProblem::UnexpectedCluster, "unexpected_cluster"),
        (MachineProblem::MissingCluster, "missing_cluster"),
        (MachineProblem::MissingError, "missing_error"),
        (MachineProblem::Price(1.0), "price"),
        (MachineProblem::Probability(2.0), "probability"),
        (MachineProblem::Penalty(3.0), "penalty"),
    ];
    for (problem, code) in codes {
        assert_eq!(problem.code(), code);
    }
}

#[test]
fn allocatable_goes_before_resources() {
    let size = |cpu: &str| ResourceVec::parse([("cpu", cpu)]).unwrap();
    let mut machine = good(Idle);
    assert_eq!(machine.provides(), &ResourceVec::ZERO);
    machine.resources = size("16");
    assert_eq!(machine.provides(), &size("16"));
    machine.allocatable = size("15500m");
    assert_eq!(machine.provides(), &size("15500m"));
}
