//! Making a failing world small: whatever can be left out without losing the failure is.

use bigfleet_provider_sim::Span;

use super::{Found, first_violation};
use crate::scenario::{Curve, Pods, Point, Scenario};

/// How many steps of shards may be spent on making one world smaller: a few hundred small worlds, whatever a world costs.
const STEPS: u64 = 3_000_000;

/// The smallest world found that still breaks the same invariant, within a bounded amount of work.
pub fn shrink(found: &Found) -> Found {
    let mut best = found.clone();
    let mut left = STEPS;
    while let Some(smaller) = smaller(&best, &mut left) {
        best = smaller;
    }
    let end =
        if left == 0 { "More tries might make it smaller still" } else { "Nothing more can be left out" };
    best.scenario.note = format!(
        "The smallest world found for seed {}. {}. {end}. The whole world: bigfleet sim replay {}",
        best.seed, best.violation, best.seed
    );
    best
}

/// A smaller world that still fails; none if there is none, or nothing is left to try it with.
fn smaller(found: &Found, left: &mut u64) -> Option<Found> {
    for scenario in candidates(&found.scenario) {
        if *left == 0 {
            return None;
        }
        let (violation, steps) = first_violation(&scenario, found.planted);
        *left = left.saturating_sub(steps.max(1));
        if let Some(violation) = violation.filter(|violation| violation.number == found.violation.number) {
            return Some(Found { violation, scenario, ..found.clone() });
        }
    }
    None
}

/// Worlds that are a little smaller, the boldest first.
fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut change = |edit: &dyn Fn(&mut Scenario)| {
        let mut smaller = scenario.clone();
        edit(&mut smaller);
        if smaller != *scenario && Scenario::from_json(&smaller.to_json()).is_ok() {
            all.push(smaller);
        }
    };
    if scenario.faults.len() > 1 {
        let half = scenario.faults.len() / 2;
        change(&|s| drop(s.faults.drain(..half)));
        change(&|s| s.faults.truncate(half));
    }
    for index in 0..scenario.clusters.len() {
        change(&|s| drop(s.clusters.remove(index)));
    }
    for index in 0..scenario.fleet.len() {
        change(&|s| drop(s.fleet.remove(index)));
    }
    for index in 0..scenario.faults.len() {
        change(&|s| drop(s.faults.remove(index)));
    }
    for cluster in 0..scenario.clusters.len() {
        for work in 0..scenario.clusters[cluster].work.len() {
            change(&|s| drop(s.clusters[cluster].work.remove(work)));
            change(&|s| {
                let work = &mut s.clusters[cluster].work[work];
                work.churn_per_hour = 0.0;
                if let Pods::Curve(Curve::Steps(points)) = &work.pods {
                    work.pods = Pods::Always(points.last().map_or(0, |point| point.pods));
                }
            });
            change(&|s| match &mut s.clusters[cluster].work[work].pods {
                Pods::Always(pods) => *pods = (*pods).div_ceil(2).max(1),
                Pods::Curve(Curve::Steps(points)) => {
                    for point in points {
                        point.pods = point.pods.div_ceil(2);
                    }
                }
                Pods::Curve(Curve::Day { .. }) => {}
            });
            change(&|s| s.clusters[cluster].work[work].requires.clear());
            change(&|s| s.clusters[cluster].work[work].spread = None);
        }
    }
    for index in 0..scenario.fleet.len() {
        change(&|s| s.fleet[index].count = (s.fleet[index].count / 2).max(1));
    }
    change(&|s| {
        s.lasts = Span::from_nanos(s.lasts.nanos() / 2).max(Span::from_secs(60));
        // The load stands still in the second half.
        for work in s.clusters.iter_mut().flat_map(|cluster| &mut cluster.work) {
            if let Pods::Curve(Curve::Steps(points)) = &mut work.pods {
                let last = points.pop();
                points.retain(|point| point.at < s.lasts);
                points.extend(last.map(|point| Point { at: point.at.min(s.lasts), ..point }));
            }
        }
    });
    change(&|s| s.dwell.jitter = 0.0);
    all
}
