//! How long a cycle takes on the benchmark fleets, beside the least it could take.
//!
//! `cargo bench -p bigfleet-calculator --bench cycles -- [--repeat N] [--json] [--at-rest | --settled | --explain] [SHAPE…]`
//!
//! Every figure is the best of some runs, in processor time where one thread works, with the ratio to one linear
//! read of all rows measured in the same run. Every benchmark asserts that the work was done: machines acquired, needs served, victims picked.

#[path = "../shared/bed.rs"]
#[allow(dead_code, reason = "each benchmark uses its part")]
mod bed;
#[path = "../shared/clock.rs"]
#[allow(dead_code, reason = "each benchmark uses its part")]
mod clock;
mod compared;
mod explain;
mod first;
mod rest;
mod settled;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use bed::{Bed, apply, carry_out};
use bigfleet_calculator::{engine_options, load};
use bigfleet_engine::{ActionKind, Decision, Fleet, Options, Parallelism, Step};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_scenario::Scenario;
use bigfleet_shapes::{Shape, churn, generate, scarce, storm};
use clock::{Clock, best, on_cpu, timed, timed_with};

// The allocator the binary uses: fleets are made of many small lists.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: u64 = 1;

/// Time as it passes, for work on several threads.
fn by_the_clock() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What is measured, in nanoseconds.
struct Report {
    shape: Shape,
    limit: u64,
    figures: Vec<(String, u64)>,
    json: bool,
}

impl Report {
    fn add(&mut self, name: impl Into<String>, nanos: u64) {
        let name = name.into();
        if !self.json {
            let ratio = nanos as f64 / self.limit as f64;
            eprintln!("{:>5}  {name:<34} {:>14}  {ratio:>10.2} x limit", self.shape, readable(nanos));
        }
        self.figures.push((name, nanos));
    }
}

fn readable(nanos: u64) -> String {
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        _ => format!("{:.1} ms", nanos as f64 / 1e6),
    }
}

/// For what takes less than it takes to ask for processor time; the best of some runs is undisturbed.
fn timed_briefly<T>(work: impl FnOnce() -> T) -> (u64, T) {
    timed_with(by_the_clock, work)
}

fn count(decision: &Decision, kind: ActionKind) -> usize {
    decision.actions.iter().filter(|action| action.kind == kind).count()
}

/// From scratch, step by step: the best time of each step and of the whole.
fn cold(
    fleet: &mut Fleet,
    options: &Options,
    scenario: &Scenario,
    repeat: usize,
    clock: Clock,
) -> (u64, BTreeMap<Step, u64>, Arc<Decision>) {
    let (mut whole, mut steps, mut last) = (u64::MAX, BTreeMap::new(), None);
    for _ in 0..repeat {
        fleet.forget_cache();
        let start = clock();
        let mut lap = 0;
        let decision = fleet.cycle_probed(options, scenario.now_unix_nanos, &mut |step| {
            let so_far = clock() - start;
            let known = steps.entry(step).or_insert(u64::MAX);
            *known = (*known).min(so_far - lap);
            lap = so_far;
        });
        whole = whole.min(clock() - start);
        last = Some(decision);
    }
    (whole, steps, last.expect("at least one run"))
}

fn measure(shape: Shape, repeat: usize, json: bool) -> Report {
    let scenario = generate(shape, SEED);
    let options = engine_options(&scenario.options);
    let instant = scenario.now_unix_nanos;
    let alone = Parallelism::default();

    let mut listed = Fleet::default();
    let list = best(repeat.min(3), || {
        listed = Fleet::default();
        timed(|| scenario.machines.iter().for_each(|m| assert!(listed.observe(m).is_ok()))).0
    });
    assert_eq!(listed.machine_count(), scenario.machines.len());
    let again = best(repeat.min(5), || {
        timed(|| scenario.machines.iter().for_each(|m| assert!(listed.observe(m).is_ok()))).0
    });
    drop(listed);

    let (first, mut fleet) = first::measure(&scenario, repeat);
    let limit = best(repeat.max(20), || timed(|| black_box(fleet.read_every_row())).0);
    let mut report = Report { shape, limit, figures: Vec::new(), json };
    report.add("limit: every row read once", limit);
    report.add("apply a full List", list);
    report.add("apply an unchanged List", again);
    first.report(&mut report);

    let (whole, steps, decision) = cold(&mut fleet, &options, &scenario, repeat, on_cpu);
    let acquired = count(&decision, ActionKind::Bootstrap) + count(&decision, ActionKind::Provision);
    assert!(
        acquired > 100 && decision.work.rebuilt && decision.work.short_needs > 100,
        "{:?}",
        decision.work
    );
    report.add("cold", whole);
    for (step, nanos) in &steps {
        report.add(format!("cold: {}", step.name()), *nanos);
    }
    let mut together = load(&scenario, Parallelism { threads: 2, ..alone }).expect("valid");
    together.cycle(&options, instant);
    report.add("cold, two threads", cold(&mut together, &options, &scenario, repeat, by_the_clock).0);
    drop(together);

    let footprint = fleet.footprint();
    let per_machine = (footprint.total() - footprint.needs) / fleet.machine_count();
    let quiet = best(repeat.max(20), || timed_briefly(|| black_box(fleet.cycle(&options, instant))).0);
    report.add("quiet", quiet);
    report.add("fork", best(repeat, || timed(|| black_box(fleet.fork())).0));

    let short = decision.actions.iter().find_map(|action| action.need.clone()).expect("somebody acquires");
    let key = short.need.key();
    report.add(
        "explain: funnel of a need",
        best(repeat, || timed(|| black_box(fleet.funnel(&key).expect("known"))).0),
    );
    let id = &*scenario.machines[0].id;
    report.add(
        "explain: why not",
        best(repeat, || timed_briefly(|| black_box(fleet.why_not(&key, id).expect("known"))).0),
    );
    report.add(
        "explain: a machine",
        best(repeat, || timed_briefly(|| black_box(fleet.explain_machine(id, &options).expect("known"))).0),
    );

    report.add("all short needs", best(repeat, || timed_briefly(|| black_box(fleet.short_needs())).0));
    report.add(
        "one outcome",
        best(repeat, || timed_briefly(|| black_box(fleet.outcome_of(&key).expect("known"))).0),
    );
    report.add(
        "what is free for a need",
        best(repeat, || timed_briefly(|| black_box(fleet.available(&key).expect("known"))).0),
    );
    let unmet: Vec<_> = fleet.short_needs().iter().map(|short| short.demand.need.key()).collect();
    report.add(
        format!("reasons of {} needs", unmet.len()),
        best(repeat, || timed_briefly(|| black_box(fleet.reasons_of(&unmet))).0),
    );

    let mut machines: BTreeMap<Box<str>, Machine> =
        scenario.machines.iter().map(|m| (m.id.clone(), m.clone())).collect();
    for _ in 0..3 {
        let decision = fleet.cycle(&options, instant);
        carry_out(&mut fleet, &mut machines, &decision, instant);
    }
    fleet.cycle(&options, instant);
    let mut lived = Scenario { machines: machines.into_values().collect(), ..scenario.clone() };
    let mut churn_steps = BTreeMap::new();
    let (mut applying, mut churning, mut walked) = (u64::MAX, u64::MAX, usize::MAX);
    for round in 0..repeat as u64 {
        let changes = churn(&lived, SEED + round, 0.001);
        assert!(changes.len() > lived.machines.len() / 2_000, "{} changes", changes.len());
        let (apply_nanos, ()) = timed(|| apply(&mut fleet, &changes, instant));
        let start = on_cpu();
        let mut lap = 0;
        let (cycle_nanos, decision) = timed(|| {
            fleet.cycle_probed(&options, instant, &mut |step| {
                let so_far = on_cpu() - start;
                let known = churn_steps.entry(step).or_insert(u64::MAX);
                *known = (*known).min(so_far - lap);
                lap = so_far;
            })
        });
        assert!(decision.work.clusters_walked + decision.work.needs_renewed > 0);
        bigfleet_shapes::apply_changes(&mut lived, &changes);
        (applying, churning) = (applying.min(apply_nanos), churning.min(cycle_nanos));
        walked = walked.min(decision.work.clusters_walked);
    }
    report.add("churn: apply 0.1 %", applying);
    report.add(format!("churn ({walked} clusters walked)"), churning);

    for (step, nanos) in &churn_steps {
        report.add(format!("churn: {}", step.name()), *nanos);
    }

    let (mut applying_storm, mut storming) = (u64::MAX, u64::MAX);
    for round in 0..repeat.min(7) as u64 {
        let changes = storm(&lived, SEED + round);
        let (apply_nanos, ()) = timed(|| apply(&mut fleet, &changes, instant));
        applying_storm = applying_storm.min(apply_nanos);
        let (nanos, decision) = timed(|| fleet.cycle(&options, instant));
        let looked_at = decision.work.clusters_walked + decision.work.needs_renewed;
        assert!(looked_at >= shape.size().clusters as usize, "{:?}", decision.work);
        storming = storming.min(nanos);
    }
    report.add("storm: apply every roll-up", applying_storm);
    report.add("storm", storming);
    drop((fleet, lived));

    let rows: Vec<Need> = scenario
        .needs
        .iter()
        .take(1_000)
        .cloned()
        .enumerate()
        .map(|(at, mut need)| {
            (need.cluster, need.group) = ("one".into(), format!("row-{at:04}").into());
            need
        })
        .filter(|need| !need.parked)
        .collect();
    let mut small = Fleet::default();
    let first = best(repeat, || {
        small.replace("one", Vec::new(), instant).expect("valid");
        let given = rows.clone();
        timed(|| assert_eq!(small.replace("one", given, instant).expect("valid").added, rows.len())).0
    });
    report.add(format!("roll-up of {} new rows", rows.len()), first);
    let unchanged = best(repeat, || {
        let given = rows.clone();
        timed(|| assert!(small.replace("one", given, instant).expect("valid").is_unchanged())).0
    });
    report.add("the same roll-up again", unchanged);

    let scenario = scarce(shape, SEED);
    let mut fleet = load(&scenario, alone).expect("a generated scenario is valid");
    fleet.cycle(&options, scenario.now_unix_nanos);
    let (whole, steps, decision) = cold(&mut fleet, &options, &scenario, repeat.min(7), on_cpu);
    assert!(
        count(&decision, ActionKind::Preempt) > 100,
        "{} preemptions",
        count(&decision, ActionKind::Preempt)
    );
    report.add("scarce", whole);
    for (step, nanos) in &steps {
        report.add(format!("scarce: {}", step.name()), *nanos);
    }
    if !json {
        eprintln!(
            "{shape:>5}  {per_machine} bytes a machine with all indexes; {acquired} acquired cold; {} preempted scarce",
            count(&decision, ActionKind::Preempt)
        );
    }
    report
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut shapes, mut repeat, mut json) = (Vec::new(), 11, false);
    let (mut at_rest, mut settled, mut explain) = (false, false, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--at-rest" => at_rest = true,
            "--settled" => settled = true,
            "--explain" => explain = true,
            "--repeat" => {
                repeat = arguments.next().and_then(|n| n.parse().ok()).expect("--repeat takes a number");
            }
            shape => shapes.push(shape.parse().unwrap_or_else(|unknown| panic!("{unknown}"))),
        }
    }
    if shapes.is_empty() {
        shapes = match () {
            () if at_rest => vec![Shape::Fleet225k],
            () if settled || explain => vec![Shape::Fleet500k],
            () => Shape::ALL.to_vec(),
        };
    }
    for shape in shapes {
        let measure = match shape {
            _ if explain => explain::measure,
            _ if at_rest => rest::measure,
            _ if settled => settled::measure,
            Shape::Fleet225k => rest::measure,
            Shape::Fleet100kBy1k | Shape::Fleet500kBy5k => compared::measure,
            _ => measure,
        };
        let report = measure(shape, repeat, json);
        if json {
            let figures: Vec<String> =
                report.figures.iter().map(|(name, nanos)| format!("{name:?}:{nanos}")).collect();
            eprintln!("{{\"shape\":\"{shape}\",\"nanos\":{{{}}}}}", figures.join(","));
        }
    }
}
