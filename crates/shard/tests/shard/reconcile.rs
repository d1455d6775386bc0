//! What providers say is adopted, whatever it is, and doubted only where it must be.

use bigfleet_engine::ActionKind;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::MachineState::{Configured, Configuring, Creating, Failed, Idle, Speculative};
use bigfleet_shard::{Care, Event, Frame, MINUTE, ProviderConfig, SECOND};

use super::harness::*;

#[test]
fn a_dead_bound_machine_is_replaced_at_once_and_its_cluster_told() {
    let mut world = World::new(vec![bound("m", "shop", 7), machine("spare", Idle)]);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(SECOND);
    assert_eq!((world.calls.len(), world.shard.tally().lost.len()), (0, 0), "meeting a machine is no loss");
    let dead = world.clouds[0].machines.get_mut("m").unwrap();
    (dead.state, dead.last_error) = (Failed, "host lost".into());
    world.pass(15 * SECOND);
    assert_eq!(world.state("spare"), Configured);
    assert_eq!(world.shard.tally().lost["failed"], 1);
    let told = world
        .sent
        .iter()
        .any(|(_, frame)| matches!(frame, Frame::Node(m) if &*m.id == "m" && m.state == Failed));
    assert!(told && world.has_said("machine_lost"));
}

#[test]
fn a_machine_that_left_its_cluster_unasked_is_lost_supply() {
    let mut world = World::new(vec![bound("m", "shop", 7), machine("spare", Idle)]);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(SECOND);
    let m = world.clouds[0].machines.get_mut("m").unwrap();
    (m.state, m.cluster, m.host) = (Speculative, "".into(), None);
    world.pass(15 * SECOND);
    assert_eq!((world.state("m"), world.state("spare")), (Speculative, Configured));
}

#[test]
fn prices_labels_and_sizes_are_adopted() {
    let mut world = World::new(vec![machine("m", Idle)]);
    world.pass(SECOND);
    let m = world.clouds[0].machines.get_mut("m").unwrap();
    (m.price_usd_per_hour, m.labels) = (0.25, Labels::new([("rack", "7")]).unwrap());
    world.pass(15 * SECOND);
    let machine = world.shard.machine("m").unwrap().machine;
    assert_eq!((machine.price_usd_per_hour, machine.labels.get("rack")), (0.25, Some("7")));
    assert_eq!(machine.idle_since_unix_nanos, Some(START), "and it has idled all along");
    assert_eq!(world.shard.money().idle().usd_per_hour(), 0.25);
}

#[test]
fn a_bad_record_is_refused_and_the_last_good_one_stays() {
    let mut world = World::new(vec![machine("m", Idle)]);
    world.pass(SECOND);
    world.clouds[0].machines.get_mut("m").unwrap().price_usd_per_hour = f64::NAN;
    world.pass(MINUTE);
    assert_eq!(world.shard.machine("m").unwrap().machine.price_usd_per_hour, 1.0);
    assert_eq!(world.shard.tally().bad_records["price"], 1, "said once, not at every listing");
}

#[test]
fn a_truncated_listing_is_held_until_three_agree() {
    let fleet =
        (0..20).map(|n| bound(&format!("m-{n:02}"), "shop", 7)).chain(machines(20, Speculative)).collect();
    let mut world = World::new(fleet);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 20)]);
    world.pass(SECOND);
    world.clouds[0].hidden = (0..15).map(|n| format!("m-{n:02}")).collect();
    world.pass(15 * SECOND);
    assert!(world.shard.providers()[0].held.is_some() && world.has_said("listing_lost_machines"));
    assert_eq!(
        (world.shard.machine_count(), world.called("Create")),
        (40, 0),
        "nothing is bought in a panic"
    );
    world.clouds[0].hidden.clear();
    world.pass(15 * SECOND);
    assert!(world.shard.providers()[0].held.is_none());
    world.clouds[0].hidden = (0..15).map(|n| format!("m-{n:02}")).collect();
    world.pass(2 * MINUTE);
    assert_eq!(
        world.clouds[0].count(Configured),
        20 + 15,
        "three listings agree: they are gone, and replaced"
    );
    assert_eq!(world.shard.tally().lost["gone"], 15);
}

#[test]
fn a_few_machines_may_go_at_any_time() {
    let mut world = World::new(machines(40, Idle));
    world.pass(SECOND);
    world.clouds[0].hidden = vec!["m-003".into()];
    world.pass(15 * SECOND);
    assert_eq!((world.shard.machine_count(), world.shard.engine().machine_count()), (39, 39));
}

#[test]
fn a_listing_begun_before_an_answer_does_not_undo_it() {
    let mut world = World::new(machines(1, Idle));
    world.clouds[0].instant = false;
    world.open(1, "shop");
    world.pass(SECOND);
    // The listing is asked for, shows Idle, and arrives only after the machine was ordered.
    world.hold_lists = true;
    world.pass(10 * SECOND);
    let old = world.clouds[0].machines.clone();
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(SECOND);
    assert_eq!(world.state("m-000"), Configuring);
    let new = std::mem::replace(&mut world.clouds[0].machines, old);
    let calls = world.calls.len();
    world.release_lists();
    world.clouds[0].machines = new;
    world.release();
    assert_eq!(world.state("m-000"), Configuring, "the answer is newer than the listing");
    world.pass(15 * SECOND);
    assert_eq!(world.called("Configure"), 1);
    assert!(world.calls.len() > calls, "and the machine is asked about to be sure");
    world.clouds[0].finish_all();
    world.pass(15 * SECOND);
    assert_eq!(world.state("m-000"), Configured);
}

#[test]
fn a_listing_during_a_call_waits_for_its_answer() {
    let mut world = World::new(machines(1, Idle));
    world.open(1, "shop");
    world.pass(SECOND);
    world.hold_calls = true;
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(SECOND);
    // The provider has done it already and lists it; the answer is still on its way.
    let m = world.clouds[0].machines.get_mut("m-000").unwrap();
    (m.state, m.cluster) = (Configured, "shop".into());
    world.pass(15 * SECOND);
    assert_eq!(world.state("m-000"), Configuring);
    world.release();
    world.pass(SECOND);
    assert_eq!(world.state("m-000"), Configured, "what was missed is asked about");
}

#[test]
fn changes_are_listed_where_the_provider_can_and_all_now_and_then() {
    let mut world = World::new(machines(3, Idle));
    world.clouds[0].has_revisions = true;
    world.pass(11 * MINUTE);
    let full = world.lists.iter().filter(|full| **full).count();
    assert_eq!(full, 2, "at the start and after ten minutes, of {}", world.lists.len());
}

#[test]
fn failed_is_not_a_grave_but_may_end_in_quarantine() {
    let mut broken = machine("m", Failed);
    broken.last_error = "no boot".into();
    let mut world = World::new(vec![broken.clone(), machine("n", Failed)]);
    world.clouds[0].machines.get_mut("n").unwrap().last_error = "slow disk".into();
    world.pass(2 * MINUTE);
    let n = world.clouds[0].machines.get_mut("n").unwrap();
    (n.state, n.last_error) = (Idle, "".into());
    world.pass(15 * SECOND);
    assert_eq!(world.state("n"), Idle, "the provider's word is adopted");
    world.pass(4 * 60 * MINUTE);
    assert_eq!(world.shard.machine("m").unwrap().care, &Care::Quarantined);
    assert_eq!((world.shard.tally().quarantined, world.has_said("quarantined")), (1, true));
    let asked = world.called("Get");
    assert!((4..=12).contains(&asked), "asked at growing intervals: {asked}");
    let m = world.clouds[0].machines.get_mut("m").unwrap();
    (m.state, m.last_error) = (Idle, "".into());
    world.pass(15 * SECOND);
    assert_eq!((world.state("m"), world.shard.machine("m").unwrap().care), (Idle, &Care::Fine));
}

#[test]
fn a_machine_too_long_in_transition_no_longer_counts() {
    let mut world = World::new(vec![machine("a", Idle), machine("b", Idle)]);
    world.clouds[0].instant = false;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(19 * MINUTE);
    assert_eq!((world.state("a"), world.called("Configure")), (Configuring, 1));
    // The spare is released after its hold unless somebody needs it; keep it.
    world.clouds[0].machines.insert("c".into(), machine("c", Idle));
    world.pass(2 * MINUTE);
    assert_eq!(world.shard.machine("a").unwrap().care, &Care::Overdue);
    assert_eq!(world.called("Configure"), 2, "another machine takes its place");
    world.clouds[0].finish("a");
    world.pass(2 * MINUTE);
    assert_eq!(world.shard.machine("a").unwrap().care, &Care::Fine);
}

#[test]
fn only_machines_of_owned_domains_are_known() {
    let mut other = machine("other", Idle);
    other.zone = "b".into();
    let zone = ("topology.kubernetes.io/zone".into(), "a".into());
    let mut world = World::with(vec![machine("mine", Idle), other], |config| config.domains = vec![zone]);
    world.pass(MINUTE);
    assert_eq!((world.shard.machine_count(), world.shard.machine("other").is_none()), (1, true));
    world.clouds[0].machines.get_mut("mine").unwrap().zone = "c".into();
    world.pass(MINUTE);
    assert_eq!(world.shard.machine_count(), 0, "it left");
}

#[test]
fn of_two_providers_with_one_machine_the_first_is_believed() {
    let two = |config: &mut bigfleet_shard::Config| {
        config.providers = ["one", "two"].map(ProviderConfig::named).to_vec();
    };
    let mut world = World::with(vec![machine("m", Idle)], two);
    world.clouds[1].machines.insert("m".into(), bound("m", "shop", 7));
    world.pass(MINUTE);
    assert_eq!(world.state("m"), Idle);
    assert!(world.shard.tally().claimed_twice > 0 && world.has_said("claimed_twice"));
}

#[test]
fn an_answer_nobody_waits_for_changes_nothing() {
    let mut world = World::new(machines(1, Idle));
    world.pass(SECOND);
    let told = bigfleet_shard::Told { machine: bound("m-000", "shop", 7), bad_stamps: 0 };
    world.event(Event::Answered { call: bigfleet_shard::CallId(999), machine: Some(Ok(told)) });
    assert_eq!((world.state("m-000"), world.shard.tally().late_answers), (Idle, 1));
    assert_eq!(world.begun(ActionKind::Bootstrap), 0);
}

#[test]
fn what_a_pieced_listing_does_not_name_is_asked_about_before_it_is_lost() {
    let fleet = (0..20).map(|n| bound(&format!("m-{n:02}"), "shop", 7)).collect();
    let mut world = World::new(fleet);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 20)]);
    world.pass(SECOND);
    world.clouds[0].is_pieced = true;
    // Two move between the pieces; one is gone for good.
    world.clouds[0].hidden = vec!["m-03".into(), "m-04".into()];
    world.clouds[0].machines.remove("m-05");
    world.pass(15 * SECOND);
    assert!(world.shard.machine("m-03").is_some() && world.shard.machine("m-04").is_some());
    assert!(world.shard.machine("m-05").is_none(), "its provider said that it is unknown");
    assert_eq!(world.shard.tally().lost["gone"], 1);
    let asked = |id: &str| world.calls.iter().filter(|(_, request)| request.machine() == id).count();
    assert!(asked("m-03") >= 1 && asked("m-04") >= 1 && asked("m-05") == 1);
    assert_eq!(asked("m-06"), 0, "whoever was named is not asked about");
    // A listing of one instant is believed as it stands.
    world.clouds[0].is_pieced = false;
    world.pass(15 * SECOND);
    assert!(world.shard.machine("m-03").is_none() && world.shard.machine("m-04").is_none());
}

#[test]
fn a_pieced_listing_that_lost_most_is_held_all_the_same() {
    let mut world = World::new((0..40).map(|n| bound(&format!("m-{n:02}"), "shop", 7)).collect());
    world.pass(SECOND);
    world.clouds[0].is_pieced = true;
    world.clouds[0].hidden = (0..30).map(|n| format!("m-{n:02}")).collect();
    world.pass(15 * SECOND);
    assert!(world.shard.providers()[0].held.is_some());
    assert_eq!(world.calls.len(), 0, "nobody is asked about before it is believed");
}

#[test]
fn the_same_said_in_other_bytes_is_no_news() {
    let mut world = World::new(machines(50, Idle));
    world.pass(15 * SECOND);
    let records = |world: &World| world.shard.recent().count();
    let before = records(&world);
    for writing in 1..4 {
        world.clouds[0].writing = writing;
        world.pass(15 * SECOND);
    }
    assert_eq!(records(&world), before, "nothing changed, so nothing was decided");
    let (id, _) = world.clouds[0].machines.first_key_value().unwrap();
    let id = id.clone();
    world.clouds[0].machines.get_mut(&id).unwrap().price_usd_per_hour = 0.5;
    world.pass(15 * SECOND);
    assert_eq!(world.shard.machine(&id).unwrap().machine.price_usd_per_hour, 0.5);
}

#[test]
fn unchanged_records_are_read_again_in_turn_and_agree() {
    let fleet =
        machines(300, Speculative).into_iter().chain((0..20).map(|n| bound(&format!("b-{n}"), "shop", 7)));
    let mut world = World::new(fleet.collect());
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 25)]);
    world.pass(60 * MINUTE);
    let tally = world.shard.tally();
    assert!(tally.read_again > 300, "{} read again", tally.read_again);
    assert_eq!(tally.read_otherwise, 0);
}

#[test]
fn of_an_answer_the_engine_would_refuse_nothing_is_taken() {
    let mut world = World::new(vec![machine("m", Speculative)]);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.hold_calls = true;
    world.pass(SECOND);
    assert_eq!(world.state("m"), Creating);
    world.clouds[0].machines.get_mut("m").unwrap().price_usd_per_hour = f64::NAN;
    world.release_calls();
    assert_eq!(
        (world.called("Create"), world.state("m")),
        (1, Creating),
        "the order stands, the record does not"
    );
    assert_eq!(world.shard.tally().bad_records.values().sum::<u64>(), 1);
    assert!(world.has_said("bad_record") && world.shard.money().spend().usd_per_hour().is_finite());
}
