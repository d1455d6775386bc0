//! What a cluster hears about its own needs, and says about its own nodes.
//!
//! Verdicts are worked out once per cycle for everybody who watches. What a cluster says about its nodes is kept as it came, one
//! report per cluster, within bounds; nothing in the shard depends on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_engine::Fleet;
use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;
use bigfleet_shard::Shard;
use tonic::{Request, Response, Status};

use crate::convert::amounts;
use crate::known::{self, Known};
use crate::needs::{self, NeedRow};
use crate::pages::{Pages, Stream, stream};
use crate::roles::{Right, check_own};
use crate::service::View;
use crate::shards::{Gone, Shards};
use crate::snapshot::{as_of, blocking};
use crate::truth::{is_coming, last_of};
use crate::v1;

/// Nodes in one report.
const MOST_NODES: usize = 50_000;
/// Needs with something to say in one report, and pods named for one.
const MOST_WAITING: usize = 50_000;
const MOST_EXAMPLES: usize = 50;
/// The longest text in a report.
const LONGEST_BYTES: usize = 1024;
/// The time between two answers if nobody says, and the least.
const MILLIS: u32 = 1000;
const LEAST_MILLIS: u32 = 100;

/// Sizes told of a need that asks for pieces too large for them.
const MOST_SIZES: usize = 8;
/// Short needs looked at for such sizes after one cycle, and machines on their way that are looked up.
const MOST_LOOKED_AT: usize = 1000;
const MOST_COMING: usize = 20_000;

/// What a cluster is told.
#[derive(Clone, Debug, Default, PartialEq)]
struct Own {
    needs: Vec<v1::Verdict>,
    coming: Vec<v1::Coming>,
}

/// What clusters are told, and the cycle it is of.
type Told = (v1::AsOf, Arc<BTreeMap<String, Own>>);

/// What clusters hear and say.
#[derive(Debug, Default)]
pub(crate) struct OwnClusters {
    /// Held while they are worked out: of many who ask after a cycle one does it.
    verdicts: tokio::sync::Mutex<Option<((u64, i64), Told)>>,
    nodes: Mutex<BTreeMap<String, Arc<v1::NodeReport>>>,
}

/// What was worked out away from the shard.
struct Judged {
    verdicts: Vec<v1::Verdict>,
    /// Those that are short, with the identity they were decided under.
    short: Vec<(usize, NeedKey)>,
    /// Machines that drain for needs, with the need.
    in_flight: Vec<(Box<str>, usize)>,
    /// Machines on their way to clusters.
    coming: Vec<Box<str>>,
}

fn verdict(row: NeedRow) -> v1::Verdict {
    let NeedRow { message, machines, .. } = row;
    v1::Verdict {
        decided: message.satisfied || message.reason != 0,
        satisfied: message.satisfied,
        reason: message.reason,
        deficit: message.deficit,
        short_since_unix_nanos: message.short_since_unix_nanos,
        aggregate: message.spec.map(|spec| spec.aggregate_resources).unwrap_or_default(),
        machines: machines.into_iter().map(String::from).collect(),
        acquired: message.acquired,
        in_flight: message.in_flight,
        domain: message.domain,
        parked: message.parked,
        key: message.key,
        ..v1::Verdict::default()
    }
}

/// Whether smaller pieces might find a place where this need found none.
fn may_be_too_large(verdict: &v1::Verdict) -> bool {
    use v1::Reason::{NoMatchingSupply, PreemptionExhausted, PriorityStarved};
    matches!(verdict.reason(), NoMatchingSupply | PreemptionExhausted | PriorityStarved)
        && verdict.key.as_ref().is_some_and(|key| key.group.is_empty())
}

fn judge(fleet: &Fleet) -> Judged {
    let mut judged =
        Judged { verdicts: Vec::new(), short: Vec::new(), in_flight: Vec::new(), coming: Vec::new() };
    let mut looked_at = 0;
    for row in needs::all(fleet) {
        let at = judged.verdicts.len();
        judged.in_flight.extend(row.in_flight.iter().cloned().map(|machine| (machine, at)));
        let (is_short, decided_as) = (!row.message.satisfied, row.decided_as.clone());
        let mut verdict = verdict(row);
        if is_short && may_be_too_large(&verdict) && looked_at < MOST_LOOKED_AT {
            looked_at += 1;
            let sizes = fleet.too_small(&decided_as, MOST_SIZES);
            verdict.too_small = sizes.iter().map(|size| v1::Amounts { amounts: amounts(size) }).collect();
        }
        if is_short {
            judged.short.push((at, decided_as));
        }
        judged.verdicts.push(verdict);
    }
    let mut clusters: Vec<&str> =
        judged.verdicts.iter().filter_map(|verdict| Some(&*verdict.key.as_ref()?.cluster)).collect();
    clusters.sort_unstable();
    clusters.dedup();
    let coming = clusters.into_iter().flat_map(|cluster| fleet.coming(cluster)).map(Box::from);
    judged.coming = coming.take(MOST_COMING).collect();
    judged
}

impl Judged {
    /// Adds when machines are expected, and sorts everything by cluster.
    fn by_cluster(self, expected: Vec<(Known, Option<v1::Expected>)>) -> BTreeMap<String, Own> {
        let Self { mut verdicts, in_flight, .. } = self;
        let mut told: BTreeMap<String, Own> = BTreeMap::new();
        let mut by_machine: BTreeMap<Box<str>, Option<v1::Expected>> = BTreeMap::new();
        for (known, expected) in expected.into_iter().filter(|(known, _)| is_coming(known)) {
            let machine_id = known.machine.id.to_string();
            if known.machine.state != MachineState::Draining {
                let cluster = match known.bound_for() {
                    Some(key) => key.cluster.to_string(),
                    None => known.machine.cluster.to_string(),
                };
                told.entry(cluster).or_default().coming.push(v1::Coming { machine_id, expected });
            }
            by_machine.insert(known.machine.id.clone(), expected);
        }
        let add = |verdict: &mut v1::Verdict, machine: &str| {
            let Some(expected) = by_machine.get(machine) else { return };
            verdict.coming += 1;
            if let Some(this) = *expected {
                verdict.expected = Some(last_of(verdict.expected, this));
            }
        };
        if !by_machine.is_empty() {
            for verdict in &mut verdicts {
                for machine in std::mem::take(&mut verdict.machines) {
                    add(verdict, &machine);
                    verdict.machines.push(machine);
                }
            }
            for (machine, at) in in_flight {
                add(&mut verdicts[at], &machine);
            }
        }
        for verdict in verdicts {
            let cluster = verdict.key.as_ref().map(|key| key.cluster.clone()).unwrap_or_default();
            told.entry(cluster).or_default().needs.push(verdict);
        }
        told
    }
}

impl<S: Shards> View<S> {
    /// The verdicts of the last cycle.
    async fn told(&self) -> Result<Told, Status> {
        let mut cached = self.own_clusters.verdicts.lock().await;
        let have = cached.as_ref().map(|(of, _)| *of);
        let simulated = self.about.simulated;
        let look = move |shard: &Shard, now: i64| {
            let of = (shard.cycle(), shard.last_cycle_unix_nanos().unwrap_or_default());
            (have != Some(of)).then(|| (of, shard.engine().fork(), as_of(shard, now, simulated)))
        };
        let Some((of, fleet, as_of)) = self.shards.inspect(look).await? else {
            return cached.as_ref().map(|(_, told)| told.clone()).ok_or_else(|| Gone.into());
        };
        let mut judged = blocking(move || Ok(judge(&fleet))).await?;
        let look = move |shard: &Shard, _| {
            for (at, key) in &judged.short {
                if let Some(shortfall) = shard.ledger().get(key) {
                    judged.verdicts[*at].short_since_unix_nanos = shortfall.since.unix_nanos;
                }
            }
            judged
        };
        let mut judged = self.shards.inspect(look).await?;
        let mut coming = std::mem::take(&mut judged.coming);
        coming.extend(judged.in_flight.iter().map(|(machine, _)| machine.clone()).take(MOST_COMING));
        let coming = known::named(&*self.shards, coming).await?;
        let expected = self.expectations(coming, as_of.now_unix_nanos).await?;
        let told = (as_of, Arc::new(judged.by_cluster(expected)));
        *cached = Some((of, told.clone()));
        Ok(told)
    }

    async fn watch_own(
        &self,
        request: v1::WatchVerdictsRequest,
        pages: Pages<v1::Verdicts>,
    ) -> Result<(), Status> {
        let millis = if request.min_interval_millis == 0 { MILLIS } else { request.min_interval_millis };
        let interval = Duration::from_millis(millis.max(LEAST_MILLIS).into());
        let mut cycles = self.shards.cycles();
        let mut last: Option<Own> = None;
        loop {
            cycles.mark_unchanged();
            let (as_of, by_cluster) = self.told().await?;
            let own = by_cluster.get(&request.cluster_id).cloned().unwrap_or_default();
            if last.as_ref() != Some(&own) {
                let Own { needs, coming } = own.clone();
                pages.send(v1::Verdicts { as_of: Some(as_of), needs, coming }).await?;
                last = Some(own);
            }
            tokio::select! {
                () = self.about.clock.sleep(interval) => {}
                () = pages.closed() => return Ok(()),
            }
            tokio::select! {
                changed = cycles.changed() => if changed.is_err() { return Err(Gone.into()) },
                () = pages.closed() => return Ok(()),
            }
        }
    }

    async fn check_known(&self, cluster: &str) -> Result<(), Status> {
        let name = cluster.to_owned();
        if self.shards.inspect(move |shard, _| shard.clusters().contains_key(&*name)).await? {
            return Ok(());
        }
        let cluster = bigfleet_model::text::Quoted(cluster);
        Err(Status::not_found(format!("no cluster {cluster} has a session here; open one first")))
    }
}

/// Refuses a report that nobody could have meant.
fn check_report(report: &v1::NodeReport) -> Result<(), Status> {
    if report.nodes.len() > MOST_NODES {
        let count = report.nodes.len();
        return Err(Status::invalid_argument(format!(
            "nodes: {count} of them; at most {MOST_NODES} are taken"
        )));
    }
    for (at, node) in report.nodes.iter().enumerate() {
        for (field, text) in [
            ("machine_id", &node.machine_id),
            ("node_name", &node.node_name),
            ("provider_id", &node.provider_id),
            ("drain", &node.drain),
            ("blocked_example", &node.blocked_example),
        ] {
            if text.len() > LONGEST_BYTES {
                let bytes = text.len();
                return Err(Status::invalid_argument(format!(
                    "nodes[{at}].{field}: {bytes} bytes; at most {LONGEST_BYTES} are taken"
                )));
            }
        }
        let amounts = node.allocatable.iter();
        if node.allocatable.len() > 64
            || amounts.map(|(name, amount)| name.len() + amount.len()).any(|bytes| bytes > LONGEST_BYTES)
        {
            return Err(Status::invalid_argument(format!("nodes[{at}].allocatable: too many or too long")));
        }
    }
    if report.waiting.len() > MOST_WAITING {
        let count = report.waiting.len();
        return Err(Status::invalid_argument(format!(
            "waiting: {count} needs; at most {MOST_WAITING} are taken"
        )));
    }
    for (at, need) in report.waiting.iter().enumerate() {
        let amounts = need.reserved.iter().map(|(name, amount)| name.len() + amount.len());
        let names = [&need.fingerprint, &need.group].into_iter().map(|text| text.len() / 64);
        let texts = need.examples.iter().map(String::len);
        if need.examples.len() > MOST_EXAMPLES
            || need.reserved.len() > 64
            || amounts.chain(names).chain(texts).any(|bytes| bytes > LONGEST_BYTES)
        {
            return Err(Status::invalid_argument(format!("waiting[{at}]: too many texts, or too long")));
        }
    }
    Ok(())
}

impl OwnClusters {
    /// Adds to needs what their clusters say about them.
    pub(crate) fn add_to(&self, needs: &mut [v1::Need]) {
        let reports = self.nodes.lock().expect("no holder panics");
        for need in needs {
            let Some(key) = &need.key else { continue };
            let report = reports.get(&key.cluster);
            let mut waiting = report.into_iter().flat_map(|report| &report.waiting);
            let of = waiting.find(|of| of.fingerprint == key.fingerprint && of.group == key.group);
            if let Some(of) = of {
                need.pods_waiting = of.pods;
                need.pods_waiting_examples.clone_from(&of.examples);
                need.reserved.clone_from(&of.reserved);
            }
        }
    }
}

#[tonic::async_trait]
impl<S: Shards> v1::cluster_view_server::ClusterView for View<S> {
    type WatchVerdictsStream = Stream<v1::Verdicts>;

    async fn watch_verdicts(
        &self,
        request: Request<v1::WatchVerdictsRequest>,
    ) -> Result<Response<Self::WatchVerdictsStream>, Status> {
        check_own(request.extensions(), Right::Read, &request.get_ref().cluster_id)?;
        let (view, request) = (self.clone(), request.into_inner());
        Ok(stream(|pages| async move { view.watch_own(request, pages).await }))
    }

    async fn report_nodes(
        &self,
        request: Request<v1::NodeReport>,
    ) -> Result<Response<v1::ReportNodesAnswer>, Status> {
        check_own(request.extensions(), Right::Command, &request.get_ref().cluster_id)?;
        let report = request.into_inner();
        check_report(&report)?;
        self.check_known(&report.cluster_id).await?;
        let mut nodes = self.own_clusters.nodes.lock().expect("no holder panics");
        nodes.insert(report.cluster_id.clone(), Arc::new(report));
        Ok(Response::new(v1::ReportNodesAnswer {}))
    }

    async fn get_nodes(
        &self,
        request: Request<v1::GetNodesRequest>,
    ) -> Result<Response<v1::NodeReport>, Status> {
        check_own(request.extensions(), Right::Read, &request.get_ref().cluster_id)?;
        let cluster_id = request.into_inner().cluster_id;
        let known = self.own_clusters.nodes.lock().expect("no holder panics").get(&cluster_id).cloned();
        let report = known.map(|report| v1::NodeReport::clone(&report));
        Ok(Response::new(report.unwrap_or(v1::NodeReport { cluster_id, ..v1::NodeReport::default() })))
    }
}
