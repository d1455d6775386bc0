//! A fleet that lives for months: everything keeps changing, and what is gone is forgotten.

use bigfleet_engine::{Fleet, Options};
use bigfleet_model::label::Labels;
use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_model::requirement::{Operator, Requirement};

use super::build::{RACK, configured, cpu, decide, everything, gang, idle, need, outcomes, profile};

const MACHINES: u64 = 2_000;
const CLUSTERS: u64 = 20;

/// What changes from step to step.
#[derive(Clone, Copy, Debug)]
enum Walk {
    /// Every price, as on a spot market.
    Prices,
    /// A label with a value never seen before.
    Labels,
    /// Every machine is replaced by one of another name.
    Names,
    /// The needs: amounts, groups, smallest pieces and requirements never asked for before.
    Needs,
}

/// A number that looks arbitrary and is the same in every run.
fn mix(a: u64, b: u64) -> u64 {
    let word = (a ^ b.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (word ^ (word >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 16
}

fn machine(number: u64, step: u64, walk: Walk) -> Machine {
    let step = |this: bool| if this { step } else { 0 };
    let id = format!("machine-{number:06}-{}", step(matches!(walk, Walk::Names)));
    let machine = if number.is_multiple_of(3) {
        idle(&id)
    } else {
        configured(&id, &format!("cluster-{:03}", number % CLUSTERS))
    };
    let serial = format!("serial-{number}-{}", step(matches!(walk, Walk::Labels)));
    let price = 0.1 + (mix(number, step(matches!(walk, Walk::Prices))) % 1_000_000) as f64 / 1e6;
    let rack = format!("rack-{:02}", number % 40);
    Machine {
        price_usd_per_hour: price,
        labels: Labels::new([(RACK, rack.as_str()), ("example.org/serial", &serial)]).expect("two labels"),
        ..machine
    }
}

fn rows(cluster: &str, number: u64, step: u64, walk: Walk) -> Vec<Need> {
    let step = if matches!(walk, Walk::Needs) { step } else { 0 };
    let name = format!("{cluster}-{step:045}");
    let small = Need { min_unit: cpu(1 + step % 7), ..need(cluster, 50, 8 * (20 + number) + step % 100) };
    let not_there = Requirement::new("example.org/pool", Operator::NotIn, [name.as_str()]);
    let profile = profile(vec![not_there], 1_000 + step as i32);
    let picky = Need::of_unit(cluster, profile.into(), cpu(1)).times(160);
    vec![small, picky, gang(cluster, &name, 8 * (2 + step % 3))]
}

fn tell(fleet: &mut Fleet, step: u64, walk: Walk) {
    for number in 0..MACHINES {
        if matches!(walk, Walk::Names) && step > 0 {
            assert!(fleet.remove(&machine(number, step - 1, walk).id));
        }
        if step == 0 || !matches!(walk, Walk::Needs) {
            fleet.observe(&machine(number, step, walk)).expect("a good record");
        }
    }
    if step == 0 || matches!(walk, Walk::Needs) {
        for number in 0..CLUSTERS {
            let cluster = format!("cluster-{number:03}");
            fleet.replace(&cluster, rows(&cluster, number, step, walk), 1).expect("a good roll-up");
        }
    }
}

/// Lives through so many steps and looks at memory after each cycle; decisions are held against those of a
/// fleet that knows nothing of the past.
fn live(walk: Walk, steps: u64) {
    let mut fleet = Fleet::default();
    let mut most = 0;
    for step in 0..steps {
        tell(&mut fleet, step, walk);
        let actions = decide(&mut fleet);
        most = most.max(fleet.footprint().total());
        if step % 37 != 36 && step + 1 != steps {
            continue;
        }
        let mut fresh = Fleet::default();
        (0..MACHINES).for_each(|n| assert!(fresh.observe(&machine(n, step, walk)).is_ok()));
        for number in 0..CLUSTERS {
            let cluster = format!("cluster-{number:03}");
            fresh.replace(&cluster, rows(&cluster, number, step, walk), 1).expect("a good roll-up");
        }
        assert_eq!((actions, outcomes(&fleet)), (decide(&mut fresh), outcomes(&fresh)), "{walk:?} {step}");
        assert_eq!(fleet.machine_count(), fresh.machine_count());
        let alone = fresh.footprint().total();
        assert!(most < 4 * alone + (4 << 20), "{walk:?} {step}: {most} bytes, a fresh fleet {alone}");
    }
}

#[test]
fn prices_that_move_all_day_leave_nothing_behind() {
    live(Walk::Prices, 400);
}

#[test]
fn labels_that_change_leave_nothing_behind() {
    live(Walk::Labels, 200);
}

#[test]
fn machines_that_go_leave_nothing_behind() {
    live(Walk::Names, 200);
}

#[test]
fn needs_that_go_leave_nothing_behind() {
    live(Walk::Needs, 2_000);
}

#[test]
fn a_move_into_new_tables_changes_no_decision_and_no_fork() {
    let mut fleet = Fleet::default();
    for walk in [Walk::Prices, Walk::Labels, Walk::Names, Walk::Needs] {
        (0..3).for_each(|step| {
            tell_again(&mut fleet, step, walk);
        });
    }
    fleet.cycle(&Options::default(), 1);
    fleet.remove("machine-000005-0");
    fleet.observe(&idle("one-more")).expect("a good record");
    let mut fork = fleet.fork();
    let before = fork.footprint();
    fleet.compact();
    assert!(fleet.footprint().dictionaries < before.dictionaries);
    assert_eq!(fork.footprint(), before);
    assert_eq!(decide(&mut fleet), decide(&mut fork));
    assert_eq!(outcomes(&fleet), outcomes(&fork));
    fleet.remove("one-more");
    fork.remove("one-more");
    tell_again(&mut fleet, 4, Walk::Labels);
    tell_again(&mut fork, 4, Walk::Labels);
    assert_eq!(everything(&mut fleet), everything(&mut fork));
}

/// Tells a fleet about machines and needs it may already know under other names.
fn tell_again(fleet: &mut Fleet, step: u64, walk: Walk) {
    for number in 0..MACHINES / 10 {
        fleet.observe(&machine(number, step, walk)).expect("a good record");
    }
    for number in 0..CLUSTERS {
        let cluster = format!("cluster-{number:03}");
        fleet.replace(&cluster, rows(&cluster, number, step, walk), 1).expect("a good roll-up");
    }
}
