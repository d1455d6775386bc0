//! Hours ahead: a world that goes on by itself, with interruptions drawn from a seed.
//!
//! A plain model, and said to be one: demand and prices stay as they are, what was ordered has arrived a minute later, and
//! a bound machine is lost in a minute with a sixtieth of the probability its provider states for an hour. A lost machine is
//! quota again after ten minutes, or idle if it is owned. Rails take no part.

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::{Machine, MachineState};

use super::world::World;

const MINUTE_NANOS: i64 = 60_000_000_000;
/// How long a lost machine is gone, in minutes.
const GONE_MINUTES: u64 = 10;

/// What came of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Run {
    pub(super) usd: f64,
    pub(super) interruptions: f64,
    pub(super) preemptions: f64,
    /// Needs that were short, times the hours they were.
    pub(super) unmet_hours: f64,
}

/// A number from 0 to 1 that depends on these and on nothing else, so that both sides of a comparison lose the same machines
/// in the same minutes.
fn chance(seed: u64, minute: u64, machine: &str) -> f64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in machine.bytes().chain(minute.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // Mixed once more: the last bytes of an id would else decide alone.
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

/// Lets a world go on for so many minutes.
pub(super) fn run(mut world: World, minutes: u64, seed: u64) -> Run {
    let mut run = Run::default();
    let mut gone: Vec<(u64, Machine)> = Vec::new();
    for minute in 0..minutes {
        let back = gone.extract_if(.., |(until, _)| *until <= minute).collect::<Vec<_>>();
        for (_, machine) in back {
            world.put(machine);
        }
        let decision = world.cycle();
        run.unmet_hours +=
            world.fleet.short_needs().iter().filter(|s| s.unresolved.is_some()).count() as f64 / 60.0;
        let preempts = decision.actions.iter().filter(|action| action.kind == ActionKind::Preempt);
        run.preemptions += preempts.count() as f64;
        world.now_unix_nanos = world.now_unix_nanos.saturating_add(MINUTE_NANOS);
        world.arrive(&decision);
        run.usd += world.bill().usd_per_hour / 60.0;
        let is_lost = |machine: &&std::sync::Arc<Machine>| {
            machine.state == MachineState::Configured
                && machine.interruption_probability > 0.0
                && chance(seed, minute, &machine.id) < machine.interruption_probability / 60.0
        };
        let lost: Vec<_> = world.machines.values().filter(is_lost).cloned().collect();
        for machine in lost {
            run.interruptions += 1.0;
            world.remove(&machine.id);
            gone.push((minute + GONE_MINUTES, World::afresh_machine(&machine, world.now_unix_nanos)));
        }
    }
    run
}

/// The mean and the spread (one standard deviation) of some figures.
pub(super) fn spread(figures: &[f64]) -> (f64, f64) {
    let count = figures.len().max(1) as f64;
    let mean = figures.iter().sum::<f64>() / count;
    let variance = figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_even_and_the_same_again() {
        let draws: Vec<f64> = (0..20_000).map(|minute| chance(7, minute, "spot-1")).collect();
        let (mean, _) = spread(&draws);
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_eq!(chance(7, 3, "spot-1"), chance(7, 3, "spot-1"));
        assert_ne!(chance(7, 3, "spot-1"), chance(8, 3, "spot-1"));
        let rare = draws.iter().filter(|draw| **draw < 0.01).count();
        assert!((100..300).contains(&rare), "{rare} of 200");
    }

    #[test]
    fn a_spread_is_a_standard_deviation() {
        assert_eq!(spread(&[2.0, 4.0]), (3.0, 1.0));
        assert_eq!(spread(&[]), (0.0, 0.0));
    }
}
