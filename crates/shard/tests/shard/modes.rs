//! Modes and proposals: what is executed without asking, and what a yes is good for.

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState::{Configured, Creating, Idle, Speculative};
use bigfleet_shard::{
    CommandError, Fact, Fate, Frame, MINUTE, Mode, ModeOrder, PauseScope, Proposal, SECOND, Step,
};

use super::harness::*;

fn scope(cluster: Option<&str>, kind: Option<ActionKind>) -> PauseScope {
    PauseScope { cluster: cluster.map(Into::into), kind }
}

fn order(mode: Mode) -> ModeOrder {
    ModeOrder { mode, reason: "trial".into(), author: "sre".into(), since_unix_nanos: START }
}

fn set(world: &mut World, cluster: Option<&str>, kind: Option<ActionKind>, mode: Mode) {
    let scope = scope(cluster, kind);
    world.command(|shard, _, step| shard.set_mode(&scope, Some(order(mode)), step)).unwrap();
}

/// What waits for a yes, by machine.
fn waiting(world: &World) -> Vec<(String, Proposal)> {
    let all = world.shard.proposals().iter().filter(|(_, standing)| standing.proposal.approved.is_none());
    all.map(|(machine, standing)| (machine.to_string(), standing.proposal.clone())).collect()
}

fn approve(world: &mut World, ids: &[u32]) -> Result<Vec<Box<str>>, CommandError> {
    world.command(|shard, now, step| shard.approve(ids, "sre", now, step))
}

#[test]
fn in_observe_nothing_is_executed_and_what_would_be_is_on_record() {
    let mut world = World::new([machines(2, Idle), vec![machine("q", Speculative)]].concat());
    set(&mut world, None, None, Mode::Observe);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(30 * MINUTE);
    assert_eq!(world.calls.len(), 0);
    assert!(world.fates(ActionKind::Bootstrap, Fate::Observed) > 0);
    assert!(world.fates(ActionKind::Provision, Fate::Observed) > 0);
    assert_eq!(world.records.last().unwrap().actions.len(), 3);
    assert!(world.shard.proposals().is_empty(), "nobody is asked");
    set(&mut world, None, None, Mode::Auto);
    world.pass(SECOND);
    assert_eq!(world.clouds[0].count(Configured), 3);
}

#[test]
fn what_is_observed_takes_its_share_of_the_bounds() {
    let mut world =
        World::with((0..40).map(|n| bound(&format!("m-{n:02}"), "shop", 7)).collect(), |config| {
            config.rails.reclaim_fraction = 0.1;
        });
    set(&mut world, Some("shop"), Some(ActionKind::Reclaim), Mode::Observe);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 30)]);
    world.pass(SECOND);
    let fates = |fate| world.records.last().unwrap().actions.iter().filter(|o| o.fate == fate).count();
    assert_eq!((fates(Fate::Observed), fates(Fate::Capped)), (4, 6), "no more than would be done");
}

#[test]
fn the_narrowest_order_counts_and_the_stricter_of_two_clusters() {
    let mut world = World::new(vec![]);
    let mode = |world: &World, kind, cluster| world.shard.mode_of(Some(kind), cluster);
    assert_eq!(mode(&world, ActionKind::Delete, None), Mode::Auto);
    set(&mut world, None, None, Mode::Observe);
    set(&mut world, None, Some(ActionKind::Bootstrap), Mode::Approve);
    set(&mut world, Some("shop"), None, Mode::Auto);
    set(&mut world, Some("shop"), Some(ActionKind::Reclaim), Mode::Approve);
    assert_eq!(mode(&world, ActionKind::Delete, None), Mode::Observe);
    assert_eq!(mode(&world, ActionKind::Bootstrap, Some("ml")), Mode::Approve);
    assert_eq!(mode(&world, ActionKind::Bootstrap, Some("shop")), Mode::Auto);
    assert_eq!(mode(&world, ActionKind::Reclaim, Some("shop")), Mode::Approve);
    let all = scope(None, None);
    world.command(|shard, _, step| shard.set_mode(&all, None, step)).unwrap();
    assert_eq!(mode(&world, ActionKind::Delete, None), Mode::Auto, "taken back");
    let again = world.command(|shard, _, step| shard.set_mode(&all, None, step));
    assert_eq!(again, Err(CommandError::NoSuchMode("everything".into())));
    let silent = ModeOrder { reason: " ".into(), ..order(Mode::Auto) };
    let refused = world.command(|shard, _, step| shard.set_mode(&all, Some(silent), step));
    assert_eq!(refused, Err(CommandError::NoReason));
}

#[test]
fn a_preemption_asks_where_either_cluster_asks() {
    let mut world = World::new(vec![bound("m", "shop", 7)]);
    set(&mut world, Some("shop"), None, Mode::Approve);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.open(2, "ml");
    world.report(2, "ml", vec![need("ml", 900, 1)]);
    world.pass(MINUTE);
    assert_eq!(world.begun(ActionKind::Preempt), 0);
    let (machine, proposal) = waiting(&world).pop().expect("it is proposed");
    assert_eq!((&*machine, proposal.kind), ("m", ActionKind::Preempt));
}

#[test]
fn each_action_waits_for_its_yes_and_one_yes_is_for_one_action() {
    let mut world = World::new(machines(3, Idle));
    set(&mut world, None, None, Mode::Approve);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(MINUTE);
    assert_eq!(world.calls.len(), 0);
    let proposed = waiting(&world);
    assert_eq!(proposed.len(), 3);
    let first = &world.shard.proposals()["m-000"];
    assert!(first.ordered.as_ref().unwrap().why.is_some(), "with its reason");
    assert_eq!(first.proposal.until_unix_nanos, first.proposal.since_unix_nanos + 60 * MINUTE);
    let unknown = proposed.iter().map(|(_, p)| p.id).max().unwrap().wrapping_add(1);
    assert_eq!(approve(&mut world, &[proposed[0].1.id, unknown]), Err(CommandError::NoSuchProposal(unknown)));
    world.pass(MINUTE);
    assert_eq!(world.calls.len(), 0, "all or none");
    approve(&mut world, &[proposed[1].1.id]).unwrap();
    world.pass(MINUTE);
    assert_eq!(world.clouds[0].count(Configured), 1);
    let begun = world.records.iter().flat_map(|r| &r.actions).find(|o| o.fate == Fate::Begun).unwrap();
    assert_eq!((&*begun.action.machine, begun.approved_by.as_deref()), (&*proposed[1].0, Some("sre")));
    assert_eq!(waiting(&world).len(), 2);
    let again = approve(&mut world, &[proposed[1].1.id]);
    assert_eq!(again, Err(CommandError::NoSuchProposal(proposed[1].1.id)));
}

#[test]
fn a_proposal_and_its_yes_outlive_a_crash() {
    let mut world = World::new(machines(2, Idle));
    set(&mut world, None, None, Mode::Approve);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(MINUTE);
    let before = waiting(&world);
    world.crash();
    world.open(2, "shop");
    world.report(2, "shop", vec![need("shop", 7, 2)]);
    world.pass(MINUTE);
    assert_eq!(waiting(&world), before, "the same, under the same numbers");
    assert!(world.shard.proposals().values().all(|standing| standing.ordered.is_some()));
    assert_eq!(world.calls.len(), 0);
    // The yes is on disk, and the shard dies before it acts.
    let mut step = Step::default();
    world.shard.approve(&[before[0].1.id], "sre", world.now, &mut step).unwrap();
    assert!(matches!(&step.facts[..], [Fact::Proposal(_, Some(p))] if p.approved.is_some()));
    for fact in step.facts {
        world.memory.learn(fact);
    }
    world.crash();
    world.open(3, "shop");
    world.report(3, "shop", vec![need("shop", 7, 2)]);
    world.pass(MINUTE);
    assert_eq!(world.state(&before[0].0), Configured);
    assert_eq!(world.state(&before[1].0), Idle);
}

#[test]
fn a_proposal_is_dropped_when_it_is_no_longer_wanted() {
    let mut world = World::new(machines(3, Idle));
    set(&mut world, None, None, Mode::Approve);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(MINUTE);
    let (machine, old) = waiting(&world).pop().unwrap();
    world.report(1, "shop", vec![need("shop", 7, 2)]);
    world.pass(MINUTE);
    assert_eq!((waiting(&world).len(), world.memory.proposals.len()), (2, 2));
    assert_eq!(approve(&mut world, &[old.id]), Err(CommandError::NoSuchProposal(old.id)));
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(MINUTE);
    let (again, new) = waiting(&world).pop().unwrap();
    assert_eq!(again, machine);
    assert_ne!(new.id, old.id, "a yes to the old one would be none to the new");
}

#[test]
fn a_proposal_nobody_answers_is_proposed_anew() {
    let mut world = World::with(machines(1, Idle), |config| config.rails.proposal_life = 5 * MINUTE);
    set(&mut world, None, None, Mode::Approve);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(MINUTE);
    let id = waiting(&world)[0].1.id;
    world.pass(5 * MINUTE);
    assert_ne!(waiting(&world)[0].1.id, id);
    assert_eq!(waiting(&world).len(), 1);
}

#[test]
fn an_approved_purchase_is_bound_without_a_second_question() {
    let mut world = World::new(machines(1, Speculative));
    world.clouds[0].instant = false;
    set(&mut world, None, None, Mode::Approve);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(MINUTE);
    let (machine, proposal) = waiting(&world).remove(0);
    assert_eq!(proposal.kind, ActionKind::Provision);
    approve(&mut world, &[proposal.id]).unwrap();
    world.pass(MINUTE);
    assert_eq!(world.state(&machine), Creating);
    world.crash();
    world.open(2, "shop");
    world.report(2, "shop", vec![need("shop", 7, 1)]);
    world.pass(MINUTE);
    world.clouds[0].finish_all();
    world.pass(MINUTE);
    assert_eq!(world.called("Configure"), 1, "it was bought for this need, also after a crash");
    world.clouds[0].finish_all();
    world.pass(MINUTE);
    assert_eq!(world.state(&machine), Configured);
    assert!(world.memory.proposals.is_empty(), "a yes ends with its action");
}

#[test]
fn a_machine_that_became_dearer_is_proposed_anew() {
    let mut world = World::new(machines(1, Speculative));
    set(&mut world, None, None, Mode::Approve);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(MINUTE);
    let (machine, old) = waiting(&world).remove(0);
    let price = &mut world.clouds[0].machines.get_mut(&machine).unwrap().price_usd_per_hour;
    *price = (*price + 1.0) * 2.0;
    let new_price = *price;
    world.pass(MINUTE);
    let (_, new) = waiting(&world).remove(0);
    assert!(new.id != old.id && new.usd_per_hour == new_price, "{new:?}");
}

#[test]
fn what_no_provider_has_heard_of_is_not_executed_after_the_mode_changed() {
    let mut world = World::with(machines(4, Idle), |config| config.limits.flights = 1);
    world.hold_calls = true;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 4)]);
    world.pass(5 * SECOND);
    assert_eq!(world.shard.queues().waiting, 1, "one in line");
    set(&mut world, None, None, Mode::Observe);
    world.hold_calls = false;
    world.release();
    world.pass(MINUTE);
    assert_eq!(world.called("Configure"), 1, "what was under way is finished, nothing else is begun");
    assert_eq!((world.clouds[0].count(Configured), world.clouds[0].count(Idle)), (1, 3));
}

#[test]
fn a_purchase_that_is_bound_later_needs_no_second_yes() {
    let mut world = World::new(machines(1, Speculative));
    world.clouds[0].instant = false;
    set(&mut world, None, None, Mode::Approve);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(MINUTE);
    let (machine, proposal) = waiting(&world).remove(0);
    approve(&mut world, &[proposal.id]).unwrap();
    world.pass(MINUTE);
    world.manner = Manner::Refusing;
    world.clouds[0].finish_all();
    world.pass(15 * SECOND);
    assert_eq!(world.state(&machine), Idle, "its operator has nothing to join with");
    world.manner = Manner::Prompt;
    world.pass(5 * MINUTE);
    assert_eq!((world.called("Configure"), waiting(&world).len()), (1, 0));
    let begun = world.records.iter().flat_map(|r| &r.actions);
    let begun: Vec<_> = begun.filter(|o| o.fate == Fate::Begun).collect();
    assert_eq!(
        (begun.first().unwrap().action.kind, begun.last().unwrap().action.kind),
        (ActionKind::Provision, ActionKind::Bootstrap)
    );
    assert!(begun.iter().all(|o| o.approved_by.as_deref() == Some("sre")), "both halves by one yes");
    // Another need is another question.
    let mut world = World::new(machines(1, Speculative));
    world.clouds[0].instant = false;
    set(&mut world, None, None, Mode::Approve);
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 1)]);
    world.pass(MINUTE);
    let id = waiting(&world)[0].1.id;
    approve(&mut world, &[id]).unwrap();
    world.pass(MINUTE);
    world.report(1, "shop", vec![need("shop", 8, 1)]);
    world.clouds[0].finish_all();
    world.pass(MINUTE);
    assert_eq!((world.called("Configure"), waiting(&world).len()), (0, 1));
}

#[test]
fn a_drain_that_was_announced_is_called_off_at_once() {
    let mut world = World::new((0..4).map(|n| bound(&format!("m-{n}"), "shop", 7)).collect());
    world.manner = Manner::Silent;
    world.open(1, "shop");
    world.report(1, "shop", vec![need("shop", 7, 3)]);
    world.pass(MINUTE);
    assert_eq!(world.begun(ActionKind::Reclaim), 1);
    let machine = world.records.iter().flat_map(|r| &r.actions).find(|o| o.fate == Fate::Begun).unwrap();
    let machine = machine.action.machine.to_string();
    set(&mut world, Some("shop"), None, Mode::Observe);
    world.pass(SECOND);
    let view = world.shard.machine(&machine).unwrap();
    assert_eq!((view.machine.state, view.flight.is_none()), (Configured, true));
    assert!(world.memory.machines.get(&*machine).is_none_or(|memo| memo.letting_go.is_none()));
    let last = world.sent.iter().rev().find_map(|(_, frame)| match frame {
        Frame::Node(told) if *told.id == *machine => Some(told.state),
        _ => None,
    });
    assert_eq!(last, Some(Configured), "its cluster is told that it stays");
    world.pass(30 * MINUTE);
    assert_eq!(world.called("Drain"), 0);
}
