//! From slots and asks to a scenario.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::stamp::Assignment;
use bigfleet_scenario::seed::Seed;
use bigfleet_scenario::{CycleOptions, Scenario};

use crate::ask::Ask;
use crate::catalogue::{TYPES, allocatable, nominal};
use crate::deal::{NOBODY, deal};
use crate::demand::Demand;
use crate::floor::{RACK_SLOTS, lay_out};
use crate::ground::Ground;
use crate::offer::{Offer, offers};
use crate::place::{REGIONS, zone_name};
use crate::sets::Sets;
use crate::settle::settle;
use crate::shape::Shape;
use crate::{NOW_UNIX_NANOS, Variant, scarce};

/// Makes a fleet in five steps, each with a generator of its own.
pub(crate) fn make(shape: Shape, seed: u64, variant: Variant) -> Scenario {
    let mut seed = Seed::new(seed);
    let size = match variant {
        Variant::Cold => shape.size(),
        Variant::Scarce => scarce::size(shape.size()),
    };
    // 1. What can be had, where, at which price; and which requirement sets ask for it.
    let offers = offers(&mut seed.fork());
    let sets = Sets::draw(&offers, &mut seed.fork());
    // 2. Racks and slots.
    let floor = lay_out(&size, &mut seed.fork());
    let mut ground = Ground { offers, sets, floor };
    // 3. Clusters and their rows.
    let mut asks = Demand::new(size, variant, &ground, seed.fork()).draw();
    // 4. Bound machines find their rows, and rows their amounts.
    let holders = deal(&mut ground, &asks, seed.fork());
    let ids: Vec<u64> = (0..holders.len() as u64).map(id_number).collect();
    settle(&mut asks, &holders, &ids, &ground, size.growing, seed.fork());
    if variant == Variant::Scarce {
        scarce::grow(&mut asks, &ground);
    }
    // 5. Everything in the model's words.
    let clusters: Vec<Arc<str>> = (0..size.clusters).map(cluster_name).collect();
    let machines = machines(&ground, &holders, &ids, &asks, &clusters, &mut seed.fork());
    asks.sort_by_key(|ask| ask.cluster);
    let needs = asks.iter().flat_map(|ask| ask.needs(&clusters[ask.cluster as usize])).collect();
    Scenario { now_unix_nanos: NOW_UNIX_NANOS, options: CycleOptions::default(), machines, needs }
}

fn cluster_name(number: u32) -> Arc<str> {
    format!("{}-cluster-{number:04}", REGIONS[number as usize % REGIONS.len()].0).into()
}

/// A number per slot that says nothing about its place: an odd factor permutes the 40-bit numbers.
fn id_number(slot: u64) -> u64 {
    ((slot + 1) * 0x9E_3779_B97F) & 0xFF_FFFF_FFFF
}

fn machines(
    ground: &Ground,
    holders: &[u32],
    ids: &[u64],
    asks: &[Ask],
    clusters: &[Arc<str>],
    seed: &mut Seed,
) -> Vec<Machine> {
    let sizes: Vec<(ResourceVec, ResourceVec)> =
        (0..TYPES).map(|kind| (nominal(kind).to_vec(), allocatable(kind).to_vec())).collect();
    let stamps: Vec<Assignment> = asks.iter().map(|ask| ask.stamp(&clusters[ask.cluster as usize])).collect();
    let racks: Vec<String> = ground
        .floor
        .racks
        .iter()
        .enumerate()
        .map(|(at, rack)| format!("{}-{at:05}", zone_name(rack.zone)))
        .collect();
    let machine = |number: usize| {
        let (state, offer) = (ground.floor.slots[number].state, ground.offer(number));
        let mut machine = Machine::new(format!("i-{:010x}", ids[number]), state);
        machine.host = (state != MachineState::Speculative).then(|| host(offer, ids[number]));
        machine.instance_type = offer.type_name.as_str().into();
        machine.zone = offer.zone_name.as_str().into();
        machine.capacity_type = offer.capacity;
        machine.labels = offer.labels_in(&racks[number / RACK_SLOTS]);
        (machine.resources, machine.allocatable) = sizes[offer.kind].clone();
        machine.price_usd_per_hour = offer.price_usd_per_hour;
        machine.interruption_probability = offer.interruption_probability;
        if holders[number] != NOBODY {
            machine.assigned = stamps[holders[number] as usize].clone();
            machine.cluster = (&*machine.assigned.cluster).into();
        }
        if state == MachineState::Idle {
            machine.idle_since_unix_nanos = idle_since(offer.capacity, seed);
        }
        machine
    };
    (0..holders.len()).map(machine).collect()
}

/// The hardware behind a machine.
pub(crate) fn host_name(owned: bool, region: &str, number: &str) -> HostRef {
    let provider = if owned { "floor" } else { "cloud" };
    HostRef { provider: format!("{provider}-{region}").into(), reference: format!("host-{number}").into() }
}

fn host(offer: &Offer, id: u64) -> HostRef {
    let owned = offer.capacity == CapacityType::BareMetal;
    host_name(owned, REGIONS[offer.region()].0, &format!("{id:010x}"))
}

/// Rented machines are within their hold but for 2 in 100; 1 in 100 has no stamp. The others idle for up to
/// a week.
fn idle_since(capacity: CapacityType, seed: &mut Seed) -> Option<i64> {
    let hold_secs = match capacity {
        CapacityType::OnDemand => 600,
        CapacityType::Spot => 60,
        _ => 7 * 86_400,
    };
    let hold_nanos = f64::from(hold_secs) * 1e9;
    let age_nanos = match seed.below(100) {
        0 => return None,
        1 | 2 => hold_nanos + seed.unit() * 3.6e12,
        _ => seed.unit() * 0.9 * hold_nanos,
    };
    Some(NOW_UNIX_NANOS - age_nanos as i64)
}
