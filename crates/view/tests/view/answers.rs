//! Explanations, plans, what-ifs and commands.

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::{Labels, ZONE};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_model::requirement::Requirement;
use bigfleet_proto::v1alpha1::inspect_needs_response::Frame;
use bigfleet_proto::v1alpha1::shard_read_server::ShardRead;
use bigfleet_proto::v1alpha1::{InspectNeedsRequest, MachineState, NeedView, UnmetReason};
use bigfleet_shard::MINUTE;
use bigfleet_view::v1;
use bigfleet_view::v1::view_server::View as Api;
use tonic::{Code, Request};

use crate::driver::{Driver, config, metal, need, quota};
use crate::lists::{pages, small};

fn batch() -> Need {
    need("batch", 10, 4, vec![Requirement::is_in(ZONE, ["zc"])])
}

#[tokio::test]
async fn a_short_need_is_explained_with_remedies_that_work() {
    let (driver, view) = small();
    let request =
        v1::ExplainNeedRequest { need: bigfleet_view::short_id(&batch().key()), ..Default::default() };
    let answer = Api::explain_need(&view, Request::new(request)).await.unwrap().into_inner();
    let told = answer.need.unwrap();
    assert_eq!((told.satisfied, told.reason()), (false, v1::Reason::NoMatchingSupply));
    assert!(told.short_since_cycle > 0);
    let funnel = answer.funnel.unwrap();
    assert_eq!((funnel.considered, funnel.its_own), (4, 0));
    let removed: Vec<_> = funnel.removed.iter().map(|r| (&*r.code, r.machines)).collect();
    assert_eq!(removed, [("requirement", 4)]);
    assert_eq!((answer.remedies_tried, answer.remedies_untried), (true, 0));
    let [remedy] = &answer.remedies[..] else { panic!("{:?}", answer.remedies) };
    assert!(matches!(remedy.change, Some(v1::remedy::Change::WithoutRequirement(_))), "{remedy:?}");
    assert_eq!((remedy.acquires, remedy.preempts), (1, 0));
    assert_eq!(answer.free.unwrap(), v1::FreeSupply::default(), "nothing is free for it");

    // The remedy works: without the requirement the machine is bought.
    driver.report("batch", vec![need("batch", 10, 4, vec![])]);
    driver.pass(10);
    let request = v1::ExplainNeedRequest { need: "batch".into(), ..Default::default() };
    let answer = Api::explain_need(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!((answer.need.unwrap().satisfied, answer.remedies_tried), (true, false));
    assert_eq!(answer.credited, ["od-1"]);
    assert!(answer.decisions.iter().any(|d| d.kind() == v1::ActionKind::Provision && d.machine == "od-1"));
}

#[tokio::test]
async fn a_machine_says_why_it_is_there() {
    let (_driver, view) = small();
    let request = v1::ExplainMachineRequest { machine: "spot-1".into(), at: None };
    let answer = Api::explain_machine(&view, Request::new(request)).await.unwrap().into_inner();
    let machine = answer.machine.unwrap();
    assert_eq!((machine.state, &*machine.cluster, &*machine.provider), (5, "shop", "sim"));
    assert_eq!(machine.provides["cpu"], "8");
    assert_eq!(machine.bound_for.unwrap().cluster, "shop");
    let claimed = answer.claimed_by.unwrap();
    assert_eq!((claimed.key.unwrap().cluster.as_str(), claimed.credited), ("shop", 3));
    let used: Vec<_> = answer.r#use.iter().map(|line| (&*line.resource, line.asked, line.provided)).collect();
    assert_eq!(used, [("cpu", 20.0, 24.0)], "of all machines of its need");
    let bound = answer.bound_by.unwrap();
    assert_eq!((bound.kind(), &*bound.cluster), (v1::ActionKind::Provision, "shop"));
    assert_eq!((answer.hold_nanos, answer.release_due_unix_nanos), (MINUTE, 0));
    let source = answer.price_source.unwrap();
    assert!(source.provider == "sim" && source.heard_unix_nanos > 0);
}

#[tokio::test]
async fn why_not_names_the_first_rule() {
    let (_driver, view) = small();
    let ask = async |need: &str, machine: &str| {
        let request = v1::WhyNotRequest { need: need.into(), machine: machine.into(), at: None };
        Api::why_not(&view, Request::new(request)).await.unwrap().into_inner()
    };
    let answer = ask(&bigfleet_view::short_id(&batch().key()), "metal-1").await;
    assert_eq!((&*answer.code, answer.value.as_deref()), ("requirement", Some("za")));
    assert!(answer.requirement.contains(ZONE), "{}", answer.requirement);
    assert_eq!(ask("shop", "metal-1").await.code, "none");
    assert_eq!(ask("shop", "od-1").await.code, "covered");
}

/// What the next cycle does must be what the plan said, fate by fate.
async fn plan_comes_true(driver: &Driver, view: &bigfleet_view::View<Driver>) -> v1::PlanAnswer {
    let plan = Api::plan(view, Request::new(v1::PlanRequest::default())).await.unwrap().into_inner();
    let before = driver.with(|state, _| state.shard.recent().next_back().map_or(0, |record| record.cycle));
    driver.pass(1);
    let did = Api::list_decisions(
        view,
        Request::new(v1::ListDecisionsRequest { from_cycle: before + 1, ..Default::default() }),
    );
    let mut did: Vec<v1::Decision> =
        pages(did.await).await.unwrap().into_iter().flat_map(|page| page.decisions).collect();
    did.reverse();
    let first = did.first().map_or(0, |d| d.cycle);
    let fates = |all: &[v1::Decision]| {
        let mut fates: Vec<_> =
            all.iter().map(|d| (d.machine.clone(), d.kind, d.fate, d.cluster.clone())).collect();
        fates.sort();
        fates
    };
    let did: Vec<v1::Decision> = did.into_iter().filter(|d| d.cycle == first).collect();
    assert_eq!(fates(&plan.actions), fates(&did));
    plan
}

fn rollup(driver: &Driver, cluster: &str, needs: Vec<Need>) {
    driver.with(|state, step| {
        let session = state.shard.clusters()[cluster].session.unwrap();
        let rollup = bigfleet_shard::Rollup { cluster: cluster.into(), taken_unix_nanos: state.now, needs };
        state.shard.handle(bigfleet_shard::Event::of_rollup(session, Ok(rollup)), state.now, step);
    });
}

#[tokio::test]
async fn a_plan_says_what_the_next_cycle_does_and_what_rails_make_of_it() {
    let machines = (0..40).map(|n| metal(&format!("m-{n:02}"), "za", "1"));
    let machines = machines
        .chain([quota("od-1", CapacityType::OnDemand, 0.4), quota("od-2", CapacityType::OnDemand, 0.5)]);
    let driver = Driver::new(config(), machines.collect(), None);
    driver.report("shop", vec![need("shop", 1000, 30, vec![])]);
    driver.report("batch", vec![need("batch", 10, 10, vec![])]);
    let view = driver.view(None);
    let quiet = Api::plan(&view, Request::new(v1::PlanRequest::default())).await.unwrap().into_inner();
    assert_eq!(quiet.actions, [], "everybody has what they want");

    // Buying: one machine for eight more.
    rollup(&driver, "batch", vec![need("batch", 10, 18, vec![])]);
    let plan = plan_comes_true(&driver, &view).await;
    assert_eq!((plan.usd_per_hour_before, plan.usd_per_hour_after), (0.0, 0.4));
    let [buy] = &plan.actions[..] else { panic!("{:?}", plan.actions) };
    assert_eq!((buy.kind(), buy.fate(), &*buy.machine), (v1::ActionKind::Provision, v1::Fate::Begun, "od-1"));
    assert_eq!(buy.why.as_ref().unwrap().runner_up.as_ref().unwrap().machine, "od-2");
    driver.pass(2);

    // Paused for one cluster: decided, and held back.
    let request =
        v1::PauseRequest { cluster: "batch".into(), reason: "game day".into(), ..Default::default() };
    Api::pause(&view, Request::new(request)).await.unwrap();
    driver.pass(2);
    rollup(&driver, "batch", vec![need("batch", 10, 26, vec![])]);
    let plan = plan_comes_true(&driver, &view).await;
    assert_eq!(plan.actions.iter().map(v1::Decision::fate).collect::<Vec<_>>(), [v1::Fate::Paused]);
    assert_eq!(plan.usd_per_hour_after, plan.usd_per_hour_before, "what is held back costs nothing");

    // Reclaiming is capped: of thirty machines one may go at a time.
    rollup(&driver, "shop", vec![need("shop", 1000, 20, vec![])]);
    let plan = plan_comes_true(&driver, &view).await;
    let count =
        |fate: v1::Fate| plan.totals.iter().filter(|t| t.fate() == fate).map(|t| t.actions).sum::<u32>();
    assert_eq!((count(v1::Fate::Begun), count(v1::Fate::Capped), count(v1::Fate::Paused)), (1, 9, 1));
    let rails =
        Api::get_rails(&view, Request::new(v1::GetRailsRequest::default())).await.unwrap().into_inner();
    let cap = &rails.caps[0];
    assert_eq!((&*cap.cluster, cap.used, cap.cap), ("shop", 1, 1));
    assert_eq!(rails.pauses.len(), 1);
    assert_eq!((&*rails.pauses[0].reason, &*rails.pauses[0].author), ("game day", "unknown"));
}

#[tokio::test]
async fn pauses_need_a_reason_and_a_cluster_that_exists_and_can_be_ended() {
    let (_driver, view) = small();
    let pause = async |cluster: &str, reason: &str| {
        let request = v1::PauseRequest {
            cluster: cluster.into(),
            reason: reason.into(),
            author: "ann".into(),
            for_nanos: MINUTE,
            ..Default::default()
        };
        Api::pause(&view, Request::new(request)).await
    };
    let refused = pause("shop", " ").await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::InvalidArgument, "a pause needs a reason; people will ask")
    );
    let refused = pause("shopp", "x").await.unwrap_err();
    assert_eq!(refused.message(), "there is no cluster \"shopp\"; did you mean shop?");
    let made = pause("shop", "drill").await.unwrap().into_inner().pause.unwrap();
    assert_eq!(
        (made.number, &*made.author, made.until_unix_nanos - made.since_unix_nanos),
        (1, "ann", MINUTE)
    );
    let resume = async |request| Api::resume(&view, Request::new(request)).await;
    let none = resume(v1::ResumeRequest { cluster: "batch".into(), ..Default::default() }).await.unwrap_err();
    assert_eq!(none.code(), Code::NotFound);
    let none = resume(v1::ResumeRequest { number: 9, ..Default::default() }).await.unwrap_err();
    assert_eq!(none.message(), "there is no pause 9; `bigfleet get rails` shows those in force");
    let ended = resume(v1::ResumeRequest { number: 1, ..Default::default() }).await.unwrap().into_inner();
    assert_eq!(ended.ended, [made]);
    let nothing =
        resume(v1::ResumeRequest { everything: true, ..Default::default() }).await.unwrap().into_inner();
    assert_eq!(nothing.ended, []);
}

fn edit(edit: v1::edit::Edit) -> v1::Edit {
    v1::Edit { edit: Some(edit) }
}

#[tokio::test]
async fn what_if_tells_what_would_be_different() {
    let (driver, view) = small();
    let ask = async |edits: Vec<v1::Edit>, cycles| {
        let request = v1::WhatIfRequest { edits, cycles, ..Default::default() };
        Api::what_if(&view, Request::new(request)).await.map(tonic::Response::into_inner)
    };
    let add = v1::AddMachines { like: "metal-1".into(), count: 1, zone: "zc".into(), ..Default::default() };
    let answer = ask(vec![edit(v1::edit::Edit::AddMachines(add))], 5).await.unwrap();
    let (before, after) = (answer.before.unwrap(), answer.after.unwrap());
    assert_eq!((before.unmet, after.unmet), (1, 0));
    assert_eq!((before.usd_per_hour, after.usd_per_hour), (0.1, 0.1));
    assert!(before.settled && after.settled);
    let [only] = &answer.only_after[..] else { panic!("{:?}", answer.only_after) };
    assert_eq!((only.kind(), &*only.machine), (v1::ActionKind::Bootstrap, "what-if-metal-1-1"));
    let [change] = &answer.needs[..] else { panic!("{:?}", answer.needs) };
    assert_eq!(
        (change.satisfied_before, change.reason_before(), change.satisfied_after, change.machines_after),
        (false, v1::Reason::NoMatchingSupply, true, 1)
    );
    assert_eq!(driver.with(|state, _| state.shard.machine_count()), 4, "nothing real was changed");

    let id = bigfleet_view::short_id(&need("shop", 1000, 20, vec![]).key());
    let scale = v1::ScaleNeed { need: id, factor: 0.4 };
    let answer = ask(vec![edit(v1::edit::Edit::ScaleNeed(scale))], 5).await.unwrap();
    assert_eq!((answer.before.unwrap().bound_machines, answer.after.unwrap().bound_machines), (3, 1));

    let filter = v1::MachineFilter { id_prefix: "spot".into(), ..Default::default() };
    let price = v1::SetPrice { filter: Some(filter), price: Some(v1::set_price::Price::Factor(3.0)) };
    let answer = ask(vec![edit(v1::edit::Edit::SetPrice(price))], 1).await.unwrap();
    assert!((answer.after.unwrap().usd_per_hour - 0.3).abs() < 1e-9);
    assert_eq!(answer.edited_machines, 1);
}

#[tokio::test]
async fn what_if_refuses_what_makes_no_sense() {
    let (_driver, view) = small();
    let refused = async |edits: Vec<v1::Edit>| {
        let request = v1::WhatIfRequest { edits, cycles: 1, ..Default::default() };
        Api::what_if(&view, Request::new(request)).await.unwrap_err().message().to_owned()
    };
    assert_eq!(refused(vec![]).await, "nothing is different; give at least one edit");
    assert_eq!(refused(vec![v1::Edit { edit: None }]).await, "edit 0 is empty");
    let scale = v1::ScaleNeed { need: "shop".into(), factor: -1.0 };
    assert_eq!(
        refused(vec![edit(v1::edit::Edit::ScaleNeed(scale))]).await,
        "edit 0: factor -1 is not a number from 0 up"
    );
    let set = v1::SetPriority { need: "shop".into(), cluster: "shop".into(), priority: 1 };
    assert_eq!(
        refused(vec![edit(v1::edit::Edit::SetPriority(set))]).await,
        "edit 0: name either a need or a cluster"
    );
    let price = v1::SetProbability {
        filter: Some(v1::MachineFilter { id_prefix: "spot".into(), ..Default::default() }),
        interruption_probability: 2.0,
    };
    assert!(
        refused(vec![edit(v1::edit::Edit::SetProbability(price))]).await.contains("is not between 0 and 1")
    );
}

#[tokio::test]
async fn a_preemption_names_victim_preemptor_and_the_parts_of_the_score() {
    let machines = vec![metal("m-1", "za", "8"), metal("m-2", "za", "8")];
    let driver = Driver::new(config(), machines, None);
    driver.report("batch", vec![need("batch", 10, 16, vec![])]);
    driver.with(|state, _| state.lets_go = false);
    driver.report("shop", vec![need("shop", 200_010, 8, vec![])]);
    let view = driver.view(None);
    let request = v1::ExplainPreemptionRequest { need: "shop".into(), ..Default::default() };
    let answer = Api::explain_preemption(&view, Request::new(request)).await.unwrap().into_inner();
    let [preemption] = &answer.preemptions[..] else { panic!("{answer:?}") };
    let decision = preemption.decision.as_ref().unwrap();
    assert_eq!((&*decision.cluster, decision.need.as_ref().unwrap().cluster.as_str()), ("batch", "shop"));
    assert_eq!(preemption.victim_need.as_ref().unwrap().cluster, "batch");
    let score = preemption.score.as_ref().unwrap();
    assert_eq!((score.gap, score.grace_secs, decision.grace_secs), (200_000, 120, 120));
    assert_eq!(score.total, decision.why.as_ref().unwrap().figure, "the parts are those of the decision");
    assert!(preemption.until_unix_nanos > 0);
    let by_machine = v1::ExplainPreemptionRequest { machine: decision.machine.clone(), ..Default::default() };
    let same = Api::explain_preemption(&view, Request::new(by_machine)).await.unwrap().into_inner();
    assert_eq!(same.preemptions, answer.preemptions);
    let by_victim = v1::ExplainPreemptionRequest { need: "batch".into(), ..Default::default() };
    let same = Api::explain_preemption(&view, Request::new(by_victim)).await.unwrap().into_inner();
    assert_eq!(same.preemptions, answer.preemptions);
    let all = v1::ExplainPreemptionRequest::default();
    let same = Api::explain_preemption(&view, Request::new(all)).await.unwrap().into_inner();
    assert_eq!(same.preemptions, answer.preemptions);
    let both =
        v1::ExplainPreemptionRequest { need: "shop".into(), machine: "m-1".into(), ..Default::default() };
    let refused = Api::explain_preemption(&view, Request::new(both)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_preemption_is_explained_after_its_machine_has_moved_on() {
    let machines = vec![metal("m-1", "za", "8"), metal("m-2", "za", "8")];
    let driver = Driver::new(config(), machines, None);
    driver.report("batch", vec![need("batch", 10, 16, vec![])]);
    driver.report("shop", vec![need("shop", 200_010, 8, vec![])]);
    driver.pass(300);
    let view = driver.view(None);
    let all = v1::ExplainPreemptionRequest::default();
    let answer = Api::explain_preemption(&view, Request::new(all)).await.unwrap().into_inner();
    let [preemption] = &answer.preemptions[..] else { panic!("{answer:?}") };
    assert_eq!(preemption.state(), MachineState::Configured, "it serves the other cluster by now");
    assert_eq!(preemption.victim_need.as_ref().unwrap().cluster, "batch");
    let score = preemption.score.as_ref().unwrap();
    assert_eq!((score.gap, score.victim_priority), (200_000, 10));

    // The decision as well, with the machine as it was then.
    let (cycle, machine) = preemption.decision.as_ref().map(|d| (d.cycle, d.machine.clone())).unwrap();
    let request = v1::ExplainDecisionRequest { cycle, machine };
    let answer = Api::explain_decision(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!((answer.replayed, answer.score.as_ref()), (false, Some(score)));
    let machine = answer.machine.unwrap();
    assert_eq!((machine.state(), machine.cluster.as_str()), (MachineState::Configured, "batch"));
    assert_eq!(answer.need.unwrap().key.unwrap().cluster, "shop");
}

#[tokio::test]
async fn a_cluster_is_explained() {
    let (_driver, view) = small();
    let request = v1::ExplainClusterRequest { cluster: "batch".into() };
    let answer = Api::explain_cluster(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!((answer.short.len(), answer.decisions.len(), answer.costs.len()), (1, 0, 0));
    assert_eq!(answer.cluster.unwrap().lane.unwrap().unmet, 1);
    let request = v1::ExplainClusterRequest { cluster: "shop".into() };
    let answer = Api::explain_cluster(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!((answer.short.len(), answer.decisions.len(), answer.costs.len()), (0, 3, 2));
}

fn racked(id: &str, rack: &str) -> Machine {
    Machine { labels: Labels::new([("rack", rack)]).unwrap(), ..metal(id, "za", "8") }
}

#[tokio::test]
async fn inspect_needs_is_as_the_wire_says() {
    let machines = vec![racked("a-1", "ra"), racked("b-1", "rb"), racked("b-2", "rb")];
    let driver = Driver::new(config(), machines, None);
    let view = driver.view(None);
    let inspect = async |request| {
        let frames = pages(ShardRead::inspect_needs(&view, Request::new(request)).await).await.unwrap();
        let mut frames = frames.into_iter().map(|response| response.frame.unwrap());
        let Some(Frame::Header(header)) = frames.next() else { panic!("the header comes first") };
        let rows = frames.map(|frame| match frame {
            Frame::Need(need) => need,
            Frame::Header(_) => panic!("one header"),
        });
        (header, rows.collect::<Vec<NeedView>>())
    };
    let gang = Need { group: "team\0train".into(), ..need("ml", 500, 24, vec![Requirement::same("rack")]) };
    driver.report("ml", vec![gang, need("ml", 5, 4, vec![])]);
    driver.report("batch", vec![need("batch", 10, 4, vec![Requirement::is_in(ZONE, ["zc"])])]);
    let (header, rows) = inspect(InspectNeedsRequest::default()).await;
    assert_eq!(header.total_needs, 3);
    assert!(header.cycle > 0 && header.computed_at_unix_nanos > 0);
    let order: Vec<_> =
        rows.iter().map(|row| (&*row.cluster_id, row.need.as_ref().unwrap().priority)).collect();
    assert_eq!(order, [("ml", 500), ("batch", 10), ("ml", 5)]);
    let gang = &rows[0];
    assert!(!gang.satisfied);
    assert_eq!(gang.unmet_reason(), UnmetReason::TopologyUnsatisfiable);
    let candidates: Vec<_> =
        gang.same_candidates.iter().map(|c| (&*c.domain, c.coverage_per_mille, c.satisfiable)).collect();
    assert_eq!(candidates, [("rb", 666, false), ("ra", 333, false)]);
    let batch = &rows[1];
    assert_eq!(batch.unmet_reason(), UnmetReason::NoMatchingSupply);
    assert_eq!(batch.residual_deficit.as_ref().unwrap().resources["cpu"], "4");
    assert_eq!(batch.matching_supply.unwrap().idle, 0);
    assert!(batch.same_candidates.is_empty() && batch.preemption.is_none());
    let (header, rows) = inspect(InspectNeedsRequest { cluster_id: "ml".into(), limit: 1 }).await;
    assert_eq!((header.total_needs, rows.len()), (2, 1));
}

#[tokio::test]
async fn before_the_first_cycle_nothing_was_computed() {
    // A provider that was not heard yet: no cycle may run.
    let mut config = config();
    config.providers.push(bigfleet_shard::ProviderConfig::named("silent"));
    let shard = bigfleet_shard::Shard::new(config, bigfleet_shard::Memory::default(), 1);
    assert!(shard.last_cycle_unix_nanos().is_none());
    let driver = Driver::holding(shard);
    let frames = pages(
        ShardRead::inspect_needs(&driver.view(None), Request::new(InspectNeedsRequest::default())).await,
    )
    .await;
    let frames = frames.unwrap();
    let [only] = &frames[..] else { panic!("{frames:?}") };
    let Some(Frame::Header(header)) = &only.frame else { panic!("{only:?}") };
    assert_eq!((header.cycle, header.total_needs), (0, 0));
}
