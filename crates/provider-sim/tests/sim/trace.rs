//! One seed, one history: byte for byte.

use bigfleet_provider_sim::replay::replay;
use bigfleet_provider_sim::scenario::Scenario;
use bigfleet_provider_sim::{Config, Inventory};

use crate::virtual_cloud::{VirtualCloud, quiet};

const SCENARIO: &str = r#"{
    "name": "a busy hour", "seed": 42, "lasts": "1h",
    "load": [
        { "cluster": "web", "unit": { "cpu": "2", "memory": "4Gi" },
          "points": [{ "at": "0s", "units": 500 }, { "at": "20m", "units": 4000 }, { "at": "50m", "units": 1000 }] },
        { "cluster": "train", "unit": { "nvidia.com/gpu": "1" }, "curve": "steps",
          "points": [{ "at": "10m", "units": 6 }] }
    ],
    "faults": [
        "zone-outage zone-b --after 15m --for 5m",
        "spot-storm factor=30 --after 25m --for 10m",
        "stock-out std-8 --after 5m --for 20m",
        "api-outage p=0.3 --after 40m --for 2m",
        "host-loss count=5 --after 30m",
        "truncated-list 0.5 --after 31m --for 1m"
    ]
}"#;

fn config(machines: usize) -> Config {
    let zones = ["zone-a", "zone-b", "zone-c"].map(String::from).to_vec();
    Config { inventory: Inventory::Fleet { machines, zones }, ..Config::default() }
}

#[test]
fn the_same_seed_gives_the_same_history_and_another_gives_another() {
    let scenario = Scenario::from_json(SCENARIO).expect("a good file");
    let first = replay(&scenario, config(1200)).expect("it plays");
    let again = replay(&scenario, config(1200)).expect("it plays");
    assert_eq!(first.events, again.events);
    assert_eq!(first.summary, again.summary);
    let other = replay(&Scenario { seed: 43, ..scenario }, config(1200)).expect("it plays");
    assert_ne!(first.events, other.events);

    assert!(first.summary.moves > 200 && first.summary.lost > 10, "{}", first.summary);
    assert!(first.summary.usd > 10.0 && first.summary.missing_unit_secs > 0.0, "{}", first.summary);
    for word in [
        "\"spot-notice\"",
        "\"lost\"",
        "\"price\"",
        "zone zone-b is out",
        "begins: spot-storm",
        "ends: api-outage",
    ] {
        assert!(first.events.contains(word), "{word} has happened");
    }
}

#[tokio::test]
async fn an_incident_can_be_written_down_and_replayed() {
    let cloud = VirtualCloud::open(quiet(100)).await;
    cloud.pass(60).await;
    cloud.fault("zone-outage zone-b --for 10m");
    cloud.pass(30).await;
    let id = cloud.fault("api-outage");
    cloud.pass(45).await;
    cloud.lift(id);
    cloud.fault("host-loss count=3");
    cloud.pass(600).await;

    let scenario = cloud.sim.control().export("what happened on Sunday");
    let read = Scenario::from_json(&scenario.to_json()).expect("what we write we read");
    assert_eq!(read, scenario);
    let lines: Vec<String> = read.faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "zone-outage zone=zone-b --for 10m --after 1m",
            "api-outage --for 45s --after 1m30s",
            "host-loss count=3 --after 2m15s"
        ]
    );
    assert_eq!(read.lasts.to_string(), "12m15s");

    let replayed = VirtualCloud::open(quiet(100)).await;
    replayed.sim.control().play(&read).expect("the board has room");
    replayed.pass(735).await;
    let happened = |cloud: &VirtualCloud| {
        let events = cloud.sim.log().events().into_iter().filter(|event| event.event == "lost");
        events.map(|event| (event.at_unix_nanos, event.about, event.detail)).collect::<Vec<_>>()
    };
    assert!(!happened(&cloud).is_empty());
    assert_eq!(happened(&replayed), happened(&cloud), "the same machines are lost at the same moments");
}
