//! A world: the few values everything in one scenario is made of.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::{INSTANCE_TYPE, ZONE};
use bigfleet_model::machine::MachineState;
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::{MAX_AMOUNT, ResourceName, ResourceVec};
use bigfleet_scenario::seed::Seed;

use super::needs::profile;

/// The label that names a rack.
pub(crate) const RACK: &str = "example.org/rack";
/// The label that names a pool.
pub(crate) const POOL: &str = "example.org/pool";
/// The keys requirements and spreads speak of.
pub(crate) const KEYS: [&str; 4] = [INSTANCE_TYPE, POOL, RACK, ZONE];

/// The few values of one scenario, and its odds.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) clusters: Vec<Arc<str>>,
    pub(crate) groups: Vec<Arc<str>>,
    pub(crate) priorities: Vec<i32>,
    pub(crate) buckets: Vec<i32>,
    pub(crate) arrivals: Vec<i64>,
    pub(crate) prices: Vec<f64>,
    pub(crate) risks: Vec<f64>,
    pub(crate) penalties: Vec<f64>,
    /// Sizes of machines and of pieces of demand.
    pub(crate) sizes: Vec<ResourceVec>,
    /// The chance that a size lacks what others have, and that a need takes whatever machine there is.
    pub(crate) lopsided: f64,
    /// Whether sizes are of many kinds, so that what was taken first may turn out superfluous.
    pub(crate) assorted: bool,
    /// What a thousandth of a cpu costs, if machines cost what they hold instead of any price.
    pub(crate) unit_price: Option<f64>,
    /// The chance that a machine is bound to the cluster it is stamped for, with that need's terms.
    pub(crate) settled: f64,
    /// How often each state is drawn.
    pub(crate) states: Vec<MachineState>,
    /// Zones, racks, pools and types.
    zones: Vec<&'static str>,
    racks: Vec<&'static str>,
    pools: Vec<&'static str>,
    types: Vec<&'static str>,
    /// The chance that a need is a gang, that it spreads strictly, that a machine has a label, that a machine
    /// carries a need's stamp, and the most pieces a need asks for.
    pub(crate) gangs: f64,
    pub(crate) spreads: f64,
    pub(crate) labelled: f64,
    pub(crate) stamped: f64,
    pub(crate) most_pieces: u64,
    pub(crate) most_requirements: u64,
    /// The most profiles that several needs share.
    most_profiles: u64,
    /// Whether needs and machines may be oddly sized, or all fit each other.
    pub(crate) odd: f64,
    /// The key most gangs and spreads are about.
    pub(crate) focus: &'static str,
    /// Profiles that several needs share.
    pub(crate) profiles: Vec<Arc<Profile>>,
    /// How often each capacity type is drawn.
    pub(crate) capacities: Vec<CapacityType>,
}

impl World {
    /// The instant of every scenario: far enough from zero for every hold to have passed.
    pub(crate) const NOW: i64 = 1_000_000_000_000;

    /// Draws a world; `more` widens it for larger fleets.
    pub(crate) fn draw(seed: &mut Seed, more: usize) -> Self {
        let clusters: Vec<Arc<str>> = some(seed, &["c1", "c2", "c3"]).into_iter().map(Arc::from).collect();
        let extra = (0..more).map(|index| Arc::from(format!("d{index}")));
        let mut world = Self {
            clusters: clusters.into_iter().chain(extra).collect(),
            groups: groups(seed, more),
            priorities: priorities(seed),
            buckets: buckets(seed),
            arrivals: if seed.chance(0.03) {
                vec![i64::MIN, -1, 0, 1, i64::MAX]
            } else {
                some(seed, &[1, 2, 3, 10])
            },
            prices: prices(seed),
            risks: some(seed, &[0.0, 0.001, 0.05, 0.1, 1.0]),
            penalties: penalties(seed),
            sizes: Vec::new(),
            lopsided: *seed.pick(&[0.0, 0.0, 0.4]),
            assorted: seed.chance(0.3),
            unit_price: seed.chance(0.2).then(|| *seed.pick(&[0.0, 0.0001])),
            settled: *seed.pick(&[0.3, 0.7, 0.95]),
            states: states(seed),
            zones: two_or_more(seed, &["za", "zb", "zc"]),
            racks: two_or_more(seed, &["r0", "r1", "r2", ""]),
            pools: two_or_more(seed, &["blue", "green", ""]),
            types: two_or_more(seed, &["big", "gpu", "std"]),
            gangs: *seed.pick(&[0.0, 0.2, 0.5, 0.9]),
            spreads: *seed.pick(&[0.0, 0.1, 0.3, 0.7]),
            labelled: *seed.pick(&[0.5, 0.8, 0.95, 1.0]),
            stamped: *seed.pick(&[0.1, 0.5, 0.9]),
            most_pieces: *seed.pick(&[2, 3, 5, 9]),
            most_requirements: *seed.pick(&[0, 1, 1, 2, 3]),
            most_profiles: 4,
            focus: *seed.pick(&KEYS),
            odd: *seed.pick(&[0.0, 0.1, 0.3]),
            profiles: Vec::new(),
            capacities: capacities(seed),
        };
        world.bend(seed);
        world.sizes = sizes(seed, world.lopsided, world.assorted);
        for _ in 0..=seed.below(world.most_profiles + more as u64) {
            let drawn = profile(seed, &world);
            // What remains of a gang when it folds may be wanted as such too, under the same identity.
            if drawn.same().is_some() && seed.chance(0.3) {
                world.profiles.push(Arc::new(drawn.without_same()));
            }
            world.profiles.push(Arc::new(drawn));
        }
        world
    }

    /// Most worlds are about one thing: rules that meet only among machines nearly all alike, wanted
    /// by few, would hardly ever meet otherwise.
    fn bend(&mut self, seed: &mut Seed) {
        use MachineState::{Configured, Configuring, Creating, Draining, Idle, Speculative};
        let theme = seed.below(14);
        if theme < 11 {
            self.most_requirements = seed.below(2);
        }
        match theme {
            // Spreads over what is free, or over victims.
            0 | 1 => {
                (self.gangs, self.spreads, self.labelled) = (0.0, 0.95, 0.95);
                self.clusters.truncate(2);
                self.lopsided = *seed.pick(&[0.0, 0.4]);
                self.states = vec![Configured, Configured, Draining, Idle, Speculative];
            }
            // Victims, and victims of victims.
            2 => {
                (self.gangs, self.spreads, self.labelled) = (0.1, *seed.pick(&[0.0, 0.7]), 0.95);
                self.clusters = ["c1", "c2"].map(Arc::from).to_vec();
                self.most_pieces = 9;
                self.lopsided = *seed.pick(&[0.0, 0.4]);
                self.priorities = vec![0, 1, 100];
                self.penalties = vec![0.3, 0.7, 3.0, 7.0];
                self.states = vec![Configured, Configured, Configured, Draining];
            }
            // Gangs that want the same domains.
            3 | 4 => {
                (self.gangs, self.labelled) = (0.9, 1.0);
                self.clusters.truncate(2);
                self.states = vec![Configured, Configured, Creating, Draining, Idle, Idle, Speculative];
            }
            // Gangs that must make room, here or elsewhere.
            5 | 6 => {
                (self.gangs, self.spreads, self.labelled) = (0.6, 0.0, 1.0);
                self.clusters.truncate(2);
                (self.most_pieces, self.most_requirements, self.most_profiles) = (5, 0, 2);
                (self.lopsided, self.odd) = (0.0, 0.1);
                self.priorities = vec![0, 100, 100_001];
                self.stamped = 0.3;
                self.states = vec![Configured, Configured, Configured, Configured, Draining, Idle];
            }
            // Gangs that fold, under several stamps.
            7 | 8 => {
                (self.gangs, self.labelled, self.stamped, self.settled) = (0.95, 1.0, 0.9, 0.95);
                self.clusters.truncate(1);
                (self.most_pieces, self.most_requirements, self.most_profiles) = (2, 0, 2);
                self.arrivals.truncate(1);
                self.groups = ["g1", "g2", "g3"].map(Arc::from).to_vec();
                self.spreads = *seed.pick(&[0.0, 0.4]);
                let common = [Configured, Configuring, Creating, Draining];
                let other = *seed.pick(&[Configured, Creating, Draining, Idle, Speculative]);
                self.states =
                    if seed.chance(0.5) { vec![*seed.pick(&common), other] } else { common.to_vec() };
            }
            // Needs that live on what they bought, with more or less than enough.
            9 => {
                (self.stamped, self.settled, self.assorted) = (0.9, 0.95, true);
                self.clusters.truncate(1);
                (self.gangs, self.spreads) = (*seed.pick(&[0.0, 0.3]), *seed.pick(&[0.0, 0.0, 0.5]));
                self.lopsided = 0.4;
                self.states = vec![Configured, Configured, Configured, Configuring, Idle];
            }
            // Bargains.
            10 => {
                (self.gangs, self.spreads) = (*seed.pick(&[0.0, 0.4]), *seed.pick(&[0.0, 0.0, 0.5]));
                (self.assorted, self.most_pieces) = (true, 9);
                self.unit_price = seed.chance(0.6).then(|| *seed.pick(&[0.0, 0.0001, 0.0003]));
                self.lopsided = *seed.pick(&[0.0, 0.4]);
                self.states = vec![Idle, Idle, Speculative, Speculative, Speculative, Configured];
            }
            _ => {}
        }
    }

    /// The values a key can have in this world.
    pub(crate) fn values(&self, key: &str) -> &[&'static str] {
        match key {
            ZONE => &self.zones,
            RACK => &self.racks,
            POOL => &self.pools,
            _ => &self.types,
        }
    }
}

/// A non-empty part of a list, each item once, in its order.
pub(crate) fn some<T: Copy>(seed: &mut Seed, items: &[T]) -> Vec<T> {
    let always = seed.below(items.len() as u64) as usize;
    let chance = *seed.pick(&[0.2, 0.5, 0.8]);
    let kept: Vec<bool> = (0..items.len()).map(|index| seed.chance(chance) || index == always).collect();
    items.iter().zip(kept).filter(|(_, kept)| *kept).map(|(item, _)| *item).collect()
}

/// A part of a list of three or more, at least two.
fn two_or_more(seed: &mut Seed, items: &[&'static str]) -> Vec<&'static str> {
    let drawn = some(seed, items);
    if drawn.len() > 1 { drawn } else { items[1..].to_vec() }
}

fn groups(seed: &mut Seed, more: usize) -> Vec<Arc<str>> {
    let names = if seed.chance(0.3) { vec![""] } else { vec!["", "g1", "g2"] };
    names
        .into_iter()
        .map(Arc::from)
        .chain((0..2 * more).map(|index| Arc::from(format!("h{index}"))))
        .collect()
}

/// Few priorities, with the gaps at which grace changes between some of them.
fn priorities(seed: &mut Seed) -> Vec<i32> {
    let ordinary = [-100, -1, 0, 1, 100, 1_000];
    let wide = [0, 100_000, 100_001, 500_000, 500_001, 900_000, 900_001, 1_000_000];
    let extreme = [i32::MIN, -1, 0, i32::MAX];
    let mut drawn = match seed.below(10) {
        0..5 => some(seed, &ordinary),
        5..9 => some(seed, &wide),
        _ => some(seed, &extreme),
    };
    drawn.push(*seed.pick(&ordinary));
    drawn
}

/// One to three buckets from all 28.
fn buckets(seed: &mut Seed) -> Vec<i32> {
    (0..=seed.below(3)).map(|_| if seed.chance(0.3) { 27 } else { seed.below(28) as i32 }).collect()
}

/// Some have reciprocals that rounding tells apart only by the order of operations.
fn penalties(seed: &mut Seed) -> Vec<f64> {
    match seed.below(4) {
        0 => vec![0.3, 0.7, 3.0, 7.0],
        1 => vec![0.0],
        _ => some(seed, &[0.0, 0.005, 0.01, 0.5, 1.0, 2.0, 8192.0, f64::INFINITY]),
    }
}

/// Mostly what may be released.
fn capacities(seed: &mut Seed) -> Vec<CapacityType> {
    let mut types = CapacityType::ALL.to_vec();
    types.extend(std::iter::repeat_n(CapacityType::OnDemand, seed.below(6) as usize));
    types.extend(std::iter::repeat_n(CapacityType::Spot, seed.below(6) as usize));
    types
}

fn prices(seed: &mut Seed) -> Vec<f64> {
    match seed.below(20) {
        // Equal in print, different as numbers.
        0 => vec![0.0, 0.3, 0.1 + 0.2],
        1 => vec![0.0],
        2..7 => vec![1.0],
        _ => some(seed, &[0.0, 0.1, 0.2, 0.4, 1.0]),
    }
}

/// One to four sizes. Most have cpu and memory in one ratio; some have a device, lack a dimension, or are
/// so large that sums reach the end of the numbers.
fn sizes(seed: &mut Seed, lopsided: f64, assorted: bool) -> Vec<ResourceVec> {
    let extreme = seed.chance(0.02);
    let devices = *seed.pick(&[0.0, 0.0, 0.3, 0.6]);
    let count = if assorted { 4 + seed.below(4) } else { 1 + seed.below(4) };
    let scales: &[u64] = if assorted { &[1, 2, 3, 4, 5, 8] } else { &[1, 1, 2, 4] };
    let mut sizes = Vec::new();
    for _ in 0..count {
        let scale = if extreme { MAX_AMOUNT / 2_000 } else { *seed.pick(scales) };
        let mut amounts = vec![("cpu", 1_000 * scale)];
        if seed.chance(0.8) {
            let memory = scale * if seed.chance(0.8) { 4 } else { *seed.pick(&[1, 2, 8]) };
            amounts.push(("memory", memory));
        }
        if seed.chance(devices) {
            amounts.push(("nvidia.com/gpu", 1 + seed.below(2)));
        }
        if seed.chance(devices) {
            amounts.push(("example.org/nic", 1 + seed.below(2)));
        }
        if seed.chance(devices / 2.0) {
            amounts.push(("example.org/fpga", 1 + seed.below(2)));
        }
        if seed.chance(lopsided) {
            amounts.swap_remove(seed.below(amounts.len() as u64) as usize);
        }
        sizes.push(vector(amounts));
    }
    sizes
}

/// A vector from amounts that are known to be good.
pub(crate) fn vector(amounts: impl IntoIterator<Item = (&'static str, u64)>) -> ResourceVec {
    let named =
        amounts.into_iter().map(|(name, amount)| (ResourceName::new(name).expect("a good name"), amount));
    ResourceVec::new(named).expect("distinct names and amounts within bounds")
}

/// States as often as this world has them.
fn states(seed: &mut Seed) -> Vec<MachineState> {
    use MachineState::{Configured, Configuring, Creating, Deleting, Draining, Failed, Idle, Speculative};
    let mut states = vec![Configured, Configured];
    // In some worlds little is free, and priority decides.
    let free = *seed.pick(&[0, 1, 2, 4]);
    for state in [Idle, Idle, Speculative] {
        states.extend(std::iter::repeat_n(state, seed.below(free + 1) as usize));
    }
    for state in [Configured, Configured, Configured, Configuring, Creating, Draining] {
        states.extend(std::iter::repeat_n(state, seed.below(4) as usize));
    }
    if seed.chance(0.5) {
        states.extend([Draining, Deleting, Failed]);
    }
    states
}
