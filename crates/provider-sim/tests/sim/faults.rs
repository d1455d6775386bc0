//! Faults and lies, one by one: seen through the service, and gone when lifted.

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::ListFilter;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider as _;
use bigfleet_provider_kit::CapacityType;
use bigfleet_provider_sim::{NOTICE_LABEL, RACK_LABEL};
use tonic::{Code, Request};

use crate::virtual_cloud::{VirtualCloud, code, quiet};

async fn cloud() -> VirtualCloud {
    VirtualCloud::open(quiet(300)).await
}

#[tokio::test]
async fn zone_outage() {
    let cloud = cloud().await;
    let alive = |zone: &str| cloud.ids(|m| m.zone == zone && m.host.is_some() && m.state != 8).len();
    let (here, there) = (alive("zone-a"), alive("zone-b"));
    assert!(here > 5 && there > 5);
    let slot = cloud.ids(|m| m.zone == "zone-b" && m.host.is_none())[0].clone();
    cloud.fault("zone-outage zone-b --for 10m");
    cloud.pass(1).await;
    assert_eq!((alive("zone-a"), alive("zone-b")), (here, 0));
    cloud.create(&slot).await.expect("it is accepted and fails later");
    cloud.pass(590).await;
    assert_eq!(cloud.get(&slot).last_error, "zone zone-b is out (simulated)");
    cloud.pass(10).await;
    let slot =
        cloud.slots(CapacityType::OnDemand).into_iter().find(|id| id.contains("zone-b")).expect("a slot");
    cloud.create(&slot).await.expect("the zone is back");
    cloud.pass(600).await;
    assert_eq!(cloud.state(&slot), MachineState::Idle);
}

#[tokio::test]
async fn api_outage() {
    let cloud = cloud().await;
    let slot = cloud.slots(CapacityType::OnDemand)[0].clone();
    let id = cloud.fault("api-outage");
    assert_eq!(code(cloud.create(&slot).await), Code::Unavailable);
    let list = cloud.sim.service().list(Request::new(ListFilter::default())).await;
    assert_eq!(code(list), Code::Unavailable);
    assert_eq!(cloud.state(&slot), MachineState::Speculative, "nothing was changed");
    cloud.lift(id);
    assert_eq!(code(cloud.create(&slot).await), Code::Ok);
}

#[tokio::test]
async fn throttling_by_fault_and_by_model_says_when_to_come_back() {
    let cloud = cloud().await;
    let slots = cloud.slots(CapacityType::OnDemand);
    let id = cloud.fault("throttle 5 retry=7s");
    let answers: Vec<_> = {
        let mut answers = Vec::new();
        for slot in &slots[..8] {
            answers.push(cloud.create(slot).await);
        }
        answers
    };
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
    let refused = answers[7].as_ref().expect_err("the last is too much");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.metadata().get("grpc-retry-pushback-ms").expect("the time"), "7000");
    cloud.pass(1).await;
    assert_eq!(code(cloud.create(&slots[7]).await), Code::Ok, "a second later there is room for five more");
    cloud.lift(id);

    let mut config = quiet(1000);
    config.models.throttle.on = true;
    config.models.throttle.burst = 3.0;
    let cloud = VirtualCloud::open(config).await;
    let slots = cloud.slots(CapacityType::OnDemand);
    let mut codes = Vec::new();
    for slot in &slots[..4] {
        codes.push(code(cloud.create(slot).await));
    }
    assert_eq!(codes, [Code::Ok, Code::Ok, Code::Ok, Code::ResourceExhausted]);
    assert_eq!(cloud.list().await.len(), 1000, "reads are not throttled by the model");
}

#[tokio::test]
async fn stock_out() {
    let cloud = cloud().await;
    let slot = cloud.slots(CapacityType::OnDemand)[0].clone();
    let kind = cloud.get(&slot).instance_type.clone();
    let id = cloud.fault(&format!("stock-out {kind}"));
    cloud.create(&slot).await.expect("it is accepted and fails later");
    cloud.pass(60).await;
    assert_eq!(cloud.state(&slot), MachineState::Failed);
    assert!(cloud.get(&slot).last_error.starts_with("insufficient capacity"));
    cloud.lift(id);
    let next = cloud.ids(|m| m.instance_type == kind && m.host.is_none() && m.state == 1)[0].clone();
    cloud.create(&next).await.expect("a slot");
    cloud.pass(1000).await;
    assert_eq!(cloud.state(&next), MachineState::Idle);
}

#[tokio::test]
async fn spot_storm_and_price_spike() {
    let mut config = quiet(600);
    config.models.spot.on = true;
    let cloud = VirtualCloud::open(config).await;
    let slots = cloud.slots(CapacityType::Spot);
    for id in &slots {
        cloud.create(id).await.expect("a slot");
    }
    cloud.pass(600).await;
    let usual = cloud.events("spot-notice");
    let before = cloud.get(&slots[0]).price_per_hour;
    let spike = cloud.fault("price-spike factor=2");
    cloud.fault("spot-storm factor=100 zone=zone-a --for 10m");
    cloud.pass(600).await;
    let noticed = cloud.sim.log().events();
    let noticed: Vec<_> = noticed.iter().filter(|event| event.event == "spot-notice").skip(usual).collect();
    let stormy = noticed.iter().filter(|event| event.about.contains("zone-a")).count();
    assert!(stormy > 40 && stormy > 8 * (noticed.len() - stormy), "{stormy} of {}", noticed.len());
    assert!((cloud.get(&slots[0]).price_per_hour / before - 2.0).abs() < 0.01);
    cloud.lift(spike);
    cloud.pass(1).await;
    assert!((cloud.get(&slots[0]).price_per_hour / before - 1.0).abs() < 0.01);
}

#[tokio::test]
async fn hosts_of_a_rack_are_lost_at_once() {
    let cloud = cloud().await;
    let rack = "zone-a-rack-001";
    let in_rack = |m: &bigfleet_provider_kit::Machine| m.labels[RACK_LABEL] == rack && m.host.is_some();
    let doomed = cloud.ids(in_rack);
    let others = cloud.ids(|m| m.host.is_some() && !in_rack(m));
    assert!(!doomed.is_empty() && !others.is_empty());
    cloud.fault(&format!("host-loss count=1000 rack={rack}"));
    cloud.pass(1).await;
    assert!(doomed.iter().all(|id| cloud.state(id) == MachineState::Failed));
    assert!(others.iter().all(|id| cloud.state(id) == MachineState::Idle));
    cloud.fault("host-loss count=2");
    cloud.pass(1).await;
    assert_eq!(others.iter().filter(|id| cloud.state(id) == MachineState::Failed).count(), 2);
}

#[tokio::test]
async fn moves_fail_hang_and_slow_down() {
    let cloud = cloud().await;
    let slots = cloud.slots(CapacityType::OnDemand);
    let fail = cloud.fault("fail create p=0.5");
    for id in &slots[..60] {
        cloud.create(id).await.expect("a slot");
    }
    cloud.pass(1000).await;
    cloud.lift(fail);
    let failed = slots[..60].iter().filter(|id| cloud.state(id) == MachineState::Failed).count();
    assert!((18..=42).contains(&failed), "{failed} of 60");
    let idle: Vec<_> = slots[..60].iter().filter(|id| cloud.state(id) == MachineState::Idle).collect();

    let hang = cloud.fault("hang configure");
    cloud.configure(idle[0]).await.expect("idle");
    cloud.pass(590).await;
    assert_eq!(cloud.state(idle[0]), MachineState::Configuring);
    cloud.pass(20).await;
    assert_eq!(cloud.state(idle[0]), MachineState::Failed, "the kit's time-out ends it");
    cloud.lift(hang);

    cloud.fault(&format!("slow configure factor=1000 machine={}", idle[1]));
    cloud.configure(idle[1]).await.expect("idle");
    cloud.configure(idle[2]).await.expect("idle");
    cloud.pass(300).await;
    assert_eq!(cloud.state(idle[1]), MachineState::Configuring);
    assert_eq!(cloud.state(idle[2]), MachineState::Configured, "others are as fast as ever");
}

#[tokio::test]
async fn listings_are_stale_truncated_duplicated_and_shuffled() {
    let cloud = cloud().await;
    let slot = cloud.slots(CapacityType::OnDemand)[0].clone();
    let shown = |list: &[bigfleet_provider_kit::Machine]| list.iter().find(|m| m.id == slot).map(|m| m.state);
    let stale = cloud.fault("stale-list by=60s");
    assert_eq!(shown(&cloud.list().await), Some(1));
    cloud.create(&slot).await.expect("a slot");
    cloud.pass(30).await;
    assert_eq!(shown(&cloud.list().await), Some(1), "the view of half a minute ago");
    cloud.pass(31).await;
    assert_ne!(shown(&cloud.list().await), Some(1), "renewed after a minute");
    cloud.lift(stale);

    let truncated = cloud.fault("truncated-list 0.25");
    assert_eq!(cloud.list().await.len(), 75);
    cloud.lift(truncated);
    let duplicated = cloud.fault("duplicated-list 0.1");
    let list = cloud.list().await;
    assert_eq!((list.len(), &list[0]), (330, &list[300]));
    cloud.lift(duplicated);
    let shuffled = cloud.fault("shuffled-list");
    let first: Vec<String> = cloud.list().await.into_iter().map(|m| m.id).collect();
    cloud.pass(1).await;
    let mut second: Vec<String> = cloud.list().await.into_iter().map(|m| m.id).collect();
    assert_ne!(first, second);
    cloud.lift(shuffled);
    let mut honest = cloud.ids(|_| true);
    honest.sort();
    second.sort();
    assert_eq!(second, honest, "nothing is missing");
    assert_eq!(cloud.list().await.len(), 300);
}

#[tokio::test]
async fn answers_are_late_lost_and_repeated() {
    let cloud = cloud().await;
    let slots = cloud.slots(CapacityType::OnDemand);
    let late = cloud.fault("late-answers by=5s");
    let (ack, ()) = tokio::join!(cloud.create(&slots[0]), async {
        cloud.pass(4).await;
        assert_eq!(cloud.state(&slots[0]), MachineState::Creating, "the move began in time");
        cloud.pass(2).await;
    });
    assert_eq!(ack.expect("it comes after all").machine.expect("a snapshot").id, slots[0]);
    cloud.lift(late);

    let lost = cloud.fault("lost-answers");
    assert_eq!(code(cloud.create(&slots[1]).await), Code::Unavailable);
    assert_eq!(cloud.state(&slots[1]), MachineState::Creating, "the move stands");
    cloud.lift(lost);

    cloud.pass(1000).await;
    let create = cloud.create(&slots[0]).await.expect("a repeat of the Create");
    let repeated = cloud.fault("repeated-answers");
    let answer = cloud.configure(&slots[0]).await.expect("idle");
    assert_eq!(answer.operation_id, create.operation_id, "the answer to the call before");
    assert_eq!(cloud.state(&slots[0]), MachineState::Configuring, "the move stands");
    cloud.lift(repeated);
    let honest = cloud.configure(&slots[0]).await.expect("under way");
    assert_ne!(honest.operation_id, create.operation_id);
}

#[tokio::test]
async fn configured_without_a_node_and_a_node_without_configured() {
    let cloud = cloud().await;
    let owned = cloud.ids(|m| m.host.is_some());
    let no_node = cloud.fault("no-node");
    cloud.configured(&owned[0]).await;
    assert!(cloud.sim.nodes().is_empty(), "it says Configured, and nothing is there");
    cloud.lift(no_node);
    let stuck = cloud.fault("stuck-configuring");
    cloud.configure(&owned[1]).await.expect("idle");
    cloud.pass(300).await;
    assert_eq!(cloud.state(&owned[1]), MachineState::Configuring);
    assert_eq!(cloud.sim.nodes().get(&owned[1]).map(String::as_str), Some("c"), "the node is there");
    cloud.lift(stuck);
    cloud.pass(60).await;
    assert_eq!(cloud.state(&owned[1]), MachineState::Configured);
}

#[tokio::test]
async fn clock_skew_shows_in_the_times_that_are_told() {
    let cloud = cloud().await;
    let ids = cloud.slots(CapacityType::Spot);
    for id in &ids[..2] {
        cloud.create(id).await.expect("a slot");
    }
    cloud.pass(1000).await;
    let told = |id: &str| cloud.get(id).labels[NOTICE_LABEL].parse::<i64>().expect("seconds");
    cloud.fault(&format!("spot-reclaim machine={}", ids[0]));
    cloud.pass(0).await;
    cloud.fault("clock-skew -90");
    cloud.fault(&format!("spot-reclaim machine={}", ids[1]));
    cloud.pass(0).await;
    assert_eq!(told(&ids[0]) - told(&ids[1]), 90);
    cloud.pass(121).await;
    assert_eq!(cloud.state(&ids[1]), MachineState::Failed, "the cloud itself keeps time");
}

#[tokio::test]
async fn faults_begin_and_end_by_the_clock_and_are_written_down() {
    let cloud = cloud().await;
    let slots = cloud.slots(CapacityType::OnDemand);
    cloud.fault("api-outage --after 10s --for 20s");
    assert_eq!(code(cloud.create(&slots[0]).await), Code::Ok);
    cloud.pass(10).await;
    assert_eq!(code(cloud.create(&slots[1]).await), Code::Unavailable);
    cloud.pass(20).await;
    assert_eq!(code(cloud.create(&slots[1]).await), Code::Ok);
    let words: Vec<String> =
        cloud.sim.log().events().into_iter().filter(|e| e.event == "fault").map(|e| e.detail).collect();
    assert_eq!(words, ["added: api-outage --for 20s --after 10s", "begins: api-outage", "ends: api-outage"]);
}
