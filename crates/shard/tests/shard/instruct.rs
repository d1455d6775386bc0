//! What a coordinator says: what is ours, what is not any more, what is to be given, how much may be held.

use std::collections::BTreeMap;

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::Machine;
use bigfleet_model::machine::MachineState::{Configured, Configuring, Creating, Idle, Speculative};
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;
use bigfleet_shard::{Answer, Instruction, Order, Outcome, Quota, SECOND, Source, Spared, Wanted};

use super::harness::*;

fn zone(id: &str, state: bigfleet_model::machine::MachineState, zone: &str) -> Machine {
    Machine { zone: zone.into(), ..machine(id, state) }
}

const ZONE: &str = bigfleet_model::label::ZONE;

fn domain(value: &str) -> (Box<str>, Box<str>) {
    (ZONE.into(), value.into())
}

fn say(world: &mut World, term: i64, id: &str, order: Order) -> Vec<Answer> {
    let instruction = Instruction { term, id: id.into(), order: Some(order) };
    world.command(|shard, now, step| shard.instruct(term, &[instruction], now, step))
}

fn outcomes(answers: &[Answer]) -> Vec<(&str, Outcome)> {
    answers.iter().map(|answer| (&*answer.id, answer.outcome)).collect()
}

/// Two zones of two machines, and a cluster that wants one.
fn assigned(machines: Vec<Machine>) -> World {
    let mut world = World::with(machines, |config| config.is_assigned = true);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(SECOND);
    world
}

fn four() -> Vec<Machine> {
    vec![zone("a-1", Idle, "a"), zone("a-2", Idle, "a"), zone("b-1", Idle, "b"), zone("b-2", Idle, "b")]
}

#[test]
fn nothing_is_ours_before_it_was_assigned_and_nothing_after_it_was_let_go() {
    let mut world = assigned(four());
    assert_eq!((world.shard.machine_count(), world.called("Configure")), (0, 0));
    let taken = say(&mut world, 3, "3-1", Order::Take(domain("a")));
    assert_eq!(outcomes(&taken), [("3-1", Outcome::Accepted)]);
    world.pass(SECOND);
    assert_eq!((world.shard.machine_count(), world.called("Configure")), (2, 1));
    world.crash();
    world.pass(SECOND);
    assert_eq!(world.shard.machine_count(), 2, "it is on disk");
    let left = say(&mut world, 3, "3-2", Order::LetGo(domain("a")));
    assert_eq!(outcomes(&left), [("3-2", Outcome::Accepted)]);
    assert_eq!(world.shard.machine_count(), 0, "bound or not: they stay as they are, and are not ours");
    assert!(world.memory.losses.is_empty(), "nothing was lost to a listing");
    world.crash();
    world.pass(20 * SECOND);
    assert_eq!(world.shard.machine_count(), 0);
    assert_eq!(world.clouds[0].count(Configured), 1, "whoever is next finds it as it was");
}

#[test]
fn a_domain_is_let_go_when_nothing_is_under_way_there() {
    let mut world = assigned(four());
    world.clouds[0].instant = false;
    say(&mut world, 1, "1-1", Order::Take(domain("a")));
    world.pass(SECOND);
    assert_eq!(world.clouds[0].count(Configuring), 1);
    for _ in 0..3 {
        let waits = say(&mut world, 1, "1-2", Order::LetGo(domain("a")));
        assert_eq!(waits, [], "any answer would end it");
        assert!(matches!(world.shard.unanswered(), [waits] if waits.ends), "{:?}", world.shard.unanswered());
        world.pass(SECOND);
    }
    assert_eq!(world.shard.owned().leaving(), 1, "the idle one went at once");
    // Nothing new begins there, not even on a machine that is about to be idle.
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(SECOND);
    assert_eq!(world.called("Configure"), 1);
    world.clouds[0].finish_all();
    world.pass(20 * SECOND);
    let left = say(&mut world, 1, "1-2", Order::LetGo(domain("a")));
    assert_eq!(outcomes(&left), [("1-2", Outcome::Accepted)]);
    assert_eq!(world.shard.machine_count(), 0);
}

#[test]
fn a_machine_on_order_is_handed_over_unbound() {
    let mut world = assigned(vec![zone("a-1", Speculative, "a")]);
    world.clouds[0].instant = false;
    say(&mut world, 1, "1-1", Order::Take(domain("a")));
    world.pass(SECOND);
    assert_eq!(world.clouds[0].count(Creating), 1);
    assert_eq!(say(&mut world, 1, "1-2", Order::LetGo(domain("a"))), []);
    world.clouds[0].finish_all();
    world.pass(20 * SECOND);
    assert_eq!(outcomes(&say(&mut world, 1, "1-2", Order::LetGo(domain("a"))))[0].1, Outcome::Accepted);
    assert_eq!(
        (world.called("Configure"), world.clouds[0].count(Idle)),
        (0, 1),
        "its second half did not begin"
    );
}

#[test]
fn older_terms_are_not_heard_also_after_a_restart() {
    let mut world = assigned(four());
    say(&mut world, 5, "5-1", Order::Take(domain("a")));
    world.crash();
    assert_eq!(say(&mut world, 4, "4-9", Order::Take(domain("b"))), []);
    assert!(world.has_said("old_coordinator"));
    let older = Instruction { term: 4, id: "4-9".into(), order: Some(Order::Take(domain("b"))) };
    let stale = world.command(|shard, now, step| shard.instruct(6, &[older], now, step));
    assert_eq!(outcomes(&stale), [("4-9", Outcome::Stale)]);
    assert_eq!(world.shard.owned().domains().count(), 1);
}

#[test]
fn an_instruction_takes_effect_once() {
    let mut world = assigned(four());
    say(&mut world, 1, "1-1", Order::Take(domain("a")));
    say(&mut world, 1, "1-2", Order::LetGo(domain("a")));
    let again = say(&mut world, 1, "1-1", Order::Take(domain("a")));
    assert_eq!((again[0].outcome, &*again[0].reason), (Outcome::Accepted, "duplicate-redelivery"));
    assert_eq!(world.shard.owned().domains().count(), 0, "it was answered before, and is not done again");
    let nonsense = Instruction { term: 1, id: "1-3".into(), order: None };
    let said = world.command(|shard, now, step| shard.instruct(1, &[nonsense.clone(), nonsense], now, step));
    assert_eq!(outcomes(&said), [("1-3", Outcome::Invalid), ("1-3", Outcome::Invalid)]);
    assert!(said[1].reason.starts_with("duplicate-redelivery: "), "{}", said[1].reason);
}

#[test]
fn a_shard_with_domains_of_its_own_takes_no_assignments() {
    let mut world = World::new(four());
    world.pass(SECOND);
    for _ in 0..2 {
        assert_eq!(say(&mut world, 1, "1-1", Order::Take(domain("a"))), [], "any answer would end it");
        let [waits] = world.shard.unanswered() else { panic!("{:?}", world.shard.unanswered()) };
        assert_eq!((&*waits.instruction.id, waits.ends), ("1-1", false));
        assert!(waits.why.contains("domains of its own"), "{}", waits.why);
    }
    assert!(world.has_said("instruction_waits"));
    assert_eq!(world.shard.machine_count(), 4, "everything its providers list, as before");
    // Taken back, it waits no more.
    world.command(|shard, now, step| shard.instruct(1, &[], now, step));
    assert!(world.shard.unanswered().is_empty());
}

#[test]
fn free_machines_are_given_and_taken_and_used_ones_are_not() {
    let mut world = assigned(four());
    say(&mut world, 1, "1-1", Order::Take(domain("a")));
    world.pass(SECOND);
    let used = if world.state("a-1") == Configured { "a-1" } else { "a-2" };
    let free = if used == "a-1" { "a-2" } else { "a-1" };
    let to = |from: &str, to: &str, machine: &str| Order::Transfer {
        machines: vec![machine.into()],
        from: from.into(),
        to: to.into(),
    };
    let kept = say(&mut world, 1, "1-2", to("s1", "s2", used));
    assert_eq!(kept[0].outcome, Outcome::Refused, "{}", kept[0].reason);
    let given = say(&mut world, 1, "1-3", to("s1", "s2", free));
    assert_eq!(given[0].outcome, Outcome::Accepted);
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(30 * SECOND);
    assert_eq!((world.shard.machine_count(), world.called("Configure")), (1, 1), "it is not ours any more");
    world.crash();
    world.pass(30 * SECOND);
    assert_eq!(world.shard.machine_count(), 1);
    // One of a domain that is not ours, by its name.
    let taken = say(&mut world, 1, "1-4", to("s2", "s1", "b-1"));
    assert_eq!(taken[0].outcome, Outcome::Accepted);
    world.open(2, "shop");
    world.report(2, "shop", vec![need("shop", 7, 2)]);
    world.pass(SECOND);
    assert_eq!(world.state("b-1"), Configured);
    let strange = say(&mut world, 1, "1-5", to("s2", "s3", "b-2"));
    assert_eq!(strange[0].outcome, Outcome::Invalid);
    // Whoever lets go of the domain forgets what of it was given, and may get it anew.
    say(&mut world, 1, "1-6", Order::LetGo(domain("a")));
    assert_eq!(world.shard.owned().named().len(), 1, "what is ours by name stays");
}

#[test]
fn what_another_has_is_left_alone_although_its_domain_is_assigned() {
    let mut world = assigned(four());
    let order = Order::Transfer { machines: vec!["a-1".into()], from: "s1".into(), to: "s2".into() };
    assert_eq!(say(&mut world, 1, "1-1", order)[0].outcome, Outcome::Accepted);
    say(&mut world, 1, "1-2", Order::Take(domain("a")));
    world.pass(30 * SECOND);
    assert_eq!((world.shard.machine_count(), world.state("a-2")), (1, Configured));
}

#[test]
fn as_much_is_held_as_the_quota_says_and_slots_beyond_it_are_no_supply() {
    let slots: Vec<Machine> = (0..6).map(|n| zone(&format!("a-{n}"), Speculative, "a")).collect();
    let mut world = World::new(slots);
    let quota = |machines| Quota {
        provider: "test".into(),
        instance_type: "".into(),
        zone: "a".into(),
        capacity_type: None,
        machines,
    };
    world.command(|shard, _, step| shard.set_quotas(vec![quota(2)], step));
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 4)]);
    world.pass(SECOND);
    world.pass(60 * SECOND);
    assert_eq!(world.begun(ActionKind::Provision), 2);
    assert_eq!(world.shard.ledger().len(), 1, "the need says that it is short");
    world.crash();
    world.open(2, "shop");
    world.report(2, "shop", vec![need("shop", 7, 4)]);
    world.pass(60 * SECOND);
    assert_eq!(world.begun(ActionKind::Provision), 2, "the quota is on disk");
    world.command(|shard, _, step| shard.set_quotas(vec![quota(3)], step));
    world.pass(60 * SECOND);
    assert_eq!(world.begun(ActionKind::Provision), 3);
    world.command(|shard, _, step| shard.set_quotas(vec![quota(1)], step));
    world.pass(60 * SECOND);
    assert_eq!(world.clouds[0].count(Configured), 3, "nothing is taken away by a quota");
    world.command(|shard, _, step| shard.set_quotas(vec![], step));
    world.pass(60 * SECOND);
    assert_eq!(world.begun(ActionKind::Provision), 4);
}

#[test]
fn what_is_spared_is_free_and_not_missed_here() {
    let mut machines = vec![machine("used", Idle), machine("dear", Idle), machine("cheap", Idle)];
    machines[1].price_usd_per_hour = 5.0;
    machines.extend([machine("slot-1", Speculative), machine("slot-2", Speculative)]);
    for machine in &mut machines {
        machine.capacity_type = bigfleet_model::capacity::CapacityType::BareMetal;
    }
    let mut world = World::new(machines);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(SECOND);
    world.pass(30 * SECOND);
    let wanted = |slots, cpu: &str, priority| Wanted {
        source: if slots { Source::Slots } else { Source::Idle },
        requirements: vec![],
        deficit: ResourceVec::parse([("cpu", cpu)]).unwrap(),
        priority,
    };
    let ids = |spared: Vec<Spared>| spared.into_iter().map(|s| s.machine.to_string()).collect::<Vec<_>>();
    let one = ids(world.shard.spare(&wanted(false, "1", 7), world.now));
    assert_eq!(one, ["dear"], "as much as is missing, the dearest to hold");
    let all = ids(world.shard.spare(&wanted(false, "1000", 7), world.now));
    assert_eq!(all.len(), 2, "not the one in use: {all:?}");
    assert_eq!(ids(world.shard.spare(&wanted(true, "20", 7), world.now)), ["slot-1", "slot-2"]);
    // Short ourselves: nothing for what is as important, everything for what is more important.
    let nowhere = Requirement::is_in("kubernetes.io/arch", ["none"]);
    let impossible = need_where("shop", 7, 1, vec![nowhere]);
    world.report(1, "shop", vec![need("shop", 7, 1), impossible]);
    world.pass(30 * SECOND);
    assert_eq!(world.shard.ledger().len(), 1);
    let given: BTreeMap<i32, usize> = [6, 7, 8]
        .map(|priority| (priority, world.shard.spare(&wanted(false, "1000", priority), world.now).len()))
        .into();
    assert_eq!(given, BTreeMap::from([(6, 0), (7, 0), (8, 2)]));
}

#[test]
fn machines_in_use_are_given_to_what_is_strictly_more_important_when_they_are_drained() {
    let mut world = assigned(four());
    say(&mut world, 1, "1-1", Order::Take(domain("a")));
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(30 * SECOND);
    assert_eq!(world.clouds[0].count(Configured), 2);
    let wanted = |priority| Wanted {
        source: Source::InUse,
        requirements: vec![],
        deficit: ResourceVec::parse([("cpu", "1")]).unwrap(),
        priority,
    };
    assert_eq!(world.shard.spare(&wanted(7), world.now), [], "as important is not enough");
    let given = world.shard.spare(&wanted(8), world.now);
    let [Spared { machine, .. }] = &given[..] else { panic!("one is enough: {given:?}") };
    let machine = machine.clone();
    let order = || Order::Transfer { machines: vec![machine.clone()], from: "s1".into(), to: "s2".into() };
    world.clouds[0].instant = false;
    world.command(|shard, now, step| shard.promise(std::slice::from_ref(&machine), 8, now, step));
    assert_eq!(world.shard.spare(&wanted(8), world.now).len(), 1, "the other one, not the same");
    assert_eq!(say(&mut world, 1, "1-2", order()), [], "it is handed over when it is free");
    // A crash forgets the promise and not the drain.
    world.crash();
    world.open(2, "shop");
    world.report(2, "shop", vec![need("shop", 7, 2)]);
    world.pass(20 * SECOND);
    assert_eq!(say(&mut world, 1, "1-2", order()), []);
    world.pass(700 * SECOND);
    world.clouds[0].finish_all();
    world.pass(20 * SECOND);
    assert_eq!(
        (world.state(&machine), world.called("Configure")),
        (Idle, 2),
        "nobody here gets it meanwhile"
    );
    assert_eq!(outcomes(&say(&mut world, 1, "1-2", order())), [("1-2", Outcome::Accepted)]);
    assert_eq!(world.shard.machine_count(), 1);
}

#[test]
fn a_promise_that_nobody_asks_to_be_kept_lapses() {
    let mut world = assigned(four());
    say(&mut world, 1, "1-1", Order::Take(domain("a")));
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(30 * SECOND);
    let machine: Box<str> = "a-1".into();
    world.command(|shard, now, step| shard.promise(std::slice::from_ref(&machine), 8, now, step));
    world.pass(300 * SECOND);
    assert_eq!(world.state("a-1"), Idle, "drained, and kept for another");
    world.pass(700 * SECOND);
    assert_eq!(world.state("a-1"), Configured, "back in use");
    // Used or paused, it is not given; and the order to hand it over is refused.
    let order = Order::Transfer { machines: vec![machine], from: "s1".into(), to: "s2".into() };
    assert_eq!(outcomes(&say(&mut world, 1, "1-2", order)), [("1-2", Outcome::Refused)]);
}
