//! Every number right: what is said of a decision, a need or a bill is what was recorded, and the same everywhere.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::{Labels, ZONE};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_model::requirement::Requirement;
use bigfleet_shard::{Memory, SECOND, Shard};
use bigfleet_view::v1::remedy::Change;
use bigfleet_view::v1::view_server::View as Api;
use bigfleet_view::{View, v1};
use tonic::Request;

use crate::driver::{Driver, START, config, metal, need, quota};
use crate::lists::pages;

async fn decisions(view: &View<Driver>, from_record: bool) -> Vec<v1::Decision> {
    let request = v1::ListDecisionsRequest { from_record, ..Default::default() };
    let all = pages(Api::list_decisions(view, Request::new(request)).await).await.unwrap();
    all.into_iter().flat_map(|page| page.decisions).collect()
}

/// The prices of a decision and of its runner-up.
fn prices(all: &[v1::Decision], kind: v1::ActionKind, machine: &str) -> (f64, f64) {
    let found = all.iter().find(|d| d.kind() == kind && d.machine == machine).unwrap();
    let next = found.why.as_ref().and_then(|why| why.runner_up.as_ref());
    (found.usd_per_hour, next.map_or(0.0, |next| next.usd_per_hour))
}

#[tokio::test]
async fn a_decision_keeps_the_prices_it_was_made_at() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let machines =
        vec![quota("od-1", CapacityType::OnDemand, 0.4), quota("od-2", CapacityType::OnDemand, 0.5)];
    let driver = Driver::new(config(), machines, Some(&record));
    driver.report("shop", vec![need("shop", 1000, 8, vec![])]);
    driver.with(|state, _| {
        for machine in state.machines.values_mut() {
            machine.price_usd_per_hour *= 3.0;
        }
    });
    driver.pass(90);
    let view = driver.view(Some(record.clone()));
    let summary = Api::get_summary(&view, Request::new(v1::GetSummaryRequest::default())).await.unwrap();
    assert!((summary.get_ref().usd_per_hour - 1.2).abs() < 1e-9, "the price has risen");
    let bought = v1::ActionKind::Provision;
    assert_eq!(prices(&decisions(&view, false).await, bought, "od-1"), (0.4, 0.5));
    assert_eq!(prices(&summary.get_ref().recent, bought, "od-1"), (0.4, 0.5));
    let cycle = decisions(&view, false).await.iter().find(|d| d.kind() == bought).unwrap().cycle;
    let request = v1::ExplainDecisionRequest { cycle, machine: "od-1".into() };
    let explained = Api::explain_decision(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(prices(&explained.decision.into_iter().collect::<Vec<_>>(), bought, "od-1"), (0.4, 0.5));
    let request = v1::ExplainMachineRequest { machine: "od-1".into(), at: None };
    let machine = Api::explain_machine(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(prices(&machine.decisions, bought, "od-1"), (0.4, 0.5));
    assert!((machine.machine.unwrap().usd_per_hour - 1.2).abs() < 1e-9);

    // Another life that remembers none of it has only the record.
    drop(driver);
    let later = Driver::holding(Shard::new(config(), Memory::default(), START));
    let view = later.view(Some(record));
    assert_eq!(prices(&decisions(&view, true).await, bought, "od-1"), (0.4, 0.5));
}

#[tokio::test]
async fn the_machines_of_a_need_are_those_it_claims() {
    let machines = (0..4).map(|n| metal(&format!("m-{n}"), "za", "8")).collect();
    let driver = Driver::new(config(), machines, None);
    driver.report("shop", vec![need("shop", 1000, 24, vec![])]);
    // The same pods at another priority are another need; the machines go over to it.
    driver.report("shop", vec![need("shop", 2000, 32, vec![])]);
    driver.pass(30);
    let view = driver.view(None);
    let request = v1::ExplainNeedRequest { need: "shop".into(), ..Default::default() };
    let explained = Api::explain_need(&view, Request::new(request)).await.unwrap().into_inner();
    let list = async |filter: v1::MachineFilter| {
        let request = v1::ListMachinesRequest { filter: Some(filter), ..Default::default() };
        let all = pages(Api::list_machines(&view, Request::new(request)).await).await.unwrap();
        let mut ids: Vec<v1::Machine> = all.into_iter().flat_map(|page| page.machines).collect();
        ids.sort_by(|a, b| a.id.cmp(&b.id));
        ids
    };
    let claimed = list(v1::MachineFilter { need: "shop".into(), ..Default::default() }).await;
    let mut credited = explained.credited.clone();
    credited.sort();
    assert_eq!(claimed.iter().map(|m| m.id.clone()).collect::<Vec<_>>(), credited);
    assert_eq!((credited.len(), explained.need.unwrap().credited), (4, 4));
    let bound = list(v1::MachineFilter { bound_for: "shop".into(), ..Default::default() }).await;
    assert_eq!(bound.len(), 1, "three of them were bound for the need of before, and say so");
    for machine in claimed {
        let of = |key: &Option<v1::NeedRef>| key.as_ref().map(|key| key.id.clone());
        let differs = of(&machine.claimed_by) != of(&machine.bound_for);
        assert_eq!(differs, !bound.iter().any(|other| other.id == machine.id), "{machine:?}");
    }
}

#[tokio::test]
async fn every_decision_says_why_also_one_that_is_begun_cycles_later() {
    let machines = (0..40).map(|n| metal(&format!("m-{n:02}"), "za", "1")).collect();
    let driver = Driver::new(config(), machines, None);
    driver.report("shop", vec![need("shop", 1000, 40, vec![])]);
    // The cap lets two go at a time: the others are decided now, and begun in quiet cycles.
    driver.report("shop", vec![need("shop", 1000, 30, vec![])]);
    driver.pass(1200);
    let all = decisions(&driver.view(None), false).await;
    let reclaims = |fate: v1::Fate| {
        all.iter().filter(move |d| d.kind() == v1::ActionKind::Reclaim && d.fate() == fate).count()
    };
    assert!(
        reclaims(v1::Fate::Begun) == 10 && reclaims(v1::Fate::Capped) > 0,
        "{}",
        reclaims(v1::Fate::Begun)
    );
    let without: Vec<_> = all.iter().filter(|d| d.why.is_none()).collect();
    assert_eq!(without, Vec::<&v1::Decision>::new());
    assert!(all.iter().all(|d| d.instance_type == "metal" && d.zone == "za"));
}

fn racked(id: &str, rack: &str) -> Machine {
    Machine { labels: Labels::new([("rack", rack)]).unwrap(), ..metal(id, "za", "8") }
}

fn gang(pieces: u64, priority: i32) -> Need {
    Need { group: "train".into(), ..need("ml", priority, pieces, vec![Requirement::same("rack")]) }
}

/// A gang that found nothing for so long that it is parked, with two machines it keeps.
fn parked() -> (Arc<Driver>, View<Driver>) {
    let machines = ["a-1", "a-2"].map(|id| racked(id, "rack-a"));
    let others = ["b-1", "b-2", "b-3", "b-4"].map(|id| racked(id, "rack-b"));
    let driver = Driver::new(config(), machines.into_iter().chain(others).collect(), None);
    driver.report("ml", vec![gang(16, 500)]);
    let serve = |pieces| need("serve", 900, pieces, vec![Requirement::is_in("rack", ["rack-b"])]);
    driver.report("serve", vec![serve(32)]);
    driver.report("ml", vec![gang(24, 500)]);
    // Parked after eight cycles of ten seconds, and not yet let try again.
    driver.pass(200);
    let view = driver.view(None);
    (driver, view)
}

#[tokio::test]
async fn a_parked_gang_says_what_it_holds_when_it_tries_and_what_would_help() {
    let (driver, view) = parked();
    let request = v1::ExplainNeedRequest { need: "ml/train".into(), ..Default::default() };
    let answer = Api::explain_need(&view, Request::new(request)).await.unwrap().into_inner();
    let told = answer.need.unwrap();
    assert!(told.parked && told.reason() == v1::Reason::Parked, "{told:?}");
    assert!(told.credited > 0, "it keeps what it has: {told:?}");
    let cycle = answer.as_of.unwrap().cycle;
    assert!(
        told.next_try_cycle > cycle && told.next_try_cycle <= cycle + 32,
        "{} {cycle}",
        told.next_try_cycle
    );
    assert!(told.next_try_unix_nanos > START);
    let changes: Vec<&Change> = answer.remedies.iter().filter_map(|remedy| remedy.change.as_ref()).collect();
    assert!(
        changes.iter().any(|change| matches!(change, Change::Priority(901))),
        "in the other rack: {changes:?}"
    );
    assert!(changes.iter().any(|change| matches!(change, Change::Less(_))), "{changes:?}");

    // What was promised holds.
    driver.report("ml", vec![gang(24, 901)]);
    driver.pass(1200);
    let request = v1::ExplainNeedRequest { need: "ml/train".into(), ..Default::default() };
    let answer = Api::explain_need(&view, Request::new(request)).await.unwrap().into_inner();
    assert!(answer.need.unwrap().satisfied);
}

#[tokio::test]
async fn a_plan_parks_whom_the_shard_parks() {
    let (driver, view) = parked();
    // It could be served now, and is parked: the plan must say nothing until the cycle in which it may try.
    for _ in 0..4 {
        // So much less is not believed at once.
        driver.report("serve", vec![need("serve", 900, 8, vec![Requirement::is_in("rack", ["rack-b"])])]);
        driver.pass(20);
    }
    let mut began = 0;
    for _ in 0..400 {
        let plan = Api::plan(&view, Request::new(v1::PlanRequest::default())).await.unwrap().into_inner();
        let before = driver.with(|state, _| state.shard.cycle());
        while driver.with(|state, _| state.shard.cycle()) == before {
            driver.pass(1);
        }
        let request =
            v1::ListDecisionsRequest { from_cycle: before + 1, to_cycle: before + 1, ..Default::default() };
        let did = pages(Api::list_decisions(&view, Request::new(request)).await).await.unwrap();
        let names = |all: &[v1::Decision]| {
            let mut names: Vec<_> = all.iter().map(|d| (d.kind, d.machine.clone())).collect();
            names.sort();
            names
        };
        let did: Vec<v1::Decision> = did.into_iter().flat_map(|page| page.decisions).collect();
        // Quiet cycles leave no record: what they decided is what was decided before.
        if !did.is_empty() {
            assert_eq!(names(&plan.actions), names(&did), "cycle {}", before + 1);
            began += did.iter().filter(|d| d.cluster == "ml" && d.fate() == v1::Fate::Begun).count();
        }
    }
    assert!(began >= 3, "the gang was served in the end");
}

#[tokio::test]
async fn costs_of_a_moment_and_of_a_span_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let mut owned = metal("m-1", "za", "8");
    owned.price_usd_per_hour = 0.2;
    let machines =
        vec![owned, quota("od-1", CapacityType::OnDemand, 0.4), quota("od-2", CapacityType::OnDemand, 0.5)];
    let driver = Driver::new(config(), machines, Some(&record));
    driver.pass(600);
    // An hour with eight more cpus than the owned machine has, of which four are asked for.
    driver.report("shop", vec![need("shop", 1000, 12, vec![])]);
    driver.pass(3600);
    driver.report("shop", vec![need("shop", 1000, 8, vec![])]);
    driver.pass(1800);
    let view = driver.view(Some(record));
    let ask = async |request: v1::GetCostsRequest| {
        let costs = Api::get_costs(&view, Request::new(request)).await.unwrap().into_inner();
        let parts: i64 = costs.parts.iter().map(|part| part.nano_usd).sum();
        assert_eq!(parts, costs.total_nano_usd, "{:?}", costs.parts);
        costs
    };
    let now = ask(v1::GetCostsRequest::default()).await;
    assert!((now.usd_per_hour - 0.2).abs() < 1e-9, "the rented one was given back: {now:?}");
    let at = v1::Moment { moment: Some(v1::moment::Moment::UnixNanos(START + 1800 * SECOND)) };
    let then = ask(v1::GetCostsRequest { at: Some(at), judge: true, ..Default::default() }).await;
    assert!((then.usd_per_hour - 0.6).abs() < 1e-9, "{then:?}");
    let cause = |costs: &v1::Costs, cause: &str| {
        costs.parts.iter().filter(|part| part.cause == cause).map(|part| part.nano_usd).sum::<i64>()
    };
    // Twelve of sixteen cpus are asked for.
    assert_eq!((cause(&then, "used"), cause(&then, "above_demand")), (450_000_000, 150_000_000));
    let judged = then.judgement.unwrap();
    assert_eq!(judged.method, "exact");
    assert!(
        (judged.paid_usd_per_hour - 0.4).abs() < 1e-9 && (judged.bound_usd_per_hour - 0.2).abs() < 1e-9,
        "{judged:?}"
    );

    let over = v1::GetCostsRequest { from_unix_nanos: START + 60 * SECOND, points: 10, ..Default::default() };
    let span = ask(over).await;
    let hours =
        span.span.as_ref().map(|span| (span.to_unix_nanos - span.from_unix_nanos) as f64 / 3.6e12).unwrap();
    let total = span.total_nano_usd as f64 / 1e9;
    assert!((span.usd_per_hour * hours - total).abs() < 1e-6);
    assert!(total > 0.2 * hours + 0.4 && total < 0.2 * hours + 0.6, "an hour of $0.40 and a hold: {total}");
    assert!(cause(&span, "idle_hold") > 0 && cause(&span, "idle_fixed") > 0, "{:?}", span.parts);
    assert_eq!(span.points.len(), 10);
    assert!(span.points.iter().any(|point| point.actions > 0));
}

#[tokio::test]
async fn lints_find_what_cannot_work_and_figures_that_cannot_be_right() {
    let mut risky = quota("spot-1", CapacityType::Spot, 0.1);
    risky.interruption_probability = 0.3;
    let mut safe = quota("spot-2", CapacityType::Spot, 0.1);
    safe.interruption_probability = 0.0;
    let machines = vec![risky, safe, quota("od-1", CapacityType::OnDemand, 0.0), racked("a-1", "rack-a")];
    let driver = Driver::new(config(), machines, None);
    let nowhere = need("batch", 1000, 4, vec![Requirement::is_in(ZONE, ["zc"])]);
    driver.report("batch", vec![nowhere]);
    driver.report("ml", vec![gang(64, 1000)]);
    driver.pass(30);
    let view = driver.view(None);
    let ask = async |codes: Vec<String>| {
        Api::lint(&view, Request::new(v1::LintRequest { codes, at: None }))
            .await
            .map(tonic::Response::into_inner)
    };
    let found = ask(Vec::new()).await.unwrap().findings;
    let codes: Vec<&str> = found.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["BF101", "BF102", "BF103", "BF104", "BF105", "BF201", "BF204"]);
    assert!(found.iter().all(|finding| !finding.fix.is_empty() && finding.times > 0));
    let only = ask(vec!["BF104".into()]).await.unwrap().findings;
    assert_eq!((only.len(), only[0].subject.as_str()), (1, "sim/m5 spot za"));
    assert!(ask(vec!["BF999".into()]).await.unwrap_err().message().contains("BF101"));
}

#[tokio::test]
async fn a_provider_is_held_to_what_it_promised() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let machines = (0..4).map(|n| quota(&format!("spot-{n}"), CapacityType::Spot, 0.1)).collect();
    let driver = Driver::new(config(), machines, Some(&record));
    driver.report("shop", vec![need("shop", 1000, 16, vec![])]);
    driver.pass(3600);
    driver.with(|state, _| {
        let lost = state.machines.values_mut().find(|m| &*m.cluster == "shop").unwrap();
        let quota = quota(&lost.id, CapacityType::Spot, 0.1);
        *lost = quota;
    });
    driver.pass(120);
    let view = driver.view(Some(record));
    let request = v1::GetProviderTruthRequest::default();
    let truth = Api::get_provider_truth(&view, Request::new(request)).await.unwrap().into_inner();
    let [row] = &truth.rows[..] else { panic!("{truth:?}") };
    assert_eq!((row.machines, row.observed_interruptions), (4, 1), "{row:?}");
    assert!(row.bound_machine_hours > 1.9 && row.bound_machine_hours < 2.2, "{row:?}");
    assert!((row.promised_interruptions - 0.01 * row.bound_machine_hours).abs() < 1e-6, "{row:?}");
    assert!(row.configure.is_some() && row.source.as_ref().unwrap().heard_unix_nanos > 0, "{row:?}");
}

#[test]
fn every_lint_has_its_section_in_the_guide() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lints.md");
    let guide = std::fs::read_to_string(path).unwrap();
    for rule in bigfleet_view::lint::RULES {
        assert!(guide.contains(&format!("## {}: {}\n", rule.code, rule.title)), "{}", rule.code);
        assert!(guide.contains(rule.fix), "{}", rule.code);
    }
}

#[tokio::test]
async fn hours_ahead_lose_machines_as_likely_as_providers_say() {
    let machines = (0..20).map(|n| quota(&format!("spot-{n:02}"), CapacityType::Spot, 0.1)).collect();
    let driver = Driver::new(config(), machines, None);
    driver.report("shop", vec![need("shop", 1000, 80, vec![])]);
    driver.pass(60);
    let view = driver.view(None);
    let filter = v1::MachineFilter { id_prefix: "spot".into(), ..Default::default() };
    let worse = v1::SetProbability { filter: Some(filter), interruption_probability: 0.1 };
    let edits = vec![v1::Edit { edit: Some(v1::edit::Edit::SetProbability(worse)) }];
    let request =
        v1::WhatIfRequest { edits, cycles: 5, hours: 24, seeds: 10, seed: 42, ..Default::default() };
    let answer = Api::what_if(&view, Request::new(request.clone())).await.unwrap().into_inner();
    let (before, after) = (answer.before.unwrap().ahead.unwrap(), answer.after.unwrap().ahead.unwrap());
    // Ten machines for 24 hours, one in a hundred an hour, and one in ten.
    assert!((1.0..4.5).contains(&before.interruptions), "{before:?}");
    assert!((18.0..30.0).contains(&after.interruptions), "{after:?}");
    assert!((before.usd - 24.0).abs() < 1.0, "{before:?}");
    let again = Api::what_if(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(again.after.unwrap().ahead.unwrap(), after, "the same seed gives the same answer");
    let edits = vec![v1::Edit { edit: Some(v1::edit::Edit::RemoveNeed("shop".into())) }];
    let too_far = v1::WhatIfRequest { edits, hours: 100_000, ..Default::default() };
    assert!(Api::what_if(&view, Request::new(too_far)).await.unwrap_err().message().contains("at most"));
}
