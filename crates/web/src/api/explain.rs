//! Why: the view's explanations, and the same sentences the terminal shows.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use bigfleet_tell::{Shown, Story, Tone, explain};
use bigfleet_view::v1;
use prost::Message;
use serde_json::json;
use tonic::{Response, Status};

use super::shards;
use crate::answer::{Answer, Refusal, answer};
use crate::query::Query;
use crate::site::Site;
use crate::way::Client;

/// How long remedies are looked for.
const PATIENCE_MILLIS: u32 = 60;

fn told<M: Message>(
    headers: &HeaderMap,
    name: &str,
    answered: Result<Response<M>, Status>,
    story: impl FnOnce(&M) -> Story,
) -> Answer {
    let message = answered.map_err(Refusal::from)?.into_inner();
    answer(headers, &json!({ "data": Shown::new(name, &message), "story": story(&message) }))
}

/// Needs that are looked through for a pod at most.
const MOST_NEEDS: u32 = 100_000;

/// The need a waiting pod is part of, as far as its cluster has named it, and its cluster.
async fn need_of_pod(client: &mut Client, pod: &str) -> Result<v1::NeedRef, Refusal> {
    let request = v1::ListNeedsRequest { limit: MOST_NEEDS, ..v1::ListNeedsRequest::default() };
    let mut pages = client.list_needs(request).await.map_err(Refusal::from)?.into_inner();
    let mut waiting = 0;
    while let Some(page) = pages.message().await.map_err(Refusal::from)? {
        for need in page.needs {
            waiting += u64::from(need.pods_waiting);
            if need.pods_waiting_examples.iter().any(|name| name == pod)
                && let Some(key) = need.key
            {
                return Ok(key);
            }
        }
    }
    Err(Refusal::new(
        StatusCode::NOT_FOUND,
        "not_found",
        format!(
            "no cluster has named {} among its {waiting} waiting pods: it runs, is not of a connected cluster, or waits among \
             many; `bigfleet explain pod` also asks the cluster itself",
            bigfleet_model::text::Quoted(pod)
        ),
    ))
}

/// `/api/explain/{pod, need, machine, decision, cluster, preemption, why-not}`. Of several shards the first that knows what is
/// asked about answers.
pub(crate) async fn explain(
    State(site): State<Arc<Site>>,
    Path(thing): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let query = Query::read(&uri, &["shard", "name", "machine", "need", "cycle", "at", "thorough", "limit"])?;
    let mut asked = shards(&site, &query)?.into_iter().peekable();
    loop {
        let Some((_, shard)) = asked.next() else { return Err(Refusal::bad("there is no shard")) };
        match ask(shard.client(), &thing, &query, &headers).await {
            Err(refusal) if refusal.is_not_found() && asked.peek().is_some() => {}
            answered => return answered,
        }
    }
}

async fn ask(mut client: Client, thing: &str, query: &Query, headers: &HeaderMap) -> Answer {
    let (name, at) = (query.text("name"), query.moment()?);
    match thing {
        "pod" => {
            let key = need_of_pod(&mut client, &name).await?;
            let request = v1::ExplainNeedRequest {
                need: key.long_id,
                machines: 50,
                ..v1::ExplainNeedRequest::default()
            };
            let found = client.explain_need(request).await;
            told(headers, "NeedExplanation", found, |found| {
                let mut story = Story::default();
                story.heading(format!("{name} in {} waits for a node.", key.cluster), Tone::Warn);
                story.append(explain::need::story(found));
                story
            })
        }
        "need" => {
            let request = v1::ExplainNeedRequest {
                need: name,
                at,
                without_remedies: false,
                machines: 50,
                patience_millis: if query.flag("thorough")? { u32::MAX } else { PATIENCE_MILLIS },
            };
            told(headers, "NeedExplanation", client.explain_need(request).await, explain::need::story)
        }
        "machine" => {
            let request = v1::ExplainMachineRequest { machine: name, at };
            told(
                headers,
                "MachineExplanation",
                client.explain_machine(request).await,
                explain::machine::story,
            )
        }
        "decision" => {
            let cycle = query.number("cycle", 0, u64::MAX)?;
            let request = v1::ExplainDecisionRequest { cycle, machine: query.text("machine") };
            told(
                headers,
                "DecisionExplanation",
                client.explain_decision(request).await,
                explain::decision::story,
            )
        }
        "cluster" => {
            let request = v1::ExplainClusterRequest { cluster: name };
            told(
                headers,
                "ClusterExplanation",
                client.explain_cluster(request).await,
                explain::cluster::story,
            )
        }
        "preemption" => {
            let limit = query.number("limit", 20, 200)? as u32;
            let (machine, need) = (query.text("machine"), query.text("need"));
            let request = v1::ExplainPreemptionRequest { machine, need, limit };
            let answered = client.explain_preemption(request).await;
            told(headers, "PreemptionExplanation", answered, explain::preemption::story)
        }
        "why-not" => {
            let request = v1::WhyNotRequest { need: query.text("need"), machine: query.text("machine"), at };
            told(headers, "WhyNotAnswer", client.why_not(request).await, explain::why_not::story)
        }
        _ => Err(Refusal::bad("known are pod, need, machine, decision, cluster, preemption and why-not")),
    }
}
