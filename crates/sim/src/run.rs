//! A whole run: a scenario played to its end, and what came of it.

use std::fmt;

use serde::Serialize;

use crate::invariant::Violation;
use crate::scenario::{Expect, Measure, Scenario};
use crate::world::{Point, Setup, World};

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The numbers people ask for.
    pub summary: Summary,
    /// Expectations that were not met.
    pub missed: Vec<Missed>,
    /// Invariants that did not hold.
    pub violations: Vec<Violation>,
    /// Points of the picture.
    pub points: Vec<Point>,
    /// Events worth a mark in the picture: nanoseconds from the start, and what.
    pub marks: Vec<(i64, String)>,
    /// A number that stands for the whole trace.
    pub digest: u64,
    /// The trace, if it was kept.
    pub trace: Option<String>,
}

impl Outcome {
    /// Whether everything was as it should be.
    pub fn is_fine(&self) -> bool {
        self.missed.is_empty() && self.violations.is_empty()
    }
}

/// An expectation and what was found instead.
#[derive(Clone, Debug)]
pub struct Missed {
    /// What was expected.
    pub expect: Expect,
    /// What it was.
    pub found: u64,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, found {}", self.expect, self.found)
    }
}

/// The numbers people ask for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// Simulated seconds.
    pub simulated_secs: f64,
    /// Dollars spent on machines.
    pub usd: f64,
    /// Hours that pods waited, all together.
    pub unmet_pod_hours: f64,
    /// Idle machines bound.
    pub bootstraps: u64,
    /// Bought machines bound on arrival.
    pub carried_on: u64,
    /// Machines bought.
    pub provisions: u64,
    /// Machines taken from lower priority.
    pub preempts: u64,
    /// Machines taken back.
    pub reclaims: u64,
    /// Machines given back.
    pub deletes: u64,
    /// Pods that lost their machine.
    pub pods_lost: u64,
    /// Machines that failed.
    pub machines_failed: u64,
    /// Needs stated as short at the end.
    pub shortfalls: u64,
    /// Pods wanted at the end.
    pub pods_wanted: u64,
    /// Pods that wait at the end.
    pub pods_pending: u64,
    /// Machines bound at the end.
    pub configured: u64,
    /// When the last action was begun, in seconds.
    pub last_action_secs: f64,
    /// Cycles run.
    pub cycles: u64,
    /// Calls to providers.
    pub calls: u64,
    /// Steps of shards.
    pub steps: u64,
}

/// Plays a scenario to its end.
pub fn run(scenario: &Scenario, setup: Setup) -> Outcome {
    let mut world = World::new(scenario, setup);
    world.run();
    outcome(scenario, &world)
}

/// What came of a world that has run.
pub(crate) fn outcome(scenario: &Scenario, world: &World) -> Outcome {
    let tally = world.tally();
    let mut missed = Vec::new();
    for (index, expect) in scenario.expect.iter().enumerate() {
        let found = if expect.measure.is_count() {
            counted(scenario, world, expect)
        } else {
            tally.looks.get(&index).copied().unwrap_or(0)
        };
        if !expect.holds(found) {
            missed.push(Missed { expect: expect.clone(), found });
        }
    }
    Outcome {
        summary: summary(scenario, world),
        missed,
        violations: world.violations().to_vec(),
        points: tally.points.clone(),
        marks: tally.marks.clone(),
        digest: world.trace().digest(),
        trace: world.trace().text().map(String::from),
    }
}

fn counted(scenario: &Scenario, world: &World, expect: &Expect) -> u64 {
    let cluster = expect.cluster.as_ref().map(|name| scenario.clusters.iter().position(|c| c.name == *name));
    let from = expect.from.map_or(i64::MIN, bigfleet_provider_sim::Span::nanos);
    let until = expect.until.map_or(i64::MAX, bigfleet_provider_sim::Span::nanos);
    let counts = world.tally().counts.iter().filter(|(at, measure, of, _)| {
        *measure == expect.measure
            && (from..until).contains(at)
            && cluster.is_none_or(|cluster| *of == cluster)
    });
    counts.map(|(_, _, _, number)| number).sum()
}

fn summary(scenario: &Scenario, world: &World) -> Summary {
    let tally = world.tally();
    let total = |wanted: Measure| -> u64 {
        tally
            .counts
            .iter()
            .filter(|(_, measure, _, _)| *measure == wanted)
            .map(|(_, _, _, number)| number)
            .sum()
    };
    let last = tally.counts.iter().rev().find(|(_, measure, _, _)| *measure == Measure::Actions);
    Summary {
        name: scenario.name.clone(),
        seed: scenario.seed,
        simulated_secs: world.elapsed() as f64 / 1e9,
        usd: world.usd(),
        unmet_pod_hours: tally.waited as f64 / 3.6e12,
        bootstraps: total(Measure::Bootstraps),
        carried_on: total(Measure::CarriedOn),
        provisions: total(Measure::Provisions),
        preempts: total(Measure::Preempts),
        reclaims: total(Measure::Reclaims),
        deletes: total(Measure::Deletes),
        pods_lost: total(Measure::PodsLost),
        machines_failed: total(Measure::MachinesFailed),
        shortfalls: world.measure(Measure::Shortfalls, None),
        pods_wanted: world.measure(Measure::PodsWanted, None),
        pods_pending: world.measure(Measure::PodsPending, None),
        configured: world.measure(Measure::Configured, None),
        last_action_secs: last.map_or(0.0, |(at, _, _, _)| *at as f64 / 1e9),
        cycles: tally.cycles,
        calls: tally.calls,
        steps: tally.steps,
    }
}
