//! Records of machines: told in any order, any number of times, gone and back.

use bigfleet_engine::{Fleet, Observed};
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{HostRef, Machine};
use bigfleet_model::need::NeedKey;

use super::build::{configured, cpu, decide, everything, fleet_of, gang, idle, need, racked};

#[test]
fn a_record_is_new_changed_or_unchanged() {
    let mut fleet = Fleet::default();
    let machine = idle("m");
    assert_eq!(fleet.observe(&machine), Ok(Observed::New));
    assert_eq!(fleet.observe(&machine), Ok(Observed::Unchanged));
    let changes = [
        Machine { price_usd_per_hour: 1.0, ..machine.clone() },
        Machine { interruption_probability: 0.5, ..machine.clone() },
        Machine { zone: "east".into(), ..machine.clone() },
        Machine { instance_type: "large".into(), ..machine.clone() },
        Machine { labels: Labels::new([("a", "b")]).expect("a label"), ..machine.clone() },
        Machine { resources: cpu(9), ..machine.clone() },
        Machine { allocatable: cpu(7), ..machine.clone() },
        Machine { idle_since_unix_nanos: Some(0), ..machine.clone() },
        configured("m", "shop"),
        configured("m", "bank"),
    ];
    for change in changes {
        assert_eq!(fleet.observe(&change), Ok(Observed::Changed), "{change:?}");
        assert_eq!(fleet.observe(&change), Ok(Observed::Unchanged), "{change:?}");
    }
    assert_eq!(fleet.machine_count(), 1);
}

#[test]
fn what_no_decision_reads_is_no_change() {
    let mut fleet = fleet_of([idle("m")]);
    let host = HostRef { provider: "metal".into(), reference: "rack 3, slot 4".into() };
    assert_eq!(fleet.observe(&Machine { host: Some(host), ..idle("m") }), Ok(Observed::Unchanged));
    let stale = Machine { draining_for: Some(NeedKey::default()), ..idle("m") };
    assert_eq!(fleet.observe(&stale), Ok(Observed::Unchanged), "it does not drain");
}

#[test]
fn a_machine_is_removed_once_and_may_come_back() {
    let mut fleet = fleet_of([idle("a"), idle("b")]);
    fleet.replace("shop", vec![need("shop", 1, 8)], 1).expect("a good roll-up");
    assert_eq!(decide(&mut fleet), ["Bootstrap a shop"]);
    assert!(fleet.remove("a") && !fleet.remove("a") && !fleet.remove("never heard of"));
    assert_eq!((fleet.machine_count(), decide(&mut fleet)), (1, vec!["Bootstrap b shop".to_owned()]));
    // Back, as something else.
    assert_eq!(fleet.observe(&configured("a", "bank")), Ok(Observed::New));
    assert_eq!(decide(&mut fleet), ["Bootstrap b shop", "Reclaim a bank"]);
    // Gone and back between two cycles: as if nothing had happened.
    assert!(fleet.remove("a"));
    assert_eq!(fleet.observe(&configured("a", "bank")), Ok(Observed::New));
    assert_eq!((fleet.machine_count(), decide(&mut fleet).len()), (2, 2));
    // Here and gone between two cycles.
    assert_eq!(fleet.observe(&idle("c")), Ok(Observed::New));
    assert!(fleet.remove("c"));
    assert_eq!(decide(&mut fleet), ["Bootstrap b shop", "Reclaim a bank"]);
}

/// Ids that share prefixes, differ in length and sort as bytes, in a scrambled order.
fn ids(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("m{:x}", n * 7_919 % count)).collect()
}

#[test]
fn ids_may_come_in_any_order() {
    let scrambled = ids(1_009);
    let mut expected = scrambled.clone();
    expected.sort_unstable();
    expected.truncate(504);
    for batch in [1_009, 200, 37] {
        let mut fleet = Fleet::default();
        fleet.replace("shop", vec![need("shop", 1, 8 * 504)], 1).expect("a good roll-up");
        for ids in scrambled.chunks(batch) {
            for id in ids {
                assert_eq!(fleet.observe(&idle(id)), Ok(Observed::New));
            }
            decide(&mut fleet);
        }
        let actions = decide(&mut fleet);
        assert_eq!(actions.len(), expected.len(), "{batch} at a time");
        for (action, id) in actions.iter().zip(&expected) {
            assert_eq!(*action, format!("Bootstrap {id} shop"), "{batch} at a time");
        }
    }
}

#[test]
fn many_machines_come_while_others_go_and_change() {
    // So many new ids that all are numbered anew, in the same breath in which old ones go or are bound.
    let ids = ids(2_003);
    let (old, new) = ids.split_at(300);
    let arrival = |id: &String| Machine { price_usd_per_hour: (id.len() % 3) as f64, ..idle(id) };
    let rows = vec![need("shop", 2, 8 * 700)];
    let mut fleet = fleet_of(old.iter().map(|id| idle(id)));
    fleet.replace("shop", rows.clone(), 1).expect("a good roll-up");
    decide(&mut fleet);
    for (round, arrivals) in new.chunks(250).enumerate() {
        for (n, id) in old.iter().enumerate().filter(|(n, _)| n % 7 == round) {
            if n % 2 == 0 {
                assert!(fleet.remove(id));
            } else {
                fleet.observe(&configured(id, "shop")).expect("a good record");
            }
        }
        for id in arrivals {
            fleet.observe(&arrival(id)).expect("a good record");
        }
        let kept = decide(&mut fleet);
        assert!(kept == everything(&mut fleet).0, "round {round}: what was kept is wrong");
    }
    let bound = old.iter().skip(1).step_by(2).map(|id| configured(id, "shop"));
    let mut fresh = fleet_of(bound.chain(new.iter().map(arrival)));
    fresh.replace("shop", rows, 1).expect("a good roll-up");
    assert_eq!(fleet.machine_count(), fresh.machine_count());
    assert!(everything(&mut fleet) == everything(&mut fresh), "a fleet that heard it all at once differs");
}

#[test]
fn one_place_in_the_order_may_fill_up() {
    // Each new id falls between the last one and its neighbour.
    let mut fleet = fleet_of([idle("m"), idle("n")]);
    fleet.replace("shop", vec![need("shop", 1, 8)], 1).expect("a good roll-up");
    for n in (1..120).rev() {
        let id = format!("m{}", "0".repeat(n));
        fleet.observe(&idle(&id)).expect("a good record");
        fleet.remove("m");
        assert_eq!(decide(&mut fleet), [format!("Bootstrap {id} shop")]);
    }
}

#[test]
fn a_key_with_a_value_of_its_own_on_every_machine_is_only_slow() {
    use bigfleet_engine::{Fleet, Options};
    use bigfleet_model::label::Labels;
    use bigfleet_model::machine::{HostRef, Machine, MachineState};
    use bigfleet_model::need::Need;
    use bigfleet_model::penalty::PenaltyBucket;
    use bigfleet_model::profile::Profile;
    use bigfleet_model::requirement::Requirement;
    use bigfleet_model::resource::ResourceVec;

    let mut fleet = Fleet::default();
    let four_cpu = ResourceVec::parse([("cpu", "4")]).unwrap();
    for number in 0..66_000 {
        let mut machine = Machine::new(format!("m{number}"), MachineState::Configured);
        machine.host = Some(HostRef::default());
        machine.cluster = "shop".into();
        machine.labels = Labels::new([("host", format!("h{number}"))]).unwrap();
        machine.resources = four_cpu.clone();
        fleet.observe(&machine).unwrap();
    }
    let one_host = vec![Requirement::is_in("host", ["h5"])];
    let profile = Profile::new(one_host, vec![], 1, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
    fleet.replace("shop", vec![Need::of_unit("shop", profile.into(), four_cpu)], 1).unwrap();
    let decision = fleet.cycle(&Options::default(), 2);
    assert_eq!(decision.actions.len(), 65_999, "all but h5 are excess");
    assert!(decision.actions.iter().all(|action| &*action.machine != "m5"));
}

#[test]
fn ids_that_come_later_change_places_in_lists_that_are_kept() {
    // Few enough to be followed one by one, many enough that all places in the order of ids are given anew.
    let (early, late) = (0..1_600_u32, 0..130_u32);
    let rack = |number: u32| format!("rack-{}", number % 7);
    let early_one = |number: u32| match number % 4 {
        0 => configured(&format!("m-{number:05}-b"), "bank"),
        _ => racked(idle(&format!("m-{number:05}-b")), &rack(number)),
    };
    let late_one = |number: u32| racked(idle(&format!("m-{:05}-a", number * 12)), &rack(number));
    let tell = |fleet: &mut Fleet, more: u64| {
        let rows = vec![need("shop", 50, 160 + more), gang("shop", "train", 40 + more)];
        fleet.replace("shop", rows, 1).expect("a good roll-up");
        fleet.replace("bank", vec![need("bank", 1, 8 * 380)], 1).expect("a good roll-up");
    };
    let mut lived = fleet_of(early.clone().map(early_one));
    tell(&mut lived, 0);
    decide(&mut lived);
    // The index of bound machines is kept from here on: somebody preempts.
    let beyond = need("beyond", 90, 8 * 2_000);
    lived.replace("beyond", vec![beyond.clone()], 2).expect("a good roll-up");
    decide(&mut lived);
    decide(&mut lived);
    let seen = lived.fork();
    for number in late.clone() {
        assert_eq!(lived.observe(&late_one(number)), Ok(Observed::New));
    }
    tell(&mut lived, 8);
    let fresh = |gone: &[&str]| {
        let all = early.clone().map(early_one).chain(late.clone().map(late_one));
        let mut fleet = fleet_of(all.filter(|machine| !gone.contains(&&*machine.id)));
        tell(&mut fleet, 8);
        fleet.replace("beyond", vec![beyond.clone()], 2).expect("a good roll-up");
        decide(&mut fleet)
    };
    let decided = decide(&mut lived);
    assert_eq!(decided, fresh(&[]));
    assert!(decided.iter().any(|line| line.contains("-a ")), "the late ones are used");
    assert!(decided.iter().any(|line| line.starts_with("Preempt")));
    // They are found again where they went.
    let gone = ["m-00001-b", "m-00000-a", "m-00004-b", "m-00012-a", "m-01599-b"];
    for id in gone {
        assert!(lived.remove(id), "{id}");
    }
    assert_eq!(decide(&mut lived), fresh(&gone));
    // Whoever looked before sees what was.
    assert_eq!(seen.machine_count(), 1_600);
}
