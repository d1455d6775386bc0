//! Soaking: random worlds, one after the other, for as long as wanted.

use crate::fuzz::{self, Found};
use crate::world::Setup;

/// What came of a soak.
#[derive(Clone, Debug, Default)]
pub struct Soak {
    /// Simulated days.
    pub days: f64,
    /// Worlds played.
    pub worlds: u64,
    /// Cycles run.
    pub cycles: u64,
    /// Actions begun.
    pub actions: u64,
    /// Dollars spent.
    pub usd: f64,
    /// What was found.
    pub found: Vec<Found>,
}

/// Plays worlds from a seed on until so many days are simulated. `progress` hears the days and the failures so far.
pub fn soak(days: f64, first_seed: u64, progress: &mut dyn FnMut(f64, usize)) -> Soak {
    let mut soak = Soak::default();
    let mut seed = first_seed;
    while soak.days < days {
        let scenario = fuzz::long_world_of(seed);
        let outcome = fuzz::play(&scenario, Setup::default());
        let summary = &outcome.summary;
        soak.days += summary.simulated_secs / 86_400.0;
        soak.worlds += 1;
        soak.cycles += summary.cycles;
        soak.usd += summary.usd;
        soak.actions +=
            summary.bootstraps + summary.provisions + summary.preempts + summary.reclaims + summary.deletes;
        if let Some(violation) = outcome.violations.first() {
            soak.found.push(Found { seed, violation: violation.clone(), scenario, planted: None });
        }
        seed += 1;
        progress(soak.days, soak.found.len());
    }
    soak
}
