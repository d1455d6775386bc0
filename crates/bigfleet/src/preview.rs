//! `bigfleet preview`: what would become of a manifest before anybody submits it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use bigfleet_operator::demand::Demand;
use bigfleet_operator_kube::asked;
use bigfleet_pod_controller::translate::{Policy, Translation, translate};
use bigfleet_proto::v1alpha1::CapacityNeed;
use bigfleet_tell::words::{count, hourly, kind_done, reason, span, thousands, usd_change};
use bigfleet_view::v1::edit::Edit as Change;
use bigfleet_view::v1::{
    ActionKind, AddNeed, Decision, Edit, GetProviderTruthRequest, ProviderTruth, Took, WhatIfAnswer,
    WhatIfRequest,
};
use k8s_openapi::api::core::v1::{Container, Pod};
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::Reach;
use crate::exit::{FOUND, Failure};
use crate::output::{AnswerArgs, AnswerFormat, Shown, Story, Terminal, Tone, note, stdout, write_data};
use crate::reach::{Shard, block_on};
use crate::sentence;

/// Cycles that the changed fleet may settle for.
const CYCLES: u32 = 5;
/// The largest file, and the most pods it may stand for.
const MOST_BYTES: u64 = 4 << 20;
const MOST_PODS: u64 = 100_000;
/// Told one by one.
const MOST_TOLD: usize = 10;

/// Say what would become of a Deployment, Job or Pod: would it fit, where, when, at what price, at whose expense.
///
/// Pods are translated as the pod controller does it; what a request cannot carry is said. Nothing is submitted and nothing
/// is changed. Ends with 1 if it would not fit.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet preview -f job.yaml --cluster shop
  kubectl create deployment web --image=web --replicas=40 --dry-run=client -o yaml | bigfleet preview -f - --cluster shop
  bigfleet preview -f train.yaml --cluster ml --priority 1000 --json")]
pub(crate) struct Args {
    /// The manifest, in YAML or JSON; - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// The cluster it would be submitted to; one the fleet does not know yet is tried as a new one
    #[arg(long, value_name = "NAME")]
    cluster: String,
    /// The priority of its class, which only the cluster knows
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    priority: Option<i32>,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// Pods of one manifest.
#[derive(Debug, PartialEq)]
struct Workload {
    name: String,
    pod: Pod,
    replicas: u64,
}

/// What a manifest asks for.
#[derive(Default, Serialize)]
struct Asked {
    pods: u64,
    /// Pods that ask the fleet for nothing, by why.
    skipped: BTreeMap<String, u64>,
    /// What a request cannot carry: the field, what follows, and a sentence.
    losses: Vec<Loss>,
    refused: Vec<String>,
    #[serde(skip)]
    needs: Vec<CapacityNeed>,
    #[serde(skip)]
    class: Option<String>,
}

#[derive(Serialize, PartialEq)]
struct Loss {
    field: &'static str,
    effect: &'static str,
    sentence: String,
}

#[derive(Serialize)]
struct Preview<'a> {
    cluster: &'a str,
    fits: bool,
    asked: &'a Asked,
    usd_per_hour: f64,
    /// Seconds until the last machine has joined, in half of the cases and in nine of ten; absent if nothing like it was seen.
    ready_secs: Option<(f64, f64)>,
    what_if: Shown,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let workloads = workloads(&read(args)?)?;
    let asked = ask(&workloads, &args.cluster, args.priority);
    let (answer, truth) = block_on(async {
        let shard = Shard::new(&args.reach)?;
        let edits = asked.needs.iter().map(|need| Edit {
            edit: Some(Change::AddNeed(AddNeed { cluster: args.cluster.clone(), need: Some(need.clone()) })),
        });
        let request = WhatIfRequest { edits: edits.collect(), cycles: CYCLES, ..WhatIfRequest::default() };
        let answer = shard.ask(|mut client| async move { client.what_if(request).await }).await?;
        let truth = GetProviderTruthRequest::default();
        let truth = shard.ask(|mut client| async move { client.get_provider_truth(truth).await }).await?;
        Ok((answer, truth))
    })?;
    let fits = short(&answer, &args.cluster).next().is_none() && asked.refused.is_empty();
    let ready_secs = ready(&answer, &truth);
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            story(args, &asked, &answer, ready_secs).write(
                &mut out,
                terminal.text_width(),
                terminal.paint,
            )?;
        }
        format => {
            let preview = Preview {
                cluster: &args.cluster,
                fits,
                asked: &asked,
                usd_per_hour: more(&answer),
                ready_secs,
                what_if: Shown::new("WhatIfAnswer", &answer),
            };
            write_data(&mut out, &preview, format, &terminal)?;
        }
    }
    out.flush()?;
    if let (Some(class), None) = (&asked.class, args.priority) {
        note(&format!("priority class {class} is the cluster's; its pods are taken at 0, say --priority"));
    }
    Ok(if fits { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

fn read(args: &Args) -> Result<String, Failure> {
    let mut text = String::new();
    let name = args.file.display();
    let read = if args.file.as_os_str() == "-" {
        std::io::stdin().take(MOST_BYTES + 1).read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(&args.file).with_context(|| format!("cannot read {name}"));
        file.map_err(Failure::Usage)?.take(MOST_BYTES + 1).read_to_string(&mut text)
    };
    read.with_context(|| format!("cannot read {name}")).map_err(Failure::Usage)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Failure::Usage(anyhow!("{name}: a manifest may have {} MiB", MOST_BYTES >> 20)));
    }
    Ok(text)
}

fn workloads(text: &str) -> Result<Vec<Workload>, Failure> {
    let mut all = Vec::new();
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    for document in documents.iter().filter(|document| {
        document.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    }) {
        let object: Value = serde_saphyr::from_str(document)
            .map_err(|error| Failure::Usage(anyhow!("the manifest cannot be read: {error}")))?;
        collect(&object, &mut all).map_err(Failure::Usage)?;
    }
    if all.is_empty() {
        return Err(Failure::Usage(anyhow!("nothing in the manifest has pods")));
    }
    let pods = all.iter().fold(0_u64, |sum, one| sum.saturating_add(one.replicas));
    if pods > MOST_PODS {
        return Err(Failure::Usage(anyhow!(
            "the manifest stands for {} pods; {} are tried at most",
            thousands(pods),
            thousands(MOST_PODS)
        )));
    }
    Ok(all)
}

/// Adds the pods an object stands for; what has none is passed over.
fn collect(object: &Value, all: &mut Vec<Workload>) -> anyhow::Result<()> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().or(object["metadata"]["generateName"].as_str());
    let name = name.unwrap_or("unnamed");
    let spec = &object["spec"];
    let number = |path: &str, value: &Value, usual: u64| match value {
        Value::Null => Ok(usual),
        value => value.as_u64().ok_or_else(|| anyhow!("{kind} {name}: {path} is no count: {value}")),
    };
    let (template, replicas) = match kind {
        "Pod" => (object, 1),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" => {
            (&spec["template"], number("spec.replicas", &spec["replicas"], 1)?)
        }
        "Job" => (&spec["template"], at_once(spec, &number)?),
        "CronJob" => {
            let job = &spec["jobTemplate"]["spec"];
            (&job["template"], at_once(job, &number)?)
        }
        "List" => {
            let items = object["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            return items.iter().try_for_each(|item| collect(item, all));
        }
        "" => bail!("the manifest has an object without kind"),
        "DaemonSet" => bail!("DaemonSet {name}: its pods come with nodes and ask for none"),
        _ => return Ok(()),
    };
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    let mut metadata = template["metadata"].clone();
    if !metadata.is_object() {
        metadata = json!({});
    }
    metadata["name"] = json!(name);
    metadata["namespace"] = json!(namespace);
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"] });
    let mut pod: Pod = serde_json::from_value(pod).with_context(|| format!("{kind} {name}"))?;
    let spec = pod.spec.as_mut().with_context(|| format!("{kind} {name} has no pods"))?;
    let init = spec.init_containers.iter_mut().flatten();
    spec.containers.iter_mut().chain(init).for_each(requests_from_limits);
    all.push(Workload { name: format!("{kind} {name}"), pod, replicas });
    Ok(())
}

/// How many pods of a job run at once.
fn at_once(spec: &Value, number: &dyn Fn(&str, &Value, u64) -> anyhow::Result<u64>) -> anyhow::Result<u64> {
    let parallelism = number("spec.parallelism", &spec["parallelism"], 1)?;
    Ok(parallelism.min(number("spec.completions", &spec["completions"], parallelism)?))
}

/// What an API server does to a pod that says limits alone.
fn requests_from_limits(container: &mut Container) {
    let Some(resources) = &mut container.resources else { return };
    let Some(limits) = resources.limits.clone() else { return };
    let requests = resources.requests.get_or_insert_default();
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

fn ask(workloads: &[Workload], cluster: &str, priority: Option<i32>) -> Asked {
    let mut found = Asked::default();
    let mut demand = Demand::new(cluster);
    for workload in workloads {
        found.pods += workload.replicas;
        let mut pod = workload.pod.clone();
        if let (Some(priority), Some(spec)) = (priority, &mut pod.spec) {
            spec.priority = Some(priority);
        }
        let wanted = match translate(&pod, &Policy::default()) {
            Translation::Skipped(skip) => {
                *found.skipped.entry(skip.name().to_owned()).or_default() += workload.replicas;
                continue;
            }
            Translation::Wanted(wanted) => wanted,
        };
        found.class = found.class.or_else(|| wanted.class.clone());
        for loss in &wanted.losses {
            let loss =
                Loss { field: loss.field, effect: loss.effect.name(), sentence: loss.sentence.clone() };
            if !found.losses.contains(&loss) {
                found.losses.push(loss);
            }
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let request = asked(namespace, &wanted.request(None));
        for number in 0..workload.replicas {
            if let Err(bad) = demand.put(&format!("{}-{number}", workload.name), &request) {
                found.refused.push(format!("{}: {bad}", workload.name));
                break;
            }
        }
    }
    found.needs = demand.rollup(|_| None).iter().map(CapacityNeed::from).collect();
    found
}

/// Why needs of the cluster are short with it that are not short without it.
fn short<'a>(answer: &'a WhatIfAnswer, cluster: &'a str) -> impl Iterator<Item = String> + 'a {
    let changed = answer.needs.iter().filter(move |change| {
        let own = change.need.as_ref().is_some_and(|need| need.cluster == cluster);
        own && change.satisfied_before && !change.satisfied_after
    });
    changed.map(|change| reason(change.reason_after))
}

fn more(answer: &WhatIfAnswer) -> f64 {
    let usd =
        |side: &Option<bigfleet_view::v1::WhatIfSide>| side.as_ref().map_or(0.0, |side| side.usd_per_hour);
    usd(&answer.after) - usd(&answer.before)
}

/// How long it takes until the slowest of the machines it gets has joined, by what was observed of their like.
fn ready(answer: &WhatIfAnswer, truth: &ProviderTruth) -> Option<(f64, f64)> {
    let seen =
        |took: &Option<Took>| took.filter(|took| took.samples > 0).map(|took| (took.p50_secs, took.p90_secs));
    let of = |decision: &Decision| {
        let row = truth.rows.iter().find(|row| {
            row.instance_type == decision.instance_type && row.capacity_type == decision.capacity_type
        })?;
        let configure = seen(&row.configure)?;
        match decision.kind() {
            ActionKind::Bootstrap => Some(configure),
            ActionKind::Provision => {
                let create = seen(&row.create)?;
                Some((create.0 + configure.0, create.1 + configure.1))
            }
            ActionKind::Preempt => {
                let drain = seen(&row.drain)?;
                Some((drain.0 + configure.0, drain.1 + configure.1))
            }
            _ => None,
        }
    };
    let gets = answer.only_after.iter().filter(|decision| {
        matches!(decision.kind(), ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Preempt)
    });
    let times: Option<Vec<(f64, f64)>> = gets.map(of).collect();
    let times = times.filter(|times| !times.is_empty())?;
    Some(times.iter().fold((0.0, 0.0), |most, one| (f64::max(most.0, one.0), f64::max(most.1, one.1))))
}

fn story(args: &Args, asked: &Asked, answer: &WhatIfAnswer, ready_secs: Option<(f64, f64)>) -> Story {
    let mut story = Story::default();
    let mark = sentence::simulated(answer.as_of.as_ref());
    let pods = count(asked.pods, "pod");
    let cluster = &args.cluster;
    let reasons: Vec<String> = short(answer, cluster).collect();
    match (asked.needs.is_empty(), reasons.is_empty()) {
        (true, _) => {
            story.heading(format!("{pods} in {cluster} would ask the fleet for nothing.{mark}"), Tone::Warn)
        }
        (_, true) => story.heading(format!("{pods} would fit in {cluster}.{mark}"), Tone::Good),
        (_, false) => {
            story.heading(format!("{pods} would not fit in {cluster} as it is now.{mark}"), Tone::Bad)
        }
    };
    for reason in reasons {
        story.say_toned("why not", reason, Tone::Bad);
    }
    let (before, after) =
        (answer.before.clone().unwrap_or_default(), answer.after.clone().unwrap_or_default());
    story.say(
        "price",
        format!(
            "{} now, {} with it ({}/h)",
            hourly(before.usd_per_hour),
            hourly(after.usd_per_hour),
            usd_change(more(answer))
        ),
    );
    if let Some((half, most)) = ready_secs {
        let span = |secs: f64| span((secs * 1e9) as i64);
        story.say(
            "ready",
            format!("in {} in half of the cases, in {} in nine of ten", span(half), span(most)),
        );
    }
    let mut where_ = BTreeMap::new();
    for decision in &answer.only_after {
        let own = decision.need.as_ref().is_some_and(|need| need.cluster == *cluster);
        if own && decision.kind() != ActionKind::Preempt {
            let place = (kind_done(decision.kind), decision.instance_type.clone(), decision.zone.clone());
            *where_.entry(place).or_insert(0_u64) += 1;
        }
    }
    if where_.is_empty() && !asked.needs.is_empty() && is_short_of_nothing(answer, cluster) {
        story.say("where", "on machines the cluster has already");
    }
    for ((done, instance_type, zone), machines) in where_ {
        story.say("where", format!("{} of {instance_type} in {zone} {done}", count(machines, "machine")));
    }
    let preempted = answer.only_after.iter().filter(|decision| decision.kind() == ActionKind::Preempt);
    for decision in preempted.clone().take(MOST_TOLD) {
        story.say_toned("preempts", sentence::action(decision), Tone::Warn);
    }
    let rest = preempted.count().saturating_sub(MOST_TOLD);
    if rest > 0 {
        story.say("preempts", format!("and {}", count(rest as u64, "more machine")));
    }
    let others = answer.needs.iter().filter(|change| {
        let other = change.need.as_ref().is_some_and(|need| need.cluster != *cluster);
        other && change.satisfied_before && !change.satisfied_after
    });
    for change in others.take(MOST_TOLD) {
        let name = change.need.as_ref().map(crate::words::need).unwrap_or_default();
        story.say_toned("at the expense of", format!("{name}, which would be short"), Tone::Warn);
    }
    for (why, pods) in &asked.skipped {
        story.say("asks for nothing", format!("{}: {why}", count(*pods, "pod")));
    }
    for loss in &asked.losses {
        story.say_toned("not carried", format!("{}: {}", loss.field, loss.sentence), Tone::Warn);
    }
    for refused in &asked.refused {
        story.say_toned("refused", refused.clone(), Tone::Bad);
    }
    story
}

fn is_short_of_nothing(answer: &WhatIfAnswer, cluster: &str) -> bool {
    short(answer, cluster).next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "
# a deployment and a job
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: front}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: c
        image: web
        ports: [{containerPort: 80, hostPort: 80}]
        resources: {limits: {cpu: 2, memory: 1Gi}, requests: {memory: 512Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 4
  completions: 2
  template:
    spec:
      priorityClassName: gold
      nodeSelector: {disk: ssd}
      containers: [{name: c, image: t, resources: {requests: {cpu: 500m}}}]
";

    #[test]
    fn a_manifest_asks_for_what_its_pods_would() {
        let workloads = workloads(MANIFEST).map_err(|_| ()).unwrap();
        let names: Vec<(&str, u64)> = workloads.iter().map(|w| (&*w.name, w.replicas)).collect();
        assert_eq!(names, [("Deployment web", 3), ("Job train", 2)]);
        let asked = ask(&workloads, "shop", None);
        assert_eq!((asked.pods, asked.needs.len(), asked.class.as_deref()), (5, 2, Some("gold")));
        assert!(asked.losses.iter().any(|loss| loss.field == "spec.containers.ports.hostPort"));
        let amounts: Vec<_> = asked.needs.iter().map(|need| need.aggregate_resources.clone()).collect();

        let cpu: Vec<&str> = amounts.iter().map(|one| &*one["cpu"]).collect();
        assert!(
            cpu.contains(&"6") && cpu.contains(&"1"),
            "limits count where no request is said: {amounts:?}"
        );
        let high = ask(&workloads, "shop", Some(900));
        assert!(high.needs.iter().all(|need| need.priority == 900));
    }

    #[test]
    fn what_has_no_pods_or_too_many_is_refused_with_the_bound() {
        let text = |result: Result<Vec<Workload>, Failure>| match result {
            Err(Failure::Usage(error)) => format!("{error:#}"),
            _ => String::new(),
        };
        assert_eq!(text(workloads("kind: Service\n")), "nothing in the manifest has pods");
        let many = "kind: Deployment\nmetadata: {name: a}\nspec: {replicas: 200000, template: {spec: {containers: []}}}\n";
        assert_eq!(text(workloads(many)), "the manifest stands for 200,000 pods; 100,000 are tried at most");
        let bad = "kind: Deployment\nmetadata: {name: a}\nspec: {replicas: -1}\n";
        assert_eq!(text(workloads(bad)), "Deployment a: spec.replicas is no count: -1");
        assert!(text(workloads("kind: DaemonSet\nmetadata: {name: a}\n")).contains("come with nodes"));
        assert!(text(workloads("a: [")).starts_with("the manifest cannot be read"));
    }
}
