//! Random fleets in which all rules meet.
//!
//! Large random numbers find nothing: every machine differs from every other and no rule ever has to break a
//! tie. So a fleet here is drawn from a *world*, a handful of prices, sizes, labels, priorities and clusters
//! that repeat everywhere. Most machines are almost alike, most needs want almost the same, and what decides
//! is the last rule of each order. Each world draws its own odds, so that some are all gangs, some are starved,
//! some hardly have a label, and absurd values (the lowest priority, the largest amount, an empty label) come
//! up in a few of them instead of a little in all.
//!
//! One seed makes one scenario, for ever.

mod machines;
mod needs;
mod options;
mod staged;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_scenario::Scenario;
use bigfleet_scenario::seed::Seed;

pub(crate) use machines::{drained_for, machine, put_in_state, random_stamp, stamp};
pub(crate) use needs::need;
pub(crate) use options::options;
pub(crate) use world::World;

/// How large a random scenario is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// At most 18 machines and 8 needs, usually half of that: readable, and by far the best at finding bugs per second.
    Tiny,
    /// About 45 machines and 20 needs, like the mixed vectors.
    Small,
    /// 200 to 400 machines and 60 to 120 needs.
    Medium,
}

impl Size {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tiny, Self::Small, Self::Medium];

    /// How many machines and how many needs, and how many extra clusters keep them apart.
    fn draw(self, seed: &mut Seed) -> (usize, usize, usize) {
        let mut between = |low: u64, high: u64| (low + seed.below(high - low + 1)) as usize;
        match self {
            Self::Tiny => (between(2, 12), between(1, 6), 0),
            Self::Small => (between(35, 55), between(12, 24), 1),
            Self::Medium => (between(200, 400), between(60, 120), 3),
        }
    }
}

/// The scenario of a seed.
pub fn random_scenario(seed: u64, size: Size) -> Scenario {
    let mut seed = Seed::new(seed);
    let (machine_count, need_count, more_clusters) = size.draw(&mut seed);
    let world = World::draw(&mut seed, more_clusters);
    if seed.chance(0.5) && size != Size::Medium {
        return staged(&mut seed, &world, size);
    }
    let needs = distinct_needs(&mut seed, &world, need_count);
    let mut ids: BTreeSet<u64> = BTreeSet::new();
    let mut machines: Vec<Machine> = Vec::with_capacity(machine_count);
    while machines.len() < machine_count {
        // Numbers of different lengths: as bytes, m10 comes before m9.
        let number = seed.below(4 * machine_count as u64);
        if ids.insert(number) {
            machines.push(machine(&mut seed, &world, &needs, format!("m{number}")));
        }
    }
    Scenario { now_unix_nanos: World::NOW, options: options(&mut seed, &world), machines, needs }
}

/// A fleet made of one stage, or of several beside each other that share what is free.
fn staged(seed: &mut Seed, world: &World, size: Size) -> Scenario {
    let prefixes: &[&str] = if size == Size::Tiny { &[""] } else { &["a-", "b-", "c-", "d-", "e-"] };
    let (mut machines, mut needs) = (Vec::new(), Vec::new());
    for prefix in prefixes {
        let stage = staged::stage(seed, prefix);
        machines.extend(stage.machines);
        needs.extend(stage.needs);
    }
    let mut options = options(seed, world);
    if let Some(ready) = &mut options.ready_clusters {
        let clusters: BTreeSet<&Arc<str>> = needs.iter().map(|need: &Need| &need.cluster).collect();
        ready.extend(clusters.into_iter().filter(|_| seed.chance(0.5)).cloned());
    }
    Scenario { now_unix_nanos: World::NOW, options, machines, needs }
}

/// Up to `count` needs with different identities; a small world may not have as many.
fn distinct_needs(seed: &mut Seed, world: &World, count: usize) -> Vec<Need> {
    let mut keys = BTreeSet::new();
    let mut needs = Vec::with_capacity(count);
    for _ in 0..count * 4 {
        let candidate = need(seed, world);
        if needs.len() < count && keys.insert(candidate.key()) {
            needs.push(candidate);
        }
    }
    needs
}
