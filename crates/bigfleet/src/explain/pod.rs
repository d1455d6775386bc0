//! `bigfleet explain pod`: what the cluster says about a pod, and what the shard says about its need.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use bigfleet_crds::{CapacityRequest, condition_type};
use bigfleet_kube_common::{Connection, unix_nanos};
use bigfleet_net::Clock as _;
use bigfleet_pod_controller::request_name;
use bigfleet_tell::words::{clock_time, count};
use bigfleet_view::v1::{ExplainNeedRequest, ListNeedsRequest, NeedExplanation};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::Common;
use crate::exit::Failure;
use crate::output::{AnswerFormat, Shown, Story, Terminal, Tone, stdout, write_data};
use crate::reach::Shard;

/// Events shown.
const MOST_EVENTS: usize = 8;

/// Why a pod waits, or where it runs: what the cluster says about it, and what the shard says about its need.
///
/// Without a kubeconfig, or with --shard-only, the shard alone is asked. It knows pods that wait, as their operator names them.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The pod, as NAMESPACE/NAME
    #[arg(value_name = "POD")]
    pod: String,
    /// The cluster's API server, if not that of KUBECONFIG, ~/.kube/config or this pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME")]
    kube_context: Option<String>,
    /// Do not ask the cluster
    #[arg(long, conflicts_with_all = ["kubeconfig", "kube_context"])]
    shard_only: bool,
    #[command(flatten)]
    common: Common,
}

/// What there is to say about a pod.
struct Found {
    story: Story,
    data: Value,
    /// The need it is part of.
    need: Option<String>,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let Some((namespace, name)) =
        args.pod.split_once('/').filter(|(ns, name)| !ns.is_empty() && !name.is_empty())
    else {
        return Err(anyhow::anyhow!("{:?} is no pod; write NAMESPACE/NAME", args.pod).into());
    };
    let shard = Shard::new(&args.common.reach)?;
    let client = if args.shard_only {
        None
    } else {
        let connection =
            Connection { kubeconfig: args.kubeconfig.clone(), context: args.kube_context.clone() };
        match connection.client().await {
            Ok(client) => Some(client),
            Err(error) if args.kubeconfig.is_some() || args.kube_context.is_some() => {
                return Err(anyhow::Error::from(error).into());
            }
            // Nobody named a cluster and there is none: the shard may know.
            Err(_) => None,
        }
    };
    let now = shard.clock().now_unix_nanos();
    let mut found = match &client {
        Some(client) => of_cluster(client, namespace, name, now).await?,
        None => of_shard(&shard, &args.pod).await?,
    };
    let mut need: Option<NeedExplanation> = None;
    if let Some(id) = found.need.take() {
        let request = ExplainNeedRequest { need: id.clone(), machines: 20, ..ExplainNeedRequest::default() };
        match shard.ask(|mut client| async move { client.explain_need(request).await }).await {
            Ok(answer) => need = Some(answer),
            Err(trouble) if client.is_some() => {
                found.story.say_toned(
                    "need",
                    format!("{id}; the shard was not asked: {trouble}"),
                    Tone::Warn,
                );
            }
            Err(trouble) => return Err(trouble.into()),
        }
    }
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.common.output.format(&terminal) {
        AnswerFormat::Text => {
            found.story.write(&mut out, terminal.text_width(), terminal.paint)?;
            if let Some(need) = &need {
                writeln!(out)?;
                let story = bigfleet_tell::explain::need::story(need);
                story.write(&mut out, terminal.text_width(), terminal.paint)?;
            }
        }
        format => {
            let mut data = found.data;
            if let Some(need) = &need {
                let shown = serde_json::to_value(Shown::new("NeedExplanation", need));
                data["need"] = shown.map_err(anyhow::Error::from)?;
            }
            write_data(&mut out, &data, format, &terminal)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// What the cluster says: the pod, its request, and events that our programs wrote.
async fn of_cluster(client: &Client, namespace: &str, name: &str, now: i64) -> Result<Found, anyhow::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let Some(pod) = pods.get_opt(name).await? else {
        anyhow::bail!("there is no pod {name} in namespace {namespace}");
    };
    let uid = pod.uid().unwrap_or_default();
    let requests: Api<CapacityRequest> = Api::namespaced(client.clone(), namespace);
    let request = requests.get_opt(&request_name(&uid)).await?;
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let events = events.list(&about).await.map_or(Vec::new(), |list| list.items);

    let mut story = Story::default();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    if node.is_empty() {
        story.heading(format!("{namespace}/{name} waits for a node"), Tone::Warn);
    } else {
        story.heading(format!("{namespace}/{name} is on {node} ({phase})"), Tone::Good);
    }
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let unscheduled = conditions.iter().find(|one| one.type_ == "PodScheduled" && one.status == "False");
    let scheduler = unscheduled.and_then(|one| one.message.clone()).unwrap_or_default();
    story.say("scheduler", scheduler.as_str());
    let need = describe_request(&mut story, request.as_ref(), now);
    let ours = events.iter().filter(|event| {
        let source = event.source.as_ref().and_then(|source| source.component.as_deref());
        source.is_some_and(|component| component.starts_with("bigfleet-"))
    });
    let said: Vec<String> = ours
        .filter_map(|event| Some(format!("{}: {}", event.reason.as_deref()?, event.message.as_deref()?)))
        .collect();
    for text in said.iter().rev().take(MOST_EVENTS).rev() {
        story.say("events", text.as_str());
    }
    let data = json!({
        "pod": format!("{namespace}/{name}"), "node": node, "phase": phase, "scheduler": scheduler,
        "request": request.as_ref().map(|request| json!({"name": request.name_any(), "status": request.status})),
        "events": said, "need": null,
    });
    Ok(Found { story, data, need })
}

/// Says how the request stands. The need it is part of, if that is known.
fn describe_request(story: &mut Story, request: Option<&CapacityRequest>, now: i64) -> Option<String> {
    let Some(request) = request else {
        story.say_toned(
            "request",
            "it has no CapacityRequest: it asks for nothing, or the pod controller is not there",
            Tone::Warn,
        );
        return None;
    };
    let status = request.status.clone().unwrap_or_default();
    story.say("request", format!("{} ({:?})", request.name_any(), status.phase));
    for (type_, label) in [
        (condition_type::ACCEPTED, "accepted"),
        (condition_type::COVERED, "covered"),
        (condition_type::JOINED, "joined"),
        (condition_type::CARRIED, "carried"),
        (condition_type::PENALTIES_READ, "penalties"),
    ] {
        if let Some(one) = status.conditions.iter().find(|one| one.type_ == type_) {
            let holds = match one.status {
                bigfleet_crds::ConditionStatus::True => "yes",
                bigfleet_crds::ConditionStatus::False => "no",
                bigfleet_crds::ConditionStatus::Unknown => "not known yet",
            };
            let since = clock_time(unix_nanos(&one.last_transition_time), now);
            story.say(label, format!("{holds}, since {since}: {}", one.message));
        }
    }
    let reserved: Vec<String> =
        status.reserved.iter().map(|(name, amount)| format!("{} {name}", amount.as_str())).collect();
    if !reserved.is_empty() {
        story.say(
            "reserved",
            format!("its need asks for {} beyond its sum: pods found no hole", reserved.join(", ")),
        );
    }
    status.conditions.into_iter().find_map(|one| one.need_id)
}

/// What the shard knows: pods that wait, by the needs their operators named them with.
async fn of_shard(shard: &Shard, pod: &str) -> Result<Found, Failure> {
    let request = ListNeedsRequest::default();
    let mut pages = shard.ask(|mut client| async move { client.list_needs(request).await }).await?;
    let mut named = 0;
    loop {
        let page = pages.message().await.map_err(|status| shard.trouble(&status))?;
        let Some(page) = page else { break };
        for need in page.needs {
            named += need.pods_waiting_examples.len() as u64;
            let Some(key) = need.key.filter(|_| need.pods_waiting_examples.iter().any(|name| name == pod))
            else {
                continue;
            };
            let mut story = Story::default();
            story.heading(format!("{pod} in {} waits for a node", key.cluster), Tone::Warn);
            let others = count(need.pods_waiting.saturating_sub(1).into(), "more pod");
            story.say("need", format!("{}, with {others} that wait", key.id));
            let data = json!({"pod": pod, "cluster": key.cluster, "need": null});
            return Ok(Found { story, data, need: Some(key.long_id) });
        }
    }
    let message = format!(
        "the shard does not know {pod}: of pods that wait its clusters have named {named}, and of others none; name the \
         cluster with --kubeconfig"
    );
    Err(anyhow::anyhow!(message).into())
}
