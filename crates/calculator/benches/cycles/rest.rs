//! An ordinary minute of a fleet that has come to rest: a few clusters report, and what was ordered is done.

use std::collections::BTreeMap;
use std::hint::black_box;

use bigfleet_calculator::{engine_options, load};
use bigfleet_engine::{Parallelism, Step};
use bigfleet_model::machine::Machine;
use bigfleet_scenario::Scenario;
use bigfleet_shapes::{Shape, generate, reports};

use super::{Report, SEED, apply, best, by_the_clock, carry_out, on_cpu, timed, timed_with};

/// How often everything is carried out before the fleet counts as settled.
const ROUNDS_TO_REST: usize = 120;
/// How many clusters report between two cycles.
const REPORTS: usize = 20;
/// How many cycles are measured for every repetition asked for.
const CYCLES: usize = 30;

/// Brings a fleet to rest and measures cycles from there.
pub(super) fn measure(shape: Shape, repeat: usize, json: bool) -> Report {
    let scenario = generate(shape, SEED);
    let options = engine_options(&scenario.options);
    let instant = scenario.now_unix_nanos;
    let mut fleet = load(&scenario, Parallelism::default()).expect("a generated scenario is valid");
    let mut machines: BTreeMap<Box<str>, Machine> =
        scenario.machines.iter().map(|m| (m.id.clone(), m.clone())).collect();
    let mut rounds = 0;
    let mut decision = fleet.cycle(&options, instant);
    while !decision.actions.is_empty() && rounds < ROUNDS_TO_REST {
        carry_out(&mut fleet, &mut machines, &decision, instant);
        decision = fleet.cycle(&options, instant);
        rounds += 1;
    }
    let (unrest, short) = (decision.actions.len(), fleet.short_needs().len());

    let limit = best(repeat.max(20), || timed(|| black_box(fleet.read_every_row())).0);
    let mut report = Report { shape, limit, figures: Vec::new(), json };
    report.add("limit: every row read once", limit);
    let mut demand = Scenario { machines: Vec::new(), ..scenario };
    let (mut cycles, mut walls) = (Vec::new(), Vec::new());
    let (mut applying, mut unchanged) = (Vec::new(), Vec::new());
    let mut steps: BTreeMap<Step, Vec<u64>> = BTreeMap::new();
    let (mut walked, mut shorts, mut actions) = (0, 0, 0);
    for round in 0..(repeat * CYCLES) as u64 {
        let changes = reports(&demand, SEED + round, REPORTS);
        bigfleet_shapes::apply_changes(&mut demand, &changes);
        applying.push(timed(|| apply(&mut fleet, &changes, instant)).0);
        carry_out(&mut fleet, &mut machines, &decision, instant);
        let start = on_cpu();
        let mut lap = 0;
        let (wall, (nanos, decided)) = timed_with(by_the_clock, || {
            timed(|| {
                fleet.cycle_probed(&options, instant, &mut |step| {
                    let so_far = on_cpu() - start;
                    steps.entry(step).or_default().push(so_far - lap);
                    lap = so_far;
                })
            })
        });
        decision = decided;
        cycles.push(nanos);
        walls.push(wall);
        assert!(decision.work.clusters_walked >= REPORTS, "{:?}", decision.work);
        walked += decision.work.clusters_walked;
        shorts += decision.work.short_needs;
        actions += decision.actions.len();
        let same: Vec<&Machine> = machines.values().step_by(machines.len() / 100).collect();
        let again = timed(|| same.iter().for_each(|m| assert!(fleet.observe(m).is_ok()))).0;
        unchanged.push(again / same.len() as u64);
    }
    report.add("at rest: apply 20 roll-ups, median", part(&mut applying, 0.5));
    report.add("at rest: an unchanged machine, median", part(&mut unchanged, 0.5));
    report.add("at rest: cycle, median", part(&mut cycles, 0.5));
    report.add("at rest: cycle, p99", part(&mut cycles, 0.99));
    report.add("at rest: cycle, worst", part(&mut cycles, 1.0));
    report.add("at rest: cycle by the clock, p99", part(&mut walls, 0.99));
    for (step, nanos) in &mut steps {
        report.add(format!("at rest: {}, median", step.name()), part(nanos, 0.5));
        report.add(format!("at rest: {}, p99", step.name()), part(nanos, 0.99));
    }
    if !json {
        let n = cycles.len();
        eprintln!(
            "{shape:>5}  after {rounds} rounds {unrest} actions and {short} short needs were left; a cycle walks \
             {} clusters, {} needs are short after credit, {} actions",
            walked / n,
            shorts / n,
            actions / n
        );
    }
    report
}

/// The value so far up a sorted list.
pub(super) fn part(nanos: &mut [u64], share: f64) -> u64 {
    nanos.sort_unstable();
    nanos[((nanos.len() - 1) as f64 * share).round() as usize]
}
