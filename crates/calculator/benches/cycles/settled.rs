//! Churn on a fleet that has come to rest: a thousandth of machines and needs changes, again and again, and between two rounds
//! everything ordered is carried out until nothing is ordered any more.

use std::collections::BTreeMap;
use std::hint::black_box;

use bigfleet_engine::{Parallelism, Step};
use bigfleet_scenario::Scenario;
use bigfleet_shapes::{Change, Shape, apply_changes, churn, generate};

use super::rest::part;
use super::{Bed, Report, SEED, best, on_cpu, timed};

/// How often everything is carried out before the fleet counts as settled.
const ROUNDS_TO_REST: usize = 120;
/// How often it is carried out between two measured rounds, at most.
const ROUNDS_BETWEEN: usize = 20;
/// The share of machines and of needs that changes.
const CHURN: f64 = 0.001;

/// Brings a fleet to rest and measures rounds of churn from there.
pub(super) fn measure(shape: Shape, repeat: usize, json: bool) -> Report {
    let scenario = generate(shape, SEED);
    let mut bed = Bed::new(&scenario, Parallelism::default());
    let (rounds, unrest) = bed.settle(ROUNDS_TO_REST);
    let short = bed.fleet.short_needs().len();
    let limit = best(repeat.max(20), || timed(|| black_box(bed.fleet.read_every_row())).0);
    let mut report = Report { shape, limit, figures: Vec::new(), json };
    report.add("limit: every row read once", limit);

    let mut lived = Scenario { machines: Vec::new(), ..scenario };
    let (mut applying, mut cycles, mut walls) = (Vec::new(), Vec::new(), Vec::new());
    let mut steps: BTreeMap<Step, Vec<u64>> = BTreeMap::new();
    let (mut walked, mut renewed, mut shorts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut actions, mut restless) = (Vec::new(), 0);
    for round in 0..repeat as u64 {
        lived.machines = bed.machines.values().cloned().collect();
        let changes = churn(&lived, SEED + round, CHURN);
        let machines = changes.iter().filter(|change| matches!(change, Change::Machine(_))).count();
        assert!(machines as f64 > 0.9 * CHURN * lived.machines.len() as f64, "{machines} machines changed");
        assert!(changes.len() > machines, "no need changed");
        applying.push(timed(|| bed.apply(&changes)).0);
        bed.note(&changes);
        apply_changes(&mut lived, &changes);

        let (start, by_the_clock) = (on_cpu(), super::by_the_clock());
        let mut lap = 0;
        let decision = bed.cycle_probed(&mut |step| {
            let so_far = on_cpu() - start;
            steps.entry(step).or_default().push(so_far - lap);
            lap = so_far;
        });
        cycles.push(on_cpu() - start);
        walls.push(super::by_the_clock() - by_the_clock);
        let looked_at = decision.work.clusters_walked + decision.work.needs_renewed;
        assert!(!decision.actions.is_empty() && looked_at > 0, "{:?}", decision.work);
        walked.push(decision.work.clusters_walked as u64);
        renewed.push(decision.work.needs_renewed as u64);
        shorts.push(decision.work.short_needs as u64);
        actions.push(decision.actions.len() as u64);
        bed.carry_out(&decision);
        restless = restless.max(bed.settle(ROUNDS_BETWEEN).1);
    }
    let mut add = |name: &str, nanos: &mut Vec<u64>| {
        report.add(format!("settled churn: {name}, best"), part(nanos, 0.0));
        report.add(format!("settled churn: {name}, median"), part(nanos, 0.5));
        report.add(format!("settled churn: {name}, worst"), part(nanos, 1.0));
    };
    add("apply", &mut applying);
    add("cycle", &mut cycles);
    add("cycle by the clock", &mut walls);
    for (step, nanos) in &mut steps {
        report.add(format!("settled churn: {}, median", step.name()), part(nanos, 0.5));
    }
    if !json {
        eprintln!(
            "{shape:>5}  after {rounds} rounds {unrest} actions and {short} short needs were left; a round walks {} clusters and renews {} needs, \
             leaves {} needs short after credit and orders {} actions (medians); at most {restless} were left before the next",
            part(&mut walked, 0.5),
            part(&mut renewed, 0.5),
            part(&mut shorts, 0.5),
            part(&mut actions, 0.5),
        );
    }
    report
}
