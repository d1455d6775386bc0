//! Steady demand, carried out: every action is done, takes its time, and the next cycle sees what came of it.
//!
//! A cycle may be right as it stands and wrong as a habit: what one orders the next gives back. So here is the
//! smallest world around a cycle, in which machines take a few cycles to be created, configured, drained and
//! deleted and nothing else changes. Demand that stays as it is must end in silence, and in silence nobody may
//! be short beside what a lesser need holds.

mod carry_out;
mod inversion;
mod parking;

use std::collections::BTreeSet;

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::Need;
use bigfleet_scenario::answer::Action;
use bigfleet_scenario::seed::Seed;
use bigfleet_scenario::{Answer, Scenario};

use crate::random::{Size, random_scenario};
pub use inversion::inversions;

/// How many cycles a world runs.
pub const CYCLES: usize = 90;
/// The time between two cycles.
const CYCLE_NANOS: i64 = 60_000_000_000;

/// How many cycles each move takes; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latencies {
    /// From Creating on.
    pub create: usize,
    /// From Configuring on.
    pub configure: usize,
    /// From Draining on.
    pub drain: usize,
    /// From Deleting on.
    pub delete: usize,
}

/// A world: where it starts, what changes once, and how long things take.
#[derive(Clone, Debug)]
pub struct Steady {
    /// The start.
    pub start: Scenario,
    /// The demand from the cycle of [`Self::change_at`] on.
    pub later: Scenario,
    /// When demand changes; 0 for never.
    pub change_at: usize,
    /// How long things take.
    pub latencies: Latencies,
    /// Whether a machine that was created goes on to be configured for the need it was bought for, as long as
    /// that need claims it, or is Idle first and open to all.
    pub carries_on: bool,
    /// Whether gangs that get nowhere are parked.
    pub parks: bool,
}

/// How a world went.
#[derive(Clone, Debug)]
pub struct Course {
    /// What each cycle ordered.
    pub actions: Vec<Vec<Action>>,
    /// The states machines were in, in any cycle.
    pub states: BTreeSet<MachineState>,
    /// Whether a gang was ever parked.
    pub parked: bool,
    /// The world after the last cycle.
    pub end: Scenario,
    /// The last answer.
    pub answer: Answer,
}

impl Steady {
    /// The world of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let mut dice = Seed::new(seed ^ 0x57EA_D1E5);
        let size = if dice.chance(0.8) { Size::Tiny } else { Size::Small };
        let mut later = random_scenario(seed, size);
        // Everybody has reported, and what is parked is for this world to find out.
        later.options.ready_clusters = None;
        for need in &mut later.needs {
            need.parked = false;
        }
        let mut start = later.clone();
        let change_at = if dice.chance(0.5) { 10 + dice.below(10) as usize } else { 0 };
        if change_at > 0 {
            start.needs.retain(|_| dice.chance(0.5));
        }
        let mut latency = || 1 + dice.below(4) as usize;
        let latencies =
            Latencies { create: latency(), configure: latency(), drain: latency(), delete: latency() };
        Self { start, later, change_at, latencies, carries_on: dice.chance(0.5), parks: dice.chance(0.5) }
    }

    /// The cycle from which on nothing was owed any more: the longest way one machine may have to go after the
    /// last change (drained, held for as long as the policy says, deleted, created, configured), as far as
    /// machines of this world went it, and the cycles after which a gang is parked.
    fn owed_until(&self, course: &Course) -> usize {
        let Latencies { create, configure, drain, delete } = self.latencies;
        let release = &self.later.options.release;
        let holds = [release.on_demand_hold_nanos, release.spot_hold_nanos];
        let longest = holds.into_iter().flatten().map(std::num::NonZeroU64::get).max().unwrap_or(0);
        let hold = longest.div_ceil(CYCLE_NANOS as u64) as usize;
        let went = |state, cycles| if course.states.contains(&state) { cycles } else { 0 };
        self.change_at
            + went(MachineState::Creating, create)
            + went(MachineState::Configuring, configure)
            + went(MachineState::Draining, drain)
            + went(MachineState::Deleting, hold + delete)
            + if course.parked { parking::PATIENCE } else { 0 }
    }

    /// The same world with another fleet and demand: what this one began without, that one does too.
    #[must_use]
    pub fn with(&self, later: Scenario) -> Self {
        let begins_with = |need: &Need| self.start.needs.iter().any(|known| known.key() == need.key());
        let mut start = later.clone();
        if self.change_at > 0 {
            start.needs.retain(begins_with);
        }
        Self { start, later, ..self.clone() }
    }

    /// How many cycles after the last thing that was owed it came to rest; none if it did not.
    pub fn late(&self, course: &Course) -> Option<usize> {
        Some(course.rests_from()?.saturating_sub(self.owed_until(course)))
    }

    /// Runs the world.
    pub fn run(&self, mut decide: impl FnMut(&Scenario) -> Answer) -> Course {
        let mut world = carry_out::World::new(self.start.clone(), self.latencies, self.carries_on);
        let mut parking = parking::Parking::default();
        let mut actions = Vec::with_capacity(CYCLES);
        let mut last = Answer::default();
        let (mut states, mut parked) = (BTreeSet::new(), false);
        for cycle in 0..CYCLES {
            if cycle == self.change_at && cycle > 0 {
                world.scenario.needs.clone_from(&self.later.needs);
            }
            if self.parks {
                parking.stamp(&mut world.scenario.needs, cycle);
            }
            last = decide(&world.scenario);
            if self.parks {
                parking.learn(&world.scenario.needs, &last);
            }
            actions.push(last.actions.clone());
            parked |= world.scenario.needs.iter().any(|need| need.parked);
            world.carry_out(&last);
            states.extend(world.scenario.machines.iter().map(|machine| machine.state));
            world.pass(CYCLE_NANOS);
        }
        Course { actions, states, parked, end: world.scenario, answer: last }
    }
}

impl Course {
    /// The cycle from which on nothing was ordered; none if the last one still ordered something.
    pub fn rests_from(&self) -> Option<usize> {
        let last = self.actions.iter().rposition(|actions| !actions.is_empty());
        match last {
            None => Some(0),
            Some(cycle) if cycle + 1 < self.actions.len() => Some(cycle + 1),
            Some(_) => None,
        }
    }
}
