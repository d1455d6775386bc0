//! Each model's statistics on many draws, through the provider, on virtual time.

use std::collections::BTreeMap;

use bigfleet_model::machine::MachineState;
use bigfleet_provider_kit::CapacityType;
use bigfleet_provider_sim::models::Models;
use bigfleet_provider_sim::{Config, Event, NOTICE_LABEL, catalogue};

use crate::virtual_cloud::{VirtualCloud, quiet};

/// How long each machine took from the beginning to the end of a move, in seconds, sorted.
fn spans(events: &[Event], event: &str) -> Vec<f64> {
    let mut begun = BTreeMap::new();
    let mut spans = Vec::new();
    for seen in events.iter().filter(|seen| seen.event == event) {
        if seen.detail.starts_with("begins") {
            begun.insert(seen.about.clone(), seen.at_unix_nanos);
        } else if let Some(from) = begun.remove(&seen.about) {
            spans.push((seen.at_unix_nanos - from) as f64 / 1e9);
        }
    }
    spans.sort_unstable_by(f64::total_cmp);
    spans
}

#[tokio::test]
async fn moves_are_asynchronous_and_take_as_long_as_they_should() {
    let cloud = VirtualCloud::open(quiet(3000)).await;
    let slots = cloud.slots(CapacityType::OnDemand);
    assert!(slots.len() > 1000);
    for id in &slots {
        let ack = cloud.create(id).await.expect("a free slot");
        assert_eq!(ack.machine.expect("a snapshot").state, MachineState::Creating.to_wire());
    }
    cloud.pass(3000).await;
    let creates = spans(&cloud.sim.log().events(), "create");
    assert_eq!(creates.len(), slots.len());
    let (median, p99) = (creates[creates.len() / 2], creates[creates.len() * 99 / 100]);
    assert!((42.0..48.0).contains(&median) && (140.0..230.0).contains(&p99), "{median} {p99}");

    for id in &slots {
        cloud.configure(id).await.expect("idle");
    }
    cloud.pass(600).await;
    let configures = spans(&cloud.sim.log().events(), "configure");
    let median = configures[configures.len() / 2];
    assert!((18.5..21.5).contains(&median), "{median}");
    assert_eq!(cloud.sim.nodes().len(), slots.len(), "every configured machine has its node");

    for id in &slots {
        cloud.drain(id, 10).await.expect("configured");
    }
    cloud.pass(600).await;
    let drains = spans(&cloud.sim.log().events(), "drain");
    assert!(drains.iter().all(|secs| (1.0..=10.0).contains(secs)), "cut off at the grace");
    assert!(cloud.sim.nodes().is_empty());
}

#[tokio::test]
async fn metal_takes_ten_minutes() {
    let cloud = VirtualCloud::open(quiet(6000)).await;
    let metal = cloud.ids(|m| m.instance_type.starts_with("metal"));
    for id in &metal {
        cloud.delete(id).await.expect("owned machines are there from the start");
    }
    cloud.pass(900).await;
    for id in &metal {
        cloud.create(id).await.expect("a slot now");
    }
    cloud.pass(3000).await;
    let creates = spans(&cloud.sim.log().events(), "create");
    let median = creates[creates.len() / 2];
    assert!(metal.len() > 200 && (570.0..630.0).contains(&median), "{} {median}", metal.len());
}

#[tokio::test]
async fn spot_is_taken_back_at_its_rate_and_with_two_minutes_notice() {
    let mut config = quiet(6000);
    config.models.spot.on = true;
    let cloud = VirtualCloud::open(config).await;
    let slots = cloud.slots(CapacityType::Spot);
    for id in &slots {
        cloud.create(id).await.expect("a free slot");
    }
    let expected: f64 = slots
        .iter()
        .map(|id| catalogue::find(&cloud.get(id).instance_type).expect("of the catalogue").spot_loss_per_hour)
        .sum();
    cloud.pass(3600 + 45).await;
    let (notices, lost) = (cloud.events("spot-notice") as f64, cloud.events("lost") as f64);
    assert!((notices / expected - 1.0).abs() < 0.2, "{notices} notices, {expected} expected");
    assert!(lost > notices * 0.9, "those whose notice is over are gone: {lost} of {notices}");
    let events = cloud.sim.log().events();
    let first = events.iter().find(|event| event.event == "spot-notice").expect("there were notices");
    let gone = events.iter().find(|event| event.event == "lost" && event.about == first.about);
    let waited = gone.expect("a notice is kept").at_unix_nanos - first.at_unix_nanos;
    assert_eq!(waited, 120_000_000_000);
}

#[tokio::test]
async fn a_notice_shows_in_the_record_and_goes_with_the_hardware() {
    let cloud = VirtualCloud::open(quiet(200)).await;
    let id = cloud.slots(CapacityType::Spot)[0].clone();
    cloud.configured(&id).await;
    cloud.fault(&format!("spot-reclaim machine={id}"));
    cloud.pass(1).await;
    let machine = cloud.get(&id);
    assert_eq!(machine.interruption_probability, 1.0);
    assert!(machine.labels.contains_key(NOTICE_LABEL));
    assert_eq!(cloud.state(&id), MachineState::Configured, "it goes on until then");
    cloud.drain(&id, 30).await.expect("there is time to drain");
    cloud.pass(118).await;
    assert_eq!(cloud.state(&id), MachineState::Idle);
    cloud.pass(2).await;
    assert_eq!(cloud.state(&id), MachineState::Failed);
    assert!(cloud.get(&id).last_error.contains("taken back"));
}

#[tokio::test]
async fn a_machine_given_back_in_time_is_not_lost() {
    let cloud = VirtualCloud::open(quiet(200)).await;
    let id = cloud.slots(CapacityType::Spot)[0].clone();
    cloud.create(&id).await.expect("a free slot");
    cloud.pass(1000).await;
    cloud.fault(&format!("spot-reclaim machine={id}"));
    cloud.pass(1).await;
    cloud.delete(&id).await.expect("idle");
    cloud.pass(400).await;
    assert_eq!(cloud.state(&id), MachineState::Speculative);
    assert!(!cloud.get(&id).labels.contains_key(NOTICE_LABEL), "the next machine starts without a notice");
    assert!(cloud.get(&id).interruption_probability < 1.0);
}

#[tokio::test]
async fn hosts_die_about_once_in_a_machine_year() {
    let mut config = quiet(4000);
    config.models.host_loss.on = true;
    config.models.host_loss.per_machine_year = 365.25;
    let cloud = VirtualCloud::open(config).await;
    let hosts = cloud.ids(|m| m.host.is_some()).len() as f64;
    cloud.pass(86_400 / 4).await;
    let lost = cloud.events("lost") as f64;
    // A quarter of a day at one a day: a share of 1 - exp(-1/4).
    let expected = hosts * (1.0 - (-0.25_f64).exp());
    assert!((lost / expected - 1.0).abs() < 0.2, "{lost} of {hosts}, {expected} expected");
    let failed = cloud.ids(|m| m.state == MachineState::Failed.to_wire());
    assert!(cloud.get(&failed[0]).last_error.contains("host was lost"));
    assert_eq!(Models::default().host_loss.per_machine_year, 1.0);
}

#[tokio::test]
async fn what_is_broken_is_repaired_after_a_while() {
    let mut config = quiet(400);
    config.models.repair.on = true;
    let cloud = VirtualCloud::open(config).await;
    let rented = cloud.slots(CapacityType::OnDemand)[0].clone();
    let owned = cloud.ids(|m| m.host.is_some())[0].clone();
    cloud.create(&rented).await.expect("a free slot");
    cloud.pass(1000).await;
    let hardware = cloud.get(&owned).host.clone();
    for id in [&rented, &owned] {
        cloud.fault(&format!("host-loss machine={id}"));
    }
    cloud.pass(60).await;
    assert_eq!([cloud.state(&rented), cloud.state(&owned)], [MachineState::Failed; 2]);
    cloud.pass(660).await;
    assert_eq!(cloud.state(&rented), MachineState::Speculative, "rented hardware is gone");
    assert_eq!(cloud.state(&owned), MachineState::Idle, "owned hardware is replaced");
    assert_ne!(cloud.get(&owned).host, hardware);
}

#[tokio::test]
async fn spot_prices_walk_and_others_stand_still() {
    let mut config = quiet(1500);
    config.models.prices.on = true;
    let cloud = VirtualCloud::open(config).await;
    let fixed = cloud.ids(|m| m.capacity_type != CapacityType::Spot.to_wire());
    let before: Vec<f64> = fixed.iter().map(|id| cloud.get(id).price_per_hour).collect();
    let spot = cloud.slots(CapacityType::Spot);
    let mut seen = Vec::new();
    for _ in 0..12 {
        cloud.pass(300).await;
        seen.push(cloud.get(&spot[0]).price_per_hour);
        for id in &spot {
            let machine = cloud.get(id);
            let on_demand = catalogue::find(&machine.instance_type).expect("of the catalogue").usd_per_hour;
            assert!(
                machine.price_per_hour > 0.0 && machine.price_per_hour <= on_demand * 0.95 + 1e-4,
                "{id}"
            );
        }
    }
    seen.dedup();
    assert!(seen.len() > 8, "the price moves: {seen:?}");
    assert_eq!(before, fixed.iter().map(|id| cloud.get(id).price_per_hour).collect::<Vec<_>>());
}

#[tokio::test]
async fn pools_run_out_say_so_and_refill() {
    let mut config: Config = quiet(4000);
    config.models.pools.on = true;
    config.models.pools.depth = 8.0;
    let cloud = VirtualCloud::open(config).await;
    let slots = cloud.ids(|m| {
        m.instance_type == "std-4"
            && m.zone == "zone-a"
            && m.capacity_type == CapacityType::OnDemand.to_wire()
    });
    assert!(slots.len() > 30);
    for id in &slots {
        cloud.create(id).await.expect("a free slot");
    }
    cloud.pass(1200).await;
    let made = slots.iter().filter(|id| cloud.state(id) == MachineState::Idle).count();
    assert!((4..=8).contains(&made), "{made}");
    let refused =
        slots.iter().find(|id| cloud.state(id) == MachineState::Failed).expect("the pool ran empty");
    assert_eq!(
        cloud.get(refused).last_error,
        "insufficient capacity: no std-4 is left in zone-a (simulated)"
    );
    assert_eq!(cloud.events("stock-out"), 1);
    let other = cloud.ids(|m| m.instance_type == "std-4" && m.zone == "zone-b" && m.host.is_none());
    cloud.create(&other[0]).await.expect("a free slot");
    cloud.pass(1200).await;
    assert_eq!(cloud.state(&other[0]), MachineState::Idle, "another zone has its own pool");
}
