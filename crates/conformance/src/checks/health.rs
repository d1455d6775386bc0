//! HEALTH: the two services beside the contract that tools ask for.

use tokio_stream::StreamExt;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::behaviour::checks;
use crate::calls::in_words;
use crate::clock;
use crate::context::Context;
use crate::verdict::{Verdict, ensure, failed, skipped};

const SERVICE: &str = "bigfleet.v1alpha1.CapacityProvider";

checks! { Health:
    "HEALTH-001" Optional Beside "the server says that it serves" => serving(""):
        "grpc.health.v1 Check of the whole server is SERVING", "an orchestrator restarts the provider for ever", "0";
    "HEALTH-002" Optional Beside "the service says that it serves" => serving(SERVICE):
        "grpc.health.v1 Check of CapacityProvider is SERVING", "a load balancer sends no calls", "0";
    "HEALTH-003" Optional Beside "an unknown service is not healthy" => unknown():
        "grpc.health.v1 Check of an unknown service is NOT_FOUND", "a typing error looks healthy", "0";
    "HEALTH-004" Optional Beside "health can be watched" => watched():
        "grpc.health.v1 Watch gives SERVING at once", "a load balancer waits for ever", "0";
    "HEALTH-005" Optional Beside "reflection names the service" => reflection():
        "server reflection lists CapacityProvider", "tools need the proto files at hand", "0";
}

async fn serving(c: Context, service: &'static str) -> Verdict {
    let mut client = HealthClient::new(c.run.target.channel());
    let request = HealthCheckRequest { service: service.into() };
    match c.answered(&format!("Health.Check({service:?})"), client.check(request)).await? {
        Err(status) if status.code() == Code::Unimplemented => {
            skipped("the provider serves no grpc.health.v1.Health")
        }
        Err(status) if status.code() == Code::NotFound && !service.is_empty() => {
            skipped("the provider reports health of the whole server only")
        }
        Err(status) => failed("SERVING", in_words(&status)),
        Ok(answer) => {
            ensure(answer.status() == ServingStatus::Serving, "SERVING", || format!("{:?}", answer.status()))
        }
    }
}

async fn unknown(c: Context) -> Verdict {
    let mut client = HealthClient::new(c.run.target.channel());
    let request = HealthCheckRequest { service: "no.such.Service".into() };
    match c.answered("Health.Check of an unknown service", client.check(request)).await? {
        Err(status) if status.code() == Code::Unimplemented => {
            skipped("the provider serves no grpc.health.v1.Health")
        }
        Err(status) => ensure(status.code() == Code::NotFound, "NOT_FOUND", || in_words(&status)),
        Ok(answer) => failed("NOT_FOUND", format!("{:?}", answer.status())),
    }
}

async fn watched(c: Context) -> Verdict {
    let mut client = HealthClient::new(c.run.target.own_channel());
    let request = HealthCheckRequest { service: String::new() };
    let mut stream = match c.answered("Health.Watch", client.watch(request)).await? {
        Err(status) if status.code() == Code::Unimplemented => {
            return skipped("the provider has no Health.Watch");
        }
        Err(status) => return failed("a stream", in_words(&status)),
        Ok(stream) => stream,
    };
    match clock::within(c.limits().call, stream.next()).await {
        Some(Some(Ok(answer))) => {
            ensure(answer.status() == ServingStatus::Serving, "SERVING", || format!("{:?}", answer.status()))
        }
        Some(Some(Err(status))) if status.code() == Code::Unimplemented => {
            skipped("the provider has no Health.Watch")
        }
        other => failed("SERVING at once", format!("{other:?}")),
    }
}

async fn reflection(c: Context) -> Verdict {
    let mut client = ServerReflectionClient::new(c.run.target.own_channel());
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let request = ServerReflectionRequest { host: String::new(), message_request };
    let none = "the provider serves no reflection";
    let call = client.server_reflection_info(Request::new(tokio_stream::once(request)));
    let mut stream = match c.answered("ServerReflection.ListServices", call).await? {
        Err(status) if status.code() == Code::Unimplemented => return skipped(none),
        Err(status) => return failed("a stream", in_words(&status)),
        Ok(stream) => stream,
    };
    let answer = match clock::within(c.limits().call, stream.next()).await {
        Some(Some(Ok(answer))) => answer.message_response,
        Some(Some(Err(status))) if status.code() == Code::Unimplemented => return skipped(none),
        other => return failed("a list of services", format!("{other:?}")),
    };
    let Some(MessageResponse::ListServicesResponse(list)) = answer else {
        return failed("a list of services", format!("{answer:?}"));
    };
    let named = list.service.iter().any(|service| service.name == SERVICE);
    ensure(named, format!("{SERVICE} is listed"), || format!("{:?}", list.service))
}
