//! Metrics: the truth, and no series of what is gone.

use bigfleet_proto::v1alpha1::{CapacityType, MachineState};

use crate::house::{Provider, anywhere, cloud, http_get, scrape, series, shard_over, until};
use crate::operator::{Operator, need};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_leaves_no_series() {
    let sim = cloud("sim", 16).await;
    let provider = Provider::serve(sim.service(), sim.handle(), anywhere()).await;
    let running = shard_over(&provider).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    shop.rollup(vec![need(10, 4)]).await;
    let update = shop.serve_until(|update| update.state() == MachineState::Configured).await;
    let capacity = sim.handle().get(&update.machine_id).unwrap().capacity_type();
    let name = match capacity {
        CapacityType::BareMetal => "bare-metal",
        CapacityType::Reserved => "reserved",
        CapacityType::OnDemand => "on-demand",
        CapacityType::Spot => "spot",
        CapacityType::Unspecified => "unspecified",
    };
    let ours = format!("bigfleet_shard_cluster_usd_per_hour{{cluster=\"shop\",capacity_type=\"{name}\"}}");
    until("the cluster to cost something", || async { series(&scrape(&running).await, &ours).is_some() })
        .await;
    let text = scrape(&running).await;
    let configured = format!("bigfleet_shard_machines{{state=\"Configured\",capacity_type=\"{name}\"}}");
    assert_eq!(series(&text, &configured), Some(1.0));
    assert!(series(&text, "bigfleet_shard_spend_usd_per_hour").is_some_and(|usd| usd > 0.0));
    assert!(series(&text, "bigfleet_shard_cycle_duration_seconds_count").is_some_and(|count| count >= 1.0));
    assert!(
        series(&text, "bigfleet_shard_rollup_to_decision_seconds_count").is_some_and(|count| count >= 1.0)
    );
    assert!(
        !text.ends_with("# EOF\n"),
        "whoever asks for nothing else gets the text form, which has no end mark"
    );
    // The first alarm of a kind is a rise from 0, which `increase` sees.
    let alarm = "bigfleet_shard_notices_total{urgency=\"alarm\",code=\"quarantined\"}";
    assert_eq!(series(&text, alarm), Some(0.0));
    assert!(text.contains("bigfleet_shard_build_info{shard=\"s1\",version="), "{text}");
    assert!(series(&text, "process_resident_memory_bytes").is_some_and(|bytes| bytes > 1e6));

    // The operator leaves, so that nothing is bound any more, and the machine dies.
    drop(shop);
    let handle = sim.handle();
    let died = handle.update(&update.machine_id, |machine| {
        machine.set_state(MachineState::Failed);
        machine.cluster.clear();
        machine.shard_metadata.clear();
        machine.last_error = "fire".into();
    });
    died.await.unwrap();
    until("the series to go", || async {
        let text = scrape(&running).await;
        series(&text, &ours).is_none() && series(&text, &configured).is_none()
    })
    .await;
    let (status, body) = http_get(running.http.unwrap(), "/healthz").await;
    assert!(status.contains("200") && body == "ok\n", "{status} {body}");
    running.stop().await.unwrap();
    provider.stop().await;
}
