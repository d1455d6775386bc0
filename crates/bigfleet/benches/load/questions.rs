//! People who ask while the shard works: every kind of `explain`, over a real socket, one question after another.

use std::time::Instant;

use bigfleet_proto::transport;
use bigfleet_view::v1;
use bigfleet_view::v1::view_client::ViewClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

/// Questions of each kind, at most.
const ASKED: usize = 50;

type Client = ViewClient<Channel>;

/// Everything a list has.
async fn all<P>(pages: Result<Response<Streaming<P>>, Status>) -> Vec<P> {
    let mut stream = pages.expect("a list is answered").into_inner();
    let mut all = Vec::new();
    while let Some(page) = stream.message().await.expect("a list ends well") {
        all.push(page);
    }
    all
}

/// Some of a list, evenly.
fn some<T>(all: Vec<T>) -> Vec<T> {
    let step = (all.len() / ASKED).max(1);
    all.into_iter().step_by(step).take(ASKED).collect()
}

/// Asks a list of questions; how long each took, in milliseconds.
async fn time<Q, F: Future<Output = bool>>(questions: Vec<Q>, ask: impl Fn(Q) -> F) -> Vec<f64> {
    let mut times = Vec::new();
    for question in questions {
        let begun = Instant::now();
        assert!(ask(question).await, "a question about what there is gets an answer");
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times
}

/// Asks everything and says how long it took.
pub(crate) async fn ask(shard: &str, say: impl Fn(&str)) {
    let endpoint = Endpoint::from_shared(shard.to_owned()).expect("an address");
    let channel = transport::endpoint(endpoint).connect().await.expect("the shard answers");
    let client = Client::new(channel).max_decoding_message_size(transport::MESSAGE_LIMIT_BYTES);
    let report = |what: &str, times: &[f64]| {
        let Some(last) = times.last() else { return say(&format!("{what}: there was nobody to ask")) };
        say(&format!(
            "explain {what:<12} median {:.1} ms, slowest {last:.1} ms, {} asked",
            times[times.len() / 2],
            times.len()
        ));
    };

    let list = |short_only| v1::ListNeedsRequest { short_only, ..Default::default() };
    let mut lists = Vec::new();
    for short_only in [false, true] {
        let pages = all(client.clone().list_needs(list(short_only)).await).await;
        let names = pages.into_iter().flat_map(|page| page.needs).filter_map(|need| need.key);
        lists.push(some(names.map(|key| key.long_id).collect()));
    }
    for (what, needs) in ["need", "short need"].into_iter().zip(lists) {
        let times = time(needs, |need| {
            let (mut client, request) =
                (client.clone(), v1::ExplainNeedRequest { need, ..Default::default() });
            // Demand changes all the time: a need may have gone.
            async move {
                client
                    .explain_need(request)
                    .await
                    .map_or_else(|e| e.code() == tonic::Code::NotFound, |_| true)
            }
        });
        report(what, &times.await);
    }
    let pages = all(client.clone().list_machines(v1::ListMachinesRequest::default()).await).await;
    let machines = some(pages.into_iter().flat_map(|page| page.machines).map(|machine| machine.id).collect());
    let times = time(machines, |machine| {
        let (mut client, request) = (client.clone(), v1::ExplainMachineRequest { machine, at: None });
        async move { client.explain_machine(request).await.is_ok() }
    });
    report("machine", &times.await);
    let request = v1::ListDecisionsRequest { limit: 1000, ..Default::default() };
    let pages = all(client.clone().list_decisions(request).await).await;
    let decisions = some(pages.into_iter().flat_map(|page| page.decisions).collect());
    let times = time(decisions, |decision| {
        let request = v1::ExplainDecisionRequest { cycle: decision.cycle, machine: decision.machine };
        let mut client = client.clone();
        async move { client.explain_decision(request).await.is_ok() }
    });
    report("decision", &times.await);
    let pages = all(client.clone().list_clusters(v1::ListClustersRequest::default()).await).await;
    let clusters = some(pages.into_iter().flat_map(|page| page.clusters).filter_map(|c| c.lane).collect());
    let times = time(clusters, |lane| {
        let (mut client, request) =
            (client.clone(), Request::new(v1::ExplainClusterRequest { cluster: lane.cluster }));
        async move { client.explain_cluster(request).await.is_ok() }
    });
    report("cluster", &times.await);
    let times = time(vec![(); 5], |()| {
        let mut client = client.clone();
        async move { client.explain_preemption(v1::ExplainPreemptionRequest::default()).await.is_ok() }
    });
    report("preemption", &times.await);
    let times = time(vec![(); 5], |()| {
        let mut client = client.clone();
        async move { client.plan(v1::PlanRequest::default()).await.is_ok() }
    });
    report("(plan)", &times.await);
}
