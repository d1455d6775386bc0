//! The other services on the port: needs, view, health, reflection.

use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::InspectNeedsRequest;
use bigfleet_proto::v1alpha1::inspect_needs_response::Frame;
use bigfleet_shard_server::Settings;
use bigfleet_view::v1::GetVersionRequest;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::house::{hasty, start, until};
use crate::operator::{Operator, channel, need};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn needs_view_health_and_reflection_are_served_beside_sessions() {
    let running = start(Settings::local(hasty(), vec![])).await;
    let channel = channel(running.grpc).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    shop.rollup(vec![need(10, 4)]).await;
    assert_eq!(shop.ack().await, "rollup");

    let client = transport::shard_read_client(channel.clone());
    until("the need to be seen", || async {
        let mut frames =
            client.clone().inspect_needs(InspectNeedsRequest::default()).await.unwrap().into_inner();
        let Some(Frame::Header(header)) = frames.message().await.unwrap().unwrap().frame else { panic!() };
        header.total_needs == 1
    })
    .await;
    let version = bigfleet_view::view_client(channel.clone())
        .get_version(GetVersionRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!((&*version.shard_id, version.epoch), ("s1", running.epoch));

    for service in ["", "bigfleet.v1alpha1.Shard", "bigfleet.v1alpha1.ShardRead", "bigfleet.view.v1.View"] {
        let request = HealthCheckRequest { service: service.into() };
        let health = HealthClient::new(channel.clone()).check(request).await.unwrap().into_inner();
        assert_eq!(health.status, 1, "{service}");
    }
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = ServerReflectionClient::new(channel)
        .server_reflection_info(tokio_stream::iter([request]))
        .await
        .unwrap()
        .into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
    let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    for service in ["bigfleet.v1alpha1.Shard", "bigfleet.v1alpha1.ShardRead", "bigfleet.view.v1.View"] {
        assert!(names.contains(&service.to_owned()), "{names:?}");
    }
    drop(answers);
    running.stop().await.unwrap();
}
