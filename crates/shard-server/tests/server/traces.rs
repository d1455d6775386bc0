//! Traces reach a collector.

use std::collections::BTreeSet;

use bigfleet_net::CallLayer;
use bigfleet_shard_server::Settings;
use bigfleet_shard_server::telemetry::{LogForm, Telemetry, TelemetryError, TelemetrySettings};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use crate::house::{Provider, anywhere, cloud, hasty, listed_often, soon, start, until_ready};
use crate::operator::{Operator, need};

struct Collector(mpsc::UnboundedSender<ExportTraceServiceRequest>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.send(request.into_inner()).map_err(|_| Status::internal("the test is over"))?;
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn settings(otlp: &str, filter: &str) -> TelemetrySettings {
    let (form, filter, shard_id) = (LogForm::Json, filter.to_owned(), "s1".to_owned());
    TelemetrySettings { form, filter, otlp: Some(otlp.into()), shard_id }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cycles_calls_and_roll_ups_are_traced() {
    let bad = Telemetry::start(&settings("127.0.0.1:1", "info")).err().unwrap();
    assert!(matches!(bad, TelemetryError::Collector { .. }), "{bad}");
    let bad = Telemetry::start(&settings("http://127.0.0.1:1", "a=b=c")).err().unwrap();
    assert!(matches!(bad, TelemetryError::Filter { .. }), "{bad}");

    let listener = TcpListener::bind(anywhere()).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (spans, mut received) = mpsc::unbounded_channel();
    let layer = CallLayer::usual();
    let mut service = tonic::transport::Server::builder().layer(layer.clone());
    let service = service.add_service(TraceServiceServer::new(Collector(spans)));
    let serving = tokio::spawn(service.serve_with_incoming(layer.incoming(listener, None, 10)));
    let telemetry = Telemetry::start(&settings(&address, "off")).unwrap();

    let sim = cloud("sim", 8).await;
    let provider = Provider::serve(sim.service(), sim.handle(), anywhere()).await;
    let running = start(Settings::local(hasty(), vec![listed_often("sim", provider.url())])).await;
    until_ready(&running).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    shop.rollup(vec![need(1, 1)]).await;
    assert_eq!(shop.ack().await, "rollup");

    let mut wanted = BTreeSet::from(["cycle", "provider_call", "rollup", "execute"]);
    let mut shard_ids = BTreeSet::new();
    soon("all kinds of spans", async {
        while !wanted.is_empty() {
            let export = received.recv().await.unwrap();
            for resource in &export.resource_spans {
                let attributes = &resource.resource.as_ref().unwrap().attributes;
                let id = attributes.iter().find(|attribute| attribute.key == "bigfleet.shard_id").unwrap();
                shard_ids.insert(format!("{:?}", id.value));
                for span in resource.scope_spans.iter().flat_map(|scope| &scope.spans) {
                    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
                    wanted.remove(span.name.as_str());
                }
            }
        }
    })
    .await;
    assert!(shard_ids.iter().all(|id| id.contains("s1")), "{shard_ids:?}");
    running.stop().await.unwrap();
    provider.stop().await;
    tokio::task::spawn_blocking(move || telemetry.stop(std::time::Duration::from_secs(2))).await.unwrap();
    serving.abort();
}
