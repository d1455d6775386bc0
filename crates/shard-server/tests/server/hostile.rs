//! Callers that mean no good, over real sockets: silent ones, and ones that announce more than they send.

use std::net::SocketAddr;

use bigfleet_net::InFlight;
use bigfleet_proto::v1alpha1::operator_message::Payload;
use bigfleet_proto::v1alpha1::{Hello, OperatorMessage};
use bigfleet_shard_server::{Running, Settings};
use bigfleet_view::v1::GetVersionRequest;
use bytes::Bytes;
use h2::SendStream;
use h2::client::ResponseFuture;
use prost::Message;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::house::{hasty, scrape, series, soon, start, until};
use crate::operator::{Operator, channel, need};

/// What people do: ask something, over a connection of their own.
async fn somebody_asks(running: &Running) {
    let version = async {
        let channel = channel(running.grpc).await;
        bigfleet_view::view_client(channel).get_version(GetVersionRequest {}).await
    };
    assert_eq!(soon("an answer", version).await.unwrap().into_inner().epoch, running.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_shut_nobody_out() {
    let running = start(Settings::local(hasty(), vec![])).await;
    let mut silent = Vec::new();
    for _ in 0..1100 {
        silent.push(TcpStream::connect(running.grpc).await.unwrap());
    }
    somebody_asks(&running).await;
    for stream in &mut silent[..800] {
        let end = soon("a silent connection to be closed", stream.read(&mut [0])).await;
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    }
    running.stop().await.unwrap();
}

/// A message of gRPC, of which so many bytes are announced.
fn announced(bytes: u32) -> Bytes {
    [&[0][..], &bytes.to_be_bytes()].concat().into()
}

/// A session that says hello and then sends a part of a frame, and no more.
struct Half {
    response: ResponseFuture,
    _stream: SendStream<Bytes>,
}

impl Half {
    async fn open(address: SocketAddr, cluster: String, announces: u32, sends: usize) -> Self {
        let socket = TcpStream::connect(address).await.unwrap();
        let (client, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(connection);
        Self::on(client, address, cluster, announces, sends).await
    }

    async fn on(
        client: h2::client::SendRequest<Bytes>,
        address: SocketAddr,
        cluster: String,
        announces: u32,
        sends: usize,
    ) -> Self {
        let mut client = client.ready().await.unwrap();
        let request = http::Request::post(format!("http://{address}/bigfleet.v1alpha1.Shard/Session"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let (response, mut stream) = client.send_request(request.body(()).unwrap(), false).unwrap();
        let hello = Payload::Hello(Hello { cluster_id: cluster, protocol_version: "v1alpha1".into() });
        let hello = OperatorMessage { payload: Some(hello) }.encode_to_vec();
        for bytes in [announced(hello.len() as u32), hello.into(), announced(announces)] {
            stream.send_data(bytes, false).unwrap();
        }
        let chunk = Bytes::from(vec![0; 64 << 10]);
        for _ in 0..sends / chunk.len() {
            stream.send_data(chunk.clone(), false).unwrap();
        }
        Self { response, _stream: stream }
    }

    /// The status it is ended with.
    async fn end(self) -> String {
        let Ok(response) = self.response.await else { return "broken".into() };
        let mut body = response.into_body();
        while let Some(Ok(bytes)) = body.data().await {
            let _ = body.flow_control().release_capacity(bytes.len());
        }
        match body.trailers().await {
            Ok(Some(trailers)) => trailers["grpc-status"].to_str().unwrap().to_owned(),
            other => format!("{other:?}"),
        }
    }
}

const MIB: usize = 1 << 20;
const EXHAUSTED: &str = "8";

async fn in_flight(running: &Running) -> usize {
    series(&scrape(running).await, "bigfleet_shard_bytes_in_flight").unwrap_or(-1.0) as usize
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_frames_hold_no_more_than_the_budget() {
    let most = InFlight { connection_bytes: 4 * MIB, identity_bytes: 8 * MIB, all_bytes: 16 * MIB };
    let settings = Settings { in_flight: most, ..Settings::local(hasty(), vec![]) };
    let running = start(settings).await;
    let (ended, mut ends) = mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for number in 0..30 {
        // Sixty megabytes each are announced; nobody sets those aside.
        let half = Half::open(running.grpc, format!("c{number}"), 60 << 20, 2 * MIB).await;
        let ended = ended.clone();
        tasks.push(tokio::spawn(async move { drop(ended.send(half.end().await)) }));
    }
    // Twelve megabytes are for large ones: five or six of two each, and the others are told.
    for _ in 0..24 {
        assert_eq!(soon("one to be told", ends.recv()).await.unwrap(), EXHAUSTED);
    }
    let held = in_flight(&running).await;
    assert!((8 * MIB..=12 * MIB).contains(&held), "{held} bytes are held");
    somebody_asks(&running).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    shop.rollup(vec![need(10, 4)]).await;
    assert_eq!(shop.ack().await, "rollup", "whoever sends little is served");
    for task in tasks {
        task.abort();
    }
    until("what they held to be given back", || async { in_flight(&running).await == 0 }).await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_holds_no_more_than_its_share() {
    let most = InFlight { connection_bytes: 4 * MIB, identity_bytes: 8 * MIB, all_bytes: 64 * MIB };
    let settings = Settings { in_flight: most, ..Settings::local(hasty(), vec![]) };
    let running = start(settings).await;
    let socket = TcpStream::connect(running.grpc).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let (ended, mut ends) = mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for number in 0..10 {
        let half = Half::on(client.clone(), running.grpc, format!("c{number}"), 60 << 20, 2 * MIB).await;
        let ended = ended.clone();
        tasks.push(tokio::spawn(async move { drop(ended.send(half.end().await)) }));
    }
    for _ in 0..8 {
        assert_eq!(soon("one to be told", ends.recv()).await.unwrap(), EXHAUSTED);
    }
    assert!(in_flight(&running).await <= 4 * MIB);
    somebody_asks(&running).await;
    for task in tasks {
        task.abort();
    }
    running.stop().await.unwrap();
}
