//! A machine bought for a need goes on to be bound for it, unless something stands in the way.

use bigfleet_engine::ActionKind;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::Machine;
use bigfleet_model::machine::MachineState::{Configured, Configuring, Creating, Idle, Speculative};
use bigfleet_model::requirement::Requirement;
use bigfleet_shard::{CallErrorKind, Event, Fate, Input, MINUTE, Pause, PauseScope, SECOND, SessionId};

use super::harness::*;

/// A world in which machines were bought for the cluster `shop` and are on their way.
fn buying(count: u64, quota: Vec<Machine>) -> World {
    let mut world = World::new(quota);
    world.clouds[0].instant = false;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, count)]);
    world.pass(5 * SECOND);
    assert_eq!(world.called("Create") as u64, count);
    world
}

/// Whether the engine ever saw a machine Idle.
fn was_seen_idle(world: &World, id: &str) -> bool {
    let inputs = world
        .records
        .iter()
        .flat_map(|record| record.inputs.iter().chain(record.full.iter().flat_map(|f| f.iter())));
    inputs.into_iter().any(|input| matches!(input, Input::Observe(m) if *m.id == *id && m.state == Idle))
}

#[test]
fn a_machine_that_arrives_is_bound_at_once_and_never_seen_idle() {
    let mut world = buying(1, machines(1, Speculative));
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!(world.state("m-000"), Configuring);
    assert!(!was_seen_idle(&world, "m-000"));
    let flights = &world.shard.tally().flights;
    assert_eq!(world.shard.tally().carried_on, 1);
    assert_eq!(flights[&(ActionKind::Bootstrap, "accepted")], 1);
    assert_eq!(
        (world.begun(ActionKind::Provision), world.begun(ActionKind::Bootstrap)),
        (1, 0),
        "one action"
    );
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!((world.state("m-000"), world.called("Configure")), (Configured, 1));
    let stamp = &world.shard.machine("m-000").unwrap().machine.assigned;
    assert_eq!((&*stamp.cluster, stamp.priority), ("shop", 7));
    world.shard.audit().unwrap();
}

#[test]
fn a_provider_that_creates_within_the_call_costs_no_further_cycle() {
    let mut world = World::new(machines(3, Speculative));
    world.open(1, "shop");
    world.pass(20 * SECOND);
    let cycles = world.shard.tally().cycles;
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(SECOND / 10);
    assert_eq!((world.clouds[0].count(Configured), world.shard.tally().cycles), (2, cycles + 1));
    assert_eq!(world.shard.tally().carried_on, 2);
}

#[test]
fn an_answer_to_a_question_is_as_good_as_a_listing() {
    // The Create takes effect, its answer is lost, and the provider refuses to make what is made.
    let mut world = World::new(machines(1, Speculative));
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.clouds[0].refused.insert("m-000".into(), CallErrorKind::TimedOut);
    world.pass(SECOND / 10);
    world.hold_lists = true;
    assert_eq!((world.state("m-000"), world.called("Create")), (Creating, 1));
    let made = world.clouds[0].machines.get_mut("m-000").unwrap();
    *made = machine("m-000", Idle);
    world.clouds[0].refused.clear();
    world.pass(SECOND);
    assert_eq!((world.called("Create"), world.called("Get")), (2, 1));
    assert_eq!((world.state("m-000"), world.shard.tally().carried_on), (Configured, 1));
    assert!(!was_seen_idle(&world, "m-000"));
}

#[test]
fn a_machine_that_had_stopped_counting_is_idle_when_it_comes() {
    let mut world = buying(1, machines(1, Speculative));
    world.pass(61 * MINUTE);
    world.clouds[0].finish("m-000");
    world.pass(2 * MINUTE);
    assert_eq!(world.shard.tally().carried_on, 0);
    assert!(was_seen_idle(&world, "m-000"));
    assert_eq!((world.state("m-000"), world.begun(ActionKind::Bootstrap)), (Configuring, 1));
}

#[test]
fn a_machine_whose_need_is_gone_is_idle() {
    let mut world = buying(1, machines(1, Speculative));
    world.report(1, "shop", vec![need("shop", 8, 1)]);
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!(world.shard.tally().carried_on, 0);
    assert!(was_seen_idle(&world, "m-000"));
    assert_eq!(world.begun(ActionKind::Bootstrap), 1, "the other need gets it by a decision of its own");
}

#[test]
fn a_need_that_shrank_since_the_last_cycle_is_decided_on_anew() {
    let mut world = World::with(machines(2, Speculative), |config| config.pace.min_spacing = 60 * SECOND);
    world.clouds[0].instant = false;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(61 * SECOND);
    assert_eq!(world.called("Create"), 2);
    world.pass(5 * SECOND);
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.clouds[0].finish("m-000");
    world.pass(12 * SECOND);
    assert_eq!((world.state("m-000"), world.shard.tally().carried_on), (Idle, 0));
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.clouds[0].finish("m-001");
    world.pass(12 * SECOND);
    assert_eq!((world.state("m-001"), world.shard.tally().carried_on), (Configuring, 1), "more is no less");
}

#[test]
fn a_machine_somebody_more_important_is_short_of_is_idle() {
    let mut world = buying(1, machines(1, Speculative));
    world.open(2, "bank");
    world.report(2, "bank", vec![need("bank", 900, 1)]);
    world.pass(5 * SECOND);
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!(world.shard.tally().carried_on, 0);
    assert_eq!(
        (world.state("m-000"), &*world.shard.machine("m-000").unwrap().machine.cluster),
        (Configuring, "bank")
    );

    let mut world = buying(1, machines(1, Speculative));
    world.open(2, "bank");
    let elsewhere = vec![Requirement::is_in("rack", ["far"])];
    world.report(2, "bank", vec![need_where("bank", 900, 1, elsewhere), need("bank", 1, 1)]);
    world.pass(5 * SECOND);
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!(world.shard.tally().carried_on, 1, "nobody above could use it, and who is below waits");
}

fn pause(world: &mut World, kind: Option<ActionKind>, cluster: Option<&str>, dry_run: bool) {
    let pause = Pause {
        scope: PauseScope { cluster: cluster.map(Into::into), kind },
        dry_run,
        reason: "drill".into(),
        author: "sre".into(),
        since_unix_nanos: world.now,
        until_unix_nanos: None,
    };
    world.command(|shard, now, step| shard.pause(pause, now, step)).unwrap();
}

#[test]
fn what_holds_binding_back_holds_it_here_too() {
    type Hindrance = fn(&mut World);
    let hindrances: [(&str, Hindrance); 5] = [
        ("a pause", |world| pause(world, None, None, false)),
        ("a pause of its cluster's bootstraps", |world| {
            pause(world, Some(ActionKind::Bootstrap), Some("shop"), false);
        }),
        ("a dry run", |world| pause(world, None, None, true)),
        ("an operator that is away", |world| world.event(Event::Closed { session: SessionId(1) })),
        ("another size", |world| {
            let smaller = machine("x", Speculative).resources.scale(0);
            world.clouds[0].machines.get_mut("m-000").unwrap().resources = smaller;
        }),
    ];
    for (name, hinder) in hindrances {
        let mut world = buying(1, machines(1, Speculative));
        hinder(&mut world);
        world.clouds[0].finish("m-000");
        world.pass(15 * SECOND);
        assert_eq!((world.state("m-000"), world.called("Configure")), (Idle, 0), "{name}");
        assert_eq!(world.shard.tally().carried_on, 0, "{name}");
    }
    let mut world = buying(1, machines(1, Speculative));
    pause(&mut world, Some(ActionKind::Provision), None, false);
    pause(&mut world, None, Some("bank"), false);
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!(world.state("m-000"), Configuring, "what is paused is buying more, and somebody else");
}

#[test]
fn arrivals_keep_to_the_places_for_moves_and_not_to_the_bound_of_a_cycle() {
    let mut world = World::with(machines(6, Speculative), |config| {
        config.limits.flights = 2;
        config.rails.max_actions_per_cycle = 1;
    });
    world.clouds[0].instant = false;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 6)]);
    world.pass(30 * SECOND);
    assert_eq!(world.called("Create"), 6);
    world.manner = Manner::Silent;
    world.clouds[0].finish_all();
    world.pass(4 * SECOND);
    assert_eq!(world.shard.tally().carried_on, 4, "two places, and two in line");
    world.shard.audit().unwrap();
}

#[test]
fn a_machine_on_order_over_a_restart_is_bound_when_it_comes() {
    let mut world = buying(1, machines(1, Speculative));
    world.crash();
    world.open(2, "shop");
    world.pass(15 * SECOND);
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!((world.state("m-000"), world.shard.tally().carried_on), (Configuring, 1));
    assert_eq!((world.called("Create"), world.begun(ActionKind::Bootstrap)), (1, 0));

    let mut world = buying(1, machines(1, Speculative));
    world.memory.machines.clear();
    world.crash();
    world.open(2, "shop");
    world.pass(15 * SECOND);
    world.clouds[0].finish("m-000");
    world.pass(15 * SECOND);
    assert_eq!(world.shard.tally().carried_on, 0, "whose it is was forgotten: a cycle decides");
    assert_eq!((world.state("m-000"), world.begun(ActionKind::Bootstrap)), (Configuring, 1));
}

#[test]
fn a_second_half_that_fails_leaves_the_machine_to_the_next_cycle() {
    let mut world = buying(1, machines(1, Speculative));
    world.manner = Manner::Refusing;
    world.clouds[0].finish("m-000");
    world.pass(3 * SECOND);
    assert_eq!((world.state("m-000"), world.shard.tally().carried_on), (Idle, 1));
    world.manner = Manner::Prompt;
    world.pass(60 * SECOND);
    assert_eq!((world.state("m-000"), world.begun(ActionKind::Bootstrap)), (Configuring, 1));
    assert_eq!(world.fates(ActionKind::Bootstrap, Fate::Begun), 1, "that one was decided");
    world.shard.audit().unwrap();
}

fn in_rack(mut machine: Machine, rack: &str) -> Machine {
    machine.labels = Labels::new([("rack", rack)]).unwrap();
    machine
}

/// A gang of three that is bought in rack b, while a machine of its cluster serves somebody lower in rack c.
fn gang_on_order() -> World {
    let quota = |id: &str, rack: &str| in_rack(machine(id, Speculative), rack);
    let fleet = ["b1", "b2", "b3"].map(|id| quota(id, "b")).to_vec();
    let fleet = [fleet, ["c1", "c2", "c3", "c4"].map(|id| quota(id, "c")).to_vec()].concat();
    let mut world = World::new(fleet);
    world.clouds[0].instant = false;
    world.open(1, "ml");
    world.report(1, "ml", vec![gang("ml", 9, 3, "train")]);
    world.pass(5 * SECOND);
    let lower = need_where("ml", 1, 1, vec![Requirement::is_in("rack", ["c"])]);
    world.report(1, "ml", vec![gang("ml", 9, 3, "train"), lower]);
    world.pass(5 * SECOND);
    for _ in 0..2 {
        world.clouds[0].finish("c1");
        world.pass(15 * SECOND);
    }
    assert_eq!(
        ["b1", "b2", "b3", "c1"].map(|id| world.state(id)),
        [Creating, Creating, Creating, Configured]
    );
    world
}

#[test]
fn a_gang_keeps_its_rack_while_its_machines_arrive() {
    let mut world = gang_on_order();
    for id in ["b1", "b2", "b3"] {
        world.clouds[0].finish(id);
    }
    world.pass(15 * SECOND);
    for _ in 0..4 {
        world.clouds[0].finish_all();
        world.pass(MINUTE);
    }
    assert_eq!(["b1", "b2", "b3", "c1"].map(|id| world.state(id)), [Configured; 4]);
    assert_eq!(
        (world.called("Create"), world.begun(ActionKind::Provision)),
        (4, 4),
        "nothing in rack c for it"
    );
    assert!(!["b1", "b2", "b3"].iter().any(|id| was_seen_idle(&world, id)));
    world.shard.audit().unwrap();
}

#[test]
fn a_gang_whose_machines_must_wait_for_a_decision_stays() {
    // Held back, the machines stand idle without a stamp. What a need of lower precedence lives on does not draw the gang
    // away, and what stands idle in its old rack is cheaper than anything to be bought.
    let mut world = gang_on_order();
    pause(&mut world, Some(ActionKind::Bootstrap), None, false);
    for id in ["b1", "b2", "b3"] {
        world.clouds[0].finish(id);
    }
    world.pass(15 * SECOND);
    assert_eq!(world.begun(ActionKind::Provision), 4, "three for the gang and one for the need in rack c");
}
