//! Providers that contradict themselves: truth is adopted, but nothing is bought twice on a word that is taken back.

use bigfleet_model::machine::MachineState::{Configured, Creating, Failed, Idle, Speculative};
use bigfleet_shard::{CallErrorKind, Care, MINUTE, Request, SECOND};

use super::harness::*;

#[test]
fn listings_that_each_lose_another_half_are_never_believed() {
    let mut world = World::new(
        machines(40, Speculative)
            .into_iter()
            .chain((0..40).map(|n| bound(&format!("own-{n:02}"), "shop", 7)))
            .collect(),
    );
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 40)]);
    world.pass(SECOND);
    let mut half = 0_usize;
    for _ in 0..30 {
        // Another half each time, as far from the one before as can be.
        half += 17;
        world.clouds[0].hidden = (0..20).map(|n| format!("own-{:02}", (n + half) % 40)).collect();
        world.pass(10 * SECOND);
    }
    assert!(world.shard.providers()[0].held.is_some());
    assert_eq!((world.shard.machine_count(), world.called("Create")), (80, 0));
    // The same half three times is believed, and only what all three miss is gone.
    world.clouds[0].hidden = (0..20).map(|n| format!("own-{n:02}")).collect();
    world.pass(10 * SECOND);
    world.clouds[0].hidden = (1..21).map(|n| format!("own-{n:02}")).collect();
    world.pass(30 * SECOND);
    assert!(world.shard.providers()[0].held.is_none());
    assert!(world.shard.machine("own-05").is_none() && world.shard.machine("own-39").is_some());
}

/// What the provider denies to know it has done all the same.
fn denying(world: &mut World, also_when_asked: bool, span: i64) {
    for _ in 0..span / SECOND {
        world.hold_calls = true;
        world.pass(SECOND);
        world.hold_calls = false;
        for effect in world.take_held() {
            let bigfleet_shard::Effect::Call { call, request, .. } = effect else { continue };
            let is_get = matches!(request, Request::Get { .. });
            world.calls.push((0, request.clone()));
            let done = world.clouds[0].apply(&request);
            let denied = !is_get || also_when_asked;
            world.event(match done {
                Ok(Some(machine)) if !denied => {
                    let machine = Some(Ok(bigfleet_shard::Told { machine, bad_stamps: 0 }));
                    bigfleet_shard::Event::Answered { call, machine }
                }
                _ => {
                    let kind = CallErrorKind::NotFound;
                    let error = bigfleet_shard::CallError { kind, text: "no such machine".into() };
                    bigfleet_shard::Event::Failed { call, error }
                }
            });
        }
        world.clouds[0].finish_all();
    }
}

#[test]
fn moves_that_are_denied_and_carried_out_buy_nothing_anew() {
    for also_when_asked in [false, true] {
        let mut world = World::new(machines(50, Speculative));
        world.clouds[0].instant = false;
        world.open(1, "shop");
        world.report(1, "shop", vec![need("shop", 7, 20)]);
        denying(&mut world, also_when_asked, 3 * MINUTE);
        let exist = world.clouds[0].machines.values().filter(|machine| machine.state != Speculative).count();
        assert_eq!(
            (exist, world.clouds[0].count(Configured)),
            (20, 20),
            "denied when asked: {also_when_asked}"
        );
        assert_eq!(world.called("Create"), 20, "denied when asked: {also_when_asked}");
    }
}

#[test]
fn a_machine_that_is_denied_and_left_out_is_gone() {
    let mut world = World::new(machines(3, Speculative));
    world.clouds[0].instant = false;
    world.open(1, "shop");
    world.pass(SECOND);
    world.clouds[0].machines.remove("m-000");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(5 * SECOND);
    assert!(world.shard.machine("m-000").is_none());
    assert_eq!(world.state("m-001"), Creating, "the next one is taken");
}

#[test]
fn a_machine_that_is_denied_and_still_listed_is_left_alone_for_a_while() {
    let mut world = World::new(machines(2, Speculative));
    world.clouds[0].instant = false;
    world.clouds[0].refused = [("m-000".into(), CallErrorKind::NotFound)].into();
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(20 * SECOND);
    assert!(matches!(world.shard.machine("m-000").unwrap().care, Care::Cooling { .. }));
    assert_eq!((world.called("Create"), world.state("m-001")), (2, Creating));
}

#[test]
fn a_machine_that_a_listing_names_twice_stays_as_it_was() {
    let mut world = World::new((0..3).map(|n| bound(&format!("m-{n}"), "shop", 7)).collect());
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(SECOND);
    let mut dead = machine("m-1", Failed);
    dead.last_error = "power lost".into();
    let mut idle = machine("m-1", Idle);
    idle.price_usd_per_hour = 9.0;
    for doubles in [vec![dead.clone()], vec![dead.clone(), idle.clone()], vec![dead, idle]] {
        world.clouds[0].doubles = doubles;
        world.pass(20 * SECOND);
        assert_eq!(world.state("m-1"), Configured);
        assert!(world.has_said("named_twice"));
    }
    let twice = world.shard.tally().bad_records["named_twice"];
    world.clouds[0].doubles.clear();
    world.clouds[0].machines.get_mut("m-1").unwrap().price_usd_per_hour = 3.0;
    world.pass(20 * SECOND);
    assert_eq!(
        world.shard.machine("m-1").unwrap().machine.price_usd_per_hour,
        3.0,
        "once named once it is read"
    );
    assert_eq!(world.shard.tally().bad_records["named_twice"], twice);
    assert!(!world.has_said("machine_lost"));
}

#[test]
fn a_machine_whose_listing_and_answers_disagree_is_asked_less_and_less() {
    let mut world = World::new((0..20).map(|n| bound(&format!("m-{n:02}"), "shop", 7)).collect());
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 20)]);
    world.pass(SECOND);
    // Listings say Failed, answers say Configured.
    let mut dead = machine("m-03", Failed);
    dead.last_error = "power lost".into();
    world.clouds[0].listed_as.insert("m-03".into(), dead);
    world.pass(60 * MINUTE);
    let asked = world.called("Get");
    assert!((3..=20).contains(&asked), "asked {asked} times in an hour");
    assert!(world.has_said("disputed"));
    world.clouds[0].listed_as.clear();
    world.pass(MINUTE);
    assert_eq!(
        (world.state("m-03"), world.shard.machine("m-03").unwrap().care.clone()),
        (Configured, Care::Fine)
    );
}
