//! A real first cycle: machines and needs have just been loaded, nothing is sorted, no index is built.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_calculator::engine_options;
use bigfleet_engine::{Decision, Fleet, Parallelism, Step};
use bigfleet_scenario::Scenario;

use super::{Report, load, on_cpu};

/// The best of some first cycles.
pub(super) struct First {
    whole: u64,
    steps: BTreeMap<Step, u64>,
    decision: Arc<Decision>,
}

impl First {
    /// Adds the figures to a report.
    pub(super) fn report(&self, report: &mut Report) {
        report.add(format!("first ({} actions)", self.decision.actions.len()), self.whole);
        for (step, nanos) in &self.steps {
            report.add(format!("first: {}", step.name()), *nanos);
        }
    }
}

/// Loads a scenario some times and measures the cycle after it; the last fleet comes back.
pub(super) fn measure(scenario: &Scenario, repeat: usize) -> (First, Fleet) {
    let options = engine_options(&scenario.options);
    let mut best: Option<(First, Fleet)> = None;
    for _ in 0..repeat.clamp(1, 3) {
        let whole = best.as_ref().map_or(u64::MAX, |(first, _)| first.whole);
        let mut steps = best.take().map_or_else(BTreeMap::new, |(first, _)| first.steps);
        let mut fleet = load(scenario, Parallelism::default()).expect("a generated scenario is valid");
        let (start, mut lap) = (on_cpu(), 0);
        let decision = fleet.cycle_probed(&options, scenario.now_unix_nanos, &mut |step| {
            let so_far = on_cpu() - start;
            let known = steps.entry(step).or_insert(u64::MAX);
            *known = (*known).min(so_far - lap);
            lap = so_far;
        });
        let whole = whole.min(on_cpu() - start);
        assert!(decision.actions.len() > 100 && decision.work.rebuilt, "{:?}", decision.work);
        best = Some((First { whole, steps, decision }, fleet));
    }
    best.expect("at least one run")
}
