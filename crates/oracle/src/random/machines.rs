//! Random supply.

use std::sync::Arc;

use bigfleet_model::label::{INSTANCE_TYPE, Labels, ZONE};
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::resource::ResourceName;
use bigfleet_model::stamp::Assignment;
use bigfleet_scenario::input::SCENARIO_PROVIDER;
use bigfleet_scenario::seed::Seed;

use super::World;
use super::world::{POOL, RACK};

/// A machine of this world, perhaps bound for one of these needs.
pub(crate) fn machine(seed: &mut Seed, world: &World, needs: &[Need], id: String) -> Machine {
    let mut machine = Machine::new(id, *seed.pick(&world.states));
    machine.resources = seed.pick(&world.sizes).clone();
    if seed.chance(world.odd) {
        machine.allocatable = seed.pick(&world.sizes).clone();
    }
    machine.capacity_type = *seed.pick(&world.capacities);
    machine.price_usd_per_hour = price(seed, world, &machine);
    machine.interruption_probability = *seed.pick(&world.risks);
    label(seed, world, &mut machine);
    machine.assigned = random_stamp(seed, world, needs);
    let state = machine.state;
    let stamped_for = machine.assigned.cluster.clone();
    let cluster = if !stamped_for.is_empty() && seed.chance(world.settled) {
        &stamped_for
    } else {
        seed.pick(&world.clusters)
    };
    put_in_state(&mut machine, state, cluster);
    machine.idle_since_unix_nanos = idle_since(seed);
    if state == MachineState::Draining && seed.chance(0.7) || seed.chance(0.02) {
        machine.draining_for = drained_for(seed, world, needs);
    }
    machine
}

/// Brings the fields that depend on the state in line with it, as a provider would report them.
pub(crate) fn put_in_state(machine: &mut Machine, state: MachineState, cluster: &Arc<str>) {
    use MachineState::{Creating, Failed, Speculative};
    machine.state = state;
    machine.cluster = if state.is_bound() { (**cluster).into() } else { "".into() };
    if state.is_bound() {
        machine.assigned.cluster = cluster.clone();
    }
    machine.host = (!matches!(state, Speculative | Creating | Failed))
        .then(|| HostRef { provider: SCENARIO_PROVIDER.into(), reference: machine.id.clone() });
    machine.last_error = if state == Failed { "unknown".into() } else { "".into() };
}

/// Type and zone as fields, as labels, as both with different values, or not at all; then the other labels.
pub(crate) fn label(seed: &mut Seed, world: &World, machine: &mut Machine) {
    let mut labels: Vec<(&str, &str)> = Vec::new();
    for (key, field) in [(INSTANCE_TYPE, &mut machine.instance_type), (ZONE, &mut machine.zone)] {
        *field = if seed.chance(world.labelled) { (*seed.pick(world.values(key))).into() } else { "".into() };
        if seed.chance(0.1) {
            labels.push((key, *seed.pick(world.values(key))));
        }
    }
    for key in [RACK, POOL] {
        if seed.chance(world.labelled) {
            labels.push((key, *seed.pick(world.values(key))));
        }
    }
    machine.labels = Labels::new(labels).expect("every key once");
}

/// What a machine carries that was bound for this need, which may be a folded one.
pub(crate) fn stamp(
    cluster: &Arc<str>,
    profile: &bigfleet_model::profile::Profile,
    group: &Arc<str>,
) -> Assignment {
    Assignment {
        cluster: cluster.clone(),
        priority: profile.priority(),
        interruption_penalty_usd: profile.interruption().upper_bound_dollars(),
        reclamation_penalty_usd: profile.reclamation().upper_bound_dollars(),
        fingerprint: profile.fingerprint().into(),
        group: group.clone(),
    }
}

/// What the machine costs: what it holds, in some worlds; one of a few prices otherwise.
fn price(seed: &mut Seed, world: &World, machine: &Machine) -> f64 {
    match world.unit_price {
        Some(price) => machine.provides().get(&ResourceName::CPU) as f64 * price,
        None => *seed.pick(&world.prices),
    }
}

pub(crate) fn random_stamp(seed: &mut Seed, world: &World, needs: &[Need]) -> Assignment {
    let mut assigned = Assignment {
        priority: *seed.pick(&world.priorities),
        interruption_penalty_usd: *seed.pick(&world.penalties),
        reclamation_penalty_usd: *seed.pick(&world.penalties),
        ..Assignment::default()
    };
    if !needs.is_empty() && seed.chance(world.stamped) {
        let key = a_need_key(seed, world, needs);
        let folded = |need: &Need| need.profile.without_same().fingerprint() == &*key.fingerprint;
        let like = needs.iter().find(|need| *need.profile.fingerprint() == *key.fingerprint || folded(need));
        if let Some(need) = like
            && seed.chance(world.settled)
        {
            assigned = stamp(&need.cluster, &need.profile, &need.group);
        }
        assigned =
            Assignment { cluster: key.cluster, fingerprint: key.fingerprint, group: key.group, ..assigned };
        if seed.chance(0.05) {
            assigned.fingerprint = "p=0|ipb=0|rpb=0|reqs=|spr=".into();
        }
    }
    assigned
}

pub(crate) fn drained_for(seed: &mut Seed, world: &World, needs: &[Need]) -> Option<NeedKey> {
    if needs.is_empty() { None } else { Some(a_need_key(seed, world, needs)) }
}

/// The identity of a need, often as folding changes it, sometimes with a part of another.
fn a_need_key(seed: &mut Seed, world: &World, needs: &[Need]) -> NeedKey {
    let need = seed.pick(needs);
    let mut key = need.key();
    if need.profile.same().is_some() && seed.chance(0.4) {
        key.fingerprint = need.profile.without_same().fingerprint().into();
        key.group = Arc::from("");
    }
    match seed.below(20) {
        0 => key.cluster = seed.pick(&world.clusters).clone(),
        1 => key.group = seed.pick(&world.groups).clone(),
        2 => key.fingerprint = seed.pick(needs).profile.fingerprint().into(),
        _ => {}
    }
    key
}

/// A stamp in the past, around the ends of both usual holds, in the future, or none.
pub(super) fn idle_since(seed: &mut Seed) -> Option<i64> {
    const SECOND: i64 = 1_000_000_000;
    let ago = [
        0,
        1,
        30 * SECOND,
        60 * SECOND - 1,
        60 * SECOND,
        600 * SECOND - 1,
        600 * SECOND,
        900 * SECOND,
        -SECOND,
    ];
    match seed.below(20) {
        0 => Some(*seed.pick(&[i64::MIN, i64::MAX, 0])),
        1..5 => None,
        _ => Some(World::NOW - seed.pick(&ago)),
    }
}
