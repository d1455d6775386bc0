//! Random options.

use bigfleet_model::cost::VictimWeights;
use bigfleet_model::release::ReleasePolicy;
use bigfleet_scenario::CycleOptions;
use bigfleet_scenario::seed::Seed;

use super::World;
use super::world::some;

/// Options of this world: the usual ones as often as not.
pub(crate) fn options(seed: &mut Seed, world: &World) -> CycleOptions {
    let mut options = CycleOptions::default();
    if seed.chance(0.3) {
        let holds = [0, 1, 30_000_000_000, 60_000_000_000, 600_000_000_000];
        options.release = ReleasePolicy::from_nanos(*seed.pick(&holds), *seed.pick(&holds));
    }
    if seed.chance(0.3) {
        let mut weight = || *seed.pick(&[0.0, 0.1, 1.0, 10.0, 1_000.0]);
        options.weights = VictimWeights {
            priority: weight(),
            drain_speed: weight(),
            interruption: weight(),
            reclamation: weight(),
        };
        options.estimated_drain_nanos = *seed.pick(&[0, 1, 30_000_000_000, 300_000_000_000]);
    }
    options.ready_clusters = match seed.below(10) {
        0 => Some([].into()),
        1..4 => {
            let indexes: Vec<usize> = (0..world.clusters.len()).collect();
            Some(some(seed, &indexes).into_iter().map(|index| world.clusters[index].clone()).collect())
        }
        _ => None,
    };
    options
}
