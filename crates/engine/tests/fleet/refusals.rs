//! What is refused changes nothing at all, and the error says what was wrong.

use bigfleet_engine::{Fleet, Options};
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::requirement::{Operator, Requirement};

use super::build::{configured, everything, fleet_of, idle, need, profile};

fn fleet() -> Fleet {
    let mut fleet = fleet_of([configured("a", "shop"), idle("b"), idle("c")]);
    fleet.replace("shop", vec![need("shop", 5, 16), need("shop", 4, 8)], 7).expect("a good roll-up");
    fleet
}

fn asking(requirement: Requirement) -> Need {
    Need { profile: profile(vec![requirement], 3).into(), ..need("shop", 3, 8) }
}

#[test]
fn a_refused_roll_up_changes_nothing() {
    let parked = Need { parked: true, ..need("shop", 3, 8) };
    let refused: [(&str, Need, &str); 6] = [
        ("", need("", 3, 8), "a roll-up names no cluster"),
        ("shop", need("bank", 3, 8), r#"roll-up of "shop": row 1 belongs to "bank""#),
        ("shop", parked, r#"roll-up of "shop": row 1 is parked but has no Same requirement"#),
        (
            "shop",
            asking(Requirement::is_in("a;b", ["x"])),
            r#"roll-up of "shop": row 1: requirement on "a;b""#,
        ),
        ("shop", asking(Requirement::is_in("a", ["x|y"])), r#"roll-up of "shop": row 1: requirement on "a""#),
        ("shop", asking(Requirement::new("", Operator::Exists, [""; 0])), r#"roll-up of "shop": row 1"#),
    ];
    for (cluster, row, message) in refused {
        let mut fleet = fleet();
        let before = everything(&mut fleet);
        let decision = fleet.cycle(&Options::default(), 1_000);
        let rows = vec![need(cluster, 9, 8), row, need(cluster, 8, 8)];
        let error = fleet.replace(cluster, rows, 9).expect_err(message).to_string();
        assert!(error.starts_with(message), "{error}");
        let after = fleet.cycle(&Options::default(), 1_000);
        assert!(std::sync::Arc::ptr_eq(&decision, &after), "the last answer stands after: {error}");
        assert_eq!((everything(&mut fleet), fleet.need_count()), (before, 2));
    }
}

#[test]
fn a_cluster_without_a_name_may_not_even_withdraw() {
    assert!(fleet().replace("", vec![], 9).is_err());
}

#[test]
fn a_refused_record_leaves_the_last_good_one() {
    let good = configured("a", "shop");
    let refused = [
        Machine { price_usd_per_hour: f64::NAN, ..good.clone() },
        Machine { price_usd_per_hour: f64::INFINITY, ..good.clone() },
        Machine { price_usd_per_hour: -1.0, ..good.clone() },
        Machine { interruption_probability: 1.1, ..good.clone() },
        Machine { host: None, ..good.clone() },
        Machine { cluster: "".into(), ..good.clone() },
        Machine { state: MachineState::Failed, ..good.clone() },
        Machine { state: MachineState::Idle, ..good.clone() },
        Machine { host: Some(HostRef::default()), ..Machine::new("a", MachineState::Speculative) },
    ];
    for record in refused {
        let mut fleet = fleet();
        let before = everything(&mut fleet);
        let error = fleet.observe(&record).expect_err("a bad record");
        assert_eq!(error.id, "a");
        assert_eq!((everything(&mut fleet), fleet.machine_count()), (before, 3), "{error}");
    }
}

#[test]
fn a_refused_record_of_an_unknown_machine_adds_none() {
    let mut fleet = fleet();
    let before = everything(&mut fleet);
    let nameless = fleet.observe(&idle("")).expect_err("no id");
    assert!(nameless.to_string().contains("the id is empty"));
    assert!(fleet.observe(&Machine { host: None, ..idle("d") }).is_err());
    assert_eq!((everything(&mut fleet), fleet.machine_count()), (before, 3));
}
