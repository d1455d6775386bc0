//! The admin API and its command line, against a running process.

use std::process::ExitCode;

use bigfleet_proto::v1alpha1::ListFilter;
use bigfleet_provider_sim::admin::{AdminClient, AdminError};
use bigfleet_provider_sim::cli::fault::{Action, Args, run};
use bigfleet_provider_sim::scenario::Scenario;
use tonic::Code;

use crate::process::Process;
use crate::virtual_cloud::code;

fn cloud(folder: &tempfile::TempDir) -> Process {
    let flags = [
        "--addr",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--machines",
        "50",
        "--state",
    ];
    Process::start(&flags, &folder.path().join("state"))
}

#[tokio::test]
async fn faults_are_added_listed_lifted_and_exported_while_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = cloud(&folder);
    let admin = AdminClient::new(&process.admin).expect("an address");
    let mut client = process.client();
    assert_eq!(code(client.list(ListFilter::default()).await), Code::Ok);
    let fault = admin.add(&"api-outage --for 1h".parse().expect("a fault")).await.expect("added");
    assert_eq!((fault.id, fault.status.as_str(), fault.line.as_str()), (1, "active", "api-outage --for 1h"));
    assert_eq!(code(client.list(ListFilter::default()).await), Code::Unavailable);
    assert_eq!(admin.list(false).await.expect("listed").len(), 1);
    admin.lift(1).await.expect("lifted");
    assert_eq!(code(client.list(ListFilter::default()).await), Code::Ok);
    assert!(admin.list(false).await.expect("listed").is_empty());
    assert_eq!(admin.list(true).await.expect("listed")[0].status, "over");

    assert!(matches!(admin.lift(1).await, Err(AdminError::Refused(words)) if words.contains("over already")));
    assert!(matches!(admin.lift(9).await, Err(AdminError::Refused(words)) if words.contains("no fault 9")));
    let scenario =
        Scenario::from_json(&admin.export("sunday").await.expect("exported")).expect("a good file");
    assert_eq!((scenario.name.as_str(), scenario.faults.len()), ("sunday", 1));
    let status = admin.status().await.expect("it answers");
    assert_eq!((status.provider.as_str(), status.models["spot.on"].as_str()), ("sim", "true"));
    assert!(admin.nodes().await.expect("it answers").is_empty());
}

#[test]
fn the_command_line_does_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = cloud(&folder);
    let admin = process.admin.clone();
    let act = |action: Action| run(&Args { admin: Some(admin.clone()), action }).expect("it can speak");
    let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    assert_eq!(act(Action::Add { line: words("zone-outage zone-b --for 10m") }), ExitCode::SUCCESS);
    assert_eq!(act(Action::Add { line: words("zone-outge zone-b") }), ExitCode::from(2));
    assert_eq!(act(Action::List { all: false, json: true }), ExitCode::SUCCESS);
    assert_eq!(act(Action::Rm { ids: vec![1] }), ExitCode::SUCCESS);
    assert_eq!(act(Action::Rm { ids: vec![7] }), ExitCode::from(1));
    let output = folder.path().join("incident.json");
    assert_eq!(act(Action::Export { name: "x".into(), output: Some(output.clone()) }), ExitCode::SUCCESS);
    let scenario =
        Scenario::from_json(&std::fs::read_to_string(output).expect("written")).expect("a good file");
    assert_eq!(scenario.faults.len(), 1);
    drop(process);
    assert_eq!(act(Action::List { all: false, json: false }), ExitCode::from(3), "nobody is there");
}

#[tokio::test]
async fn faults_outlive_the_process_that_acknowledged_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = cloud(&folder);
    let admin = AdminClient::new(&process.admin).expect("an address");
    for line in ["api-outage --for 1h", "throttle 3", "host-loss count=1 --after 1h"] {
        admin.add(&line.parse().expect(line)).await.expect("added");
    }
    admin.lift(2).await.expect("lifted");
    let before = admin.list(true).await.expect("listed");
    process.kill();
    let process = cloud(&folder);
    let admin = AdminClient::new(&process.admin).expect("an address");
    assert_eq!(admin.list(true).await.expect("listed"), before);
    assert_eq!(code(process.client().list(ListFilter::default()).await), Code::Unavailable, "it is still on");
    assert_eq!(
        admin.add(&"api-outage".parse().expect("a fault")).await.expect("added").id,
        4,
        "numbers go on"
    );
    process.kill();

    let kept = folder.path().join("state.faults");
    std::fs::write(&kept, "{").expect("written");
    let state = folder.path().join("state").to_string_lossy().into_owned();
    let (exit, _, err) = crate::process::ended(&[
        "--addr",
        "127.0.0.1:0",
        "--http",
        "none",
        "--admin",
        "none",
        "--state",
        &state,
    ]);
    assert_eq!(exit, Some(4), "{err}");
    assert!(err.contains("move the file away"), "{err}");
}
