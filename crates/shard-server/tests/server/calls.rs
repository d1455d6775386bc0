//! Providers: what their errors mean, and readiness that tells the truth both ways.

use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, MachineState, Resources, TransitionAck,
};
use bigfleet_provider_kit::{Lister, Outputs, Selection};
use bigfleet_shard::SECOND;
use bigfleet_shard_server::{ProviderAddress, Running, Settings, StartError};
use tonic::{Request, Response, Status};

use crate::house::{
    Provider, anywhere, clock, cloud, hasty, listed_often, scrape, series, shard_over, start, unready, until,
    until_ready,
};
use crate::operator::{Operator, need};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_when_every_provider_was_heard_and_only_as_long_as_it_is() {
    let sim = cloud("sim", 8).await;
    let provider = Provider::serve(sim.service(), sim.handle(), anywhere()).await;
    let address = provider.address;
    let nobody = listed_often("absent", "http://127.0.0.1:1".into());
    let running =
        start(Settings::local(hasty(), vec![listed_often("sim", provider.url()), nobody.clone()])).await;
    until("the present provider to be heard", || async {
        unready(&running).await.is_some_and(|why| !why.contains("provider sim") && why.contains("last error"))
    })
    .await;
    let why = unready(&running).await.unwrap();
    assert!(why.starts_with("provider absent has not been listed yet, last error: "), "{why}");
    running.stop().await.unwrap();

    let running = shard_over(&provider).await;
    until_ready(&running).await;
    provider.stop().await;
    until("the listing to be stale", || async { unready(&running).await.is_some() }).await;
    let why = unready(&running).await.unwrap();
    assert!(why.starts_with("the listing of provider sim is ") && why.contains("last error"), "{why}");
    let provider = Provider::serve(sim.service(), sim.handle(), address).await;
    until_ready(&running).await;
    running.stop().await.unwrap();
    provider.stop().await;
}

/// Lists one idle machine that refuses everything in its own way.
struct Refusing(tonic::Code);

impl Refusing {
    fn refuse<T>(&self) -> Result<T, Status> {
        Err(Status::new(self.0, "no"))
    }
}

#[tonic::async_trait]
impl CapacityProvider for Refusing {
    async fn create(&self, _: Request<CreateRequest>) -> Result<Response<TransitionAck>, Status> {
        self.refuse()
    }
    async fn configure(&self, _: Request<ConfigureRequest>) -> Result<Response<TransitionAck>, Status> {
        self.refuse()
    }
    async fn drain(&self, _: Request<DrainRequest>) -> Result<Response<TransitionAck>, Status> {
        self.refuse()
    }
    async fn delete(&self, _: Request<DeleteRequest>) -> Result<Response<TransitionAck>, Status> {
        self.refuse()
    }
    async fn get(&self, _: Request<MachineRef>) -> Result<Response<Machine>, Status> {
        self.refuse()
    }
    async fn list(&self, _: Request<ListFilter>) -> Result<Response<MachineList>, Status> {
        let host = bigfleet_proto::v1alpha1::HostRef { provider: "odd".into(), r#ref: "h".into() };
        let idle = Machine {
            id: "m".into(),
            state: MachineState::Idle.into(),
            host: Some(host),
            resources: Some(Resources { resources: need(1, 8).aggregate_resources }),
            capacity_type: 3,
            instance_type: "std-8".into(),
            zone: "z".into(),
            ..Machine::default()
        };
        let bad = Machine { id: "bad".into(), ..Machine::default() };
        Ok(Response::new(MachineList { machines: vec![idle, bad], revision: vec![] }))
    }
}

/// It does not stream: the shard falls back to the call above.
impl Lister for Refusing {
    async fn select(&self, _: &ListFilter) -> Result<Selection, Status> {
        Err(Status::unimplemented("no streams here"))
    }
}

impl Outputs for Refusing {}

/// What the shard made of a Configure that was refused with this code.
async fn refused_with(code: tonic::Code) -> Running {
    let cloud = cloud("unused", 1).await;
    let provider = Provider::serve(Refusing(code), cloud.handle(), anywhere()).await;
    let settings = Settings::local(hasty(), vec![listed_often("odd", provider.url())]);
    let running = start(settings).await;
    let mut shop = Operator::connect(running.grpc, "shop").await;
    shop.rollup(vec![need(1, 1)]).await;
    let name = format!(
        "bigfleet_shard_provider_calls_total{{provider=\"odd\",method=\"Configure\",code=\"{}\"}}",
        match code {
            tonic::Code::FailedPrecondition => "FAILED_PRECONDITION",
            _ => "INTERNAL",
        }
    );
    let serving = async {
        shop.serve_until(|_| false).await;
    };
    let called =
        until("the call to be refused", || async { series(&scrape(&running).await, &name).is_some() });
    tokio::select! {
        () = serving => {}
        () = called => {}
    }
    running
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_stops_everything_about_a_machine() {
    let running = refused_with(tonic::Code::FailedPrecondition).await;
    until("the alarm", || async {
        series(&scrape(&running).await, "bigfleet_shard_fenced_calls_total") == Some(1.0)
    })
    .await;
    let text = scrape(&running).await;
    assert_eq!(series(&text, "bigfleet_shard_machines_cared_for{why=\"fenced\"}"), Some(1.0));
    assert_eq!(
        series(&text, "bigfleet_shard_machines_rejected_total{reason=\"state\"}"),
        Some(1.0),
        "the bad record"
    );
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_no_fence() {
    let running = refused_with(tonic::Code::Internal).await;
    let text = scrape(&running).await;
    assert_eq!(series(&text, "bigfleet_shard_fenced_calls_total"), Some(0.0));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_never_answers_times_out_and_another_is_served() {
    // Accepts connections and says nothing.
    let deaf = tokio::net::TcpListener::bind(anywhere()).await.unwrap();
    let mut config = hasty();
    config.patience.list = SECOND / 2;
    let sim = cloud("sim", 8).await;
    let provider = Provider::serve(sim.service(), sim.handle(), anywhere()).await;
    let deaf_url = format!("http://{}", deaf.local_addr().unwrap());
    let providers = vec![listed_often("sim", provider.url()), listed_often("deaf", deaf_url)];
    let running = start(Settings::local(config, providers)).await;
    let calls = |provider: &str, code: &str| {
        let method = "MachineStream.List";
        format!(
            "bigfleet_shard_provider_calls_total{{provider=\"{provider}\",method=\"{method}\",code=\"{code}\"}}"
        )
    };
    let timed_out = calls("deaf", "DEADLINE_EXCEEDED");
    until("a time-out", || async { series(&scrape(&running).await, &timed_out).is_some() }).await;
    assert!(series(&scrape(&running).await, &calls("sim", "OK")).is_some_and(|count| count >= 1.0));
    running.stop().await.unwrap();
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_settings_are_refused_before_anything_begins() {
    let twice = vec![ProviderAddress::new("a", "http://h:1"), ProviderAddress::new("a", "http://h:2")];
    let of = |settings| async { bigfleet_shard_server::start(settings, clock()).await.err().unwrap() };
    assert!(
        matches!(of(Settings::local(hasty(), twice)).await, StartError::TwoProviders(name) if name == "a")
    );
    let bad = Settings::local(hasty(), vec![ProviderAddress::new("a", "h:1")]);
    let text = of(bad).await.to_string();
    assert!(text.starts_with("provider a: \"h:1\" is not an address to dial"), "{text}");
    let taken = tokio::net::TcpListener::bind(anywhere()).await.unwrap();
    let address = taken.local_addr().unwrap();
    let text = of(Settings { grpc: address, ..Settings::local(hasty(), vec![]) }).await.to_string();
    assert!(text.starts_with(&format!("cannot listen on {address}")), "{text}");
}
