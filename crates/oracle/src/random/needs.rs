//! Random demand.

use std::sync::Arc;

use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_scenario::seed::Seed;

use super::World;
use super::world::{KEYS, some, vector};

/// A need of this world.
pub(crate) fn need(seed: &mut Seed, world: &World) -> Need {
    let profile =
        if seed.chance(0.2) { Arc::new(profile(seed, world)) } else { seed.pick(&world.profiles).clone() };
    let gang = profile.same().is_some();
    let piece = seed.pick(&world.sizes).clone();
    let many = piece.scale(1 + seed.below(world.most_pieces));
    let aggregate = match seed.below(3) {
        _ if !seed.chance(world.odd) => many,
        0 => ResourceVec::ZERO,
        // Not a multiple of anything: the last machine is used in part.
        1 => many.add(&vector([("cpu", 500)])),
        // More of one dimension than of the others.
        _ => many.add(seed.pick(&world.sizes)),
    };
    Need {
        cluster: seed.pick(&world.clusters).clone(),
        profile,
        // Groups are for gangs, but nothing forbids one elsewhere.
        group: if gang || seed.chance(0.1) { seed.pick(&world.groups).clone() } else { Arc::from("") },
        min_unit: min_unit(seed, world, piece),
        aggregate,
        first_seen_unix_nanos: *seed.pick(&world.arrivals),
        parked: gang && seed.chance(0.12),
    }
}

fn min_unit(seed: &mut Seed, world: &World, piece: ResourceVec) -> ResourceVec {
    if !seed.chance(world.odd) {
        return match seed.below(8) {
            _ if seed.chance(world.lopsided) => ResourceVec::ZERO,
            0 => ResourceVec::ZERO,
            1 | 2 => vector([("cpu", 1)]),
            _ => piece,
        };
    }
    match seed.below(5) {
        0 => vector([("cpu", 1_000), ("nvidia.com/gpu", 1)]),
        1 => vector([("example.org/nic", 1)]),
        // Larger than any machine.
        2 => piece.scale(1_000),
        _ => seed.pick(&world.sizes).clone(),
    }
}

/// A profile of this world.
pub(super) fn profile(seed: &mut Seed, world: &World) -> Profile {
    let gang = seed.chance(world.gangs);
    let most = if gang { world.most_requirements / 2 } else { world.most_requirements };
    let mut requirements: Vec<Requirement> =
        (0..seed.below(most + 1)).map(|_| requirement(seed, world)).collect();
    if gang {
        requirements.push(same(seed, world));
        if seed.chance(0.15) {
            requirements.push(same(seed, world));
        }
    }
    let mut spread = Vec::new();
    if seed.chance(world.spreads) {
        spread.push(constraint(seed, world));
        if seed.chance(0.3) {
            spread.push(constraint(seed, world));
        }
    }
    let mut bucket = || PenaltyBucket::from_wire(*seed.pick(&world.buckets)).expect("a bucket of the ladder");
    let (interruption, reclamation) = (bucket(), bucket());
    Profile::new(requirements, spread, *seed.pick(&world.priorities), interruption, reclamation)
}

/// A requirement that some machines meet, more often than not.
fn requirement(seed: &mut Seed, world: &World) -> Requirement {
    let key = *seed.pick(&KEYS);
    let listed = some(seed, world.values(key));
    match seed.below(100) {
        0..52 => Requirement::is_in(key, listed),
        52..70 => Requirement::new(key, Operator::NotIn, listed.into_iter().take(1)),
        70..82 => Requirement::new(key, Operator::Exists, [""; 0]),
        82..89 => Requirement::new(key, Operator::DoesNotExist, [""; 0]),
        89..94 => Requirement::new(key, Operator::Unspecified, listed),
        94 | 95 => Requirement::is_in(key, ["nowhere"]),
        96 | 97 => Requirement::new(key, Operator::In, [""; 0]),
        // The value may be there twice, and the requirement too: neither is merged away.
        _ => Requirement::is_in(key, listed.iter().chain(&listed).copied()),
    }
}

fn same(seed: &mut Seed, world: &World) -> Requirement {
    let key = if seed.chance(0.7) { world.focus } else { *seed.pick(&KEYS) };
    if seed.chance(0.7) {
        Requirement::same(key)
    } else {
        Requirement::new(key, Operator::Same, some(seed, world.values(key)))
    }
}

fn constraint(seed: &mut Seed, world: &World) -> TopologySpread {
    use WhenUnsatisfiable::{DoNotSchedule, ScheduleAnyway, Unspecified};
    let key = if seed.chance(0.7) { world.focus } else { *seed.pick(&KEYS) };
    let when = *seed.pick(&[DoNotSchedule, DoNotSchedule, DoNotSchedule, ScheduleAnyway, Unspecified]);
    TopologySpread::new(key, seed.below(5) as i32 - 1, when)
}
