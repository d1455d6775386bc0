//! Over real sockets: streams, and readers that go away.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::VirtualClock;
use bigfleet_view::v1::view_client::ViewClient;
use bigfleet_view::{About, View, v1, view_client, view_server};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};

use crate::driver::{Driver, START, config, metal, need};

async fn serve(driver: &Arc<Driver>, clock: Arc<VirtualClock>) -> ViewClient<Channel> {
    let about =
        About { server_version: "1".into(), simulated: true, record_dir: None, record_only: false, clock };
    let service = view_server(View::new(driver.clone(), about));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(
        Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)),
    );
    view_client(bigfleet_net::dial(&address, None).unwrap())
}

#[tokio::test]
async fn a_long_list_arrives_whole() {
    let machines = (0..20_000).map(|n| metal(&format!("m-{n:05}"), "za", "4")).collect();
    let driver = Driver::new(config(), machines, None);
    let mut client = serve(&driver, Arc::new(VirtualClock::at(START))).await;
    let request = v1::ListMachinesRequest { detail: v1::Detail::Full.into(), ..Default::default() };
    let mut pages = client.list_machines(request).await.unwrap().into_inner();
    let (mut machines, mut largest) = (0, 0);
    while let Some(page) = pages.message().await.unwrap() {
        machines += page.machines.len();
        largest = largest.max(page.machines.len());
    }
    assert_eq!((machines, largest), (20_000, 500));
    let version = client.get_version(v1::GetVersionRequest {}).await.unwrap().into_inner();
    assert_eq!((&*version.shard_id, version.simulated), ("s1", true));
}

#[tokio::test]
async fn a_watch_tells_new_decisions_and_coalesces() {
    let machines = (0..4).map(|n| metal(&format!("m-{n}"), "za", "4")).collect();
    let driver = Driver::new(config(), machines, None);
    let clock = Arc::new(VirtualClock::at(START));
    let mut client = serve(&driver, clock.clone()).await;
    let request = v1::WatchRequest { min_interval_millis: 1000, ..Default::default() };
    let mut events = client.watch(request).await.unwrap().into_inner();
    let first = events.message().await.unwrap().unwrap();
    assert_eq!((first.decisions.len(), first.summary.as_ref().unwrap().needs), (0, 0));

    // Several cycles within the interval are one event.
    driver.report("shop", vec![need("shop", 10, 4, vec![])]);
    driver.report("shop", vec![need("shop", 10, 8, vec![])]);
    while clock.next_wake_unix_nanos().is_none() {
        tokio::task::yield_now().await;
    }
    clock.advance(Duration::from_secs(1));
    let second = events.message().await.unwrap().unwrap();
    let machines: Vec<&str> = second.decisions.iter().map(|d| d.machine.as_str()).collect();
    assert_eq!((machines, second.skipped), (vec!["m-0", "m-1"], 0), "oldest first, none twice");
    let summary = second.summary.unwrap();
    assert_eq!(summary.lanes[0].machines, 2);
    assert_eq!(summary.as_of.unwrap().cycle, driver.with(|state, _| state.shard.cycle()));
}
