//! No lie may spend the quota: what replaces machines lost to a suspicious listing is bought at a bounded pace.

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::Machine;
use bigfleet_model::machine::MachineState::{Configured, Creating, Failed, Idle, Speculative};
use bigfleet_model::resource::ResourceVec;
use bigfleet_shard::{Fate, Input, MINUTE, PauseScope, SECOND};

use super::harness::*;

/// A cluster with a hundred machines of its own, and as much quota again.
fn hundred() -> World {
    let own = (0..100).map(|n| machine(&format!("own-{n:03}"), Idle));
    let quota = (0..200).map(|n| machine(&format!("slot-{n:03}"), Speculative));
    let mut world = World::new(own.chain(quota).collect());
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 100)]);
    world.pass(15 * SECOND);
    world.clouds[0].instant = false;
    assert_eq!((world.called("Create"), world.shard.suspicious_losses().count()), (0, 0));
    world
}

/// Lets a provider say something of all machines of the cluster.
fn say_of_own(world: &mut World, change: impl Fn(&mut Machine)) {
    let machines = world.clouds[0].machines.values_mut();
    machines.filter(|machine| machine.id.starts_with("own-")).for_each(change);
}

fn fail(machine: &mut Machine) {
    (machine.state, machine.cluster, machine.last_error) = (Failed, "".into(), "power lost".into());
}

fn back(machine: &mut Machine) {
    (machine.state, machine.cluster, machine.last_error) = (Configured, "shop".into(), "".into());
}

/// Lets time pass in which moves end.
fn pass(world: &mut World, span: i64) {
    for _ in 0..span / (5 * SECOND) {
        world.pass(5 * SECOND);
        world.clouds[0].finish_all();
    }
}

fn configured(world: &World) -> usize {
    world.clouds[0].machines.values().filter(|m| m.state == Configured && *m.cluster == *"shop").count()
}

#[test]
fn a_hundred_machines_shown_failed_for_25_seconds_buy_at_most_ten() {
    let mut world = hundred();
    say_of_own(&mut world, fail);
    pass(&mut world, 25 * SECOND);
    assert!(world.has_said("suspicious_loss"));
    assert!(
        world.shard.suspicious_losses().count() == 1
            && world.fates(ActionKind::Provision, Fate::LossUnconfirmed) > 0
    );
    let told = world
        .sent
        .iter()
        .filter(|(_, frame)| matches!(frame, bigfleet_shard::Frame::Node(m) if m.state == Failed));
    assert_eq!(told.count(), 100, "the cluster is told at once");
    say_of_own(&mut world, back);
    pass(&mut world, 20 * MINUTE);
    assert!((1..=10).contains(&world.called("Create")), "{} were bought", world.called("Create"));
    assert_eq!(configured(&world), 100);
    let drained = world.calls.iter().filter(|(_, call)| call.name() == "Drain");
    assert!(drained.clone().all(|(_, call)| call.machine().starts_with("slot")), "what came back stays");
    assert_eq!(world.shard.suspicious_losses().count(), 0);
    assert_eq!(world.called("Delete"), world.called("Create"), "what was bought is given back");
    assert!(world.has_said("loss_returned"));
}

#[test]
fn machines_shown_to_be_somebody_elses_are_not_bought_anew_either() {
    type Lie = fn(&mut Machine);
    let lies: [(&str, Lie); 4] = [
        ("bound elsewhere", |m| m.cluster = "other".into()),
        ("smaller", |m| m.resources = ResourceVec::parse([("cpu", "1")]).unwrap()),
        ("Idle", |m| (m.state, m.cluster) = (Idle, "".into())),
        ("Speculative", |m| (m.state, m.cluster, m.host) = (Speculative, "".into(), None)),
    ];
    for (lie, tell) in lies {
        let mut world = hundred();
        say_of_own(&mut world, tell);
        world.pass(25 * SECOND);
        // What is Idle or quota again may be used again: only other machines cost more than there was.
        let others = world
            .calls
            .iter()
            .filter(|(_, call)| call.name() == "Create" && call.machine().starts_with("slot"));
        let bought = others.count();
        assert!(bought <= 10, "{lie}: {bought} were bought");
    }
}

#[test]
fn a_loss_that_stays_is_replaced_in_full_once_listings_agree() {
    let mut world = hundred();
    let lost_at = world.now;
    say_of_own(&mut world, fail);
    while world.called("Create") < 100 {
        assert!(world.now - lost_at < 5 * MINUTE, "{} of 100 were bought", world.called("Create"));
        pass(&mut world, 5 * SECOND);
    }
    let took = (world.now - lost_at) / SECOND;
    assert!((60..=90).contains(&took), "all replacements were ordered after {took} s");
    pass(&mut world, 2 * MINUTE);
    assert_eq!((configured(&world), world.called("Create")), (100, 100));
    assert!(world.has_said("loss_believed"));
}

#[test]
fn grown_demand_is_never_held() {
    let mut world = hundred();
    say_of_own(&mut world, fail);
    pass(&mut world, 15 * SECOND);
    let before = world.called("Create");
    assert!(before <= 10);
    world.report(1, "shop", vec![need("shop", 7, 150)]);
    pass(&mut world, 10 * SECOND);
    let grown = world.called("Create") - before;
    assert!((50..=55).contains(&grown), "{grown} were bought for fifty more");
}

#[test]
fn another_need_and_another_cluster_that_grow_do_not_wait() {
    let mut world = hundred();
    world.open(2, "bank");
    say_of_own(&mut world, fail);
    pass(&mut world, 15 * SECOND);
    let before = world.called("Create");
    world.report(2, "bank", vec![need("bank", 1, 20)]);
    world.report(1, "shop", vec![need("shop", 7, 100), need("shop", 9, 10)]);
    pass(&mut world, 10 * SECOND);
    let grown = world.called("Create") - before;
    assert!((30..=35).contains(&grown), "{grown} were bought for thirty more");
}

#[test]
fn a_restart_amid_the_lie_buys_no_more() {
    let mut world = hundred();
    say_of_own(&mut world, fail);
    pass(&mut world, 15 * SECOND);
    for _ in 0..3 {
        world.crash();
        world.open(1, "shop");
        world.report(1, "shop", vec![need("shop", 7, 100)]);
        pass(&mut world, 5 * SECOND);
    }
    assert!(world.called("Create") <= 10, "{} were bought", world.called("Create"));
    say_of_own(&mut world, back);
    pass(&mut world, 20 * MINUTE);
    assert_eq!((configured(&world), world.memory.losses.len(), world.memory.bought.len()), (100, 0, 0));
}

#[test]
fn losses_that_come_and_go_keep_to_the_pace_and_to_the_dollars() {
    let mut world = hundred();
    for _ in 0..20 {
        say_of_own(&mut world, fail);
        world.pass(15 * SECOND);
        say_of_own(&mut world, back);
        world.pass(15 * SECOND);
    }
    // Ten minutes are twenty windows of five machines; what is on order serves the next time.
    assert!(world.called("Create") <= 105, "{} were bought", world.called("Create"));
    let mut world = hundred();
    world.config.rails.purchase_usd_per_hour = 3.0;
    world.crash();
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 100)]);
    world.pass(15 * SECOND);
    say_of_own(&mut world, fail);
    world.pass(50 * SECOND);
    assert_eq!(world.called("Create"), 3, "three at a dollar an hour");
}

#[test]
fn somebody_who_knows_better_lets_go() {
    let mut world = hundred();
    say_of_own(&mut world, fail);
    pass(&mut world, 15 * SECOND);
    assert!(world.called("Create") <= 10);
    let scope = PauseScope { cluster: Some("shop".into()), kind: Some(ActionKind::Provision) };
    world.command(|shard, now, step| shard.resume(&scope, now, step)).unwrap();
    pass(&mut world, 10 * SECOND);
    assert_eq!((world.called("Create"), world.shard.suspicious_losses().count()), (100, 0));
    assert!(
        world.command(|shard, now, step| shard.resume(&scope, now, step)).is_err(),
        "nothing is held any more"
    );
}

#[test]
fn what_was_not_begun_and_is_wanted_no_more_is_cancelled() {
    let mut world = hundred();
    world.config.limits.flights = 1;
    world.config.rails.purchase_fraction = 1.0;
    world.crash();
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 100)]);
    world.pass(15 * SECOND);
    world.hold_calls = true;
    say_of_own(&mut world, fail);
    world.pass(12 * SECOND);
    assert_eq!(world.shard.queues().waiting, 1, "one is at its provider, one waits for its place");
    let before = world.records.len();
    say_of_own(&mut world, back);
    world.pass(12 * SECOND);
    assert_eq!(world.shard.queues().waiting, 0, "and is not wanted any more");
    let first = |state| {
        let is = |input: &Input| matches!(input, Input::Observe(machine) if machine.state == state);
        world.records[before..]
            .iter()
            .position(|record| record.inputs.iter().any(is))
            .expect("it is on record")
    };
    assert!(first(Speculative) > first(Configured), "what a cycle cancels was not cancelled when it decided");
    world.hold_calls = false;
    world.release();
    assert_eq!((world.called("Create"), world.clouds[0].count(Creating)), (1, 1));
}
