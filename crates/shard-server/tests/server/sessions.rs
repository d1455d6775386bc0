//! Operators: good ones, rude ones, and those who stop reading.

use bigfleet_proto::v1alpha1::operator_message::Payload as Said;
use bigfleet_proto::v1alpha1::{BootstrapBlobResponse, Hello, MachineState, ReclaimAck, TopologySpread};
use bigfleet_shard_server::Settings;
use tonic::Code;

use crate::house::{
    Provider, anywhere, cloud, hasty, listed_often, scrape, series, shard_over, start, until, until_ready,
};
use crate::operator::{Operator, channel, need};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn demand_becomes_configured_machines() {
    let sim = cloud("sim", 64).await;
    let provider = Provider::serve(sim.service(), sim.handle(), anywhere()).await;
    let running = shard_over(&provider).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    shop.rollup(vec![need(10, 4)]).await;
    let update = shop.serve_until(|update| update.state() == MachineState::Configured).await;
    assert_eq!((&*update.cluster_id, &*update.node_name), ("shop", ""));
    assert_eq!(update.supersedes_key, format!("node:{}", update.machine_id));
    assert!(!update.provider_id.is_empty() && !update.labels.is_empty());
    assert!(update.resources.is_some_and(|resources| resources.resources.contains_key("cpu")));
    let machine = sim.handle().get(&update.machine_id).unwrap();
    assert_eq!((machine.cluster.as_str(), machine.state()), ("shop", MachineState::Configured));
    running.stop().await.unwrap();
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_begins_with_a_hello_and_nothing_else() {
    let running = start(Settings::local(hasty(), vec![])).await;
    let channel = channel(running.grpc).await;
    let hello = |cluster: &str| Said::Hello(Hello { cluster_id: cluster.into(), ..Hello::default() });
    let ack = Said::ReclaimAck(ReclaimAck::default());
    for (said, part) in [
        (ack, "the first frame must be a hello"),
        (hello(""), "the hello names no cluster"),
        (hello(&"x".repeat(300)), "longer than 253 bytes"),
    ] {
        let mut rude = Operator::silent(channel.clone(), "shop").await;
        rude.say(said).await;
        let status = rude.end().await.expect("it is refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(part), "{status}");
    }
    let mut rude = Operator::silent(channel.clone(), "shop").await;
    rude.rollup(vec![]).await;
    assert_eq!(rude.end().await.unwrap().code(), Code::InvalidArgument, "a roll-up is no hello");
    assert_eq!(
        series(&scrape(&running).await, "bigfleet_shard_sessions_ended_total{why=\"refused\"}"),
        Some(4.0)
    );
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_hello_is_answered_and_another_cluster_is_not() {
    let running = start(Settings::local(hasty(), vec![])).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    shop.hello().await;
    assert_eq!(shop.ack().await, "hello");
    shop.say(Said::Hello(Hello { cluster_id: "web".into(), ..Hello::default() })).await;
    let status = shop.end().await.unwrap();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "this session speaks for \"shop\"; open another for \"web\"");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_session_of_a_cluster_wins() {
    let running = start(Settings::local(hasty(), vec![])).await;
    let mut first = Operator::connect(running.grpc, "shop").await;
    let mut second = Operator::connect(running.grpc, "shop").await;
    let status = first.end().await.unwrap();
    assert_eq!(status.code(), Code::Aborted);
    assert_eq!(status.message(), "a newer session speaks for cluster shop; only one may");
    second.rollup(vec![need(1, 1)]).await;
    assert_eq!(second.ack().await, "rollup");
    until("one session to be left", || async {
        series(&scrape(&running).await, "bigfleet_shard_sessions") == Some(1.0)
    })
    .await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roll_ups_are_acknowledged_repeated_and_refused() {
    let running = start(Settings::local(hasty(), vec![])).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    for taken in 1..=3 {
        shop.rollup_of("shop", taken, vec![need(1, 4)]).await;
        assert_eq!(shop.ack().await, "rollup");
    }
    let text = scrape(&running).await;
    assert_eq!(series(&text, "bigfleet_shard_rollups_unchanged_total"), Some(2.0), "only the time differed");

    shop.rollup_of("web", 4, vec![need(1, 4)]).await;
    let refused = "rollup refused: it is of cluster \"web\", but this session speaks for \"shop\"";
    assert!(shop.ack().await.starts_with(refused));
    let mut bad = need(1, 4);
    bad.aggregate_resources.insert("cpu".into(), "many".into());
    for _ in 0..2 {
        shop.rollup(vec![bad.clone()]).await;
        let refused = shop.ack().await;
        assert!(
            refused.starts_with("rollup refused: roll-up of cluster \"shop\", row 0: aggregate_resources"),
            "{refused}"
        );
    }

    let mut bad = need(1, 4);
    bad.spread.push(TopologySpread { topology_key: "a;b".into(), max_skew: 1, when_unsatisfiable: 1 });
    for _ in 0..2 {
        shop.rollup(vec![bad.clone()]).await;
        let refused = shop.ack().await;
        assert!(
            refused.starts_with("rollup refused: roll-up of cluster \"shop\", row 0: topology spread"),
            "{refused}"
        );
    }

    shop.rollup(vec![]).await;
    assert_eq!(shop.ack().await, "rollup");
    let held = shop.ack().await;
    assert!(held.starts_with("rollup held 1 of 3: "), "{held}");
    let text = scrape(&running).await;
    assert_eq!(series(&text, "bigfleet_shard_rollups_held"), Some(1.0));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_nothing_are_ignored() {
    let running = start(Settings::local(hasty(), vec![])).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    for request_id in ["", "zz", "00000000000000ff"] {
        let response = BootstrapBlobResponse { request_id: request_id.into(), ..Default::default() };
        shop.say(Said::BootstrapResponse(response)).await;
    }
    shop.rollup(vec![need(1, 1)]).await;
    assert_eq!(shop.ack().await, "rollup", "the session goes on");
    assert_eq!(series(&scrape(&running).await, "bigfleet_shard_frames_ignored_total"), Some(2.0));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_is_dropped_and_nobody_else_notices() {
    let sim = cloud("sim", 64).await;
    let provider = Provider::serve(sim.service(), sim.handle(), anywhere()).await;
    let mut config = hasty();
    config.limits.outbox = 64;
    let running = start(Settings::local(config, vec![listed_often("sim", provider.url())])).await;
    until_ready(&running).await;

    // Each roll-up is refused with an answer, nobody reads the answers, and few have room on the way.
    let stuck = Operator::connect_narrow(running.grpc, "stuck").await;
    let name = "x".repeat(100);
    let dropped = until("the stuck session to be dropped", || async {
        series(&scrape(&running).await, "bigfleet_shard_sessions_ended_total{why=\"stuck\"}") == Some(1.0)
    });
    tokio::join!(stuck.flood(&name), dropped);
    let mut shop = Operator::connect(running.grpc, "shop").await;
    shop.rollup(vec![need(10, 4)]).await;
    shop.serve_until(|update| update.state() == MachineState::Configured).await;
    until("the stuck session to be forgotten", || async {
        series(&scrape(&running).await, "bigfleet_shard_sessions") == Some(1.0)
    })
    .await;
    running.stop().await.unwrap();
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_sessions_are_refused() {
    let running = start(Settings { most_sessions: 1, ..Settings::local(hasty(), vec![]) }).await;
    let _shop = Operator::connect(running.grpc, "shop").await;
    let mut client = bigfleet_proto::transport::shard_client(channel(running.grpc).await);
    let refused = client.session(tokio_stream::pending()).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::ResourceExhausted, "1 sessions are open; try again later")
    );
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_tells_operators_to_come_back() {
    let running = start(Settings::local(hasty(), vec![])).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    let mut silent = Operator::silent(channel(running.grpc).await, "silent").await;
    running.stop().await.unwrap();
    for operator in [&mut shop, &mut silent] {
        let status = operator.end().await.unwrap();
        let said = (status.code(), status.message().to_owned());
        assert_eq!(said, (Code::Unavailable, "the shard is stopping; reconnect in a moment".into()));
    }
}
