//! The three ways to list a provider, over real sockets: as a stream, in one answer, in pieces by state.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use bigfleet_proto::provider_v1::machine_stream_server::MachineStream;
use bigfleet_proto::provider_v1::{ListChunk, ListEnd, ListRequest};
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, HostRef, ListFilter, Machine, MachineList,
    MachineRef, MachineState, TransitionAck,
};
use bigfleet_shard_server::{Running, Settings};
use prost::Message;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::house::{
    Provider, anywhere, cloud, hasty, listed_often, scrape, series, shard_over, start, until,
};

/// What a scripted provider has and how it answers. Changed while it runs.
#[derive(Default)]
struct Script {
    machines: BTreeMap<String, Machine>,
    /// A listing of all of them is refused as too large.
    is_large: bool,
    /// It counts revisions.
    has_revisions: bool,
    /// Never in the state that is being listed, like a machine that always moves at the wrong moment.
    dodgers: Vec<String>,
    /// What a stream leaves out of what it should say.
    stream: Stream,
    /// What was listed, by states.
    listed: Vec<Vec<i32>>,
    got: Vec<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stream {
    #[default]
    Whole,
    /// Ends well, without saying so.
    NoEnd,
    /// Loses records on the way.
    Fewer,
    /// Goes on after its end.
    Babbling,
}

#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

fn machine(id: &str, state: MachineState) -> Machine {
    Machine {
        id: id.into(),
        state: state.into(),
        host: (state != MachineState::Speculative)
            .then(|| HostRef { provider: "p".into(), r#ref: id.into() }),
        instance_type: "std-8".into(),
        zone: "z".into(),
        capacity_type: 3,
        ..Machine::default()
    }
}

impl Scripted {
    fn with(idle: usize, speculative: usize) -> Self {
        let scripted = Self::default();
        let idle = (0..idle).map(|n| machine(&format!("idle-{n}"), MachineState::Idle));
        let slots = (0..speculative).map(|n| machine(&format!("slot-{n}"), MachineState::Speculative));
        scripted.script().machines = idle.chain(slots).map(|one| (one.id.clone(), one)).collect();
        scripted
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }
}

fn no<T>() -> Result<T, Status> {
    Err(Status::internal("not in this test"))
}

#[tonic::async_trait]
impl CapacityProvider for Scripted {
    async fn create(&self, _: Request<CreateRequest>) -> Result<Response<TransitionAck>, Status> {
        no()
    }
    async fn configure(&self, _: Request<ConfigureRequest>) -> Result<Response<TransitionAck>, Status> {
        no()
    }
    async fn drain(&self, _: Request<DrainRequest>) -> Result<Response<TransitionAck>, Status> {
        no()
    }
    async fn delete(&self, _: Request<DeleteRequest>) -> Result<Response<TransitionAck>, Status> {
        no()
    }
    async fn get(&self, request: Request<MachineRef>) -> Result<Response<Machine>, Status> {
        let mut script = self.script();
        let id = request.into_inner().id;
        script.got.push(id.clone());
        script.machines.get(&id).cloned().map(Response::new).ok_or_else(|| Status::not_found("unknown"))
    }

    async fn list(&self, request: Request<ListFilter>) -> Result<Response<MachineList>, Status> {
        let mut script = self.script();
        let ListFilter { states, since_revision, .. } = request.into_inner();
        script.listed.push(states.clone());
        let revision = if script.has_revisions { b"7".to_vec() } else { Vec::new() };
        if states.is_empty() && since_revision.is_empty() && script.is_large {
            let text = "grpc: trying to send message larger than max (300000000 vs. 268435456)";
            return Err(Status::resource_exhausted(text));
        }
        let dodges = |one: &Machine| script.dodgers.contains(&one.id);
        let wanted = |one: &&Machine| {
            if states.is_empty() {
                // Everything since a revision: those that moved.
                since_revision.is_empty() || dodges(one)
            } else {
                states.contains(&one.state) && !dodges(one)
            }
        };
        let machines = script.machines.values().filter(wanted).cloned().collect();
        Ok(Response::new(MachineList { machines, revision }))
    }
}

#[tonic::async_trait]
impl MachineStream for Scripted {
    type ListStream = Pin<Box<dyn tokio_stream::Stream<Item = Result<ListChunk, Status>> + Send>>;

    async fn list(&self, _: Request<ListRequest>) -> Result<Response<Self::ListStream>, Status> {
        let script = self.script();
        let mut chunks: Vec<ListChunk> = Vec::new();
        for one in script.machines.values() {
            chunks.push(ListChunk { machines: vec![one.encode_to_vec().into()], end: None });
        }
        let end = ListEnd { revision: "".into(), machines: chunks.len() as u64 };
        let last = ListChunk { machines: Vec::new(), end: Some(end) };
        match script.stream {
            Stream::Whole => chunks.push(last),
            Stream::NoEnd => chunks.truncate(1),
            Stream::Fewer => {
                chunks.truncate(1);
                chunks.push(last);
            }
            Stream::Babbling => chunks.extend([last, ListChunk::default()]),
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks.into_iter().map(Ok)))))
    }
}

/// A scripted provider on a socket, gone with its value.
struct Serving(String, JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.1.abort();
    }
}

/// Serves the six calls, and the stream if it is to be there.
async fn serve(scripted: &Scripted, streams: bool) -> Serving {
    let listener = TcpListener::bind(anywhere()).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (calls, listings) = transport::provider_servers(Arc::new(scripted.clone()), scripted.clone());
    let mut routes = transport::server().add_service(calls);
    if streams {
        routes = routes.add_service(listings);
    }
    let served = routes.serve_with_incoming(TcpListenerStream::new(listener));
    Serving(address, tokio::spawn(async move { served.await.unwrap() }))
}

async fn shard(serving: &Serving) -> Running {
    start(Settings::local(hasty(), vec![listed_often("p", serving.0.clone())])).await
}

/// How many machines the shard knows.
async fn machines(running: &Running) -> f64 {
    let text = scrape(running).await;
    let gauges = text.lines().filter(|line| line.starts_with("bigfleet_shard_machines{"));
    gauges.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

async fn count(running: &Running, name: &str) -> f64 {
    series(&scrape(running).await, &format!("bigfleet_shard_{name}")).unwrap_or_default()
}

async fn calls(running: &Running, method: &str, code: &str) -> f64 {
    let name = format!("provider_calls_total{{provider=\"p\",method=\"{method}\",code=\"{code}\"}}");
    count(running, &name).await
}

async fn until_listed(running: &Running, outcome: &str, times: f64) {
    let name = format!("listings_total{{outcome=\"{outcome}\"}}");
    let before = count(running, &name).await;
    until(outcome, || async { count(running, &name).await >= before + times }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_made_with_the_kit_streams() {
    let sim = cloud("p", 6000).await;
    let known = sim.handle().machines().len() as f64;
    let provider = Provider::serve(sim.service(), sim.handle(), anywhere()).await;
    let running = shard_over(&provider).await;
    until("all machines to be known", || async { machines(&running).await == known }).await;
    let streamed = "provider_calls_total{provider=\"sim\",method=\"MachineStream.List\",code=\"OK\"}";
    assert!(count(&running, streamed).await >= 1.0);
    let text = scrape(&running).await;
    assert!(!text.contains("method=\"List\""), "nobody needed the other way");
    running.stop().await.unwrap();
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_does_not_stream_is_asked_for_it_once() {
    let scripted = Scripted::with(3, 2);
    let serving = serve(&scripted, false).await;
    let running = shard(&serving).await;
    until_listed(&running, "full", 4.0).await;
    assert_eq!(machines(&running).await, 5.0);
    assert_eq!(calls(&running, "MachineStream.List", "UNIMPLEMENTED").await, 1.0);
    assert!(calls(&running, "List", "OK").await >= 4.0);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_is_listed_by_state_and_nobody_is_lost_who_moves() {
    let scripted = Scripted::with(8, 8);
    {
        let mut script = scripted.script();
        script.is_large = true;
        script.dodgers = vec!["idle-1".into()];
    }
    let serving = serve(&scripted, false).await;
    let running = shard(&serving).await;
    until_listed(&running, "full", 1.0).await;
    // One that no piece has ever named is not known yet; the others are, each once.
    assert_eq!(machines(&running).await, 15.0);
    let one_round: Vec<Vec<i32>> = (1..=8).map(|state| vec![state]).collect();
    let listed = scripted.script().listed.clone();
    assert!(listed.windows(8).any(|window| window == one_round), "{listed:?}");
    assert!(
        listed.iter().filter(|states| states.is_empty()).count() <= 1,
        "it is tried whole once: {listed:?}"
    );

    // Others begin to dodge: they are asked about, and stay.
    scripted.script().dodgers.extend(["idle-2".into(), "slot-3".into()]);
    until_listed(&running, "full", 3.0).await;
    assert_eq!(machines(&running).await, 15.0);
    let got = scripted.script().got.clone();
    assert!(got.contains(&"idle-2".into()) && got.contains(&"slot-3".into()), "{got:?}");

    // One is really gone: its provider says so, and then it is.
    scripted.script().machines.remove("idle-3");
    until("the machine to be gone", || async { machines(&running).await == 14.0 }).await;
    assert!(scripted.script().got.contains(&"idle-3".into()));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_with_revisions_tells_what_moved_between_pieces() {
    let scripted = Scripted::with(8, 8);
    {
        let mut script = scripted.script();
        (script.is_large, script.has_revisions) = (true, true);
        script.dodgers = vec!["idle-1".into(), "slot-2".into()];
    }
    let serving = serve(&scripted, false).await;
    let running = shard(&serving).await;
    until_listed(&running, "full", 1.0).await;
    assert_eq!(machines(&running).await, 16.0, "no piece named two of them, the changes did");
    assert_eq!(scripted.script().got, Vec::<String>::new(), "and nobody had to be asked about");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_not_whole_takes_nothing_away() {
    let scripted = Scripted::with(6, 6);
    let serving = serve(&scripted, true).await;
    let running = shard(&serving).await;
    until_listed(&running, "full", 1.0).await;
    assert_eq!(machines(&running).await, 12.0);
    for (manner, words) in [
        (Stream::NoEnd, "it stops before its end"),
        (Stream::Fewer, "its end speaks of 12 machines and 1 came"),
        (Stream::Babbling, "a chunk follows the last one"),
    ] {
        scripted.script().stream = manner;
        until_listed(&running, "failed", 1.0).await;
        assert_eq!(machines(&running).await, 12.0, "{words}");
        until("the reason to be told", || async {
            let (_, body) = crate::house::http_get(running.http.unwrap(), "/readyz").await;
            body.contains(words)
        })
        .await;
        scripted.script().stream = Stream::Whole;
        until_listed(&running, "full", 1.0).await;
    }
    running.stop().await.unwrap();
}
