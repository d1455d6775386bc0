//! What a cluster hears about itself and says about itself.

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::Need;
use bigfleet_model::resource::ResourceVec;
use bigfleet_view::v1;
use bigfleet_view::v1::cluster_view_server::ClusterView as Api;
use tokio_stream::StreamExt as _;
use tonic::{Code, Request};

use crate::driver::{Driver, config, metal, need};
use crate::lists::small;

fn watch(cluster: &str) -> Request<v1::WatchVerdictsRequest> {
    Request::new(v1::WatchVerdictsRequest { cluster_id: cluster.into(), min_interval_millis: 0 })
}

#[tokio::test]
async fn a_cluster_hears_about_its_own_needs_and_no_others() {
    let (_driver, view) = small();
    let mut shop = view.watch_verdicts(watch("shop")).await.unwrap().into_inner();
    let told = shop.next().await.unwrap().unwrap();
    let [verdict] = &told.needs[..] else { panic!("{told:?}") };
    assert_eq!(verdict.key.as_ref().unwrap().cluster, "shop");
    assert!(verdict.decided && verdict.satisfied);
    assert_eq!(verdict.aggregate["cpu"], "20");
    assert_eq!(
        verdict.machines.len() + verdict.acquired as usize,
        3,
        "20 cpus on machines of eight: {verdict:?}"
    );
    let mut batch = view.watch_verdicts(watch("batch")).await.unwrap().into_inner();
    let told = batch.next().await.unwrap().unwrap();
    let [verdict] = &told.needs[..] else { panic!("{told:?}") };
    assert_eq!((verdict.satisfied, verdict.reason()), (false, v1::Reason::NoMatchingSupply));
    assert_eq!(verdict.deficit["cpu"], "4");
    assert!(verdict.short_since_unix_nanos > 0);
    let mut nobody = view.watch_verdicts(watch("nobody")).await.unwrap().into_inner();
    assert!(nobody.next().await.unwrap().unwrap().needs.is_empty());
}

#[tokio::test]
async fn a_short_need_hears_which_machines_are_too_small_for_its_largest_piece() {
    let machines = [("m-1", "8"), ("m-2", "4"), ("m-3", "8")].map(|(id, cpu)| metal(id, "za", cpu));
    let driver = Driver::new(config(), machines.into(), None);
    let pieces = ResourceVec::parse([("cpu", "16")]).unwrap();
    let large = Need { min_unit: pieces, ..need("shop", 1000, 20, vec![]) };
    driver.report("shop", vec![large, need("shop", 2000, 4, vec![])]);
    let view = driver.view(None);
    let told = view.watch_verdicts(watch("shop")).await.unwrap().into_inner().next().await.unwrap().unwrap();
    let [served, short] = &told.needs[..] else { panic!("{told:?}") };
    assert!(served.satisfied && served.too_small.is_empty(), "{served:?}");
    assert_eq!(short.reason(), v1::Reason::NoMatchingSupply);
    let sizes: Vec<&str> = short.too_small.iter().map(|size| &*size.amounts["cpu"]).collect();
    assert_eq!(sizes, ["8"], "the largest, and none that another covers");
}

#[tokio::test]
async fn a_cluster_hears_what_is_on_its_way() {
    let mut coming = metal("m-1", "za", "8");
    coming.state = MachineState::Configuring;
    coming.cluster = "shop".into();
    coming.assigned.cluster = "shop".into();
    let driver = Driver::new(config(), vec![coming, metal("m-2", "za", "8")], None);
    driver.report("shop", vec![need("shop", 1000, 8, vec![])]);
    let view = driver.view(None);
    let told = view.watch_verdicts(watch("shop")).await.unwrap().into_inner().next().await.unwrap().unwrap();
    let [verdict] = &told.needs[..] else { panic!("{told:?}") };
    assert_eq!((&verdict.machines[..], verdict.coming), (&["m-1".to_owned()][..], 1), "{verdict:?}");
    assert_eq!(verdict.expected, None, "nobody has seen how long that takes");
    assert_eq!(told.coming, [v1::Coming { machine_id: "m-1".into(), expected: None }]);
}

#[tokio::test]
async fn a_new_roll_up_has_a_verdict_of_its_own() {
    let (driver, view) = small();
    driver.report("shop", vec![need("shop", 1000, 24, vec![])]);
    let mut shop = view.watch_verdicts(watch("shop")).await.unwrap().into_inner();
    let told = shop.next().await.unwrap().unwrap();
    assert_eq!(told.needs[0].aggregate["cpu"], "24", "a verdict says which amounts it is about");
}

#[tokio::test]
async fn what_a_cluster_says_about_nodes_is_kept_within_bounds() {
    let (_driver, view) = small();
    let node = |name: &str| v1::NodeState { node_name: name.into(), ready: true, ..v1::NodeState::default() };
    let report = |cluster: &str, nodes| {
        let cluster_id = cluster.into();
        Request::new(v1::NodeReport { cluster_id, nodes, taken_unix_nanos: 7, ..v1::NodeReport::default() })
    };
    let ask = || Request::new(v1::GetNodesRequest { cluster_id: "shop".into() });
    assert!(view.get_nodes(ask()).await.unwrap().into_inner().nodes.is_empty());
    view.report_nodes(report("shop", vec![node("a"), node("b")])).await.unwrap();
    view.report_nodes(report("shop", vec![node("b")])).await.unwrap();
    let kept = view.get_nodes(ask()).await.unwrap().into_inner();
    assert_eq!(kept.nodes, [node("b")], "the newer report replaces the older");

    let refused = view.report_nodes(report("stranger", vec![])).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let refused = view.report_nodes(report("shop", vec![node(&"x".repeat(2000))])).await.unwrap_err();
    assert_eq!(refused.message(), "nodes[0].node_name: 2000 bytes; at most 1024 are taken");
    let refused = view.report_nodes(report("shop", vec![node("a"); 50_001])).await.unwrap_err();
    assert_eq!(refused.message(), "nodes: 50001 of them; at most 50000 are taken");
}

#[tokio::test]
async fn pods_that_wait_are_shown_with_their_need() {
    use bigfleet_view::v1::view_server::View as _;
    let (_driver, view) = small();
    let mut shop = view.watch_verdicts(watch("shop")).await.unwrap().into_inner();
    let key = shop.next().await.unwrap().unwrap().needs[0].key.clone().unwrap();
    let waiting = |examples: Vec<String>| {
        let waiting = v1::Waiting {
            fingerprint: key.fingerprint.clone(),
            group: key.group.clone(),
            pods: 7,
            examples,
            ..v1::Waiting::default()
        };
        let cluster_id = "shop".into();
        Request::new(v1::NodeReport { cluster_id, waiting: vec![waiting], ..v1::NodeReport::default() })
    };
    view.report_nodes(waiting(vec!["web/a".into()])).await.unwrap();
    let mut pages =
        view.list_needs(Request::new(v1::ListNeedsRequest::default())).await.unwrap().into_inner();
    let needs = pages.next().await.unwrap().unwrap().needs;
    let of = |cluster: &str| needs.iter().find(|need| need.key.as_ref().unwrap().cluster == cluster).unwrap();
    assert_eq!(
        (of("shop").pods_waiting, &of("shop").pods_waiting_examples[..]),
        (7, &["web/a".to_owned()][..])
    );
    assert_eq!(of("batch").pods_waiting, 0, "what one cluster says is about itself");
    for bad in [vec!["x".repeat(2000)], vec!["x".to_owned(); 51]] {
        let refused = view.report_nodes(waiting(bad)).await.unwrap_err();
        assert_eq!(refused.message(), "waiting[0]: too many texts, or too long");
    }
}
