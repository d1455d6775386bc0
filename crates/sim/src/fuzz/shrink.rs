//! Making a failing world small: whatever can be left out without losing the failure is.

use bigfleet_provider_sim::Span;

use super::{Found, fails};
use crate::scenario::{Curve, Pods, Scenario};

/// How many worlds are tried at most.
const TRIES: usize = 400;

/// The smallest world found that still breaks the same invariant.
pub fn shrink(found: &Found) -> Found {
    let mut best = found.clone();
    let mut tries = 0;
    loop {
        let before = best.scenario.clone();
        for smaller in candidates(&before) {
            tries += 1;
            if tries > TRIES {
                return best;
            }
            if let Some(violation) = fails(&smaller, found.planted)
                && violation.number == found.violation.number
            {
                best = Found { violation, scenario: smaller, ..best };
                break;
            }
        }
        if best.scenario == before {
            best.scenario.note = format!(
                "The smallest world found for seed {}. {}. Reproduce: bigfleet sim replay {}",
                best.seed, best.violation, best.seed
            );
            return best;
        }
    }
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
    change(&|s| s.lasts = Span::from_nanos(s.lasts.nanos() / 2).max(Span::from_secs(60)));
    change(&|s| s.dwell.jitter = 0.0);
    all
}
