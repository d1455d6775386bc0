//! Lists: complete, filtered, in pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::ZONE;
use bigfleet_model::requirement::Requirement;
use bigfleet_view::v1::view_server::View as Api;
use bigfleet_view::{View, v1};
use tokio_stream::StreamExt as _;
use tonic::{Code, Request, Response, Status};

use crate::driver::{Driver, START, config, metal, need, quota};

/// All pages of a list.
pub(crate) async fn pages<T, S>(answer: Result<Response<S>, Status>) -> Result<Vec<T>, Status>
where
    S: tokio_stream::Stream<Item = Result<T, Status>> + Unpin,
{
    answer?.into_inner().collect::<Result<Vec<T>, Status>>().await
}

/// Two clusters; `shop` is served, `batch` wants a zone nobody has.
pub(crate) fn small() -> (Arc<Driver>, View<Driver>) {
    let machines = vec![
        metal("metal-1", "za", "8"),
        metal("metal-2", "zb", "8"),
        quota("spot-1", CapacityType::Spot, 0.1),
        quota("od-1", CapacityType::OnDemand, 0.4),
    ];
    let driver = Driver::new(config(), machines, None);
    driver.report("shop", vec![need("shop", 1000, 20, vec![])]);
    driver.report("batch", vec![need("batch", 10, 4, vec![Requirement::is_in(ZONE, ["zc"])])]);
    let view = driver.view(None);
    (driver, view)
}

#[tokio::test]
async fn whoever_turns_pages_sees_every_machine_once_and_how_many_there_are() {
    let machines = (0..4500).map(|n| metal(&format!("m-{n:05}"), if n % 3 == 0 { "za" } else { "zb" }, "4"));
    let view = Driver::new(config(), machines.collect(), None).view(None);
    let mut seen = BTreeSet::new();
    for skip in (0..).step_by(400) {
        let filter = v1::MachineFilter { zones: vec!["za".into()], ..Default::default() };
        let request = v1::ListMachinesRequest {
            filter: Some(filter),
            limit: 400,
            skip,
            count: true,
            ..Default::default()
        };
        let all = pages(Api::list_machines(&view, Request::new(request)).await).await.unwrap();
        let last = all.last().unwrap();
        assert_eq!((all[0].known, last.matching), (Some(4500), Some(1500)));
        let ids = all.iter().flat_map(|page| &page.machines).map(|machine| machine.id.clone());
        let before = seen.len();
        seen.extend(ids);
        if seen.len() == before {
            break;
        }
    }
    assert_eq!(seen.len(), 1500);
}

#[tokio::test]
async fn needs_that_are_short_can_come_first() {
    let (_driver, view) = small();
    let list = async |request| {
        let all = pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap();
        let rows = all.into_iter().flat_map(|page| page.needs);
        rows.map(|need| need.key.unwrap().cluster).collect::<Vec<_>>()
    };
    assert_eq!(list(v1::ListNeedsRequest::default()).await, ["shop", "batch"], "by priority");
    let first = v1::ListNeedsRequest { short_first: true, ..Default::default() };
    assert_eq!(list(first.clone()).await, ["batch", "shop"]);
    assert_eq!(list(v1::ListNeedsRequest { skip: 1, limit: 1, ..first }).await, ["shop"]);
}

#[tokio::test]
async fn every_machine_is_listed_once_over_many_pages() {
    let machines = (0..4500).map(|n| metal(&format!("m-{n:05}"), if n % 3 == 0 { "za" } else { "zb" }, "4"));
    let driver = Driver::new(config(), machines.collect(), None);
    let view = driver.view(None);
    let all = pages(Api::list_machines(&view, Request::new(v1::ListMachinesRequest::default())).await)
        .await
        .unwrap();
    assert!(all.len() >= 3, "never one giant message: {} pages", all.len());
    assert_eq!((all[0].known, all[1].known), (Some(4500), None));
    let ids: Vec<&str> =
        all.iter().flat_map(|page| &page.machines).map(|machine| machine.id.as_str()).collect();
    assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (4500, 4500));
    assert!(all[0].machines[0].provides.is_empty(), "a brief list leaves amounts out");

    let filter = v1::MachineFilter { zones: vec!["za".into()], ..Default::default() };
    let request = v1::ListMachinesRequest {
        filter: Some(filter),
        limit: 1200,
        detail: v1::Detail::Full.into(),
        ..Default::default()
    };
    let some = pages(Api::list_machines(&view, Request::new(request)).await).await.unwrap();
    let machines: Vec<&v1::Machine> = some.iter().flat_map(|page| &page.machines).collect();
    assert_eq!(machines.len(), 1200);
    assert!(machines.iter().all(|m| m.zone == "za" && m.provides["cpu"] == "4"));

    let filter = v1::MachineFilter { zones: vec!["zx".into()], ..Default::default() };
    let request = v1::ListMachinesRequest { filter: Some(filter), ..Default::default() };
    let none = pages(Api::list_machines(&view, Request::new(request)).await).await.unwrap();
    assert_eq!(
        (none.len(), none[0].machines.len(), none[0].known),
        (1, 0, Some(4500)),
        "an empty list says so"
    );
}

#[tokio::test]
async fn needs_come_with_their_verdicts_highest_priority_first() {
    let (_driver, view) = small();
    let list =
        async |request| pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap().remove(0);
    let page = list(v1::ListNeedsRequest::default()).await;
    let told: Vec<(&str, i32, bool, v1::Reason, u32)> = page
        .needs
        .iter()
        .map(|n| {
            let key = n.key.as_ref().unwrap();
            (&*key.cluster, n.spec.as_ref().unwrap().priority, n.satisfied, n.reason(), n.credited)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("shop", 1000, true, v1::Reason::Unspecified, 3),
            ("batch", 10, false, v1::Reason::NoMatchingSupply, 0)
        ]
    );
    assert_eq!(page.total, Some(2));
    assert_eq!(page.needs[0].usd_per_hour, 0.1, "two of its machines are ours, the third is spot");
    assert_eq!(page.needs[1].deficit["cpu"], "4");
    assert!(page.needs[1].short_since_unix_nanos > START);
    let short = list(v1::ListNeedsRequest { short_only: true, ..Default::default() }).await;
    assert_eq!((short.needs.len(), short.total), (1, Some(1)));
    assert_eq!(
        short.needs[0].key.as_ref().unwrap().id,
        bigfleet_view::short_id(&need("batch", 10, 4, vec![Requirement::is_in(ZONE, ["zc"])]).key())
    );
    for (request, expected) in [
        (v1::ListNeedsRequest { cluster: "shop".into(), ..Default::default() }, 1),
        (v1::ListNeedsRequest { min_priority: Some(11), ..Default::default() }, 1),
        (v1::ListNeedsRequest { gangs_only: true, ..Default::default() }, 0),
        (v1::ListNeedsRequest { resource: "memory".into(), ..Default::default() }, 0),
        (v1::ListNeedsRequest { limit: 1, ..Default::default() }, 1),
        (v1::ListNeedsRequest { reason: v1::Reason::PriorityStarved.into(), ..Default::default() }, 0),
    ] {
        assert_eq!(list(request.clone()).await.needs.len(), expected, "{request:?}");
    }
}

#[tokio::test]
async fn the_ends_of_the_shard_are_told() {
    let (_driver, view) = small();
    let clusters = pages(Api::list_clusters(&view, Request::new(v1::ListClustersRequest::default())).await)
        .await
        .unwrap()
        .remove(0);
    let lanes: Vec<&v1::Lane> = clusters.clusters.iter().map(|c| c.lane.as_ref().unwrap()).collect();
    let line = |l: &&v1::Lane| (l.cluster.clone(), l.machines, l.needs, l.unmet, l.connected, l.reported);
    assert_eq!(
        lanes.iter().map(line).collect::<Vec<_>>(),
        [("batch".into(), 0, 1, 1, true, true), ("shop".into(), 3, 1, 0, true, true)]
    );
    let sessions = pages(Api::list_sessions(&view, Request::new(v1::ListSessionsRequest::default())).await)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(sessions.total, Some(2));
    assert_eq!((&*sessions.sessions[1].cluster, &*sessions.sessions[1].protocol), ("shop", "v1alpha1"));
    let providers =
        pages(Api::list_providers(&view, Request::new(v1::ListProvidersRequest::default())).await)
            .await
            .unwrap()
            .remove(0);
    let brief = providers.providers[0].brief.as_ref().unwrap();
    assert_eq!((&*brief.name, brief.machines, brief.stale), ("sim", 4, false));
    assert_eq!(providers.providers[0].machines.iter().map(|cell| cell.machines).sum::<u32>(), 4);
    let offers = pages(Api::list_offers(&view, Request::new(v1::ListOffersRequest::default())).await)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(offers.offers.len(), 1);
    let offer = &offers.offers[0];
    assert_eq!(
        (&*offer.instance_type, offer.idle, offer.speculative, offer.min_usd_per_hour),
        ("m5", 0, 1, 0.4)
    );
    assert_eq!(offer.price_source.as_ref().unwrap().provider, "sim");
    let shortfalls =
        pages(Api::list_shortfalls(&view, Request::new(v1::ListShortfallsRequest::default())).await)
            .await
            .unwrap()
            .remove(0);
    assert_eq!(
        (shortfalls.total, shortfalls.shortfalls[0].reason()),
        (Some(1), v1::Reason::NoMatchingSupply)
    );
    assert!(shortfalls.shortfalls[0].since_cycle > 0);
}

#[tokio::test]
async fn decisions_are_listed_newest_first_and_filtered() {
    let (_driver, view) = small();
    let list = async |request| {
        let all = pages(Api::list_decisions(&view, Request::new(request)).await).await.unwrap();
        all.into_iter().flat_map(|page| page.decisions).collect::<Vec<_>>()
    };
    let all = list(v1::ListDecisionsRequest::default()).await;
    assert_eq!(all.len(), 3, "two bound, and one bought and bound in one: {all:?}");
    assert!(all.is_sorted_by(|a, b| a.cycle >= b.cycle));
    let bought = list(v1::ListDecisionsRequest {
        kinds: vec![v1::ActionKind::Provision.into()],
        ..Default::default()
    })
    .await;
    let [bought] = &bought[..] else { panic!("{bought:?}") };
    assert_eq!((&*bought.machine, &*bought.cluster, bought.usd_per_hour), ("spot-1", "shop", 0.1));
    let why = bought.why.as_ref().unwrap();
    assert_eq!((why.rule(), why.figure), (v1::Rule::Bargain, 0.1));
    let next = why.runner_up.as_ref().unwrap();
    assert_eq!((&*next.machine, next.figure, next.usd_per_hour), ("od-1", 0.4, 0.4));
    assert_eq!(list(v1::ListDecisionsRequest { cluster: "batch".into(), ..Default::default() }).await, []);
    assert_eq!(
        list(v1::ListDecisionsRequest { machine: "metal-1".into(), ..Default::default() }).await.len(),
        1
    );
    assert_eq!(list(v1::ListDecisionsRequest { limit: 2, ..Default::default() }).await, all[..2]);
}

#[tokio::test]
async fn a_summary_adds_up() {
    let (driver, view) = small();
    let summary =
        Api::get_summary(&view, Request::new(v1::GetSummaryRequest::default())).await.unwrap().into_inner();
    let as_of = summary.as_of.as_ref().unwrap();
    assert_eq!((&*as_of.shard_id, as_of.epoch, as_of.simulated, as_of.from_record), ("s1", 7, true, false));
    assert_eq!(as_of.cycle, driver.with(|state, _| state.shard.cycle()));
    assert_eq!((summary.needs, summary.short, summary.unmet, summary.worst.len()), (2, 1, 1, 1));
    assert_eq!(summary.usd_per_hour, 0.1);
    assert_eq!(summary.supply.iter().map(|cell| cell.machines).sum::<u32>(), 4);
    assert_eq!(summary.supply.iter().map(|cell| cell.usd_per_hour).sum::<f64>(), 0.1, "quota costs nothing");
    assert_eq!((summary.lanes.len(), summary.recent.len(), summary.providers.len()), (2, 3, 1));
    let costs =
        Api::get_costs(&view, Request::new(v1::GetCostsRequest::default())).await.unwrap().into_inner();
    assert_eq!((costs.usd_per_hour, costs.idle_usd_per_hour), (0.1, 0.0));
    let cells: Vec<_> = costs.cells.iter().map(|c| (&*c.cluster, c.capacity_type, c.machines)).collect();
    assert_eq!(cells, [("shop", 1, 2), ("shop", 4, 1)]);
}

#[tokio::test]
async fn unknown_names_are_not_found_with_suggestions() {
    let (_driver, view) = small();
    let refused = |status: Status| (status.code(), status.message().to_owned());
    let request = v1::ListNeedsRequest { cluster: "shp".into(), ..Default::default() };
    let status = pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap_err();
    assert_eq!(refused(status), (Code::NotFound, "there is no cluster \"shp\"; did you mean shop?".into()));
    let request = v1::ExplainMachineRequest { machine: "metal-3".into(), at: None };
    let status = Api::explain_machine(&view, Request::new(request)).await.unwrap_err();
    assert_eq!(
        refused(status),
        (Code::NotFound, "there is no machine \"metal-3\"; did you mean metal-1, metal-2?".into())
    );
    let request = v1::ExplainMachineRequest { machine: "metal".into(), at: None };
    let status = Api::explain_machine(&view, Request::new(request)).await.unwrap_err();
    assert_eq!(
        refused(status),
        (
            Code::InvalidArgument,
            "machine \"metal\" is ambiguous: 2 begin like that (metal-1, metal-2); give more of the name"
                .into()
        )
    );
    let request = v1::ExplainMachineRequest { machine: "spo".into(), at: None };
    let found = Api::explain_machine(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(found.machine.unwrap().id, "spot-1", "a beginning that fits one machine will do");
    let request = v1::ExplainClusterRequest { cluster: "bach".into() };
    let status = Api::explain_cluster(&view, Request::new(request)).await.unwrap_err();
    assert_eq!(status.message(), "there is no cluster \"bach\"; did you mean batch?");
}
