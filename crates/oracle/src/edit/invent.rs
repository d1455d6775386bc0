//! Invents changes, mostly by repeating what is there already: copies make ties.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_scenario::answer::{Action, NormalizedNeed};
use bigfleet_scenario::seed::Seed;
use bigfleet_scenario::{CycleOptions, Scenario};

use super::Edit;
use crate::decide;
use crate::met::Met;
use crate::normalise::normalise;
use crate::orders::begin;
use crate::random::{World, drained_for, machine, need, options, put_in_state, random_stamp};

/// An action of the last cycle, and the need it was for.
pub(super) type Order = (Action, Option<NormalizedNeed>);

/// A change that can happen to the scenario now.
pub(super) fn edit(seed: &mut Seed, now: &Scenario, orders: &mut Vec<Order>) -> Edit {
    let mut world = World::draw(seed, 0);
    world.clusters = clusters(now, world.clusters);
    match seed.below(100) {
        0..30 => obeyed(seed, now, orders).unwrap_or(Edit::Advance { nanos: 1 }),
        30..45 => observe(seed, now, &world, next_state),
        45..53 => observe(seed, now, &world, alter),
        53..58 => observe(seed, now, &world, restamp),
        58..63 => Edit::Observe(Box::new(appear(seed, now, &world))),
        63..68 if !now.machines.is_empty() => Edit::Remove(seed.pick(&now.machines).id.to_string()),
        63..88 => roll_up(seed, now, &world),
        88..95 => Edit::Advance { nanos: *seed.pick(&[1, 30_000_000_000, 60_000_000_000, 600_000_000_000]) },
        95..98 => Edit::SetOptions(reported(seed, now, &world)),
        _ => Edit::SetOptions(options(seed, &world)),
    }
}

/// One cluster more has reported, or none of those that had.
fn reported(seed: &mut Seed, now: &Scenario, world: &World) -> CycleOptions {
    let mut options = now.options.clone();
    let mut ready = options.ready_clusters.take().unwrap_or_else(|| world.clusters.iter().cloned().collect());
    let cluster = seed.pick(&world.clusters).clone();
    if !ready.remove(&cluster) {
        ready.insert(cluster);
    }
    options.ready_clusters = seed.chance(0.8).then_some(ready);
    options
}

/// The clusters of the scenario, or these if it has none.
fn clusters(now: &Scenario, otherwise: Vec<Arc<str>>) -> Vec<Arc<str>> {
    let bound = now.machines.iter().filter(|m| m.state.is_bound()).map(|m| m.assigned.cluster.clone());
    let known: BTreeSet<Arc<str>> = now.needs.iter().map(|need| need.cluster.clone()).chain(bound).collect();
    if known.is_empty() { otherwise } else { known.into_iter().collect() }
}

/// Carries out one of the last cycle's orders; when none is left, another cycle is decided.
fn obeyed(seed: &mut Seed, now: &Scenario, orders: &mut Vec<Order>) -> Option<Edit> {
    if orders.is_empty() {
        let answer = decide(now);
        let needs = &answer.normalized_needs;
        orders.extend(answer.actions.into_iter().map(|action| {
            let need = action.need.map(|need| needs[need as usize].clone());
            (action, need)
        }));
    }
    if orders.is_empty() {
        return None;
    }
    let (action, need) = orders.swap_remove(seed.below(orders.len() as u64) as usize);
    // It may have changed since it was ordered about; then nothing comes of it.
    let mut machine = now.machines.iter().find(|machine| *machine.id == *action.machine)?.clone();
    let rows = normalise(now, &Met::default());
    let row = need.and_then(|need| {
        rows.into_iter().map(|row| row.need).find(|row| {
            *row.cluster == *need.cluster
                && row.profile.fingerprint() == need.fingerprint
                && *row.group == *need.group
        })
    });
    begin(&mut machine, &action, row.as_ref()).then(|| Edit::Observe(Box::new(machine)))
}

/// A known machine after a change.
fn observe(
    seed: &mut Seed,
    now: &Scenario,
    world: &World,
    change: fn(&mut Seed, &Scenario, &World, &mut Machine),
) -> Edit {
    if now.machines.is_empty() {
        return Edit::Observe(Box::new(appear(seed, now, world)));
    }
    let mut machine = seed.pick(&now.machines).clone();
    change(seed, now, world, &mut machine);
    Edit::Observe(Box::new(machine))
}

/// The machine moves on: where its state leads, to failure, or anywhere, as providers sometimes have it.
fn next_state(seed: &mut Seed, now: &Scenario, world: &World, machine: &mut Machine) {
    use MachineState::{Configured, Configuring, Creating, Deleting, Draining, Failed, Idle, Speculative};
    let next = match machine.state {
        _ if seed.chance(0.05) => Failed,
        _ if seed.chance(0.05) => *seed.pick(&MachineState::ALL),
        Speculative => Creating,
        Creating | Draining | Failed => Idle,
        Idle => *seed.pick(&[Configuring, Deleting]),
        Configuring => Configured,
        Configured => Draining,
        Deleting => Speculative,
    };
    let cluster: Arc<str> = if machine.cluster.is_empty() {
        seed.pick(&world.clusters).clone()
    } else {
        (*machine.cluster).into()
    };
    put_in_state(machine, next, &cluster);
    match next {
        Idle => {
            machine.draining_for = None;
            machine.idle_since_unix_nanos = seed.chance(0.8).then_some(now.now_unix_nanos);
        }
        Draining if seed.chance(0.5) && !now.needs.is_empty() => {
            machine.draining_for = Some(seed.pick(&now.needs).key());
        }
        _ => {}
    }
}

/// One fact about the machine changes, usually to what another machine has.
fn alter(seed: &mut Seed, now: &Scenario, world: &World, machine: &mut Machine) {
    let other = seed.pick(&now.machines).clone();
    match seed.below(10) {
        0 => machine.price_usd_per_hour = other.price_usd_per_hour,
        1 => machine.interruption_probability = other.interruption_probability,
        2 => machine.labels = other.labels,
        3 => machine.zone = other.zone,
        4 => machine.instance_type = other.instance_type,
        5 => machine.resources = other.resources,
        6 => machine.allocatable = other.allocatable,
        7 => machine.capacity_type = other.capacity_type,
        8 => machine.idle_since_unix_nanos = other.idle_since_unix_nanos,
        _ => {
            let cluster = machine.assigned.cluster.clone();
            machine.assigned = other.assigned;
            if machine.state.is_bound() {
                machine.assigned.cluster = cluster;
            }
        }
    }
    if seed.chance(0.1) {
        machine.price_usd_per_hour = *seed.pick(&world.prices);
    }
}

/// The machine is for another need than everybody thought: its stamp, or what it drains for, changes.
fn restamp(seed: &mut Seed, now: &Scenario, world: &World, machine: &mut Machine) {
    if machine.state == MachineState::Draining && seed.chance(0.7) {
        machine.draining_for = if seed.chance(0.8) { drained_for(seed, world, &now.needs) } else { None };
        return;
    }
    let cluster = machine.assigned.cluster.clone();
    machine.assigned = random_stamp(seed, world, &now.needs);
    if machine.state.is_bound() {
        machine.assigned.cluster = cluster;
    }
}

/// A machine nobody has seen: a copy of another one, or something quite new.
fn appear(seed: &mut Seed, now: &Scenario, world: &World) -> Machine {
    let is_known = |id: &str| now.machines.iter().any(|machine| *machine.id == *id);
    let mut ids = (0..=now.machines.len()).map(|number| format!("n{number}"));
    let id = ids.find(|id| !is_known(id)).expect("one more id than machines");
    if now.machines.is_empty() || seed.chance(0.4) {
        return machine(seed, world, &now.needs, id);
    }
    let mut copy = Machine { id: id.into(), ..seed.pick(&now.machines).clone() };
    if let Some(host) = &mut copy.host {
        host.reference.clone_from(&copy.id);
    }
    copy
}

/// A cluster reports: most of its needs are as they were, some are more or less, some are gone or new.
fn roll_up(seed: &mut Seed, now: &Scenario, world: &World) -> Edit {
    let cluster = seed.pick(&world.clusters).clone();
    let mut rows: Vec<Need> = Vec::new();
    let mut keys: BTreeSet<NeedKey> = BTreeSet::new();
    let quiet = seed.chance(0.1);
    for known in now.needs.iter().filter(|need| need.cluster == cluster && !quiet) {
        let mut row = known.clone();
        match seed.below(10) {
            0 => continue,
            1 => row.aggregate = row.aggregate.scale(2),
            2 => row.aggregate = row.aggregate.saturating_sub(&row.min_unit),
            3 => row.min_unit = seed.pick(&now.needs).min_unit.clone(),
            4 => row.aggregate = seed.pick(&now.needs).aggregate.clone(),
            5 => row.parked = row.profile.same().is_some() && !row.parked,
            _ => {}
        }
        if keys.insert(row.key()) {
            rows.push(row);
        }
    }
    for _ in 0..seed.below(3) {
        let mut row = if now.needs.is_empty() || seed.chance(0.4) {
            need(seed, world)
        } else {
            let known = seed.pick(&now.needs);
            // What another cluster wants, this one may want too.
            Need { first_seen_unix_nanos: now.now_unix_nanos, ..known.clone() }
        };
        row.cluster = cluster.clone();
        if keys.insert(row.key()) {
            rows.push(row);
        }
    }
    Edit::Replace { cluster: cluster.to_string(), rows }
}
