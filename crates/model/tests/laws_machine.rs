//! Laws of machine records: any record is taken or refused, by the rules of its state.

use bigfleet_model::machine::{HostRef, Machine, MachineProblem, MachineState};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => 0.0..2.0_f64,
        1 => proptest::sample::select(vec![0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        1 => any::<f64>(),
    ]
}

fn machine() -> impl Strategy<Value = Machine> {
    let state = proptest::sample::select(MachineState::ALL.to_vec());
    let texts = ("[ab]?", "[ab]?", "[ab]?", any::<bool>());
    let numbers = (number(), number(), number(), number());
    (state, texts, numbers).prop_map(|(state, (id, cluster, error, host), numbers)| {
        let mut machine = Machine::new(id, state);
        machine.cluster = cluster.into();
        machine.last_error = error.into();
        machine.host = host.then(HostRef::default);
        machine.price_usd_per_hour = numbers.0;
        machine.interruption_probability = numbers.1;
        machine.assigned.interruption_penalty_usd = numbers.2;
        machine.assigned.reclamation_penalty_usd = numbers.3;
        machine
    })
}

/// Every rule that the record breaks, as system.md states them.
fn broken_rules(m: &Machine) -> Vec<&'static str> {
    use MachineState::{Configured, Configuring, Creating, Draining, Failed, Speculative};
    let (host, cluster) = (m.host.is_some(), !m.cluster.is_empty());
    let before_hardware = matches!(m.state, Speculative | Creating);
    let may_have_cluster = matches!(m.state, Configuring | Configured | Draining | Failed);
    let penalties = [m.assigned.interruption_penalty_usd, m.assigned.reclamation_penalty_usd];
    let rules = [
        (m.id.is_empty(), "empty_id"),
        (host && before_hardware, "unexpected_host"),
        (!host && !before_hardware && m.state != Failed, "missing_host"),
        (cluster && !may_have_cluster, "unexpected_cluster"),
        (!cluster && matches!(m.state, Configured | Draining), "missing_cluster"),
        (m.state == Failed && m.last_error.is_empty(), "missing_error"),
        (!(m.price_usd_per_hour >= 0.0 && m.price_usd_per_hour < f64::INFINITY), "price"),
        (!(m.interruption_probability >= 0.0 && m.interruption_probability <= 1.0), "probability"),
        (penalties.iter().any(|dollars| dollars.is_nan() || *dollars < 0.0), "penalty"),
    ];
    rules.into_iter().filter(|(broken, _)| *broken).map(|(_, code)| code).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_record_is_refused_exactly_if_it_breaks_a_rule(machine in machine()) {
        let broken = broken_rules(&machine);
        match machine.check() {
            Ok(()) => prop_assert!(broken.is_empty(), "{broken:?}"),
            Err(error) => {
                prop_assert!(broken.contains(&error.problem.code()), "{error} {broken:?}");
                prop_assert_eq!((error.id.as_str(), error.state), (&*machine.id, machine.state));
                let opening = format!("machine \"{}\" ({}): ", machine.id, machine.state);
                prop_assert!(error.to_string().starts_with(&opening));
            }
        }
    }

    #[test]
    fn a_dead_machine_is_believed(cluster in ".{0,3}", host in any::<bool>(), error in ".{1,5}") {
        let mut machine = Machine::new("m", MachineState::Failed);
        machine.cluster = cluster.into();
        machine.host = host.then(HostRef::default);
        machine.last_error = error.into();
        prop_assert_eq!(machine.check(), Ok(()));
    }

    #[test]
    fn every_number_is_a_state_or_refused(number in prop_oneof![-2..12_i32, any::<i32>()]) {
        let state = MachineState::from_wire(number);
        prop_assert_eq!(state.is_some(), (1..=8).contains(&number));
        prop_assert_eq!(state.map_or(number, MachineState::to_wire), number);
    }

    #[test]
    fn long_ids_do_not_flood_the_message(id in "\\PC{0,300}") {
        let error = Machine::new(id, MachineState::Idle).check().unwrap_err();
        prop_assert!(matches!(error.problem, MachineProblem::MissingHost | MachineProblem::EmptyId));
        prop_assert!(error.to_string().len() < 1_000);
    }
}

#[test]
fn every_life_we_may_order_ends_where_it_began_or_failed() {
    // From each state every chain of orders stays inside the table, and Failed is left by nobody's order:
    // the way out of it is the provider's word.
    for state in MachineState::ALL {
        let next: Vec<MachineState> =
            MachineState::ALL.into_iter().filter(|to| state.may_order(*to)).collect();
        assert_eq!(next.is_empty(), state == MachineState::Failed, "{state}");
        assert!(!state.may_order(state), "{state}: a move goes somewhere else");
        // Failing is the outcome of work in progress, never of a state at rest.
        assert_eq!(next.contains(&MachineState::Failed), state.is_transitional(), "{state}");
    }
}
