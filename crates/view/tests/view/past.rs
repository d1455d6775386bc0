//! Looking back: answers from the decision record.

use bigfleet_model::capacity::CapacityType;
use bigfleet_view::v1;
use bigfleet_view::v1::view_server::View as Api;
use tonic::{Code, Request};

use crate::driver::{Driver, config, metal, need, quota};
use crate::lists::{pages, small};

fn at(cycle: u64) -> v1::Moment {
    v1::Moment { moment: Some(v1::moment::Moment::Cycle(cycle)) }
}

#[tokio::test]
async fn the_fleet_of_a_moment_gone_by_can_be_asked_everything() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let machines = vec![
        metal("m-1", "za", "8"),
        quota("spot-1", CapacityType::Spot, 0.1),
        quota("od-1", CapacityType::OnDemand, 0.4),
    ];
    let driver = Driver::new(config(), machines, Some(&record));
    driver.report("shop", vec![need("shop", 1000, 8, vec![])]);
    let before = driver.with(|state, _| state.shard.cycle());
    driver.report("shop", vec![need("shop", 1000, 16, vec![])]);
    let view = driver.view(Some(record));

    let list = async |at| {
        let request = v1::ListMachinesRequest { at, ..Default::default() };
        pages(Api::list_machines(&view, Request::new(request)).await).await.unwrap().remove(0)
    };
    let states = |page: &v1::MachinePage| {
        let mut states: Vec<_> = page.machines.iter().map(|m| (m.id.clone(), m.state)).collect();
        states.sort();
        states
    };
    let now = list(None).await;
    assert!(states(&now).contains(&("spot-1".into(), 5)));
    let then = list(Some(at(before))).await;
    assert!(then.as_of.as_ref().unwrap().from_record);
    assert_eq!(then.as_of.as_ref().unwrap().cycle, before);
    assert!(states(&then).contains(&("spot-1".into(), 1)), "{:?}", states(&then));

    let request = v1::ListNeedsRequest { at: Some(at(before)), ..Default::default() };
    let needs = pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap().remove(0);
    assert_eq!((needs.needs.len(), needs.needs[0].credited), (1, 1));
    let request = v1::ExplainMachineRequest { machine: "m-1".into(), at: Some(at(before)) };
    let machine = Api::explain_machine(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(machine.machine.unwrap().cluster, "shop");
    let request = v1::ExplainNeedRequest { need: "shop".into(), at: Some(at(before)), ..Default::default() };
    let explained = Api::explain_need(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(explained.credited, ["m-1"]);

    let decisions = v1::ListDecisionsRequest { from_record: true, ..Default::default() };
    let decisions =
        pages(Api::list_decisions(&view, Request::new(decisions)).await).await.unwrap().remove(0).decisions;
    let bought = decisions.iter().find(|d| d.kind() == v1::ActionKind::Provision).unwrap();
    let request = v1::ExplainDecisionRequest { cycle: bought.cycle, machine: "spot-1".into() };
    let explained = Api::explain_decision(&view, Request::new(request)).await.unwrap().into_inner();
    let machine = explained.machine.unwrap();
    assert_eq!(machine.state, 1, "as it was when it was bought");
    assert_eq!(explained.decision.unwrap().why.unwrap().runner_up.unwrap().machine, "od-1");
    assert_eq!(explained.need.unwrap().key.unwrap().cluster, "shop");
    let request = v1::ExplainDecisionRequest { cycle: bought.cycle, machine: "od-1".into() };
    let nothing = Api::explain_decision(&view, Request::new(request)).await.unwrap_err();
    assert_eq!(nothing.code(), Code::NotFound);
    assert!(nothing.message().contains("decided nothing about machine \"od-1\""), "{}", nothing.message());

    let request = v1::ListNeedsRequest {
        at: Some(v1::Moment { moment: Some(v1::moment::Moment::UnixNanos(5)) }),
        ..Default::default()
    };
    let early = pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap_err();
    assert_eq!(early.code(), Code::NotFound);
    let version = Api::get_version(&view, Request::new(v1::GetVersionRequest {})).await.unwrap().into_inner();
    assert!(version.recording && version.oldest_cycle > 0);
    assert_eq!((&*version.server_version, &*version.api_version, &*version.role), ("1.2.3", "v1", ""));
}

#[tokio::test]
async fn without_a_record_there_is_only_now() {
    let (_driver, view) = small();
    let request = v1::ListNeedsRequest { at: Some(at(1)), ..Default::default() };
    let refused = pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().starts_with("this shard keeps no decision record"), "{}", refused.message());
    let decisions =
        pages(Api::list_decisions(&view, Request::new(v1::ListDecisionsRequest::default())).await)
            .await
            .unwrap();
    let last = &decisions[0].decisions[0];
    let request = v1::ExplainDecisionRequest { cycle: last.cycle, machine: last.machine.clone() };
    let answer = Api::explain_decision(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(answer.decision.unwrap().why, last.why, "the cycles at hand are enough");
    let request = v1::ExplainDecisionRequest { cycle: 999, machine: last.machine.clone() };
    let gone = Api::explain_decision(&view, Request::new(request)).await.unwrap_err();
    assert!(gone.message().starts_with("cycle 999 is not at hand ("), "{}", gone.message());
}
