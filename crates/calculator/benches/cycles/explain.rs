//! How long questions take on a large fleet: each kind asked of many needs, machines and actions, so that the slowest
//! answers show. What would help is also asked on a fleet in which few are short.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use bigfleet_calculator::{engine_options, load};
use bigfleet_engine::{Decision, Fleet, Options, Parallelism};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::NeedKey;
use bigfleet_scenario::Scenario;
use bigfleet_shapes::{Shape, generate, scarce};

use super::rest::part;
use super::{Report, SEED, best, carry_out, timed};

/// How many are asked of each kind.
const ASKED: usize = 100;
/// How often everything is carried out before anybody asks.
const ROUNDS: usize = 5;

/// About as many as are asked, evenly from a list.
fn some<T>(all: &[T]) -> impl Iterator<Item = &T> {
    all.iter().step_by((all.len() / ASKED).max(1)).take(ASKED)
}

/// The needs that are short.
fn short(fleet: &Fleet) -> Vec<NeedKey> {
    let all: Vec<NeedKey> = fleet.needs().map(|demand| demand.need.key()).collect();
    let reasons = fleet.reasons_of(&all);
    all.into_iter().zip(reasons).filter(|(_, reason)| reason.is_some()).map(|(key, _)| key).collect()
}

/// What would help some needs that are short; `None` if nobody is.
fn remedies(fleet: &Fleet, options: &Options, now_unix_nanos: i64) -> Option<Vec<u64>> {
    let mut helped = 0;
    let shorts = short(fleet);
    let times = some(&shorts).map(|key| {
        let (nanos, found) = timed(|| fleet.what_would_help(key, options, now_unix_nanos).expect("known"));
        helped += usize::from(!found.is_empty());
        nanos
    });
    let times: Vec<u64> = times.collect();
    assert!(times.is_empty() || helped > 0, "nothing would help anybody: that cannot be");
    (!times.is_empty()).then_some(times)
}

/// A fleet in use, with what its last cycle decided.
fn in_use(scenario: &Scenario, options: &Options) -> (Fleet, BTreeMap<Box<str>, Machine>, Arc<Decision>) {
    let now = scenario.now_unix_nanos;
    let mut fleet = load(scenario, Parallelism::default()).expect("a generated scenario is valid");
    let mut machines: BTreeMap<Box<str>, Machine> =
        scenario.machines.iter().map(|m| (m.id.clone(), m.clone())).collect();
    let mut decision = fleet.cycle(options, now);
    for _ in 0..ROUNDS {
        carry_out(&mut fleet, &mut machines, &decision, now);
        decision = fleet.cycle(options, now);
    }
    (fleet, machines, decision)
}

/// Brings a fleet into use and asks it.
pub(super) fn measure(shape: Shape, repeat: usize, json: bool) -> Report {
    let scenario = generate(shape, SEED);
    let options = engine_options(&scenario.options);
    let (fleet, ..) = in_use(&scenario, &options);
    let ample = (remedies(&fleet, &options, scenario.now_unix_nanos), fleet.short_needs().len());
    drop(fleet);

    let scenario = scarce(shape, SEED);
    let options = engine_options(&scenario.options);
    let now = scenario.now_unix_nanos;
    let (fleet, machines, decision) = in_use(&scenario, &options);
    let limit = best(repeat.max(20), || timed(|| black_box(fleet.read_every_row())).0);
    let mut report = Report { shape, limit, figures: Vec::new(), json };
    report.add("limit: every row read once", limit);

    let mut add = |name: &str, mut nanos: Vec<u64>| {
        assert!(!nanos.is_empty(), "{name}: there was nobody to ask");
        report.add(format!("{name} ({}), median", nanos.len()), part(&mut nanos, 0.5));
        report.add(format!("{name}, slowest"), part(&mut nanos, 1.0));
    };
    let all: Vec<NeedKey> = fleet.needs().map(|demand| demand.need.key()).collect();
    let shorts = short(&fleet);
    let gangs: Vec<NeedKey> =
        shorts.iter().filter(|key| fleet.domain_coverage(key).is_some()).cloned().collect();
    let ask = |keys: &[NeedKey], question: &dyn Fn(&NeedKey)| -> Vec<u64> {
        some(keys).map(|key| timed(|| question(key)).0).collect()
    };
    add("verdict of a need", ask(&all, &|key| drop(black_box(fleet.outcome_of(key).expect("known")))));
    add(
        "verdict of a short need",
        ask(&shorts, &|key| drop(black_box(fleet.outcome_of(key).expect("known")))),
    );
    add("funnel of a need", ask(&all, &|key| drop(black_box(fleet.funnel(key).expect("known")))));
    add("funnel of a short need", ask(&shorts, &|key| drop(black_box(fleet.funnel(key).expect("known")))));
    add("what is free for a need", ask(&all, &|key| drop(black_box(fleet.available(key).expect("known")))));
    add("domains of a gang", ask(&gangs, &|key| drop(black_box(fleet.domain_coverage(key).expect("known")))));
    add(
        &format!("what would help one of {} short needs", shorts.len()),
        remedies(&fleet, &options, now).expect("twice as much is wanted as there is"),
    );
    if let (Some(times), shorts) = ample {
        add(&format!("what would help one of {shorts} short needs"), times);
    }
    let ids: Vec<&Box<str>> = machines.keys().collect();
    let nanos = some(&ids).map(|id| timed(|| black_box(fleet.explain_machine(id, &options))).0);
    add("a machine", nanos.collect());
    let key = &shorts[0];
    add("why not", some(&ids).map(|id| timed(|| black_box(fleet.why_not(key, id))).0).collect());
    let nanos = some(&decision.actions).map(|action| timed(|| fleet.explain_action(action, &options)).0);
    add("an action", nanos.collect());
    let mut explainer = fleet.explainer(&options);
    let (nanos, explained) =
        timed(|| decision.actions.iter().filter_map(|action| explainer.explain(action)).count());
    assert_eq!(explained, decision.actions.len(), "every action can be explained");
    let needs = explainer.needs_looked_at();
    report.add(format!("all {explained} actions of {needs} needs"), nanos);
    report
}
