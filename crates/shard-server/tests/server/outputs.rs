//! What a machine printed while it joined: asked of its provider when somebody asks the shard, whatever the provider does.

use std::time::Duration;

use bigfleet_proto::provider_v1::machine_output_server::MachineOutput;
use bigfleet_proto::provider_v1::{ConfigureOutput, ConfigureOutputRequest};
use bigfleet_proto::transport;
use bigfleet_shard_server::{Running, Settings};
use bigfleet_view::v1::{ExplainMachineRequest, ListMachinesRequest, MachineExplanation};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::house::{Provider, anywhere, clock, cloud, hasty, listed_often, shard_over, soon, start};
use crate::operator::channel;

/// A provider's answer, by the machine that is asked for.
struct Said(fn() -> Result<ConfigureOutput, Status>);

#[tonic::async_trait]
impl MachineOutput for Said {
    async fn get_configure_output(
        &self,
        request: Request<ConfigureOutputRequest>,
    ) -> Result<Response<ConfigureOutput>, Status> {
        assert_eq!(request.get_ref().most_bytes, 64 << 10);
        match (self.0)() {
            Err(status) if status.code() == tonic::Code::Cancelled => std::future::pending().await,
            said => said.map(Response::new),
        }
    }
}

/// What the shard explains about its first machine.
async fn explained(running: &Running) -> MachineExplanation {
    let mut client = bigfleet_view::view_client(channel(running.grpc).await);
    let listing = async {
        loop {
            let mut pages =
                client.clone().list_machines(ListMachinesRequest::default()).await.unwrap().into_inner();
            let page = pages.message().await.unwrap().unwrap();
            if let Some(machine) = page.machines.into_iter().next() {
                return machine.id;
            }
            clock().sleep(Duration::from_millis(20)).await;
        }
    };
    let machine = soon("a machine to be known", listing).await;
    let request = ExplainMachineRequest { machine, at: None };
    client.explain_machine(request).await.unwrap().into_inner()
}

async fn explained_with(said: fn() -> Result<ConfigureOutput, Status>) -> MachineExplanation {
    let cloud = cloud("sim", 3).await;
    let listener = TcpListener::bind(anywhere()).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let routes = transport::server()
        .add_service(transport::provider_server(cloud.service()))
        .add_service(transport::output_server(Said(said)));
    let serving = tokio::spawn(routes.serve_with_incoming(TcpListenerStream::new(listener)));
    let running = start(Settings::local(hasty(), vec![listed_often("sim", address)])).await;
    let answer = explained(&running).await;
    running.stop().await.unwrap();
    serving.abort();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_provider_kept_is_part_of_the_explanation() {
    let answer = explained_with(|| {
        Ok(ConfigureOutput {
            operation_id: "op-7".into(),
            cluster_id: "prod".into(),
            outcome: "ended with exit code 0".into(),
            ended_unix_nanos: 5,
            text: b"joined \xff\x1b[2J\n"[..].into(),
            is_cut: true,
        })
    })
    .await;
    let output = answer.join_output.expect("it was asked");
    assert_eq!((output.operation_id.as_str(), output.cluster.as_str()), ("op-7", "prod"));
    assert_eq!((output.text.as_str(), output.is_cut), ("joined \u{fffd}\u{1b}[2J\n", true));
    assert_eq!(answer.join_output_trouble, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_hangs_or_floods_costs_the_explanation_one_line() {
    // It never answers: two seconds.
    let hung = explained_with(|| Err(Status::cancelled("hang"))).await;
    assert_eq!((hung.join_output, hung.join_output_trouble.as_str()), (None, "no answer within 2s"));
    assert!(hung.machine.is_some());
    let flood = explained_with(|| {
        Ok(ConfigureOutput { text: vec![b'x'; 1 << 20].into(), ..ConfigureOutput::default() })
    })
    .await;
    assert_eq!(flood.join_output, None);
    assert!(flood.join_output_trouble.contains("too large"), "{}", flood.join_output_trouble);
    let broken = explained_with(|| Err(Status::unavailable("the disk is gone"))).await;
    assert_eq!(broken.join_output_trouble, "the disk is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_does_not_see_outputs_is_no_trouble() {
    let cloud = cloud("sim", 3).await;
    let provider = Provider::serve(cloud.service(), cloud.handle(), anywhere()).await;
    let running = shard_over(&provider).await;
    let answer = explained(&running).await;
    assert_eq!((answer.join_output, answer.join_output_trouble.as_str()), (None, ""));
    running.stop().await.unwrap();
    provider.stop().await;
}
