//! Whole cycles of the shapes other engines were measured on: few, large needs.

use std::hint::black_box;

use bigfleet_calculator::engine_options;
use bigfleet_engine::ActionKind;
use bigfleet_shapes::{Shape, generate};

use super::{Report, SEED, best, cold, count, first, on_cpu, timed};

/// The first cycle after a load, and cycles from scratch with indexes in place.
pub(super) fn measure(shape: Shape, repeat: usize, json: bool) -> Report {
    let scenario = generate(shape, SEED);
    let options = engine_options(&scenario.options);
    let (first, mut fleet) = first::measure(&scenario, repeat);
    let limit = best(repeat.max(20), || timed(|| black_box(fleet.read_every_row())).0);
    let mut report = Report { shape, limit, figures: Vec::new(), json };
    report.add("limit: every row read once", limit);
    first.report(&mut report);
    let (whole, steps, decision) = cold(&mut fleet, &options, &scenario, repeat, on_cpu);
    let acquired = count(&decision, ActionKind::Bootstrap) + count(&decision, ActionKind::Provision);
    assert!(acquired > 100 && decision.work.rebuilt && decision.work.short_needs > 20, "{:?}", decision.work);
    report.add(format!("whole cycle ({acquired} acquired)"), whole);
    for (step, nanos) in &steps {
        report.add(format!("whole cycle: {}", step.name()), *nanos);
    }
    report
}
