//! A second opinion on every decision.
//!
//! The engine is fast, incremental and parallel. This crate decides the same cycles in the plainest way there
//! is: loops over lists, nothing kept, nothing shared with the engine but the vocabulary, and of that only the
//! data: matching, orders, sums and formulas are written down a second time. Where the two disagree, one of
//! them has a bug, and this one is short enough to be read against the rules.
//!
//! It also invents the cases to disagree about ([`random_scenario`]), lets things happen to them
//! ([`random_edits`]) and makes those that fail small ([`shrink`], [`disagreement`]). It is for tests and
//! never shipped.
//!
//! Read [`decide`], then one file per phase: `normalise`, `walk` (with `bargain`, `pick`, `domain` and
//! `spread`), `preempt`, `reclaim`, `reasons`.

mod amounts;
mod answer;
mod bargain;
mod cycle;
mod domain;
mod edit;
mod matching;
mod met;
mod normalise;
mod order;
mod orders;
mod pick;
mod preempt;
mod random;
mod reasons;
mod reclaim;
mod shrink;
mod spread;
mod steady;
mod walk;

pub use edit::{Edit, apply, random_edits};
pub use random::{Size, random_scenario};
pub use shrink::{as_vector, disagreement, shrink};
pub use steady::{CYCLES, Course, Latencies, Steady, inversions};

use std::collections::BTreeMap;

use bigfleet_scenario::{Answer, Scenario};

/// Decides one cycle.
pub fn decide(scenario: &Scenario) -> Answer {
    decided(scenario, met::Met::default()).0
}

/// Decides one cycle and tells which rules decided, and how often.
pub fn decide_and_tell(scenario: &Scenario) -> (Answer, BTreeMap<String, u64>) {
    decided(scenario, met::Met::counting())
}

fn decided(scenario: &Scenario, met: met::Met) -> (Answer, BTreeMap<String, u64>) {
    let rows = normalise::normalise(scenario, &met);
    let mut cycle = cycle::Cycle::new(scenario, rows, met);
    walk::walk(&mut cycle);
    preempt::preempt(&mut cycle);
    let reclaimed = reclaim::reclaim(&cycle);
    let released = reclaim::release(&cycle);
    (answer::answer(&cycle, &reclaimed, &released), cycle.met.into_counts())
}
