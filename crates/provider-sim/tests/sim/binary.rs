//! The standard provider test binary: starts at once, refuses clearly, ends orderly.

use std::time::Duration;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::ListFilter;
use bigfleet_provider_kit::{CapacityType, Clock as _, SystemClock};
use bigfleet_provider_sim::FAULT_LABEL;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::process::{Process, ended};

async fn http(address: &str, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("text");
    answer
}

#[tokio::test]
async fn it_starts_with_the_machines_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SystemClock::start();
    let begun = clock.now_unix_nanos();
    let process = Process::standard("127.0.0.1:0", 64, &folder.path().join("new/state.redb"));
    let list = process.client().list(ListFilter::default()).await.expect("it answers").into_inner();
    let took = Duration::from_nanos((clock.now_unix_nanos() - begun).unsigned_abs());
    // A second on an idle machine; test machines are not idle.
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(list.machines.len(), 64 + 8 + 4);
    let count = |state: MachineState| list.machines.iter().filter(|m| m.state == state.to_wire()).count();
    assert_eq!((count(MachineState::Idle), count(MachineState::Speculative)), (8, 64 + 4));
    let kinds = CapacityType::ALL
        .map(|kind| list.machines.iter().filter(|m| m.capacity_type == kind.to_wire()).count());
    assert_eq!(kinds[0], 0);
    assert!(kinds[1..].iter().all(|count| *count > 0), "{kinds:?}");
    for machine in &list.machines {
        assert!(
            !machine.zone.is_empty() && !machine.instance_type.is_empty() && machine.price_per_hour > 0.0
        );
        let spot = machine.capacity_type == CapacityType::Spot.to_wire();
        assert_eq!(machine.interruption_probability > 0.0, spot);
    }
    let broken =
        list.machines.iter().filter(|m| m.labels.get(FAULT_LABEL).is_some_and(|v| v == "error")).count();
    assert_eq!(broken, 4);

    let metrics = http(&process.http, "/metrics").await;
    assert!(metrics.contains("bigfleet_provider_machines{state="), "{metrics}");
    assert!(http(&process.http, "/readyz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn health_is_served_beside_the_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::standard("127.0.0.1:0", 1, &folder.path().join("state"));
    let channel =
        tonic::transport::Endpoint::from_shared(format!("http://{}", process.address)).expect("an address");
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.connect_lazy());
    for service in ["", "bigfleet.v1alpha1.CapacityProvider"] {
        let request = tonic_health::pb::HealthCheckRequest { service: service.into() };
        let answer = health.check(request).await.expect("it answers").into_inner();
        assert_eq!(answer.status, 1, "{service:?} is serving");
    }
}

#[test]
fn it_stops_orderly_when_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    for signal in ["TERM", "INT"] {
        let process = Process::standard("127.0.0.1:0", 4, &folder.path().join("state"));
        assert_eq!(process.signal(signal).code(), Some(0), "SIG{signal}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let damaged = file("damaged", &"this is not a store ".repeat(500));
    let scenario = file("scenario", r#"{ "name": "x", "lasts": "soon", "faults": ["zone-outge a"] }"#);
    let models = file("models", r#"{ "spott": {} }"#);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|address| (taken, address.to_string())).expect("it has an address");
    let below_a_file = format!("{damaged}/state");
    for (code, flags, words) in [
        (2, vec!["--no-such-flag"], "--no-such-flag"),
        (2, vec!["--addr", "nowhere"], "HOST:PORT"),
        (2, vec!["--clock", "0"], "1..=1000"),
        (2, vec!["--clock", "5000"], "1..=1000"),
        (2, vec!["--seed-count", "-3"], "-3"),
        (2, vec!["--set", "spot.onn=false"], "perhaps \"spot.on\""),
        (2, vec!["--fault", "zone-outge a"], "perhaps \"zone-outage\""),
        (2, vec!["--models", &models], "spott"),
        (2, vec!["--models", "/no/such/file"], "/no/such/file"),
        (2, vec!["--scenario", &scenario], "SC005 at lasts"),
        (2, vec!["--scenario", &scenario], "SC006 at faults[0]"),
        (2, vec!["--admin", "0.0.0.0:0"], "127.0.0.1"),
        (2, vec!["--addr", "0.0.0.0:0"], "or say --insecure"),
        (2, vec!["--http", "0.0.0.0:0"], "or say --insecure"),
        (2, vec!["--zones", "a,,b"], "a zone has no name"),
        (2, vec!["--tls-cert", "/x"], "--tls-key"),
        (2, vec!["--replay"], "--scenario"),
        (2, vec!["--use-fake-backend", "--state", &below_a_file], "--state"),
        (3, vec!["--use-fake-backend", "--addr", &taken.1], "cannot listen on"),
        (
            3,
            vec!["--use-fake-backend", "--addr", "127.0.0.1:0", "--admin", &taken.1],
            "choose another with --admin",
        ),
        (4, vec!["--use-fake-backend", "--addr", "127.0.0.1:0", "--state", &damaged], "To recover"),
        (4, vec!["--use-fake-backend", "--addr", "127.0.0.1:0", "--state", "/dev/null"], "/dev/null"),
    ] {
        let (got, _, err) = ended(&flags);
        assert_eq!(got, Some(code), "{flags:?}: {err}");
        assert!(err.contains(words), "{flags:?}: {err}");
    }
    assert!(
        std::fs::read_to_string(&damaged).expect("still there").starts_with("this is not"),
        "nothing was changed"
    );
}

#[test]
fn a_folder_will_do_as_state_and_the_switch_takes_a_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["--addr", "localhost:0", "--use-fake-backend=true", "--seed-count=3", "--state"];
    drop(Process::start(&flags, folder.path()));
    assert!(folder.path().join("provider-sim.redb").is_file());
}

#[test]
fn a_state_in_use_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let _running = Process::standard("127.0.0.1:0", 4, &state);
    let path = state.to_string_lossy();
    let (code, _, err) = ended(&["--use-fake-backend", "--addr", "127.0.0.1:0", "--state", &path]);
    assert_eq!(code, Some(4));
    assert!(err.contains("in use by another process"), "{err}");
}

#[test]
fn defaults_are_printed_and_labelled() {
    for flag in ["--print-defaults", "--show-models"] {
        let (code, out, _) = ended(&[flag]);
        assert_eq!(code, Some(0));
        for words in [
            "latency.create.median",
            "= 45s",
            "spot.notice",
            "zone-outage ZONE",
            "stale-list [by=60s]",
            "train-96",
        ] {
            assert!(out.contains(words), "{words}\n{out}");
        }
    }
}

#[test]
fn a_scenario_is_replayed_from_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("scenario.json");
    let text = r#"{ "name": "short", "lasts": "20m", "faults": ["host-loss count=2 --after 5m"],
        "load": [{ "cluster": "c", "unit": { "cpu": "2" }, "points": [{ "at": "0s", "units": 40 }] }] }"#;
    std::fs::write(&path, text).expect("a file");
    let flags = ["--scenario", &path.to_string_lossy(), "--replay", "--machines", "300"];
    let (code, out, err) = ended(&flags);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("short: simulated 20m"), "{err}");
    assert!(out.lines().count() > 20 && out.contains("the host was lost"), "{out}");
    assert_eq!(ended(&flags).1, out, "the same again");
}
