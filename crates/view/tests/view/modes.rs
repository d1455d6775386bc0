//! Modes and proposals over the view: who may order, what is shown, and that a yes is for what was shown.

use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_view::v1::view_server::View as Api;
use bigfleet_view::{View, v1};
use tonic::{Code, Request};

use crate::driver::{Driver, config, metal, need};
use crate::lists::pages;

fn order(cluster: &str, mode: v1::Mode) -> Request<v1::SetModeRequest> {
    Request::new(v1::SetModeRequest {
        cluster: cluster.into(),
        mode: mode.into(),
        reason: "trial".into(),
        author: "sam".into(),
        ..v1::SetModeRequest::default()
    })
}

async fn proposals(view: &View<Driver>) -> Vec<v1::Proposal> {
    let request = Request::new(v1::ListProposalsRequest::default());
    let all = pages(Api::list_proposals(view, request).await).await.unwrap();
    all.into_iter().flat_map(|page| page.proposals).collect()
}

fn yes(ids: &[&str]) -> Request<v1::ApproveRequest> {
    let ids = ids.iter().map(ToString::to_string).collect();
    Request::new(v1::ApproveRequest { ids, author: "sam".into(), ..v1::ApproveRequest::default() })
}

fn configured(driver: &Arc<Driver>) -> usize {
    driver.with(|state, _| {
        state.machines.values().filter(|machine| machine.state == MachineState::Configured).count()
    })
}

#[tokio::test]
async fn what_waits_is_shown_everywhere_and_done_after_a_yes() {
    let machines = (0..3).map(|n| metal(&format!("m-{n}"), "za", "8")).collect();
    let driver = Driver::new(config(), machines, None);
    driver.report("shop", vec![]);
    let view = driver.view(None);
    let unknown = Api::set_mode(&view, order("shp", v1::Mode::Approve)).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let set = Api::set_mode(&view, order("shop", v1::Mode::Approve)).await.unwrap().into_inner();
    assert_eq!((set.was, set.is.unwrap().author), (None, "sam".to_owned()));
    driver.report("shop", vec![need("shop", 1000, 16, vec![])]);
    let waiting = proposals(&view).await;
    assert_eq!(waiting.len(), 2);
    let decision = waiting[0].decision.clone().unwrap();
    assert_eq!((decision.kind(), decision.fate()), (v1::ActionKind::Bootstrap, v1::Fate::AwaitsApproval));
    assert!(decision.why.is_some(), "with its reason");

    let summary =
        Api::get_summary(&view, Request::new(v1::GetSummaryRequest::default())).await.unwrap().into_inner();
    assert_eq!((summary.mode(), summary.proposals), (v1::Mode::Auto, 2));
    assert_eq!((summary.lanes[0].mode(), summary.lanes[0].mode_mixed), (v1::Mode::Approve, false));
    let rails =
        Api::get_rails(&view, Request::new(v1::GetRailsRequest::default())).await.unwrap().into_inner();
    assert_eq!((rails.modes.len(), rails.proposals), (1, 2));
    assert!(rails.withheld.iter().any(|cell| cell.fate() == v1::Fate::AwaitsApproval && cell.actions == 2));
    let modes =
        Api::get_modes(&view, Request::new(v1::GetModesRequest::default())).await.unwrap().into_inner();
    assert_eq!((modes.clusters[0].mode(), modes.waiting), (v1::Mode::Approve, 2));

    let nobody = Api::approve(&view, yes(&["ffffffff0"])).await.unwrap_err();
    assert_eq!(nobody.code(), Code::NotFound);
    assert_eq!(configured(&driver), 0);
    let approved = Api::approve(&view, yes(&[&waiting[0].id])).await.unwrap().into_inner().approved;
    assert_eq!((approved.len(), &*approved[0].approved_by), (1, "sam"));
    driver.pass(5);
    assert_eq!((configured(&driver), proposals(&view).await.len()), (1, 1));
    let all = v1::ListDecisionsRequest { fates: vec![v1::Fate::Begun.into()], ..Default::default() };
    let begun = pages(Api::list_decisions(&view, Request::new(all)).await).await.unwrap();
    let begun: Vec<_> = begun.into_iter().flat_map(|page| page.decisions).collect();
    assert_eq!((begun.len(), &*begun[0].approved_by), (1, "sam"), "recorded with whom");
    let everything = v1::ApproveRequest { everything: true, ..v1::ApproveRequest::default() };
    Api::approve(&view, Request::new(everything)).await.unwrap();
    driver.pass(5);
    assert_eq!((configured(&driver), proposals(&view).await.len()), (2, 0));
}

#[tokio::test]
async fn in_observe_a_report_can_be_made_of_what_would_have_been_done() {
    let machines = (0..3).map(|n| metal(&format!("m-{n}"), "za", "8")).collect();
    let driver = Driver::new(config(), machines, None);
    let view = driver.view(None);
    Api::set_mode(&view, order("", v1::Mode::Observe)).await.unwrap();
    driver.report("shop", vec![need("shop", 1000, 16, vec![])]);
    driver.pass(60);
    assert_eq!(configured(&driver), 0);
    let request =
        v1::ListDecisionsRequest { fates: vec![v1::Fate::Observed.into()], fold: true, ..Default::default() };
    let rows = pages(Api::list_decisions(&view, Request::new(request)).await).await.unwrap();
    assert_eq!(rows.into_iter().flat_map(|page| page.decisions).count(), 2, "each once");
    Api::set_mode(&view, order("", v1::Mode::Unspecified)).await.unwrap();
    driver.pass(5);
    assert_eq!(configured(&driver), 2, "trusted again");
}
